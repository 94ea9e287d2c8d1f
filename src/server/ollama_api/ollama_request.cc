#include "server/ollama_api/ollama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "server/openai/chat_builder.h"

namespace quire::server {
namespace {

// An option that is a field of SamplingParams, which has this name there.
struct SamplingOption {
  std::string_view name;
  std::string_view field;
};
constexpr auto kSamplingOptions =
    std::to_array<SamplingOption>({{"temperature", "temperature"},
                                   {"top_k", "top_k"},
                                   {"top_p", "top_p"},
                                   {"min_p", "min_p"},
                                   {"stop", "stop"},
                                   {"repeat_penalty", "repetition_penalty"},
                                   {"presence_penalty", "presence_penalty"},
                                   {"frequency_penalty", "frequency_penalty"}});

// An option that this server does not have, and the only value that is accepted: it switches the
// option off.
struct AbsentOption {
  std::string_view name;
  double off;
};
constexpr auto kAbsentOptions =
    std::to_array<AbsentOption>({{"mirostat", 0}, {"tfs_z", 1}, {"typical_p", 1}});

// Options of any value: they place the model in memory, or belong to options that are off.
constexpr auto kOptionsWithoutEffect = std::to_array<std::string_view>(
    {"num_keep", "mirostat_tau", "mirostat_eta", "numa", "num_batch", "num_gpu", "main_gpu",
     "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mmap", "use_mlock", "embedding_only",
     "num_thread", "draft_num_predict"});

class OllamaFields {
 public:
  OllamaFields(OllamaRequest& request, const RequestDefaults& defaults, OllamaUse use,
               const OllamaModel& model)
      : request_(request), chat_(request.chat, defaults), use_(use), model_(model) {
    request_.chat.streaming.stream = true;
  }

  // Reads a field that is not null. Ignores unknown fields.
  FieldError read(std::string_view name, Element value);
  // Checks the fields against each other, after all of them were read.
  FieldError finish();

 private:
  struct Call {
    std::string id;
    std::string name;
  };

  FieldError read_chat_field(std::string_view name, Element value, bool& is_known);
  FieldError read_generate_field(std::string_view name, Element value, bool& is_known);
  FieldError read_format(const Path& path, Element value);
  FieldError read_think(const Path& path, Element value);
  FieldError read_keep_alive(const Path& path, Element value);
  FieldError read_tools(const Path& path, Element value);
  FieldError read_options(const Path& path, Element value);
  FieldError read_option(const Path& path, std::string_view name, Element value);
  FieldError read_num_predict(const Path& path, Element value);
  FieldError read_num_ctx(const Path& path, Element value) const;
  FieldError read_seed(const Path& path, Element value);
  FieldError read_messages(const Path& path, Element value);
  FieldError read_message(const Path& path, Element value);
  FieldError read_tool_calls(const Path& path, Element value);
  FieldError read_tool_call(const Path& path, Element value);
  void find_call(TemplateMessage& message);

  FieldError finish_penalties();
  FieldError finish_logprobs();
  FieldError finish_thinking();
  FieldError finish_raw() const;
  FieldError finish_load() const;

  // Ollama's calls need no ids, but some templates do: Mistral's write them, and accept 9 letters
  // and digits alone. Equal conversations have equal ids, so that their prefixes are cached.
  std::string next_call_id() { return fmt::format("call{:05}", num_calls_++); }

  OllamaRequest& request_;
  ChatBuilder chat_;
  const OllamaUse use_;
  const OllamaModel& model_;
  std::optional<Element> messages_;
  std::string prompt_;
  std::string system_;
  std::optional<bool> thinks_;  // absent: the template's default
  bool is_raw_ = false;
  bool unloads_ = false;  // keep_alive is 0
  bool logprobs_ = false;
  int top_logprobs_ = 0;
  bool has_penalty_ = false;  // of the request, not of the model's files
  std::optional<int> repeat_last_n_;
  bool skips_newline_ = false;    // penalize_newline is false
  std::vector<Call> unanswered_;  // calls of the last message that has any
  int num_calls_ = 0;
};

// Refuses a text that is not empty, for a field that this server does not have.
FieldError refuse_text(const Path& path, Element value, std::string_view expected) {
  std::string text;
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, text));
  return text.empty() ? FieldError() : unexpected(path, value, expected);
}

