// The steps of TemplateParser within calls.
#include <algorithm>
#include <utility>

#include "server/tools/body_arguments.h"
#include "server/tools/template_parser.h"

namespace quire::server {

void TemplateParser::open_call(const FieldMatch& match) {
  const MarkerCodes& codes = plan_->codes();
  field_ = match.field;
  held_ = rest(pos_).substr(0, match.length);
  has_content_ = true;
  before_ = {};
  const std::string name = codes.decode(match.name);
  const std::string id = codes.decode(match.id);
  pos_ += match.length;
  if (field_->content == TemplateField::Content::kBody) {
    state_ = State::kBody;
    call_name_ = name;
    call_id_ = id;
    scanned_ = pos_;
    return;
  }
  if (field_->content == TemplateField::Content::kTags) {
    state_ = State::kTags;
    tags_.emplace(*field_, codes);
    tags_->reset(name, id, plan_->schema(name));
    return;
  }
  state_ = State::kObject;
  reader_.emplace(plan_->tool_names(), *field_);
  if (field_->content == TemplateField::Content::kCallObject) {
    reader_->reset();
  } else {
    reader_->reset(name, id);
  }
  if (field_->notation.python) reader_->open(out_);
  if (reader_->is_written() && !out_.holds_call()) held_.clear();
}

void TemplateParser::end_arguments(bool is_whole) {
  const std::string text = std::exchange(held_, {});
  if (out_.end_call(is_whole)) out_.content(plan_->codes().decode(text));
}

// Ends a call whose arguments are missing, invalid or cut. Text of the call that is not written yet
// becomes content.
void TemplateParser::fail_call() {
  end_arguments(false);
  state_ = State::kText;
  before_ = {};
}

void TemplateParser::end_call() {
  state_ = State::kText;
  before_ = {.after_call = field_};
}

// Pushes a byte, or the text of a marker within a string. Returns whether the unit was taken.
bool TemplateParser::push_unit(std::string_view unit) {
  const bool is_marker = unit.size() > 1;
  const bool is_delim = is_marker && (!reader_->in_string() || reader_->in_delimited()) &&
                        std::ranges::any_of(field_->notation.string_delims, [&](const auto& pair) {
                          return pair.first == unit || pair.second == unit;
                        });
  if (is_marker && !is_delim && !reader_->in_string()) return false;
  const std::string text = is_marker && !is_delim ? plan_->codes().decode(unit) : std::string(unit);
  for (const char c : text) {
    switch (reader_->push(c, out_)) {
      case CallReader::Result::kNoCall:
        return false;
      case CallReader::Result::kDone:
        end_arguments(true);
        state_ = State::kAfterCall;
        break;
      case CallReader::Result::kMore:
        break;
    }
  }
  return true;
}

bool TemplateParser::step_object() {
  while (pos_ < buffer_.size()) {
    const std::string_view unit = rest(pos_).substr(0, after_unit(pos_) - pos_);
    const bool is_empty = !reader_->has_begun() && unit.front() != '{';
    if (is_empty || !push_unit(unit)) {
      state_ = State::kEndObject;
      return true;
    }
    if (!reader_->is_written() && held_.size() >= kMaxHeldBytes) {
      fail_call();
      return true;
    }
    pos_ += unit.size();
    if (state_ == State::kAfterCall) return true;
    held_ += unit;
    if (reader_->is_written() && !out_.holds_call()) held_.clear();
  }
  return false;
}

// Ends the object, because the next byte is not a part of it. The byte must not be pushed to the
// reader again.
bool TemplateParser::end_object() {
  const bool is_empty =
      !reader_->is_written() && field_->content == TemplateField::Content::kArguments;
  const Match ends = plan_->ends_call(*field_, rest(pos_), is_end_);
  if (ends == Match::kMore) return false;
  if (is_empty && ends == Match::kYes) {
    reader_->push('{', out_);
    reader_->push('}', out_);
    end_arguments(true);
    state_ = State::kAfterCall;
    return true;
  }
  if (!reader_->is_written()) {
    fail_call();
    return true;
  }
  if (ends == Match::kYes) reader_->close(out_);
  if (out_.holds_call() && !reader_->has_whole_arguments()) {
    fail_call();
    return true;
  }
  end_arguments(reader_->has_whole_arguments());
  state_ = State::kAfterCall;
  return true;
}

bool TemplateParser::step_tags() {
  size_t num_read = 0;
  const bool is_cut = is_end_ && end_ == TextEnd::kCut;
  const TaggedArguments::Result result = tags_->read(rest(pos_), is_end_, is_cut, num_read, out_);
  held_ += rest(pos_).substr(0, num_read);
  if (tags_->is_written() && !out_.holds_call()) held_.clear();
  pos_ += num_read;
  if (result == TaggedArguments::Result::kMore) return false;
  if (result == TaggedArguments::Result::kNoCall) {
    fail_call();
  } else {
    end_arguments(true);
    end_call();
  }
  return true;
}

bool TemplateParser::step_body() {
  for (; scanned_ < buffer_.size(); scanned_ = after_unit(scanned_)) {
    const FieldMatch end = end_of_region(rest(scanned_));
    if (end.result == Match::kMore) return false;
    const bool is_over = end.result == Match::kYes;
    if (!is_over && scanned_ - pos_ <= kMaxHeldBytes) continue;
    const std::optional<std::string> arguments =
        is_over ? body_arguments(field_->body,
                                 plan_->codes().decode(rest(pos_).substr(0, scanned_ - pos_)),
                                 argument_types(plan_->schema(call_name_)))
                : std::nullopt;
    if (!arguments) {
      fail_call();
      write_content(scanned_);
      return true;
    }
    out_.begin_call(call_name_, call_id_);
    out_.arguments(*arguments);
    end_arguments(true);
    pos_ = scanned_ + end.length;
    end_call();
    return true;
  }
  if (!is_end_) return false;
  fail_call();  // a limit may have cut the arguments
  write_content(buffer_.size());
  return false;
}

bool TemplateParser::step_after_call() {
  size_t length = 0;
  bool is_undecided = false;
  bool is_cut = false;
  for (const Form& form : field_->close) {
    const FormMatch match = match_form(form, rest(pos_), is_end_);
    is_undecided = is_undecided || match.result == Match::kMore;
    if (match.result == Match::kYes) length = std::max(length, match.length);
    is_cut = is_cut || match_form(form, rest(pos_), false).result == Match::kMore;
  }
  if (is_undecided) return false;
  if (is_end_ && length == 0 && is_cut) length = buffer_.size() - pos_;  // a limit has cut it
  pos_ += length;
  end_call();
  return true;
}

}  // namespace quire::server
