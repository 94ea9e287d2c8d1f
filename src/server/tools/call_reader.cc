#include "server/tools/call_reader.h"

#include <algorithm>
#include <utility>

namespace quire::server {
namespace {

constexpr size_t kMaxNameBytes = 256;

}  // namespace

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void CallReader::reset() {
  loose_ = LooseJson(field_.notation);
  scanner_ = {};
  is_arguments_ = false;
  part_ = Part::kNone;
  key_ = Key::kOther;
  text_.clear();
  name_.clear();
  id_.clear();
  held_arguments_.clear();
  is_written_ = false;
  has_arguments_ = false;
}

void CallReader::reset(std::string_view name, std::string_view id) {
  reset();
  is_arguments_ = true;
  name_ = name;
  id_ = id;
}

void CallReader::open(MessageWriter& out) {
  accept('{', out);
}

// Returns false for a key that calls do not have: the object is then JSON content, not a call.
bool CallReader::end_key() {
  part_ = Part::kNone;
  const auto is_usual_name = [](std::string_view key) {
    return key == "arguments" || key == "parameters";
  };
  const bool is_usual = is_usual_name(field_.arguments_key) && is_usual_name(text_);
  if (text_ == field_.name_key) {
    key_ = Key::kName;
  } else if (text_ == field_.arguments_key || is_usual) {
    key_ = Key::kArguments;
  } else {
    key_ = Key::kOther;
    return is_written_ || text_ == "id" || text_ == "type" || text_ == "tool_call_id";
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
  out.begin_call(name_, id_);
  is_written_ = true;
  out.arguments(held_arguments_);
  held_arguments_ = {};
}

// Updates the state after `c` was pushed to the scanner.
bool CallReader::track(char c, bool begins_value, MessageWriter& out) {
  if (is_arguments_) {
    if (!is_written_) write_call(out);
    out.arguments(std::string_view(&c, 1));
    return true;
  }
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

bool CallReader::accept(char c, MessageWriter& out) {
  if (scanner_.done()) return is_json_space(c);  // white space that the notation adds
  const bool begins_value = scanner_.depth() == 1 && scanner_.expects_value() && !is_json_space(c);
  return scanner_.push(c) && track(c, begins_value, out);
}

CallReader::Result CallReader::push(char c, MessageWriter& out) {
  if (!loose_.push(c, scanner_, [&](char b) { return accept(b, out); })) return Result::kNoCall;
  return scanner_.done() ? end(out) : Result::kMore;
}

CallReader::Result CallReader::end(MessageWriter& out) {
  if (name_.empty()) return Result::kNoCall;
  if (!is_written_) {
    held_arguments_ = "{}";
    write_call(out);
  }
  return Result::kDone;
}

bool CallReader::close(MessageWriter& out) {
  const auto emit = [&](char b) { return accept(b, out); };
  if (!is_written_ || scanner_.depth() == 0 || loose_.must_continue() || !loose_.end_word(emit)) {
    return false;
  }
  while (!scanner_.done()) {
    if (!scanner_.can_close() || !accept(scanner_.closer(), out)) return false;
  }
  return end(out) == Result::kDone;
}

void ForcedCalls::push(char c, MessageWriter& out) {
  if (state_ == ArrayState::kBetween && c == '{') {
    reader_.reset();
    state_ = ArrayState::kObject;
  }
  if (state_ == ArrayState::kObject || !has_calls_) text_ += c;
  if (state_ != ArrayState::kObject) return;
  const CallReader::Result result = reader_.push(c, out);
  if (result == CallReader::Result::kDone) end_object(ArrayState::kBetween, out);
  if (result == CallReader::Result::kNoCall) end_object(ArrayState::kEnded, out);
}

void ForcedCalls::end_object(ArrayState next, MessageWriter& out) {
  has_calls_ = has_calls_ || reader_.is_written();
  if (out.end_call(reader_.has_whole_arguments())) out.content(text_);
  text_.clear();
  state_ = next;
}

void ForcedCalls::finish(MessageWriter& out) {
  if (state_ == ArrayState::kObject) end_object(ArrayState::kEnded, out);
  out.content(text_);
}

void ForcedArguments::push(char c, MessageWriter& out) {
  const bool has_begun = !text_.empty();
  if (!has_begun && is_json_space(c)) return;
  text_ += c;
  if (scanner_.done() && is_json_space(c)) return;
  is_valid_ = is_valid_ && !scanner_.done() && scanner_.push(c);
  if (!has_begun) out.begin_call(name_);
  out.arguments(std::string_view(&c, 1));
}

void ForcedArguments::finish(MessageWriter& out) {
  const bool is_whole = is_valid_ && scanner_.done() && text_.front() == '{';
  if (out.end_call(is_whole)) out.content(text_);
}

}  // namespace quire::server