// Refuses a list that is not empty, for a field that this server does not have.
FieldError refuse_items(const Path& path, Element value, std::string_view expected) {
  simdjson::dom::array items;
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, SIZE_MAX, items));
  return items.size() == 0 ? FieldError() : unexpected(path, value, expected);
}

constexpr std::string_view kNoImages = "none: this server reads text only";

// --- Fields of the body ---

FieldError OllamaFields::read(std::string_view name, Element value) {
  const Path path(name);
  bool is_known = false;
  QUIRE_RETURN_IF_FIELD_ERROR(use_ == OllamaUse::kChat
                                  ? read_chat_field(name, value, is_known)
                                  : read_generate_field(name, value, is_known));
  if (is_known) return {};
  if (name == "format") return read_format(path, value);
  if (name == "options") return read_options(path, value);
  if (name == "think") return read_think(path, value);
  if (name == "keep_alive") return read_keep_alive(path, value);
  if (name == "logprobs") return read_bool(path, value, logprobs_);
  if (name == "top_logprobs") {
    return read_int(path, value, 0, chat_.defaults.limits.max_logprobs, top_logprobs_);
  }
  if (name == "chat_template_kwargs") return chat_.read_template_kwargs(value);
  // Ollama can drop the oldest messages, or tokens, where the context ends.
  if (name == "truncate" || name == "shift") return refuse_unless_false(path, value);
  if (name == "_debug_render_only") return refuse_unless_false(path, value);
  return chat_.read(name, value);
}

FieldError OllamaFields::read_chat_field(std::string_view name, Element value, bool& is_known) {
  is_known = true;
  if (name == "messages") {
    messages_ = value;
    return {};
  }
  if (name == "tools") return read_tools(name, value);
  if (name == "tool_choice") {
    return field_error(name,
                       "got it on a route of Ollama, whose API cannot force or forbid calls; "
                       "expected POST /v1/chat/completions, or no such field");
  }
  is_known = false;
  return {};
}

FieldError OllamaFields::read_generate_field(std::string_view name, Element value, bool& is_known) {
  const Path path(name);
  is_known = true;
  if (name == "prompt") return read_text(path, value, prompt_);
  if (name == "system") return read_text(path, value, system_);
  if (name == "raw") return read_bool(path, value, is_raw_);
  if (name == "images") return refuse_items(path, value, kNoImages);
  if (name == "suffix") {
    return refuse_text(path, value, "no such field: this server does not insert text");
  }
  if (name == "template") {
    return refuse_text(path, value, "none: the operator chooses the template");
  }
  if (name == "context") {
    return refuse_items(path, value, "none: POST /api/chat takes the messages of a conversation");
  }
  is_known = false;
  return {};
}

FieldError OllamaFields::read_format(const Path& path, Element value) {
  std::optional<Restriction>& out = request_.chat.restriction;
  std::string_view name;
  if (value.get_string().get(name)) {
    if (!value.is_object()) return unexpected(path, value, "'json' or a JSON schema");
    return read_schema_restriction(path, value, chat_.defaults.limits, out);
  }
  if (name.empty()) return {};
  if (name == "json") return restrict_to_object(path, out);
  return unexpected(path, value, "'json' or a JSON schema: an object");
}

FieldError OllamaFields::read_think(const Path& path, Element value) {
  constexpr auto kLevels = std::to_array<std::string_view>({"low", "medium", "high", "max"});
  bool is_wanted = false;
  if (!value.get_bool().get(is_wanted)) {
    thinks_ = is_wanted;
    return {};
  }
  std::string_view level;
  if (value.get_string().get(level) || std::ranges::find(kLevels, level) == kLevels.end()) {
    return unexpected(path, value, "true, false, 'low', 'medium', 'high' or 'max'");
  }
  thinks_ = true;
  return chat_.set_reasoning_effort(path, level);
}

