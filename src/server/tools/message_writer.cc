#include "server/tools/message_writer.h"

#include <algorithm>

#include "base/ascii.h"
#include "server/tools/json_scanner.h"

namespace quire::server {

MessageDelta& MessageWriter::delta(Kind kind) {
  const auto kind_of = [](const MessageDelta& delta) {
    if (delta.cut != CutCall::kNone) return Kind::kCut;
    if (!delta.tool_calls.empty()) return Kind::kCall;
    return delta.content.empty() ? Kind::kReasoning : Kind::kContent;
  };
  const bool is_new = deltas_.empty() || kind == Kind::kCut || kind_of(deltas_.back()) > kind;
  if (is_new) deltas_.emplace_back();
  return deltas_.back();
}

void MessageWriter::reasoning(std::string_view text) {
  if (!text.empty()) delta(Kind::kReasoning).reasoning += text;
}

void MessageWriter::write_content(std::string_view text) {
  if (!text.empty()) delta(Kind::kContent).content += text;
}

void MessageWriter::content(std::string_view text) {
  // The bound limits the memory if a model writes only white space.
  constexpr size_t kMaxSpaces = 256;
  for (size_t i = 0; at_boundary_ && i < text.size(); ++i) {
    if (is_json_space(text[i]) && spaces_.size() < kMaxSpaces) {
      spaces_ += text[i];
      continue;
    }
    at_boundary_ = false;
    write_content(spaces_);
    spaces_.clear();
    text.remove_prefix(i);
  }
  if (!at_boundary_) write_content(text);
}

std::string MessageWriter::next_id(std::string_view written) {
  constexpr size_t kMaxWrittenIds = 256;  // bounds the search below; later ids are made
  constexpr size_t kShortId = 9;
  const bool is_valid =
      !short_ids_ || (written.size() == kShortId && std::ranges::all_of(written, is_alphanumeric));
  const bool is_new = is_valid && !written.empty() && written_ids_.size() < kMaxWrittenIds &&
                      std::ranges::find(written_ids_, written) == written_ids_.end();
  if (is_new) {
    written_ids_.emplace_back(written);
    return written_ids_.back();
  }
  std::string id = make_id_();
  return short_ids_ ? id.substr(0, kShortId) : "call_" + id;
}

void MessageWriter::begin_call(std::string_view name, std::string_view id) {
  is_open_ = true;
  if (holds_calls_ || std::ranges::find(held_tools_, name) != held_tools_.end()) {
    held_ = {.name = std::string(name), .id = std::string(id)};
  } else {
    write_call(name, id);
  }
}

void MessageWriter::write_call(std::string_view name, std::string_view id) {
  spaces_.clear();
  begins_with_call_ = begins_with_call_ || (num_calls_ == 0 && at_boundary_);
  at_boundary_ = true;
  ++num_calls_;
  if (is_dropped()) return;
  delta(Kind::kCall)
      .tool_calls.push_back(
          {.index = num_calls_ - 1, .id = next_id(id), .name = std::string(name), .arguments = {}});
}

void MessageWriter::arguments(std::string_view text) {
  if (held_) {
    held_->arguments += text;
    return;
  }
  if (is_dropped() || text.empty()) return;
  std::vector<ToolCallDelta>& calls = delta(Kind::kCall).tool_calls;
  if (calls.empty() || calls.back().index != num_calls_ - 1) {
    calls.push_back({.index = num_calls_ - 1, .id = {}, .name = {}, .arguments = {}});
  }
  calls.back().arguments += text;
}

bool MessageWriter::end_call(bool is_whole) {
  if (!std::exchange(is_open_, false)) return true;
  const std::optional<HeldCall> held = std::exchange(held_, std::nullopt);
  if (is_whole) {
    if (held) write_call(held->name, held->id);
    if (held) arguments(held->arguments);
    return false;
  }
  // A call after the first is dropped with its text.
  const int num_calls = num_calls_ + (held ? 1 : 0);
  if (keeps_first_call_only_ && num_calls > 1) return false;
  delta(Kind::kCut).cut = held ? CutCall::kAsText : CutCall::kBegun;
  return held.has_value();
}

void MessageWriter::finish() {
  if (num_calls_ == 0) write_content(spaces_);
  spaces_.clear();
}

}  // namespace quire::server
