#include "cli/live_conversation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>

#include "base/ascii.h"
#include "base/nearest_word.h"
#include "base/text.h"
#include "cli/answer_display.h"
#include "cli/chat.h"
#include "cli/input.h"
#include "cli/output.h"
#include "engine/sampling_defaults.h"

namespace quire::cli {
namespace {

// Tokens of the context that are reserved for a reply without --max-tokens.
constexpr int kReplyRoom = 1024;

// Returns the fields that /set accepts. A turn has one reply, shows no log probabilities, and
// always skips special tokens.
std::vector<std::string> settable_fields() {
  std::vector<std::string> names;
  for (const SamplingField& field : sampling_fields()) {
    const bool is_left_out = field.name == "n" || field.name.ends_with("logprobs") ||
                             field.name == "skip_special_tokens";
    if (!is_left_out) names.emplace_back(field.name);
  }
  return names;
}

struct ForeignSetting {
  std::string_view name;
  std::string_view text;  // the name here, or the remedy
};

// Ollama's names of sampling fields.
constexpr ForeignSetting kSynonyms[] = {{"num_predict", "max_tokens"},
                                        {"repeat_penalty", "repetition_penalty"}};

// Ollama's settings that /set does not accept.
constexpr std::string_view kHistoryFlag = "is --no-history when quire chat starts";
constexpr std::string_view kWrapFlag = "is --no-word-wrap when quire chat starts";
constexpr ForeignSetting kRemedies[] = {
    {"num_ctx", "is --max-model-len of the command that loads the model"},
    {"verbose", "is no setting here; /stats shows the speed of the last answer"},
    {"quiet", "is no setting here; only /stats shows the speed of an answer"},
    {"wordwrap", kWrapFlag},
    {"nowordwrap", kWrapFlag},
    {"history", kHistoryFlag},
    {"nohistory", kHistoryFlag},
    {"format", "is not for the terminal; requests to quire serve have response_format"}};

// Returns the text of the setting; empty: it is not in the table.
std::string_view listed_text(std::span<const ForeignSetting> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &ForeignSetting::name);
  return found == table.end() ? std::string_view() : found->text;
}

// Returns the first word and the rest, which is trimmed.
std::pair<std::string_view, std::string_view> first_word(std::string_view text) {
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  return {text.substr(0, end), trimmed(text.substr(end))};
}

}  // namespace

LiveConversation::LiveConversation(std::unique_ptr<ChatModel> model, ChatSettings settings,
                                   std::string system, bool wraps_words)
    : model_(std::move(model)),
      settings_(std::move(settings)),
      system_(std::move(system)),
      wraps_words_(wraps_words) {
  reset();
}

void LiveConversation::reset() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({"system", system_});
}

Status LiveConversation::say(const std::string& text) {
  num_attempts_ = 0;
  std::vector<ChatMessage> attempt = messages_;
  attempt.push_back({"user", text});
  return answer(std::move(attempt));
}

Status LiveConversation::regenerate() {
  if (messages_.empty() || messages_.back().role != "assistant") {
    return invalid_argument("[chat] there is no answer to regenerate; expected a message first");
  }
  if (sampling().params.temperature == 0.0F) {
    print_stderr("(the temperature is 0, so the answer will be the same)\n");
  }
  ++num_attempts_;
  std::vector<ChatMessage> attempt = messages_;
  attempt.pop_back();
  return answer(std::move(attempt));
}

Status LiveConversation::set_system(const std::string& text) {
  QUIRE_RETURN_IF_ERROR(model_->check_system(text));
  if (has_system(messages_)) messages_.erase(messages_.begin());
  system_ = text;
  if (!system_.empty()) messages_.insert(messages_.begin(), {"system", system_});
  return {};
}

Status LiveConversation::load(std::vector<ChatMessage> messages) {
  std::vector<ChatMessage> next = messages;
  next.push_back({"user", "hello"});
  QUIRE_RETURN_IF_ERROR(model_->num_tokens(next, settings_).status());
  system_ = has_system(messages) ? messages.front().content : "";
  messages_ = std::move(messages);
  num_attempts_ = 0;
  return {};
}

Result<std::string> LiveConversation::set(std::string_view words) {
  auto [word, value] = first_word(words);
  if (word == "parameter") std::tie(word, value) = first_word(value);  // Ollama's form
  if (word == "think" || word == "nothink") {
    if (!model_->can_switch_thinking()) {
      return invalid_argument(
          fmt::format("[chat] /set {}: got it for {}, whose chat template does not read "
                      "enable_thinking; expected a model that can switch its reasoning",
                      word, clipped(model_->name())));
    }
    settings_.thinks = word == "think";
    return fmt::format("set {}", word);
  }
  std::string name(word);
  std::ranges::replace(name, '-', '_');
  if (const std::string_view synonym = listed_text(kSynonyms, name); !synonym.empty())
    name = synonym;
  if (const std::string_view remedy = listed_text(kRemedies, name); !remedy.empty()) {
    return invalid_argument(fmt::format("[chat] /set {}: {}", clipped(word), remedy));
  }
  const std::vector<std::string> names = settable_fields();
  if (std::ranges::find(names, name) == names.end()) {
    const std::string meant = nearest_word(name, names);
    return invalid_argument(fmt::format(
        "[chat] /set {}: {}expected think, nothink or one of {}", clipped(word),
        meant.empty() ? "" : fmt::format("did you mean {}? ", meant), fmt::join(names, ", ")));
  }
  const SamplingField& field = *find_sampling_field(name);
  const Status status = set_field(field, value);
  if (!status.ok()) {
    return Status(status.code(), fmt::format("[chat] /set {}: {}", name, status.message()));
  }
  return settings_.sampling.gives(field) ? fmt::format("set {}", words)
                                         : fmt::format("{} has its default again", name);
}