// Reads seconds, or a duration such as "1h30m". The model stays loaded in any case.
FieldError OllamaFields::read_keep_alive(const Path& path, Element value) {
  double seconds = 0;
  if (!value.get_double().get(seconds)) {
    unloads_ = seconds == 0;
    return {};
  }
  std::string_view text;
  const bool is_duration = !value.get_string().get(text) &&
                           text.find_first_not_of("+-.0123456789hmnsu") == std::string_view::npos &&
                           std::ranges::any_of(text, is_digit);
  if (!is_duration) return unexpected(path, value, "seconds, or a duration such as '5m'");
  unloads_ = text.find_first_of("123456789") == std::string_view::npos;
  return {};
}

FieldError OllamaFields::read_tools(const Path& path, Element value) {
  simdjson::dom::array tools;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, value, static_cast<size_t>(chat_.defaults.limits.max_tools), tools));
  for (const Element tool : tools) {
    const Path at(path, request_.chat.tools.size());
    std::string name;
    simdjson::dom::object function;
    QUIRE_RETURN_IF_FIELD_ERROR(read_function(at, tool, name, function));
    QUIRE_RETURN_IF_FIELD_ERROR(chat_.add_tool(Path(at, "function"), function, "parameters"));
  }
  return {};
}

// --- Options ---

FieldError OllamaFields::read_options(const Path& path, Element value) {
  simdjson::dom::object options;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, options));
  for (const auto& [name, option] : options) {
    if (!option.is_null()) QUIRE_RETURN_IF_FIELD_ERROR(read_option(Path(path, name), name, option));
  }
  return {};
}

FieldError OllamaFields::read_option(const Path& path, std::string_view name, Element value) {
  const auto sampling = std::ranges::find(kSamplingOptions, name, &SamplingOption::name);
  if (sampling != kSamplingOptions.end()) {
    if (name.ends_with("_penalty")) has_penalty_ = true;
    return chat_.read_sampling(path, sampling->field, value);
  }
  const auto absent = std::ranges::find(kAbsentOptions, name, &AbsentOption::name);
  if (absent != kAbsentOptions.end()) {
    double number = 0;
    if (!value.get_double().get(number) && number == absent->off) return {};
    return unexpected(
        path, value,
        fmt::format("{}: this server does not have this kind of sampling", absent->off));
  }
  if (name == "seed") return read_seed(path, value);
  if (name == "num_predict") return read_num_predict(path, value);
  if (name == "num_ctx") return read_num_ctx(path, value);
  if (name == "repeat_last_n") {
    return read_int(path, value, -1, INT_MAX, repeat_last_n_.emplace());
  }
  if (name == "penalize_newline") {
    bool is_penalized = true;
    QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, is_penalized));
    skips_newline_ = !is_penalized;
    return {};
  }
  if (std::ranges::find(kOptionsWithoutEffect, name) != kOptionsWithoutEffect.end()) return {};
  return field_error(Path("options"), fmt::format("got an unknown option '{}', expected one of "
                                                  "Ollama's API",
                                                  clipped(name)));
}

// -1, Ollama's default, is the same as no seed.
FieldError OllamaFields::read_seed(const Path& path, Element value) {
  double number = 0;
  if (!value.get_double().get(number) && number == -1) return {};
  return chat_.read_sampling(path, "seed", value);
}

// 0 and less mean the rest of the context, which is the default.
FieldError OllamaFields::read_num_predict(const Path& path, Element value) {
  constexpr int kFillContext = -2;
  int number = 0;
  QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, kFillContext, INT_MAX, number));
  return number <= 0 ? FieldError() : chat_.read_max_tokens(path, value);
}

// Each model has one context here, which is not smaller for a request that needs less.
FieldError OllamaFields::read_num_ctx(const Path& path, Element value) const {
  int number = 0;
  QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, 0, INT_MAX, number));
  if (number <= model_.max_model_len) return {};
  return field_error(path, fmt::format("got {}, expected at most {}, the context of the served "
                                       "model",
                                       number, model_.max_model_len));
}

// --- Messages ---

FieldError OllamaFields::read_messages(const Path& path, Element value) {
  simdjson::dom::array messages;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, value, static_cast<size_t>(chat_.defaults.limits.max_messages), messages));
  size_t idx = 0;
  for (const Element message : messages) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_message(Path(path, idx++), message));
  }
  return {};
}

