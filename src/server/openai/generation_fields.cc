#include "server/openai/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "sample/sampling_fields.h"

namespace quire::server {
namespace {

using Kind = GrammarSpec::Kind;

FieldError begin_restriction(const Path& path, Kind kind, std::optional<Restriction>& out) {
  if (out) return second_restriction(path);
  out = {.grammar = {.kind = kind}, .field = path.text()};
  return {};
}

FieldError check_size(const Path& path, const std::string& text, size_t max_bytes) {
  if (text.empty()) return field_error(path, "got an empty text, expected at least 1 byte");
  if (text.size() <= max_bytes) return {};
  return field_error(path,
                     fmt::format("got {} bytes, expected at most {}", text.size(), max_bytes));
}

// Reads a schema that is given as an object or as its text, which the grammar compiler checks.
FieldError read_schema(const Path& path, Element value, const RequestLimits& limits,
                       std::string& out) {
  if (value.is_object()) {
    out = simdjson::to_string(value);
  } else if (value.is_string()) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out));
  } else {
    return unexpected(path, value, "a JSON schema: an object or its text");
  }
  return check_size(path, out, limits.grammar.max_text_bytes);
}

FieldError read_choices(const Path& path, Element value, const RequestLimits& limits,
                        std::vector<std::string>& out) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_texts(path, value, limits.grammar.max_choices, out));
  if (out.empty()) return unexpected(path, value, "at least one choice");
  size_t num_bytes = 0;
  for (const std::string& choice : out) num_bytes += choice.size();
  if (num_bytes <= limits.grammar.max_text_bytes) return {};
  return field_error(path, fmt::format("got {} bytes of choices, expected at most {}", num_bytes,
                                       limits.grammar.max_text_bytes));
}

FieldError read_pattern(Kind kind, const Path& path, Element value, size_t max_bytes,
                        std::optional<Restriction>& out) {
  QUIRE_RETURN_IF_FIELD_ERROR(begin_restriction(path, kind, out));
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out->grammar.text));
  return check_size(path, out->grammar.text, max_bytes);
}

FieldError read_restriction(Kind kind, const Path& path, Element value, const RequestLimits& limits,
                            std::optional<Restriction>& out) {
  switch (kind) {
    case Kind::kJsonObject: {
      bool is_wanted = false;
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, is_wanted));
      return is_wanted ? restrict_to_object(path, out) : FieldError();
    }
    case Kind::kJsonSchema:
      return read_schema_restriction(path, value, limits, out);
    case Kind::kChoice:
      QUIRE_RETURN_IF_FIELD_ERROR(begin_restriction(path, kind, out));
      return read_choices(path, value, limits, out->grammar.choices);
    case Kind::kRegex:
      return read_pattern(kind, path, value, limits.grammar.max_regex_bytes, out);
    case Kind::kGrammar:
      return read_pattern(kind, path, value, limits.grammar.max_text_bytes, out);
    case Kind::kGbnf:
      // llama.cpp's clients send an empty text if they have no grammar.
      if (value.is_string() && std::string_view(value).empty()) return {};
      return read_pattern(kind, path, value, limits.grammar.max_text_bytes, out);
    case Kind::kComposed:  // has no field
      break;
  }
  return {};
}

template <Kind kKind, typename Body>
FieldError restrict_by(Body& body, const Field& /*field*/, const Path& path, Element value) {
  return read_restriction(kKind, path, value, std::get<const RequestLimits&>(body.parts()),
                          std::get<std::optional<Restriction>&>(body.parts()));
}

// Whether a client's own name of a field may be written to a header and the log.
bool can_stand_in_header(std::string_view name) {
  constexpr size_t kMaxBytes = 64;
  return !name.empty() && name.size() <= kMaxBytes && std::ranges::all_of(name, [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '-' || c == '.';
  });
}

constexpr FieldType kSchemaValue = schema("a JSON schema: an object or its text", "GuidedJson");
constexpr FieldType kRegexValue = string_of(1, kRequestLimits.grammar.max_regex_bytes);
constexpr FieldType kGrammarValue = string_of(1, kRequestLimits.grammar.max_text_bytes);
constexpr FieldType kChoiceValue =
    list_of(R"({"type":"string"})", kRequestLimits.grammar.max_choices, 1);
