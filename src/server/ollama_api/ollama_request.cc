#include "server/ollama_api/ollama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "server/openai/chat_builder.h"

namespace quire::server {
namespace {

class OllamaFields {
 public:
  OllamaFields(OllamaRequest& request, const RequestDefaults& defaults, OllamaUse use,
               const OllamaModel& model)
      : request_(request), chat_(request.chat, defaults), use_(use), model_(model) {
    request_.chat.streaming.stream = true;
  }

  static FieldTable<OllamaFields> chat_table();
  static FieldTable<OllamaFields> generate_table();
  static FieldTable<OllamaFields> table();  // of both routes
  static FieldTable<OllamaFields> options_table();
  auto parts() {
    return std::tie(static_cast<GenerationRequest&>(request_.chat), request_.chat.streaming, chat_);
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

  FieldError read_format(const Path& path, Element value);
  FieldError read_think(const Path& path, Element value);
  FieldError read_keep_alive(const Path& path, Element value);
  FieldError read_tools(const Path& path, Element value);
  FieldError read_options(const Path& path, Element value);
  // The reader of options that are fields of SamplingParams.
  static FieldError read_sampling_option(OllamaFields& body, const Field& field, const Path& path,
                                         Element value);
  FieldError read_num_predict(const Path& path, Element value);
  FieldError read_num_ctx(const Path& path, Element value);
  FieldError read_seed(const Path& path, Element value);
  FieldError read_top_p(const Path& path, Element value);
  FieldError read_typical_p(const Path& path, Element value);
  FieldError read_messages(const Path& path, Element value);
  FieldError read_message(const Path& path, const simdjson::dom::object& fields);
  FieldError read_tool_calls(const Path& path, Element value);
  FieldError read_tool_call(const Path& path, const simdjson::dom::object& fields);
  void find_call(TemplateMessage& message);

  void finish_penalties();
  FieldError finish_logprobs();
  FieldError finish_thinking();
  FieldError finish_raw() const;

  // Ollama's calls need no ids, but some templates write them, and Mistral's accept only ids of 9
  // letters and digits. Ids are numbered, so that equal conversations have equal prefixes in the
  // cache.
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
  bool penalizes_newline_ = true;
  std::vector<Call> unanswered_;  // calls of the last message that has any
  int num_calls_ = 0;
};

// Refuses a list that is not empty, for a field that this server does not have.
FieldError refuse_items(const Path& path, Element value, std::string_view expected) {
  return refuse(only("", "[]", expected), path, value);
}

constexpr int kFillContext = -2;  // a value of num_predict
constexpr std::string_view kNoImages = "none: this server reads text only";

// --- Fields of the body ---

FieldTable<OllamaFields> OllamaFields::chat_table() {
  static constexpr auto kTable = std::to_array<BodyField<OllamaFields>>({
      {{"messages", list_of("OllamaMessage", kRequestLimits.max_messages),
        "None: the model is loaded. If the last is the assistant's and has text, it is continued."},
       into<&OllamaFields::messages_>},
      {{"tools", list_of("Tool", kRequestLimits.max_tools),
        "The model's chat template must use them."},
       call<&OllamaFields::read_tools>},
      {refused("tool_choice",
               "no such field: Ollama's API cannot force calls; POST /v1/chat/completions can")},
  });
  return kTable;
}

FieldTable<OllamaFields> OllamaFields::generate_table() {
  static constexpr auto kTable = std::to_array<BodyField<OllamaFields>>({
      {{"prompt", kTextValue, "Empty: the response says that the model is loaded."},
       into<&OllamaFields::prompt_>},
      {{"system", kTextValue, "The system prompt."}, into<&OllamaFields::system_>},
      {{"raw", kBoolean,
        "The prompt is used without the chat template. Excludes system and think."},
       into<&OllamaFields::is_raw_>},
      {only("images", "[]", kNoImages)},
      {only("suffix", R"("")", "no such field: this server does not insert text")},
      {only("template", R"("")", "none: the operator chooses the template")},
      {only("context", "[]", "none: POST /api/chat takes the messages of a conversation")},
  });
  return kTable;
}

FieldTable<OllamaFields> OllamaFields::table() {
  static constexpr auto kTable = std::to_array<BodyField<OllamaFields>>({
      {{"model", kTextValue, "A name from /api/tags; without it, the served model."},
       into<&GenerationRequest::model>},
      {{"stream", kBoolean, "true by default."}, into<&StreamOptions::stream>},
      {{"format",
        schema("`json`, or a JSON schema",
               R"({"anyOf":[{"enum":["","json"]},{"$ref":"#/components/schemas/JsonSchema"}]})"),
        "The output is a JSON object, or follows the schema."},
       call<&OllamaFields::read_format>},
      {{"options", schema("an object", "OllamaOptions"), "An unknown option is refused."},
       call<&OllamaFields::read_options>},
      {{"think",
        schema("true, false or an effort, `none` to `max`",
               R"({"anyOf":[{"type":"boolean"},
               {"enum":["none","minimal","low","medium","high","max"]}]})"),
        "Without it the template decides. All but false and `none` need a model that reasons."},
       call<&OllamaFields::read_think>},
      {{"keep_alive",
        schema("seconds, or a duration such as `5m`",
               R"({"anyOf":[{"type":"number"},
               {"type":"string","pattern":"^[-+.0-9hmnsu]*[0-9][-+.0-9hmnsu]*$"}]})"),
        "A server of one model keeps it loaded, and names 0 without a prompt in "
        "`x-quire-ignored`."},
       call<&OllamaFields::read_keep_alive>},
      {{"logprobs", kBoolean, "Log probabilities of the tokens of the response."},
       into<&OllamaFields::logprobs_>},
      {{"top_logprobs", integer(0, kRequestLimits.max_logprobs), "A value above 0 needs logprobs."},
       into<&OllamaFields::top_logprobs_>},
      {kTemplateKwargsField, call<&ChatBuilder::read_template_kwargs>},
      {without_effect("truncate", "a conversation that does not fit the context is refused")},
      {without_effect("shift", "an output ends where the context ends")},
      {only("_debug_render_only", "false", kOnlyFalse)},
  });
  return kTable;
}