FieldError OllamaFields::read_message(const Path& path, Element value) {
  constexpr auto kRoles = std::to_array<std::string_view>({"system", "user", "assistant", "tool"});
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  TemplateMessage message;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "role", message.role));
  if (std::ranges::find(kRoles, message.role) == kRoles.end()) {
    return unexpected(Path(path, "role"), fields["role"].value_unsafe(),
                      "'system', 'user', 'assistant' or 'tool'");
  }
  for (const auto& [name, text] :
       {std::pair("content", &message.content), std::pair("thinking", &message.reasoning),
        std::pair("tool_call_id", &message.tool_call_id), std::pair("tool_name", &message.name)}) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, name, *text));
  }
  Element images;
  if (!fields["images"].get(images) && !images.is_null()) {
    QUIRE_RETURN_IF_FIELD_ERROR(refuse_items(Path(path, "images"), images, kNoImages));
  }
  const bool is_assistant = message.role == "assistant";
  if (message.role == "tool") find_call(message);
  chat_.messages.push_back(std::move(message));
  Element calls;
  if (fields["tool_calls"].get(calls) || calls.is_null()) return {};
  const Path calls_path(path, "tool_calls");
  if (is_assistant) return read_tool_calls(calls_path, calls);
  return refuse_items(calls_path, calls, "none: only the assistant calls tools");
}

FieldError OllamaFields::read_tool_calls(const Path& path, Element value) {
  simdjson::dom::array calls;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, value, static_cast<size_t>(chat_.defaults.limits.max_tools), calls));
  if (calls.size() > 0) unanswered_.clear();
  size_t idx = 0;
  for (const Element call : calls) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_tool_call(Path(path, idx++), call));
  }
  return {};
}

FieldError OllamaFields::read_tool_call(const Path& path, Element value) {
  const Path function_path(path, "function");
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  simdjson::dom::object function;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "function", function));
  TemplateCall call;
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "id", call.id));
  if (call.id.empty()) call.id = next_call_id();
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(function_path, function, "name", call.name));
  call.arguments = make_dict({});
  Element arguments;
  if (!function["arguments"].get(arguments) && !arguments.is_null()) {
    const Path at(function_path, "arguments");
    if (!arguments.is_object()) return unexpected(at, arguments, "an object");
    QUIRE_RETURN_IF_FIELD_ERROR(chat_.values.convert(at, arguments, call.arguments));
  }
  unanswered_.push_back({call.id, call.name});
  chat_.add_call(std::move(call));
  return {};
}

// Sets the id and the name of the call whose result the message is: the call with the message's id
// or tool's name; without either, the first call that has no result yet. A conversation whose start
// was cut may have results without calls.
void OllamaFields::find_call(TemplateMessage& message) {
  const auto call = std::ranges::find_if(unanswered_, [&](const Call& one) {
    if (!message.tool_call_id.empty()) return one.id == message.tool_call_id;
    return message.name.empty() || one.name == message.name;
  });
  if (call != unanswered_.end()) {
    message.tool_call_id = call->id;
    message.name = call->name;
    unanswered_.erase(call);
  } else if (message.tool_call_id.empty()) {
    message.tool_call_id = next_call_id();
  }
}

// --- Checks of the fields against each other ---

// Ollama's penalties read the last repeat_last_n tokens; here they read all. A window, or an
// exception for the newline, is therefore refused if the request has a penalty. Clients that send
// Ollama's usual window do not know of a penalty of the model's files, which is about the whole
// text.
FieldError OllamaFields::finish_penalties() {
  SamplingParams& sampling = request_.chat.engine_request.sampling;
  if (repeat_last_n_ == 0) {
    sampling.repetition_penalty = 1;
    sampling.presence_penalty = sampling.frequency_penalty = 0;
  }
  const bool is_on = sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
                     sampling.frequency_penalty != 0;
  if (!has_penalty_ || !is_on) return {};
  const Path options("options");
  if (repeat_last_n_ && *repeat_last_n_ != -1 && *repeat_last_n_ < model_.max_model_len) {
    return field_error(Path(options, "repeat_last_n"),
                       fmt::format("got {}, expected -1, or 0 for no penalties: penalties count "
                                   "the whole text",
                                   *repeat_last_n_));
  }
  if (!skips_newline_) return {};
  return field_error(Path(options, "penalize_newline"),
                     "got false, expected true: penalties count every token");
}