constexpr std::string_view kNotSupported = "no such field: this server does not support it";
constexpr std::string_view kFixedSpace =
    "no such field: the grammar fixes where white space may stand";

// The members of vLLM's structured_outputs. An option that would change the allowed text is
// refused, not ignored.
struct StructuredOutputs {
  const RequestLimits& limits;
  std::optional<Restriction>& restriction;

  auto parts() { return std::tie(limits, restriction); }
};
constexpr std::string_view kKinds = "json, regex, choice, grammar or json_object";
constexpr auto kStructuredOutputs = std::to_array<BodyField<StructuredOutputs>>({
    {{"json", kSchemaValue, "The output follows the schema."}, restrict_by<Kind::kJsonSchema>},
    {{"regex", kRegexValue, "The output matches the regular expression."},
     restrict_by<Kind::kRegex>},
    {{"choice", kChoiceValue, "The output is one of the texts."}, restrict_by<Kind::kChoice>},
    {{"grammar", kGrammarValue, "The output follows the grammar in EBNF."},
     restrict_by<Kind::kGrammar>},
    {{"json_object", kBoolean, "true: the output is a JSON object."},
     restrict_by<Kind::kJsonObject>},
    {refused("structural_tag", kKinds)},
    {refused("whitespace_pattern", kFixedSpace)},
    {only("disable_any_whitespace", "false", kOnlyFalse)},
    {only("disable_additional_properties", "false", kOnlyFalse)},
    {without_effect("disable_fallback", "there is no fallback backend")},
});

constexpr auto kStreamOptions = std::to_array<BodyField<StreamOptions>>({
    {{"include_usage", kBoolean, "A last chunk has the usage of the request."},
     into<&StreamOptions::include_usage>},
    {{"continuous_usage_stats", kBoolean, "Every chunk has the usage up to it."},
     into<&StreamOptions::continuous_usage_stats>},
});

FieldError read_format(GenerationFields& body, const Field& /*field*/, const Path& path,
                       Element value) {
  return read_response_format(path, value, std::get<const RequestLimits&>(body.parts()),
                              std::get<std::optional<Restriction>&>(body.parts()));
}

FieldError read_structured_outputs(GenerationFields& body, const Field& /*field*/, const Path& path,
                                   Element value) {
  StructuredOutputs outputs = {std::get<const RequestLimits&>(body.parts()),
                               std::get<std::optional<Restriction>&>(body.parts())};
  return read_members(FieldTable<StructuredOutputs>(kStructuredOutputs), outputs, path, value,
                      kKinds);
}

// Reads the schema of a response_format: json_schema.schema, as in OpenAI's API, or schema, as in
// llama.cpp and Together. A schema beside a type that does not use it is refused, not ignored.
FieldError read_format_schema(const Path& path, simdjson::dom::object fields, std::string_view type,
                              const RequestLimits& limits, std::optional<Restriction>& out) {
  Element wrapper;
  Element schema;
  const bool has_wrapper = !fields["json_schema"].get(wrapper) && !wrapper.is_null();
  const bool has_schema = !fields["schema"].get(schema) && !schema.is_null();
  if (has_wrapper && (has_schema || type != "json_schema")) {
    return field_error(Path(path, "json_schema"),
                       has_schema ? "got it beside schema, expected one of the two"
                                  : fmt::format("got it beside the type '{}', expected the type "
                                                "'json_schema'",
                                                type));
  }
  if (has_schema && type == "text") {
    return field_error(Path(path, "schema"),
                       "got it beside the type 'text', expected the type 'json_schema'");
  }
  const Path wrapper_path(path, "json_schema");
  if (has_wrapper) {
    simdjson::dom::object format;
    QUIRE_RETURN_IF_FIELD_ERROR(read_object(wrapper_path, wrapper, format));
    if (format["schema"].get(schema)) {
      return missing(Path(wrapper_path, "schema"), "a JSON schema");
    }
  } else if (!has_schema) {
    if (type != "json_schema") return {};
    return field_error(path,
                       "got the type 'json_schema' without a schema, expected one as schema or "
                       "json_schema.schema");
  }
  return read_schema_restriction(Path(has_wrapper ? wrapper_path : path, "schema"), schema, limits,
                                 out);
}

}  // namespace

