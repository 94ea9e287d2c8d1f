// Collects the delta of one OutputParser::feed().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/tools/output_parser.h"

namespace quire::server {

// The most bytes of text that are held back until their kind is known.
constexpr size_t kMaxHeldBytes = size_t{64} << 10;

// Adds the pieces of a message and tracks which call is being written.
class MessageWriter {
 public:
  MessageWriter(std::string (*make_id)(), bool short_ids, bool keeps_first_call_only)
      : make_id_(make_id), short_ids_(short_ids), keeps_first_call_only_(keeps_first_call_only) {}

  void reasoning(std::string_view text) { delta_.reasoning += text; }
  // Adds content. White space next to a call or at the start of the content is held until the
  // following text is known. It is dropped if a call follows, and at the end of a message that has
  // a call.
  void content(std::string_view text);
  // `id` is the id that the model wrote; if it is empty or was used before, one is made.
  void begin_call(std::string_view name, std::string_view id = {});
  void arguments(std::string_view text);
  void finish();
  MessageDelta take() { return std::exchange(delta_, {}); }
  // Whether there is a call and only white space precedes the first one.
  bool begins_with_call() const { return begins_with_call_; }

 private:
  bool is_dropped() const { return keeps_first_call_only_ && num_calls_ > 1; }
  std::string next_id(std::string_view written);

  std::string (*make_id_)();
  bool short_ids_;
  bool keeps_first_call_only_;
  int num_calls_ = 0;
  bool at_boundary_ = true;
  bool begins_with_call_ = false;
  std::string spaces_;
  std::vector<std::string> written_ids_;
  MessageDelta delta_;
};

}  // namespace quire::server