FieldError OllamaFields::finish_logprobs() {
  if (logprobs_) request_.chat.engine_request.sampling.logprobs = top_logprobs_;
  if (logprobs_ || top_logprobs_ == 0) return {};
  return field_error("top_logprobs", fmt::format("got {} without logprobs, expected logprobs to "
                                                 "be true",
                                                 top_logprobs_));
}

FieldError OllamaFields::finish_thinking() {
  if (!thinks_) return {};
  if (*thinks_ && !model_.reasons) {
    return field_error("think",
                       "got it, but the server reads no reasoning from the model's output; "
                       "expected false or no such field");
  }
  request_.chat.include_reasoning = *thinks_;
  chat_.set_thinking(*thinks_);
  return {};
}

FieldError OllamaFields::finish_raw() const {
  if (!system_.empty()) {
    return field_error("system", "got a text beside raw, expected it as a part of the prompt");
  }
  if (thinks_.value_or(false)) {
    return field_error("think", "got it beside raw, expected one of the two");
  }
  return {};
}

FieldError OllamaFields::finish_load() const {
  if (!unloads_) return {};
  return field_error("keep_alive",
                     "got 0 without a prompt, by which Ollama unloads the model, expected another "
                     "duration: the model stays loaded while the server runs");
}

FieldError OllamaFields::finish() {
  QUIRE_RETURN_IF_FIELD_ERROR(finish_penalties());
  QUIRE_RETURN_IF_FIELD_ERROR(finish_logprobs());
  QUIRE_RETURN_IF_FIELD_ERROR(finish_thinking());
  const bool is_chat = use_ == OllamaUse::kChat;
  if (messages_) QUIRE_RETURN_IF_FIELD_ERROR(read_messages("messages", *messages_));
  request_.only_loads = is_chat ? chat_.messages.empty() : prompt_.empty();
  if (request_.only_loads) QUIRE_RETURN_IF_FIELD_ERROR(finish_load());
  if (is_raw_) {
    QUIRE_RETURN_IF_FIELD_ERROR(finish_raw());
    request_.raw_prompt = prompt_;
    request_.chat.engine_request.add_special_tokens = true;
  }
  if (!system_.empty()) {
    chat_.messages.push_back({.role = "system", .content = std::move(system_)});
  }
  // A request that only loads the model is checked as one with an empty message.
  if (!is_chat || request_.only_loads) {
    chat_.messages.push_back({.role = "user", .content = std::move(prompt_)});
  }
  request_.chat.tool_choice = request_.chat.tools.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
  const Path path("messages");
  const TemplateMessage& last = chat_.messages.back();
  const bool continues = last.role == "assistant" && last.tool_calls.empty() &&
                         !check_continued(path, {.content = last.content});
  return chat_.finish(path, continues);
}

class ShowFields {
 public:
  explicit ShowFields(std::string& model) : model_(model) {}

  FieldError read(std::string_view name, Element value) {
    const bool is_name = name == "model" || name == "name";  // `name` is the older one
    return is_name ? read_text(name, value, model_) : FieldError();
  }
  static FieldError finish() { return {}; }

 private:
  std::string& model_;
};

}  // namespace

Parsed<OllamaRequest> parse_ollama_request(std::string_view body, const RequestDefaults& defaults,
                                           OllamaUse use, const OllamaModel& model) {
  Parsed<OllamaRequest> parsed;
  parsed.error =
      read_body(body, defaults.limits, OllamaFields(parsed.request, defaults, use, model));
  return parsed;
}

Parsed<std::string> parse_ollama_show(std::string_view body, const RequestLimits& limits) {
  Parsed<std::string> parsed;
  parsed.error = read_body(body, limits, ShowFields(parsed.request));
  return parsed;
}

}  // namespace quire::server
