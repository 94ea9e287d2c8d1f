// Collects the deltas of one call of OutputParser::feed().
#pragma once

#include <cstdint>
#include <optional>
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
  MessageWriter(const OutputParserConfig& config, bool short_ids)
      : make_id_(config.make_id != nullptr ? config.make_id : random_id),
        short_ids_(short_ids),
        keeps_first_call_only_(config.keeps_first_call_only),
        holds_calls_(config.holds_calls),
        held_tools_(config.held_tools) {}

  void reasoning(std::string_view text);
  // Adds content. White space next to a call or at the start of the content is held until the
  // following text is known. It is dropped if a call follows, and at the end of a message that has
  // a call.
  void content(std::string_view text);
  // `id` is the id that the model wrote. The writer makes another id if `id` is empty, was used
  // before or is not valid (short_ids), or if the model has written 256 ids.
  void begin_call(std::string_view name, std::string_view id = {});
  void arguments(std::string_view text);
  // Ends the open call, and writes a held call if it is whole. Returns whether the caller must
  // write the text of the call as content: no call was begun, or a held call is cut.
  bool end_call(bool is_whole);
  // Returns whether the open call is held. Its text must then be kept until it is whole.
  bool holds_call() const { return held_.has_value(); }
  void finish();
  MessageDeltas take() { return std::exchange(deltas_, {}); }
  // Returns whether there is a call and only white space precedes the first call.
  bool begins_with_call() const { return begins_with_call_; }

 private:
  struct HeldCall {
    std::string name;
    std::string id;  // the id that the model wrote
    std::string arguments = {};
  };
  // In the order of a delta's parts (MessageDelta).
  enum class Kind : uint8_t { kReasoning, kContent, kCall, kCut };

  bool is_dropped() const { return keeps_first_call_only_ && num_calls_ > 1; }
  std::string next_id(std::string_view written);
  void write_content(std::string_view text);
  void write_call(std::string_view name, std::string_view id);
  // Returns the delta to which a part of this kind can be added.
  MessageDelta& delta(Kind kind);

  std::string (*make_id_)();
  bool short_ids_;
  bool keeps_first_call_only_;
  bool holds_calls_;
  std::vector<std::string> held_tools_;
  std::optional<HeldCall> held_;
  bool is_open_ = false;  // a call has begun and not ended
  int num_calls_ = 0;
  bool at_boundary_ = true;
  bool begins_with_call_ = false;
  std::string spaces_;
  std::vector<std::string> written_ids_;
  MessageDeltas deltas_;
};

}  // namespace quire::server
