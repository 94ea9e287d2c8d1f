#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quire::http_client {

// Reads the events of a text/event-stream that arrives in pieces of any size (WHATWG HTML, section
// 9.2). Keeps only an event's `data` lines, joined by '\n'.
class SseReader {
 public:
  explicit SseReader(size_t max_event_bytes = size_t{16} << 20)
      : max_event_bytes_(max_event_bytes) {}

  // Calls on_event(std::string_view data) for each event that `bytes` completes. Returns false, and
  // reads nothing more, once an event has exceeded `max_event_bytes`.
  template <typename OnEvent>
  bool feed(std::string_view bytes, OnEvent&& on_event) {
    while (!bytes.empty() && !is_over_) {
      if (!take_line(bytes)) continue;
      if (end_line()) {
        on_event(std::string_view(event_));
        has_data_ = false;
      }
    }
    return !is_over_;
  }

 private:
  // Moves bytes of the current line to line_; returns true once the line has ended.
  bool take_line(std::string_view& bytes);
  // Processes line_; returns true if it ends an event, which is then in event_.
  bool end_line();

  size_t max_event_bytes_;
  std::string line_;
  std::string event_;
  bool has_data_ = false;
  bool ended_with_cr_ = false;
  bool is_over_ = false;
};

}  // namespace quire::http_client