FieldError read_schema_restriction(const Path& path, Element schema, const RequestLimits& limits,
                                   std::optional<Restriction>& out) {
  QUIRE_RETURN_IF_FIELD_ERROR(begin_restriction(path, Kind::kJsonSchema, out));
  return read_schema(path, schema, limits, out->grammar.text);
}

FieldError restrict_to_object(const Path& path, std::optional<Restriction>& out) {
  return begin_restriction(path, Kind::kJsonObject, out);
}

FieldError read_response_format(const Path& path, Element value, const RequestLimits& limits,
                                std::optional<Restriction>& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  constexpr std::string_view kTypes = "'text', 'json_object' or 'json_schema'";
  const Path type_path(path, "type");
  Element type_value;
  if (fields["type"].get(type_value)) return missing(type_path, kTypes);
  std::string_view type;
  if (type_value.get_string().get(type)) return unexpected(type_path, type_value, kTypes);
  if (type != "text" && type != "json_object" && type != "json_schema") {
    return unexpected(type_path, type_value, kTypes);
  }
  const bool had_restriction = out.has_value();
  QUIRE_RETURN_IF_FIELD_ERROR(read_format_schema(path, fields, type, limits, out));
  if (type != "json_object" || (out && !had_restriction)) return {};
  return restrict_to_object(path, out);
}

FieldError read_prompts(const Path& path, Element value, int max_prompts,
                        std::vector<CompletionPrompt>& out) {
  out.clear();
  if (value.is_string()) return read_text(path, value, out.emplace_back().text);
  simdjson::dom::array items;
  if (value.get_array().get(items) || items.size() == 0) {
    return unexpected(path, value, "a string, a list of token ids, or a list of prompts");
  }
  if ((*items.begin()).is_number()) return read_ids(path, value, out.emplace_back().token_ids);
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, static_cast<size_t>(max_prompts), items));
  for (const Element item : items) {
    const Path at(path, out.size());
    CompletionPrompt& prompt = out.emplace_back();
    if (item.is_string()) {
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(at, item, prompt.text));
    } else if (item.is_array()) {
      QUIRE_RETURN_IF_FIELD_ERROR(read_ids(at, item, prompt.token_ids));
    } else {
      return unexpected(at, item, "a string or a list of token ids");
    }
  }
  return {};
}

FieldError second_restriction(const Path& path) {
  return field_error(path,
                     "got a second restriction of the output, expected one of response_format, "
                     "text.format, output_config.format, structured_outputs, guided_…, "
                     "json_schema, grammar, regex, ebnf and a tool_choice that forces a call");
}