FieldError OllamaFields::read(std::string_view name, Element value) {
  const auto own = use_ == OllamaUse::kChat ? chat_table() : generate_table();
  if (const auto* const row = find_field(own, name)) return row->read(*this, name, value);
  if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
  return chat_.read(name, value);
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
  constexpr auto kLevels =
      std::to_array<std::string_view>({"none", "minimal", "low", "medium", "high", "max"});
  bool is_wanted = false;
  if (!value.get_bool().get(is_wanted)) {
    thinks_ = is_wanted;
    return {};
  }
  std::string_view level;
  if (value.get_string().get(level) || std::ranges::find(kLevels, level) == kLevels.end()) {
    return unexpected(path, value,
                      "true, false, 'none', 'minimal', 'low', 'medium', 'high' or 'max'");
  }
  thinks_ = level != "none";
  chat_.set_reasoning_effort(path, level);
  return {};
}

// Reads seconds, or a duration such as "1h30m". Only the supervisor unloads models.
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
  const auto max_tools = static_cast<size_t>(chat_.defaults.limits.max_tools);
  return read_items(path, value, max_tools, [&](const Path& at, Element tool) -> FieldError {
    std::string name;
    simdjson::dom::object function;
    QUIRE_RETURN_IF_FIELD_ERROR(read_function(at, tool, name, function));
    return chat_.add_tool(Path(at, "function"), function, "parameters");
  });
}

// --- Options ---

