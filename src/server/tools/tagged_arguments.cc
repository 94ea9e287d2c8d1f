#include "server/tools/tagged_arguments.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "server/tools/loose_json.h"

namespace quire::server {
namespace {

constexpr size_t kMaxKeys = 4096;

// Drops the white space that the notation puts around a value.
std::string_view without_trim(std::string_view text, Trim trim, bool at_front, bool at_back) {
  if (trim == Trim::kSpace) {
    while (at_front && !text.empty() && is_json_space(text.front())) text.remove_prefix(1);
    while (at_back && !text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  } else if (trim == Trim::kNewline) {
    if (at_front && text.starts_with('\n')) text.remove_prefix(1);
    if (at_back && text.ends_with('\n')) text.remove_suffix(1);
  }
  return text;
}

}  // namespace

void ArgumentWriter::begin(std::string prefix, ArgumentTypes types, Trim trim) {
  prefix_ = std::move(prefix);
  types_ = types;
  trim_ = trim;
  is_string_ = types.is_text();
  has_begun_ = false;
  held_.clear();
}

void ArgumentWriter::push(std::string_view text, MessageWriter& out) {
  held_ += text;
  if (held_.size() > kMaxHeldBytes) is_string_ = true;  // too long to wait for its end
  if (is_string_) stream(out);
}

// Writes the held text without white space at its end, which may belong to the notation.
void ArgumentWriter::stream(MessageWriter& out) {
  std::string_view text = held_;
  if (!has_begun_) {
    text = without_trim(text, trim_, true, false);
    if (text.empty() && trim_ == Trim::kSpace) held_.clear();
    if (text.empty()) return;
  }
  std::string_view whole = without_trim(text, trim_, false, true);
  // Holds only the last 64 KiB of longer white space.
  if (text.size() - whole.size() > kMaxHeldBytes)
    whole = text.substr(0, text.size() - kMaxHeldBytes);
  if (whole.empty()) return;
  std::string json;
  if (!has_begun_) json = prefix_ + '"';
  has_begun_ = true;
  append_escaped(json, whole);
  out.arguments(json);
  held_ = text.substr(whole.size());
}

void ArgumentWriter::end(MessageWriter& out) {
  const std::string_view text = without_trim(held_, trim_, !has_begun_, true);
  if (!is_string_) {
    out.arguments(prefix_ + typed_value(text, types_));
    return;
  }
  std::string json;
  if (!has_begun_) json = prefix_ + '"';
  append_escaped(json, text);
  out.arguments(json + '"');
}

void TaggedArguments::reset(std::string_view name, std::string_view id, std::string_view schema) {
  name_ = name;
  id_ = id;
  types_ = argument_types(schema);
  keys_.clear();
  tag_ = nullptr;
  is_written_ = false;
  result_ = Result::kMore;
}

TaggedArguments::Result TaggedArguments::read(std::string_view text, bool is_end, bool is_cut,
                                              size_t& num_read, MessageWriter& out) {
  is_cut_ = is_cut;
  num_read = 0;
  bool goes_on = true;
  while (goes_on && result_ == Result::kMore) {
    const std::string_view rest = text.substr(num_read);
    size_t count = 0;
    goes_on = tag_ == nullptr ? read_between(rest, is_end, count, out)
                              : read_value(rest, is_end, count, out);
    num_read += count;
  }
  return result_;
}

void TaggedArguments::write_call(MessageWriter& out) {
  if (std::exchange(is_written_, true)) return;
  out.begin_call(name_, id_);
}

void TaggedArguments::finish_call(Result result, MessageWriter& out) {
  result_ = result;
  if (result != Result::kDone) return;
  write_call(out);
  out.arguments(keys_.empty() ? "{}" : "}");
}

// Reads between two values. Returns whether the reading can continue with this text.
bool TaggedArguments::read_between(std::string_view text, bool is_end, size_t& num_read,
                                   MessageWriter& out) {
  bool is_undecided = false;
  for (const ArgumentTag& tag : field_.tags) {
    const FormMatch match = match_form(tag.open, text, is_end);
    is_undecided |= match.result == Match::kMore;
    if (match.result != Match::kYes) continue;
    begin_argument(tag, match.name, out);
    num_read = match.length;
    return true;
  }
  size_t length = 0;
  for (const Form& form : field_.close) {
    const FormMatch match = match_form(form, text, is_end);
    is_undecided |= match.result == Match::kMore;
    if (match.result == Match::kYes) length = std::max(length, match.length);
  }
  if (is_undecided) return false;
  num_read = length;
  // The call is cut if a limit ended the text before the next tag, or within it.
  const bool is_cut =
      is_end && (trimmed(text).empty() ? is_cut_ : follows(text, false) == Match::kMore);
  if (length > 0 || (is_written_ && !is_cut)) {
    finish_call(Result::kDone, out);
  } else if (!is_written_) {
    finish_call(Result::kNoCall, out);
  } else {
    num_read = text.size();
  }
  return false;
}

void TaggedArguments::begin_argument(const ArgumentTag& tag, std::string_view key,
                                     MessageWriter& out) {
  write_call(out);
  tag_ = &tag;
  const std::string name = codes_.decode(trimmed(key));
  is_repeated_ = keys_.size() >= kMaxKeys || keys_.contains(name);
  if (is_repeated_) return;
  std::string prefix = keys_.empty() ? "{\"" : ", \"";
  append_escaped(prefix, name);
  prefix += "\": ";
  keys_.insert(name);
  ArgumentTypes types;
  const auto found = types_.find(name);
  if (found != types_.end()) types = found->second;
  constexpr uint8_t kAll = 0x7f;
  if (tag.type == ArgumentTag::Type::kString) types = {};
  if (tag.type == ArgumentTag::Type::kJson) types.bits = kAll;
  value_.begin(std::move(prefix), types, field_.trim);
}

bool TaggedArguments::may_end_value(char c) const {
  const auto begins = [&](const Form& form) {
    for (const FormPart& part : form.parts) {
      if (part.kind == FormPart::Kind::kLiteral) return part.text.front() == c;
    }
    return false;
  };
  return c == tag_->close.front() || begins(tag_->open) ||
         (!field_.close.empty() && begins(field_.close.front()));
}

// Returns whether an argument or the end of the call is next, or the end of the text.
Match TaggedArguments::follows(std::string_view text, bool is_end) const {
  Match result = is_end && trimmed(text).empty() ? Match::kYes : Match::kNo;
  const auto consider = [&](const Form& form) {
    const Match match = match_form(form, text, is_end).result;
    if (match == Match::kYes || (match == Match::kMore && result == Match::kNo)) result = match;
  };
  for (const ArgumentTag& tag : field_.tags) consider(tag.open);
  for (const auto* const forms : {&field_.close, &field_.end, &field_.next}) {
    for (const Form& form : *forms) consider(form);
  }
  for (const Form& form : field_.open) consider(after_space(form));
  return result;
}

TaggedArguments::End TaggedArguments::end_of_value(std::string_view text, bool is_end) const {
  const std::string_view begin = text.substr(0, tag_->close.size());
  if (begin == tag_->close) {
    const std::string_view rest = text.substr(begin.size());
    Match match = follows(rest, is_end);
    if (match == Match::kNo && is_end && follows(rest, false) == Match::kMore) match = Match::kYes;
    return {.result = match, .length = begin.size()};
  }
  if (tag_->close.starts_with(begin)) return {.result = Match::kMore};
  // The closing tag may be missing: the call ends, or its next argument begins.
  if (!field_.close.empty()) {
    const Match match = match_form(field_.close.front(), text, is_end).result;
    if (match != Match::kNo) return {.result = match};
  }
  const FormMatch next = match_form(tag_->open, text, is_end);
  if (next.result == Match::kMore) return {.result = Match::kMore};
  const bool is_argument = next.result == Match::kYes && types_.contains(trimmed(next.name)) &&
                           !keys_.contains(trimmed(next.name));
  return {.result = is_argument ? Match::kYes : Match::kNo};
}

bool TaggedArguments::read_value(std::string_view text, bool is_end, size_t& num_read,
                                 MessageWriter& out) {
  End end;
  size_t at = 0;
  for (; at < text.size(); at += codes_.unit(text.substr(at))) {
    if (!may_end_value(text[at])) continue;
    end = end_of_value(text.substr(at), is_end);
    if (end.result != Match::kNo) break;
  }
  at = std::min(at, text.size());
  if (!is_repeated_) value_.push(codes_.decode(text.substr(0, at)), out);
  num_read = at;
  if (end.result == Match::kYes) {
    num_read += end.length;
    if (!is_repeated_) value_.end(out);
    tag_ = nullptr;
    return true;
  }
  if (is_end) num_read = text.size();  // a limit has cut the tag
  return false;
}

}  // namespace quire::server