FieldTable<GenerationFields> GenerationFields::table() {
  static constexpr auto kTable = std::to_array<BodyField<GenerationFields>>({
      {kModelField, into<&GenerationRequest::model>},
      {{"stream", kBoolean, "The response is a stream of events."}, into<&StreamOptions::stream>},
      {{"stream_options", schema("an object", "StreamOptions"), "Needs stream."},
       call<&GenerationFields::read_stream_options>},
      {{"return_token_ids", kBoolean, "The response has token ids beside the texts."},
       into<&GenerationRequest::return_token_ids>},
      {{"return_tokens_as_token_ids", kBoolean, "Log probabilities name tokens as `token_id:123`."},
       into<&GenerationRequest::return_tokens_as_token_ids>},
      {kAddSpecialTokensField, into<&Request::add_special_tokens>},
      {kPriorityField, into<&Request::priority>},
      {kCacheSaltField, into<&Request::cache_salt>},

      // Restrictions of the output: OpenAI's, vLLM's, vLLM's older ones, SGLang's and llama.cpp's.
      {{"response_format", schema("an object", "ResponseFormat"),
        "OpenAI: `json_object`, or `json_schema` with a schema."},
       read_format},
      {{"structured_outputs", schema("an object", "StructuredOutputs"),
        "vLLM: one of `json`, `regex`, `choice`, `grammar` and `json_object`."},
       read_structured_outputs},
      {{"guided_json", kSchemaValue, "vLLM: as `structured_outputs.json`."},
       restrict_by<Kind::kJsonSchema>},
      {{"guided_regex", kRegexValue, "vLLM: as `structured_outputs.regex`."},
       restrict_by<Kind::kRegex>},
      {{"guided_choice", kChoiceValue, "vLLM: as `structured_outputs.choice`."},
       restrict_by<Kind::kChoice>},
      {{"guided_grammar", kGrammarValue, "vLLM: as `structured_outputs.grammar`."},
       restrict_by<Kind::kGrammar>},
      {{"guided_json_object", kBoolean, "vLLM: as `structured_outputs.json_object`."},
       restrict_by<Kind::kJsonObject>},
      {{"json_schema", kSchemaValue, "SGLang, llama.cpp: the output follows the schema."},
       restrict_by<Kind::kJsonSchema>},
      {{"regex", kRegexValue, "SGLang: the output matches the regular expression."},
       restrict_by<Kind::kRegex>},
      {{"ebnf", kGrammarValue, "SGLang: the output follows the grammar in EBNF."},
       restrict_by<Kind::kGrammar>},
      {{"grammar", string_of(0, kRequestLimits.grammar.max_text_bytes),
        "llama.cpp: the output follows the grammar in GBNF; an empty text is none."},
       restrict_by<Kind::kGbnf>},

      // Fields of SamplingParams that need more documentation or checks than their own table has.
      {{"n", integer(1, kRequestLimits.max_sequences), "The number of sequences per prompt."},
       into<&SamplingParams::n>},
      {{"best_of", integer(1, kRequestLimits.max_sequences),
        "Must equal n: every generated sequence is returned."},
       into<&GenerationFields::best_of_>},
      {{"max_tokens", kTokenLimit, "The most tokens to generate."},
       call<&GenerationFields::read_max_tokens>},
      {{"n_predict", kTokenLimit, "llama.cpp: as `max_tokens`, which takes precedence."},
       into<&GenerationFields::n_predict_>},
      {{"repeat_penalty", number({.min = kMinRepetitionPenalty, .max = kMaxRepetitionPenalty}),
        "llama.cpp: as `repetition_penalty`, which takes precedence."},
       into<&GenerationFields::repeat_penalty_>},
      {{"min_tokens", integer(0), "The fewest tokens to generate, at most max_tokens."}, read_row},
      {{"seed",
        schema(
            "an integer of 64 bits",
            R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})"),
        "The seed of the random choices; without it each prompt has its own, equal in every run."},
       call<&GenerationFields::read_seed>},
      {{"prompt_logprobs", integer(0, kRequestLimits.max_logprobs),
        "Log probabilities of this many tokens at each token of the prompt."},
       call<&GenerationFields::read_prompt_logprobs>},
      {{"stop",
        schema("a text, or a list of at most 16",
               R"({"anyOf":[{"type":"string","minLength":1},
               {"type":"array","items":{"type":"string","minLength":1},"maxItems":16}]})"),
        "Texts that end the output; at most 4096 bytes in all."},
       call<&GenerationFields::read_stop>},
      {{"bad_words",
        schema("a text, or a list of at most 1024",
               R"({"anyOf":[{"type":"string","pattern":"[^ ]"},
               {"type":"array","items":{"type":"string","pattern":"[^ ]"},"maxItems":1024}]})"),
        "Texts whose tokens never occur in a row, each with more than spaces; 4096 bytes in all."},
       read_row},
      {{"logit_bias",
        schema("an object: at most 1024 token ids, each with a number from -100 to 100",
               R"({"type":"object","maxProperties":1024,
               "propertyNames":{"pattern":"^(0|[1-9][0-9]{0,8})$"},
               "additionalProperties":{"type":"number","minimum":-100,"maximum":100}})"),
        "Is added to the logits of these tokens."},
       call<&GenerationFields::read_biases>},
      {{"skip_special_tokens", kBoolean, "The text has no special tokens; true by default."},
       read_row},
      {{"allowed_token_ids", list_of("TokenId", SIZE_MAX, 1),
        "The only tokens that may be generated."},
       read_row},

      // Fields of other servers. A field is refused if ignoring it would change the result.
      {only("use_beam_search", "false", kOnlyFalse)},
      {only("length_penalty", "1", "1: this server does not support beam search")},
      {only("grammar_lazy", "false", kOnlyFalse)},
      {refused("guided_whitespace_pattern", kFixedSpace)},
      {refused("structural_tag", "no such field: a tool_choice can force a call instead")},
      {refused("prompt_embeds", kNotSupported)},
      {refused("logits_processors", kNotSupported)},
      {refused("truncate_prompt_tokens", kNotSupported)},
      {without_effect("guided_decoding_backend", "there is one backend")},
      {without_effect("user")},
  });
  return kTable;
}

