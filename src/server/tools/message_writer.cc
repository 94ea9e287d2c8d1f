#include "server/tools/message_writer.h"

#include <algorithm>

#include "base/ascii.h"
#include "server/tools/json_scanner.h"

namespace quire::server {

void MessageWriter::content(std::string_view text) {
  constexpr size_t kMaxSpaces = 256;
  for (size_t i = 0; at_boundary_ && i < text.size(); ++i) {
    if (is_json_space(text[i]) && spaces_.size() < kMaxSpaces) {
      spaces_ += text[i];
      continue;
    }
    at_boundary_ = false;
    delta_.content += spaces_;
    spaces_.clear();
    text.remove_prefix(i);
  }
  if (!at_boundary_) delta_.content += text;
}

std::string MessageWriter::next_id(std::string_view written) {
  constexpr size_t kMaxWrittenIds = 256;
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
  spaces_.clear();
  begins_with_call_ = begins_with_call_ || (num_calls_ == 0 && at_boundary_);
  at_boundary_ = true;
  ++num_calls_;
  if (is_dropped()) return;
  delta_.tool_calls.push_back(
      {.index = num_calls_ - 1, .id = next_id(id), .name = std::string(name), .arguments = {}});
}

void MessageWriter::arguments(std::string_view text) {
  if (is_dropped() || text.empty()) return;
  if (delta_.tool_calls.empty() || delta_.tool_calls.back().index != num_calls_ - 1) {
    delta_.tool_calls.push_back({.index = num_calls_ - 1, .id = {}, .name = {}, .arguments = {}});
  }
  delta_.tool_calls.back().arguments += text;
}

void MessageWriter::finish() {
  if (num_calls_ == 0) delta_.content += spaces_;
  spaces_.clear();
}

}  // namespace quire::server
