#include "server/tools/call_reader.h"

#include <algorithm>

namespace quire::server {
namespace {

constexpr size_t kMaxNameBytes = 256;

}  // namespace

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
  if (std::find(tool_names_.begin(), tool_names_.end(), text_) == tool_names_.end()) return false;
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

}  // namespace quire::server
