#include "server/tools/template_parser.h"

#include <algorithm>
#include <utility>

namespace quire::server {
namespace {

using Target = TemplateField::Target;

}  // namespace

TemplateParser::TemplateParser(std::shared_ptr<const ParserPlan> plan,
                               const OutputParserConfig& config)
    : plan_(std::move(plan)), out_(config, plan_->short_ids()) {
  if (config.starts_in_reasoning && plan_->reasoning() != nullptr) state_ = State::kBegin;
}

MessageDeltas TemplateParser::feed(std::string_view text) {
  plan_->codes().append_text(buffer_, text);
  run();
  return out_.take();
}

MessageDeltas TemplateParser::feed_token(int32_t token_id, std::string_view text) {
  plan_->codes().append_token(buffer_, token_id, text);
  run();
  return out_.take();
}

MessageDeltas TemplateParser::finish(TextEnd end) {
  is_end_ = true;
  end_ = end;
  run();
  const bool is_object = state_ == State::kObject && reader_->is_written();
  if (is_object && end == TextEnd::kModel) reader_->close(out_);
  end_arguments(is_object && reader_->has_whole_arguments());
  out_.finish();
  return out_.take();
}

void TemplateParser::run() {
  while (step()) {
  }
  compact();
}

bool TemplateParser::step() {
  switch (state_) {
    case State::kBegin:
      return step_begin();
    case State::kText:
      return step_text();
    case State::kRegion:
      return step_region();
    case State::kObject:
      return step_object();
    case State::kEndObject:
      return end_object();
    case State::kTags:
      return step_tags();
    case State::kBody:
      return step_body();
    case State::kAfterCall:
      return step_after_call();
  }
  return false;
}

void TemplateParser::compact() {
  if (pos_ < buffer_.size() && pos_ < kMaxHeldBytes) return;
  buffer_.erase(0, pos_);
  scanned_ -= std::min(scanned_, pos_);
  for (size_t& call : calls_) call -= pos_;
  pos_ = 0;
}

bool TemplateParser::step_begin() {
  if (pos_ == buffer_.size()) return false;
  const FieldMatch match = plan_->find_reasoning(rest(pos_), is_end_);
  if (match.result == Match::kMore) return false;
  if (match.result == Match::kYes) {
    open(match);
  } else {
    open_region(*plan_->reasoning());
  }
  return true;
}

void TemplateParser::write_content(size_t end) {
  const std::string_view text = rest(pos_).substr(0, end - pos_);
  pos_ = end;
  if (plan_->codes().empty()) {
    out_.content(text);
  } else {
    out_.content(plan_->codes().decode(text));
  }
}

bool TemplateParser::step_text() {
  size_t at = pos_;
  while (at < buffer_.size()) {
    const bool is_special = before_.is_start || before_.after_call != nullptr;
    if (!is_special && !plan_->may_begin(buffer_[at])) {
      at = after_unit(at);
      continue;
    }
    const FieldMatch match = plan_->find(rest(at), is_end_, before_);
    if (match.result == Match::kNo && is_end_ && is_cut_ending(rest(at))) {
      at = buffer_.size();
      pos_ = at;
      break;
    }
    if (match.result != Match::kNo) {
      write_content(at);
      if (match.result == Match::kYes) open(match);
      return match.result == Match::kYes;
    }
    // White space does not count as content. The forms that may follow it were already tried where
    // it begins, because these forms include the white space before them.
    has_content_ = has_content_ || !is_json_space(buffer_[at]);
    before_ = {};
    at = after_unit(at);
  }
  write_content(at);
  return false;
}

// Returns whether the text is an incomplete end of a list of calls, which a limit has cut.
bool TemplateParser::is_cut_ending(std::string_view text) const {
  return before_.after_call != nullptr &&
         std::ranges::any_of(before_.after_call->end, [&](const Form& form) {
           return match_form(form, text, false).result == Match::kMore;
         });
}

void TemplateParser::open(const FieldMatch& match) {
  if (match.field == nullptr) {
    pos_ += match.length;
    before_.after_call = nullptr;
  } else if (match.field->target == Target::kCalls) {
    open_call(match);
  } else {
    pos_ += match.length;
    open_region(*match.field);
  }
}

// --- Fields of text ---

void TemplateParser::open_region(const TemplateField& field) {
  field_ = &field;
  state_ = State::kRegion;
  scanned_ = pos_;
  calls_.clear();
  pending_space_.clear();
  if (field.target == Target::kReasoning && has_reasoning_) out_.reasoning(field.join);
  has_text_ = false;
  has_reasoning_ = has_reasoning_ || field.target == Target::kReasoning;
}

FieldMatch TemplateParser::end_of_region(std::string_view text) const {
  FieldMatch best;
  bool is_undecided = false;
  const auto consider = [&](const Form& form, bool is_taken) {
    const FormMatch match = match_form(form, text, is_end_);
    is_undecided = is_undecided || match.result == Match::kMore;
    if (match.result != Match::kYes) return;
    best.result = Match::kYes;
    best.length = std::max(best.length, is_taken ? match.length : 0);
  };
  for (const Form& form : field_->close) consider(form, true);
  for (const Form& form : field_->close_before) consider(form, false);
  if (is_undecided) best = {.result = Match::kMore};
  return best;
}

void TemplateParser::write_region(size_t end) {
  const std::string text = plan_->codes().decode(rest(pos_).substr(0, end - pos_));
  pos_ = end;
  if (field_->strips) {
    write_stripped(text);
  } else {
    write_text(text);
  }
}

void TemplateParser::write_text(std::string_view text) {
  if (field_->target == Target::kReasoning) out_.reasoning(text);
  if (field_->target == Target::kContent) out_.content(text);
}

// Writes the text without white space at the region's start. Holds white space at the end of the
// text until more text follows.
void TemplateParser::write_stripped(std::string_view text) {
  pending_space_ += text;
  std::string_view held = pending_space_;
  while (!has_text_ && !held.empty() && is_json_space(held.front())) held.remove_prefix(1);
  std::string_view whole = held;
  while (!whole.empty() && is_json_space(whole.back())) whole.remove_suffix(1);
  if (has_text_ && held.size() - whole.size() > kMaxHeldBytes) {
    whole = held.substr(0, held.size() - kMaxHeldBytes);
  }
  has_text_ = has_text_ || !whole.empty();
  write_text(whole);
  pending_space_ = held.substr(whole.size());
}

bool TemplateParser::step_region() {
  const bool has_calls = field_->target == Target::kReasoning;
  for (; scanned_ < buffer_.size(); scanned_ = after_unit(scanned_)) {
    if (!calls_.empty() && scanned_ - calls_.front() > kMaxHeldBytes) calls_.clear();
    const std::string_view text = rest(scanned_);
    const FieldMatch end = end_of_region(text);
    if (end.result == Match::kYes) return end_region(end.length);
    const FieldMatch call = has_calls && plan_->may_begin(text.front()) && end.result == Match::kNo
                                ? plan_->find_call(text, is_end_)
                                : FieldMatch();
    if (end.result == Match::kMore || call.result == Match::kMore) break;
    if (call.result == Match::kYes) calls_.push_back(scanned_);
  }
  scanned_ = std::min(scanned_, buffer_.size());
  if (is_end_) return finish_region();
  write_region(calls_.empty() ? scanned_ : calls_.front());
  return false;
}

// Ends the region at scanned_; its last bytes are the marker.
bool TemplateParser::end_region(size_t num_bytes) {
  write_region(scanned_);
  pos_ += num_bytes;
  calls_.clear();
  state_ = State::kText;
  if (field_->target == Target::kContent) has_content_ = true;
  before_ = {.is_start = !has_content_};
  return true;
}

// Ends the region at the end of the text. Among the first places at which a call may begin, the
// first with a whole call ends the region before it.
bool TemplateParser::finish_region() {
  constexpr size_t kMaxTrials = 8;
  for (size_t i = 0; i < std::min(calls_.size(), kMaxTrials); ++i) {
    if (is_trial_ || !is_call_at(calls_[i])) continue;
    scanned_ = calls_[i];
    return end_region(0);
  }
  write_region(buffer_.size());
  return false;
}

// Returns whether a whole call begins at `place`, by a trial parse of the rest.
bool TemplateParser::is_call_at(size_t place) const {
  OutputParserConfig config;
  config.make_id = [] { return std::string(24, '0'); };
  config.holds_calls = true;
  TemplateParser trial(plan_, config);
  trial.buffer_ = rest(place);
  trial.is_trial_ = true;
  trial.finish(end_);
  return trial.out_.begins_with_call();
}

}  // namespace quire::server