FieldTable<OllamaFields> OllamaFields::options_table() {
  using Row = BodyField<OllamaFields>;
  constexpr std::string_view kOperators = "the flags of the server decide";
  const auto sampling = [](std::string_view name, std::string_view as, std::string_view help) {
    return Row{{name, generation_field(as).type, help}, read_sampling_option};
  };
  static const auto kTable = std::to_array<Row>({
      sampling("temperature", "temperature", "The same as in the other APIs."),
      sampling("top_k", "top_k", "The same as in the other APIs."),
      {{"top_p", number({.min = 0, .max = 1}),
        "0: the most likely token; otherwise the same as in the other APIs."},
       call<&OllamaFields::read_top_p>},
      sampling("min_p", "min_p", "The same as in the other APIs."),
      sampling("stop", "stop", "The same as in the other APIs."),
      sampling("presence_penalty", "presence_penalty", "The same, over the output."),
      sampling("frequency_penalty", "frequency_penalty", "The same, over the output."),
      sampling("repeat_penalty", "repetition_penalty",
               "`repetition_penalty` of the other APIs, over the prompt and the output."),
      {{"seed", generation_field("seed").type, "-1 is the same as no seed."},
       call<&OllamaFields::read_seed>},
      {{"num_predict", integer(kFillContext),
        "0 and less, and the default: the rest of the context."},
       call<&OllamaFields::read_num_predict>},
      {{"num_ctx", integer(0),
        "Has no effect; above the served context, named in `x-quire-ignored`."},
       call<&OllamaFields::read_num_ctx>},
      {{"repeat_last_n", integer(-1),
        "0: no penalties. They count the whole text; a window is named in `x-quire-ignored`."},
       into<&OllamaFields::repeat_last_n_>},
      {{"penalize_newline", kBoolean,
        "Penalties count every token; false beside one is named in `x-quire-ignored`."},
       into<&OllamaFields::penalizes_newline_>},
      {only("mirostat", "0", "0: this server does not have this kind of sampling")},
      {only("tfs_z", "1", "1: this server does not have this kind of sampling")},
      {{"typical_p", number({.min = 0, .max = 1}),
        "Has no effect; a value other than 1 is named in `x-quire-ignored`."},
       call<&OllamaFields::read_typical_p>},
      {without_effect("mirostat_tau", "mirostat is off")},
      {without_effect("mirostat_eta", "mirostat is off")},
      {without_effect("num_keep", kOperators)},
      {without_effect("numa", kOperators)},
      {without_effect("num_batch", kOperators)},
      {without_effect("num_gpu", kOperators)},
      {without_effect("main_gpu", kOperators)},
      {without_effect("low_vram", kOperators)},
      {without_effect("f16_kv", kOperators)},
      {without_effect("logits_all", kOperators)},
      {without_effect("vocab_only", kOperators)},
      {without_effect("use_mmap", kOperators)},
      {without_effect("use_mlock", kOperators)},
      {without_effect("embedding_only", kOperators)},
      {without_effect("num_thread", kOperators)},
      {without_effect("draft_num_predict", kOperators)},
  });
  return kTable;
}

FieldError OllamaFields::read_options(const Path& path, Element value) {
  return read_members(options_table(), *this, path, value, "one of Ollama's API");
}

FieldError OllamaFields::read_sampling_option(OllamaFields& body, const Field& field,
                                              const Path& path, Element value) {
  if (field.name.ends_with("_penalty")) body.has_penalty_ = true;
  const bool is_renamed = field.name == "repeat_penalty";
  return body.chat_.read_sampling(path, is_renamed ? "repetition_penalty" : field.name, value);
}

// -1, Ollama's default, is the same as no seed.
FieldError OllamaFields::read_seed(const Path& path, Element value) {
  double number = 0;
  if (!value.get_double().get(number) && number == -1) return {};
  return chat_.read_sampling(path, "seed", value);
}

// In Ollama, 0 leaves only the most likely token. The other APIs refuse 0, because OpenAI's range
// excludes it.
FieldError OllamaFields::read_top_p(const Path& path, Element value) {
  double number = 0;
  if (value.get_double().get(number) || number != 0) {
    return chat_.read_sampling(path, "top_p", value);
  }
  request_.chat.engine_request.sampling.top_p = std::numeric_limits<float>::min();
  return {};
}

// This option is not refused, because scripts copy it from Ollama's documentation, which sends all
// options in one example.
FieldError OllamaFields::read_typical_p(const Path& path, Element value) {
  double number = 0;
  if (value.get_double().get(number) || !(number >= 0 && number <= 1)) {
    return unexpected(path, value, "a number from 0 to 1");
  }
  if (number != 1) request_.chat.ignored.push_back(path.text());
  return {};
}