Status LiveConversation::set_field(const SamplingField& field, std::string_view value) {
  const bool is_switch = std::holds_alternative<bool SamplingParams::*>(field.member);
  if (value.empty() && !is_switch) {
    settings_.sampling.unset(field);
    return {};
  }
  if (is_switch && value.empty()) value = "true";
  if (is_switch && value != "true" && value != "false") return unexpected(value, "true or false");
  const bool is_text =
      std::holds_alternative<std::vector<std::string> SamplingParams::*>(field.member);
  const bool is_quoted = value.size() > 1 && value.starts_with('"') && value.ends_with('"');
  if (!is_text || !is_quoted) return settings_.sampling.set(field, value, "/set");
  // A JSON string can have texts that cannot be typed, such as a line end.
  const Result<std::string> plain = parse_text_line(value, "value");
  if (!plain.ok()) return unexpected(value, "a text, or one JSON string; /set again adds a text");
  return settings_.sampling.set(field, *plain, "/set");
}

std::string LiveConversation::described() const {
  const SamplingDefaults values = sampling();
  std::string text = fmt::format("model: {}\n", one_line(model_->name()));
  if (model_->max_model_len() > 0) {
    text += fmt::format("context: {} tokens\n", model_->max_model_len());
  }
  const std::optional<SamplingDefaults> known = model_->sampling_defaults();
  text += fmt::format("sampling: {}\n", known ? describe(values) : kUnknownDefaults);
  const SamplingParams defaults = known.value_or(SamplingDefaults()).params;
  for (const SamplingField& field : sampling_fields()) {
    if (known && field.has_model_default) continue;  // the line above has it
    const std::string value = json_of(field, values.params);
    if (value != json_of(field, defaults)) text += fmt::format("{}: {}\n", field.name, value);
  }
  if (settings_.sampling.any_given()) text += "(/set NAME without a value: the default again)\n";
  if (settings_.thinks) text += fmt::format("reasoning: {}\n", *settings_.thinks ? "on" : "off");
  return text +
         fmt::format("system message: {}\n", system_.empty() ? "none" : escape_controls(system_));
}

Status LiveConversation::answer(std::vector<ChatMessage> attempt) {
  QUIRE_ASSIGN_OR_RETURN(const int num_dropped, fit(attempt));
  if (num_dropped > 0) {
    print_stderr("(the context is full: dropped the {} oldest messages)\n", num_dropped);
  }
  QUIRE_ASSIGN_OR_RETURN(ChatAnswer reply, ask(attempt));
  if (reply.finish_reason == FinishReason::kCancelled) print_stderr("(stopped)\n");
  // A reply that was stopped before its first word does not count as an answer.
  if (reply.finish_reason == FinishReason::kCancelled && reply.text.empty()) return {};
  if (reply.finish_reason == FinishReason::kLength) report_cut();
  attempt.push_back({"assistant", std::move(reply.text)});
  messages_ = std::move(attempt);
  return {};
}

// Drops old messages so that the reply has max_tokens (without a limit: kReplyRoom), but at most
// half of the context.
Result<int> LiveConversation::fit(std::vector<ChatMessage>& messages) const {
  const int context = model_->max_model_len();
  if (context == 0) return 0;
  const int max_tokens = sampling().params.max_tokens;
  const int wanted = max_tokens < context ? max_tokens : kReplyRoom;
  const int room = std::min(wanted, context / 2);
  return trim_history(messages, context - room, [&](const std::vector<ChatMessage>& candidate) {
    return model_->num_tokens(candidate, settings_);
  });
}

Result<ChatAnswer> LiveConversation::ask(const std::vector<ChatMessage>& messages) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  WordWrap wrap;
  const auto show = [&](std::string_view piece) {
    const std::string text = shown(piece);
    return write_stdout(
        is_terminal && wraps_words_ ? wrap.add(text, terminal_columns(STDOUT_FILENO)) : text);
  };
  Result<ChatAnswer> reply = model_->answer(messages, settings_, num_attempts_, show);
  write_stdout(wrap.finish(terminal_columns(STDOUT_FILENO)) + "\n");
  if (reply.ok()) stats_ = reply->stats;
  return reply;
}

void LiveConversation::report_cut() const {
  const int context = model_->max_model_len();
  const int max_tokens = sampling().params.max_tokens;
  if (context > 0 && stats_.num_tokens() >= context) {
    print_stderr("(the answer is cut off: the context of {} tokens is full)\n", context);
  } else {
    print_stderr("(the answer is cut off after max_tokens {}; \"continue\" asks for more)\n",
                 max_tokens);
  }
}

SamplingDefaults LiveConversation::sampling() const {
  return settings_.sampling.applied_to(model_->sampling_defaults().value_or(SamplingDefaults()));
}

}  // namespace quire::cli
