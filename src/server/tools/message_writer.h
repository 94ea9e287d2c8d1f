// Where the parsers of an answer write what they found.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "server/tools/answer_parser.h"

namespace quire::server {

// Collects the delta of one feed; knows which call is being written.
class MessageWriter {
 public:
  MessageWriter(std::string (*make_id)(), bool single_call)
      : make_id_(make_id), single_call_(single_call) {}

  void reasoning(std::string_view text) { delta_.reasoning += text; }
  // White space that touches a call, or that starts the answer's content, is held until what
  // follows is known: before a call and at the end after one it is dropped.
  void content(std::string_view text);
  void begin_call(std::string_view name, bool short_id);
  void arguments(std::string_view text);
  void finish();
  MessageDelta take() { return std::exchange(delta_, {}); }

 private:
  bool is_dropped() const { return single_call_ && num_calls_ > 1; }

  std::string (*make_id_)();
  bool single_call_;
  int num_calls_ = 0;
  bool at_boundary_ = true;
  std::string spaces_;
  MessageDelta delta_;
};

}  // namespace quire::server