// Values of 0 or less mean the rest of the context, which is the default.
FieldError OllamaFields::read_num_predict(const Path& path, Element value) {
  int number = 0;
  QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, kFillContext, INT_MAX, number));
  return number <= 0 ? FieldError() : chat_.read_max_tokens(path, value);
}

// The context of the model is fixed: a smaller value has no effect, and a larger one is not
// reached.
FieldError OllamaFields::read_num_ctx(const Path& path, Element value) {
  int number = 0;
  QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, 0, INT_MAX, number));
  if (number > model_.max_model_len) request_.chat.ignored.push_back(path.text());
  return {};
}

// --- Messages ---

FieldError OllamaFields::read_messages(const Path& path, Element value) {
  const auto max_messages = static_cast<size_t>(chat_.defaults.limits.max_messages);
  return read_objects(path, value, max_messages,
                      [&](const Path& at, const auto& fields) -> FieldError {
                        QUIRE_RETURN_IF_FIELD_ERROR(read_message(at, fields));
                        chat_.set_sources(at);
                        return {};
                      });
}

FieldError OllamaFields::read_message(const Path& path, const simdjson::dom::object& fields) {
  constexpr auto kRoles = std::to_array<std::string_view>({"system", "user", "assistant", "tool"});
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
  if (!value.get_array().get(calls) && calls.size() > 0) unanswered_.clear();
  const auto max_calls = static_cast<size_t>(chat_.defaults.limits.max_tools);
  return read_objects(path, value, max_calls, [&](const Path& at, const auto& fields) {
    return read_tool_call(at, fields);
  });
}

FieldError OllamaFields::read_tool_call(const Path& path, const simdjson::dom::object& fields) {
  const Path function_path(path, "function");
  simdjson::dom::object function;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "function", function));
  TemplateCall call;
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "id", call.id));
  if (call.id.empty()) call.id = next_call_id();
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(function_path, function, "name", call.name));
  QUIRE_RETURN_IF_FIELD_ERROR(read_arguments(function_path, function, "arguments", chat_.values,
                                             call.arguments, call.text));
  unanswered_.push_back({call.id, call.name});
  chat_.add_call(std::move(call));
  return {};
}

// Finds the call whose result the message is, and sets the message's call id and tool name: the
// call with the message's id or tool name; without either, the first call that has no result yet. A
// conversation whose start was cut may have results without calls.
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