bool GenerationFields::read_known(const Path& path, std::string_view name, Element value,
                                  FieldError& error) {
  if (const auto* const row = find_field(table(), name)) {
    error = row->read(*this, path, value);
    return true;
  }
  const SamplingField* const field = find_sampling_field(name);
  if (field != nullptr) error = read_sampling(*field, path, value);
  return field != nullptr;
}

FieldError GenerationFields::read(const Path& path, std::string_view name, Element value) {
  FieldError error;
  read_known(path, name, value, error);
  return error;
}

FieldError GenerationFields::read_or_report(std::string_view name, Element value) {
  FieldError error;
  if (read_known(name, name, value, error)) return error;
  if (can_stand_in_header(name) && request_.ignored.size() < kMaxIgnored) {
    ignore_part(std::string(name), request_.ignored);
  } else {
    ++request_.num_unnamed_ignored;
  }
  return error;
}

FieldError GenerationFields::read_sampling(const SamplingField& field, const Path& path,
                                           Element value) {
  if (field.has_model_default) given_.push_back(&field);
  const Status readable = set_sampling_field(field, value, sampling_);
  if (!readable.ok()) {
    std::string_view what = readable.message();
    constexpr std::string_view kExpected = "expected ";
    if (what.starts_with(kExpected)) what.remove_prefix(kExpected.size());
    return unexpected(path, value, what);
  }
  // Checked here, because later checks do not have the API's name of the field.
  const Status valid = check_sampling_field(field, sampling_, INT_MAX);
  return valid.ok() ? FieldError() : field_error(path, valid.message());
}

FieldError GenerationFields::read_row(GenerationFields& body, const Field& field, const Path& path,
                                      Element value) {
  return body.read_sampling(*find_sampling_field(field.name), path, value);
}

FieldError GenerationFields::read_stream_options(const Path& path, Element value) {
  has_stream_options_ = true;
  return read_members(FieldTable<StreamOptions>(kStreamOptions), request_.streaming, path, value);
}

FieldError GenerationFields::read_max_tokens(const Path& path, Element value) {
  int64_t number = 0;
  if (!value.get_int64().get(number) && number == -1) {
    max_tokens_ = 0;
    return {};
  }
  QUIRE_RETURN_IF_FIELD_ERROR(read_sampling(*find_sampling_field("max_tokens"), path, value));
  max_tokens_ = sampling_.max_tokens;
  return {};
}

// The names of OpenAI's and vLLM's APIs take precedence over llama.cpp's, in any order of the keys.
FieldError GenerationFields::read_names_of_llama_cpp() {
  const SamplingField* const penalty = find_sampling_field("repetition_penalty");
  if (repeat_penalty_ && std::ranges::find(given_, penalty) == given_.end()) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_sampling(*penalty, "repeat_penalty", *repeat_penalty_));
  }
  if (n_predict_ && !max_tokens_) return read_max_tokens("n_predict", *n_predict_);
  return {};
}

FieldError GenerationFields::read_prompt_logprobs(const Path& path, Element value) {
  request_.return_prompt_logprobs = true;
  return read_int(path, value, 0, limits_.max_logprobs, sampling_.prompt_logprobs.emplace());
}

FieldError GenerationFields::read_stop(const Path& path, Element value) {
  simdjson::dom::array stops;
  if (value.is_array()) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_list(path, value, static_cast<size_t>(limits_.max_stops), stops));
  }
  return read_sampling(*find_sampling_field("stop"), path, value);
}

FieldError GenerationFields::read_biases(const Path& path, Element value) {
  simdjson::dom::object biases;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, biases));
  if (biases.size() > static_cast<size_t>(limits_.max_biases)) {
    return unexpected(path, value, fmt::format("at most {} biases", limits_.max_biases));
  }
  return read_sampling(*find_sampling_field("logit_bias"), path, value);
}

