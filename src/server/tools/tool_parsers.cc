#include "server/tools/tool_parsers.h"

#include <algorithm>

namespace quire::server {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxHeldBytes = size_t{64} << 10;

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

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

void CallReader::reset() {
  scanner_ = {};
  part_ = Part::kNone;
  key_ = Key::kOther;
  text_.clear();
  name_.clear();
  held_arguments_.clear();
  is_written_ = false;
  has_arguments_ = false;
}

// An object with other keys is JSON content, not a call.
bool CallReader::end_key() {
  part_ = Part::kNone;
  if (text_ == "name") {
    key_ = Key::kName;
  } else if (text_ == "arguments" || text_ == "parameters") {
    key_ = Key::kArguments;
  } else {
    key_ = Key::kOther;
    return is_written_ || text_ == "id" || text_ == "type";
  }
  return true;
}

bool CallReader::begin_value(char c) {
  if (key_ == Key::kName && name_.empty()) {
    part_ = Part::kName;
    text_.clear();
    return c == '"';
  }
  if (key_ == Key::kArguments && !has_arguments_ && c != 'n') {  // null means no arguments
    part_ = Part::kArguments;
    return c == '{';
  }
  return true;
}

bool CallReader::end_name(MessageWriter& out) {
  part_ = Part::kNone;
  if (!has_name(tool_names_, text_)) return false;
  name_ = text_;
  if (has_arguments_) write_call(out);
  return true;
}

void CallReader::write_call(MessageWriter& out) {
  out.begin_call(name_, short_ids_);
  is_written_ = true;
  out.arguments(held_arguments_);
  held_arguments_ = {};
}

// Updates the state after `c` was pushed to the scanner.
bool CallReader::track(char c, bool begins_value, MessageWriter& out) {
  if (begins_value && !begin_value(c)) return false;
  switch (part_) {
    case Part::kNone:
      if (scanner_.in_string() && scanner_.string_is_key() && scanner_.depth() == 1) {
        part_ = Part::kKey;
        text_.clear();
      }
      return true;
    case Part::kKey:
    case Part::kName:
      if (!scanner_.in_string()) return part_ == Part::kKey ? end_key() : end_name(out);
      if (!begins_value) text_ += c;
      return text_.size() <= kMaxNameBytes;
    case Part::kArguments:
      if (!is_written_ && !name_.empty()) write_call(out);
      if (is_written_) {
        out.arguments(std::string_view(&c, 1));
      } else {
        held_arguments_ += c;
      }
      if (scanner_.depth() == 1) {
        part_ = Part::kNone;
        has_arguments_ = true;
      }
      return true;
  }
  return true;
}

CallReader::Result CallReader::push(char c, MessageWriter& out) {
  const bool begins_value = scanner_.depth() == 1 && scanner_.expects_value() && !is_json_space(c);
  if (!scanner_.push(c) || !track(c, begins_value, out)) return Result::kNoCall;
  if (!scanner_.done()) return Result::kMore;
  if (name_.empty()) return Result::kNoCall;
  if (!is_written_) {
    held_arguments_ = "{}";
    write_call(out);
  }
  return Result::kDone;
}

void MarkedCalls::push(char c, MessageWriter& out) {
  switch (region_) {
    case Region::kText:
      if (marker_.push(c, [&](std::string_view text) { out.content(text); })) {
        held_ = marker_.text();
        region_ = Region::kBetween;
        marker_found();
      }
      return;
    case Region::kBetween:
      return push_between(c, out);
    case Region::kObject:
      break;
  }
  const bool was_written = reader_.is_written();
  switch (reader_.push(c, out)) {
    case CallReader::Result::kMore:
      if (reader_.is_written()) {
        if (!was_written) held_ = {};
        return;
      }
      return hold(c, out);
    case CallReader::Result::kDone:
      held_ = {};
      region_ = Region::kBetween;
      return call_ended();
    case CallReader::Result::kNoCall:
      if (!reader_.has_arguments() || !reader_.is_written()) return back_to_text(c, out);
      // The call is complete except for its closing brace, which small models forget.
      region_ = Region::kBetween;
      call_ended();
      return push_between(c, out);
  }
}

void MarkedCalls::finish(MessageWriter& out) {
  out.content(held_);
  out.content(marker_.take_held());
  held_ = {};
}

void MarkedCalls::begin_object(char c, MessageWriter& out) {
  reader_.reset();
  region_ = Region::kObject;
  push(c, out);
}

void MarkedCalls::back_to_text(char c, MessageWriter& out) {
  out.content(std::exchange(held_, {}));
  region_ = Region::kText;
  push(c, out);
}

void MarkedCalls::hold(char c, MessageWriter& out) {
  if (held_.size() == kMaxHeldBytes) return back_to_text(c, out);
  held_ += c;
}

void HermesCalls::push_between(char c, MessageWriter& out) {
  constexpr std::string_view kClose = "</tool_call>";
  if (!after_call_) {
    if (c == '{') return begin_object(c, out);
    return is_json_space(c) ? hold(c, out) : back_to_text(c, out);
  }
  if (num_close_ == 0 && is_json_space(c)) return hold(c, out);
  if (c != kClose[num_close_]) return back_to_text(c, out);
  hold(c, out);
  if (++num_close_ < kClose.size()) return;
  held_ = {};
  region_ = Region::kText;
}

void HermesCalls::call_ended() {
  num_close_ = 0;
  after_call_ = true;
}

void HermesCalls::finish(MessageWriter& out) {
  if (region_ == Region::kBetween && after_call_) held_ = {};  // the text ends in the closing tag
  MarkedCalls::finish(out);
}

void LlamaCalls::push_between(char c, MessageWriter& out) {
  if (c == '{') return begin_object(c, out);
  if (is_json_space(c) || (after_call_ && c == ';')) return hold(c, out);
  back_to_text(c, out);
}

void MistralCalls::push_between(char c, MessageWriter& out) {
  if (step_ == Step::kName) return push_name(c, out);
  if (step_ == Step::kArguments) return push_arguments(c, out);
  if (is_json_space(c)) return hold(c, out);
  switch (step_) {
    case Step::kOpen:
      if (c == '[') {
        step_ = Step::kItem;
        return hold(c, out);
      }
      step_ = Step::kName;
      name_.clear();
      return push_name(c, out);
    case Step::kItem:
      return c == '{' ? begin_object(c, out) : back_to_text(c, out);
    default:
      break;
  }
  if (c == ',') {
    step_ = Step::kItem;
    return hold(c, out);
  }
  if (c != ']') return back_to_text(c, out);
  held_ = {};
  region_ = Region::kText;
}

void MistralCalls::push_name(char c, MessageWriter& out) {
  constexpr size_t kMaxBytes = 512;
  constexpr std::string_view kArgs = "[ARGS]";
  if (c != '{') {
    if (name_.size() == kMaxBytes) return back_to_text(c, out);
    name_ += c;
    return hold(c, out);
  }
  const std::string_view name = std::string_view(name_).substr(0, name_.find('['));
  const std::string_view rest = std::string_view(name_).substr(name.size());
  const bool well_formed =
      rest.empty() || rest == kArgs || (rest.starts_with("[CALL_ID]") && rest.ends_with(kArgs));
  if (!well_formed || !has_name(tool_names_, name)) return back_to_text(c, out);
  out.begin_call(name, true);
  held_ = {};
  scanner_ = {};
  step_ = Step::kArguments;
  push_arguments(c, out);
}

void MistralCalls::push_arguments(char c, MessageWriter& out) {
  if (!scanner_.push(c)) return back_to_text(c, out);
  out.arguments(std::string_view(&c, 1));
  if (scanner_.done()) region_ = Region::kText;
}

void ForcedCalls::push(char c, MessageWriter& out) {
  if (state_ == ArrayState::kBetween && c == '{') {
    reader_.reset();
    state_ = ArrayState::kObject;
  }
  if (state_ != ArrayState::kObject) return;
  const CallReader::Result result = reader_.push(c, out);
  if (result == CallReader::Result::kDone) state_ = ArrayState::kBetween;
  if (result == CallReader::Result::kNoCall) state_ = ArrayState::kEnded;
}

void ForcedArguments::push(char c, MessageWriter& out) {
  if (is_json_space(c)) {
    if (has_begun_) spaces_ += c;
    return;
  }
  if (!std::exchange(has_begun_, true)) out.begin_call(name_, false);
  out.arguments(std::exchange(spaces_, {}));
  out.arguments(std::string_view(&c, 1));
}

}  // namespace quire::server
