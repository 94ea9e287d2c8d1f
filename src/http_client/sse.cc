#include "http_client/sse.h"

#include <algorithm>

namespace quire::http_client {

bool SseReader::take_line(std::string_view& bytes) {
  if (ended_with_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
  ended_with_cr_ = false;
  const size_t size = std::min(bytes.find_first_of("\r\n"), bytes.size());
  if (line_.size() + event_.size() + size > max_event_bytes_) {
    is_over_ = true;
    return false;
  }
  line_.append(bytes.substr(0, size));
  const bool has_end = size < bytes.size();
  ended_with_cr_ = has_end && bytes[size] == '\r';
  bytes.remove_prefix(size + (has_end ? 1 : 0));
  return has_end;
}

bool SseReader::end_line() {
  if (line_.empty()) return has_data_;
  if (!has_data_) event_.clear();
  std::string_view line = line_;
  if (line.starts_with("data") && (line.size() == 4 || line[4] == ':')) {
    line.remove_prefix(std::min<size_t>(line.size(), 5));
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) event_ += '\n';
    event_ += line;
    has_data_ = true;
  }
  line_.clear();
  return false;
}

}  // namespace quire::http_client
