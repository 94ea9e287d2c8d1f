// Collects what the parsers find.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "server/tools/output_parser.h"

namespace quire::server {

// Collects the delta of one feed() and tracks which call is being written.
class MessageWriter {
 public:
  MessageWriter(std::string (*make_id)(), bool single_call)
      : make_id_(make_id), single_call_(single_call) {}

  void reasoning(std::string_view text) { delta_.reasoning += text; }
  // Adds content. White space next to a call or at the start of the content is held until the
  // following text is known. It is dropped before a call, and at the end after a call.
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