namespace {

// Derives the type of a field from the table of SamplingParams.
FieldType sampling_type(const SamplingField& field) {
  const auto of_member = [&]<typename T>(T SamplingParams::* /*member*/) -> FieldType {
    if constexpr (std::is_same_v<T, bool>) return kBoolean;
    if constexpr (std::is_same_v<T, std::vector<int32_t>>) return list_of("TokenId", SIZE_MAX);
    if constexpr (std::is_same_v<T, float>) {
      Range range = field.range;
      range.max = std::min<double>(range.max, FLT_MAX);
      return number(range);
    }
    if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::optional<int>>) {
      return integer(static_cast<int>(field.range.min),
                     static_cast<int>(std::min<double>(field.range.max, INT_MAX)));
    }
    return kAnyValue;  // GenerationFields::table() has a row
  };
  return std::visit(of_member, field.member);
}

}  // namespace

void add_generation_fields(ObjectSchema& out) {
  out.add(GenerationFields::table());
  for (const SamplingField& field : sampling_fields()) {
    out.add({field.name, sampling_type(field), field.help});
  }
}

Field generation_field(std::string_view name) {
  ObjectSchema all;
  add_generation_fields(all);
  const auto found = std::ranges::find(all.fields, name, &Field::name);
  QUIRE_CHECK(found != all.fields.end(), "[server] there is no such field");
  return *found;
}

std::vector<ObjectSchema> generation_option_schemas() {
  ObjectSchema stream = {"StreamOptions"};
  stream.add(FieldTable<StreamOptions>(kStreamOptions));
  ObjectSchema outputs = {"StructuredOutputs", "At most one of these fields.", /*is_closed=*/true};
  outputs.add(FieldTable<StructuredOutputs>(kStructuredOutputs));
  return {std::move(stream), std::move(outputs)};
}

void GenerationFields::replace_defaults(const SamplingParams& defaults) {
  for (const SamplingField& field : sampling_fields()) {
    if (!field.has_model_default || std::ranges::find(given_, &field) != given_.end()) continue;
    std::visit([&](auto member) { sampling_.*member = defaults.*member; }, field.member);
  }
}

// OpenAI's and vLLM's seeds are signed. simdjson reads an integer beyond 64 bits as a double, so a
// double is accepted only up to 2^53, where it represents every integer.
FieldError GenerationFields::read_seed(const Path& path, Element value) {
  constexpr double kMostExact = 0x1p53;
  int64_t number = 0;
  uint64_t large = 0;
  double real = 0;
  if (!value.get_int64().get(number)) {
    sampling_.seed = static_cast<uint64_t>(number);
  } else if (!value.get_uint64().get(large)) {
    sampling_.seed = large;
  } else if (!value.get_double().get(real) && real == std::trunc(real) &&
             std::abs(real) <= kMostExact) {
    sampling_.seed = static_cast<uint64_t>(static_cast<int64_t>(real));  // 5.0
  } else {
    return unexpected(path, value, fmt::format("an integer from {} to {}", INT64_MIN, UINT64_MAX));
  }
  return {};
}

FieldError GenerationFields::finish(int max_tokens, size_t num_prompts) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_names_of_llama_cpp());
  if (best_of_ != 0 && best_of_ != sampling_.n) {
    return field_error("best_of", fmt::format("got {}, expected {}, the value of n: every sequence "
                                              "that is generated is returned",
                                              best_of_, sampling_.n));
  }
  if (has_stream_options_ && !request_.streaming.stream) {
    return field_error("stream_options", "got options without stream, expected stream to be true");
  }
  const size_t num_ids = sampling_.allowed_token_ids.size() + sampling_.stop_token_ids.size();
  if (num_ids > limits_.max_listed_ids / std::max<size_t>(num_prompts, 1)) {
    return field_error(
        "allowed_token_ids",
        fmt::format("got {} ids, with stop_token_ids, for each of {} prompts, expected at most {} "
                    "for all prompts",
                    num_ids, num_prompts, limits_.max_listed_ids));
  }
  const int limit = max_tokens_.value_or(max_tokens);
  sampling_.max_tokens = limit == 0 ? INT_MAX : limit;
  const Status status = validate_sampling_params(sampling_, INT_MAX, INT_MAX);
  if (!status.ok()) return api_error(status);
  sampling_.max_tokens = limit;
  return {};
}

}  // namespace quire::server