// Ollama's penalties count the last repeat_last_n tokens; here they count all. A window, or an
// exception for the newline, is named as ignored if the request has a penalty, but not for a
// penalty of the model's files: a client that sends Ollama's usual window does not request that
// penalty.
void OllamaFields::finish_penalties() {
  SamplingParams& sampling = request_.chat.engine_request.sampling;
  if (repeat_last_n_ == 0) {
    sampling.repetition_penalty = 1;
    sampling.presence_penalty = sampling.frequency_penalty = 0;
  }
  const bool is_on = sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
                     sampling.frequency_penalty != 0;
  if (!has_penalty_ || !is_on) return;
  if (repeat_last_n_ && *repeat_last_n_ != -1 && *repeat_last_n_ < model_.max_model_len) {
    request_.chat.ignored.emplace_back("options.repeat_last_n");
  }
  if (!penalizes_newline_) request_.chat.ignored.emplace_back("options.penalize_newline");
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

FieldError OllamaFields::finish() {
  finish_penalties();
  QUIRE_RETURN_IF_FIELD_ERROR(finish_logprobs());
  QUIRE_RETURN_IF_FIELD_ERROR(finish_thinking());
  const bool is_chat = use_ == OllamaUse::kChat;
  if (messages_) QUIRE_RETURN_IF_FIELD_ERROR(read_messages("messages", *messages_));
  request_.only_loads = is_chat ? chat_.messages.empty() : prompt_.empty();
  request_.unloads = request_.only_loads && unloads_;
  if (request_.unloads) request_.chat.ignored.emplace_back("keep_alive");
  if (is_raw_) {
    QUIRE_RETURN_IF_FIELD_ERROR(finish_raw());
    request_.raw_prompt = prompt_;
    request_.chat.engine_request.add_special_tokens = true;
  }
  if (!system_.empty()) {
    chat_.messages.push_back({.role = "system", .content = std::move(system_)});
    chat_.set_sources("system");
  }
  // A request that only loads the model is checked as one with an empty message.
  if (!is_chat || request_.only_loads) {
    chat_.messages.push_back({.role = "user", .content = std::move(prompt_)});
    chat_.set_sources("prompt");
  }
  chat_.choose_by_default();
  const Path path("messages");
  const TemplateMessage& last = chat_.messages.back();
  const bool continues = last.role == "assistant" && last.tool_calls.empty() &&
                         !check_continued(path, {.content = last.content});
  return chat_.finish(path, continues);
}

class ShowFields {
 public:
  explicit ShowFields(std::string& out) : out_(out) {}

  static FieldTable<ShowFields> table() {
    static constexpr auto kTable = std::to_array<BodyField<ShowFields>>({
        {{"model", kTextValue, "A name from /api/tags; without it, the served model."},
         into<&ShowFields::model_>},
        {{"name", kTextValue, "The older name of model."}, into<&ShowFields::name_>},
        {without_effect("verbose")},
    });
    return kTable;
  }
  FieldError read(std::string_view name, Element value) {
    const auto* const row = find_field(table(), name);
    return row == nullptr ? FieldError() : row->read(*this, name, value);
  }
  FieldError finish() {
    out_ = std::move(model_.empty() ? name_ : model_);
    return {};
  }

 private:
  std::string& out_;
  std::string model_;
  std::string name_;
};

class PullFields {
 public:
  explicit PullFields(OllamaPull& out) : out_(out) {}

  static FieldTable<PullFields> table() {
    static constexpr auto kTable = std::to_array<BodyField<PullFields>>({
        {{"model", kTextValue, "A name from /api/tags."}, into<&OllamaPull::model>},
        {{"name", kTextValue, "The older name of model."}, into<&PullFields::name_>},
        {{"stream", kBoolean, "true by default."}, into<&OllamaPull::is_stream>},
        {without_effect("insecure")},
    });
    return kTable;
  }
  auto parts() { return std::tie(out_); }
  FieldError read(std::string_view name, Element value) {
    const auto* const row = find_field(table(), name);
    return row == nullptr ? FieldError() : row->read(*this, name, value);
  }
  FieldError finish() {
    if (out_.model.empty()) out_.model = std::move(name_);
    if (!out_.model.empty()) return {};
    return field_error("model", "got no model, expected a name from /api/tags");
  }

 private:
  OllamaPull& out_;
  std::string name_;
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

Parsed<OllamaPull> parse_ollama_pull(std::string_view body, const RequestLimits& limits) {
  Parsed<OllamaPull> parsed;
  parsed.error = read_body(body, limits, PullFields(parsed.request));
  return parsed;
}

std::vector<ObjectSchema> ollama_schemas() {
  constexpr std::string_view kMore = "Sampling fields of ChatRequest are accepted too.";
  ObjectSchema options = {"OllamaOptions", "An option that is not listed is refused.",
                          /*is_closed=*/true};
  options.add(OllamaFields::options_table());
  ObjectSchema chat = {"OllamaChatRequest", kMore};
  chat.add(OllamaFields::chat_table());
  chat.add(OllamaFields::table());
  chat.add(ChatBuilder::table());
  ObjectSchema generate = {"OllamaGenerateRequest", kMore};
  generate.add(OllamaFields::generate_table());
  generate.add(OllamaFields::table());
  generate.add(ChatBuilder::table());
  ObjectSchema show = {"OllamaShowRequest"};
  show.add(ShowFields::table());
  ObjectSchema pull = {"OllamaPullRequest"};
  pull.add(PullFields::table());
  return {std::move(options), std::move(chat), std::move(generate), std::move(show),
          std::move(pull)};
}

}  // namespace quire::server
