#include "server/tools/message_writer.h"

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

void MessageWriter::begin_call(std::string_view name, bool short_id) {
  spaces_.clear();
  at_boundary_ = true;
  ++num_calls_;
  if (is_dropped()) return;
  constexpr size_t kShortId = 9;
  std::string id = make_id_();
  id = short_id ? id.substr(0, kShortId) : "call_" + id;
  delta_.tool_calls.push_back(
      {.index = num_calls_ - 1, .id = std::move(id), .name = std::string(name), .arguments = {}});
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
