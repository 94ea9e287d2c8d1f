#include "server/openai/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sample/sampling_fields.h"

namespace quire::server {
namespace {

using Kind = GrammarSpec::Kind;

// A field that restricts the text of the output.
struct RestrictionField {
  std::string_view name;
  Kind kind;
};
// The members of vLLM's structured_outputs.
constexpr auto kStructuredOutputs =
    std::to_array<RestrictionField>({{"json", Kind::kJsonSchema},
                                     {"regex", Kind::kRegex},
                                     {"choice", Kind::kChoice},
                                     {"grammar", Kind::kGrammar},
                                     {"json_object", Kind::kJsonObject}});
constexpr std::string_view kKinds = "json, regex, choice, grammar or json_object";
// The members of a body: vLLM's older fields, SGLang's, and llama.cpp's (json_schema and grammar).
constexpr auto kBodyRestrictions =
    std::to_array<RestrictionField>({{"guided_json", Kind::kJsonSchema},
                                     {"guided_regex", Kind::kRegex},
                                     {"guided_choice", Kind::kChoice},
                                     {"guided_grammar", Kind::kGrammar},
                                     {"guided_json_object", Kind::kJsonObject},
                                     {"json_schema", Kind::kJsonSchema},
                                     {"regex", Kind::kRegex},
                                     {"ebnf", Kind::kGrammar},
                                     {"grammar", Kind::kGbnf}});

const RestrictionField* find_restriction(std::span<const RestrictionField> fields,
                                         std::string_view name) {
  const auto found = std::ranges::find(fields, name, &RestrictionField::name);
  return found == fields.end() ? nullptr : &*found;
}

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
  }
  return {};
}

FieldError refuse_whitespace_pattern(const Path& path, Element value) {
  return unexpected(path, value, "no such field: the grammar fixes where white space may stand");
}

// Checks vLLM's options of structured_outputs. An option that would change the allowed text is
// refused, not ignored.
FieldError read_option(std::string_view name, const Path& path, Element value) {
  if (name == "disable_fallback") return {};  // there is no fallback backend
  if (name == "disable_any_whitespace" || name == "disable_additional_properties") {
    return refuse_unless_false(path, value);
  }
  if (name == "whitespace_pattern") return refuse_whitespace_pattern(path, value);
  if (name == "structural_tag") return unexpected(path, value, kKinds);
  return field_error(*path.parent,
                     fmt::format("got an unknown kind '{}', expected {}", clipped(name), kKinds));
}

FieldError read_structured_outputs(const Path& path, Element value, const RequestLimits& limits,
                                   std::optional<Restriction>& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  for (const auto& [name, field] : fields) {
    if (field.is_null()) continue;
    const Path at(path, name);
    if (const RestrictionField* const known = find_restriction(kStructuredOutputs, name)) {
      QUIRE_RETURN_IF_FIELD_ERROR(read_restriction(known->kind, at, field, limits, out));
    } else {
      QUIRE_RETURN_IF_FIELD_ERROR(read_option(name, at, field));
    }
  }
  return {};
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

namespace {

FieldError read_stream_options(const Path& path, Element value, StreamOptions& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  for (const auto& [name, option] : fields) {
    if (option.is_null()) continue;
    const Path at(path, name);
    if (name == "include_usage") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(at, option, out.include_usage));
    } else if (name == "continuous_usage_stats") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(at, option, out.continuous_usage_stats));
    }
  }
  return {};
}

// Reads one field of SamplingParams by its entry in the table of sampling fields.
FieldError read_by_table(const SamplingField& field, const Path& path, Element value,
                         SamplingParams& params) {
  const Status readable = set_sampling_field(field, value, params);
  if (!readable.ok()) {
    std::string_view what = readable.message();
    constexpr std::string_view kExpected = "expected ";
    if (what.starts_with(kExpected)) what.remove_prefix(kExpected.size());
    return unexpected(path, value, what);
  }
  // Later checks would not know the API's name of the field.
  const Status valid = check_sampling_field(field, params, INT_MAX);
  return valid.ok() ? FieldError() : field_error(path, valid.message());
}

// Refuses known fields that this server does not support, because ignoring one would give the
// client another result than it asked for.
FieldError refuse_unsupported(std::string_view name, Element value) {
  const Path path(name);
  if (name == "use_beam_search") return refuse_unless_false(path, value);
  if (name == "length_penalty") {
    double number = 0;
    if (!value.get_double().get(number) && number == 1) return {};
    return unexpected(path, value, "1: this server does not support beam search");
  }
  if (name == "guided_whitespace_pattern") return refuse_whitespace_pattern(path, value);
  if (name == "grammar_lazy") return refuse_unless_false(path, value);
  if (name == "structural_tag") {
    return unexpected(path, value, "no such field; a tool_choice can force a call instead");
  }
  if (name == "prompt_embeds" || name == "logits_processors" || name == "truncate_prompt_tokens") {
    return unexpected(path, value, "no such field: this server does not support it");
  }
  return {};
}

}  // namespace

FieldError read_cache_salt(const Path& path, Element value, std::string& out) {
  constexpr size_t kMaxBytes = 1024;
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out));
  if (!out.empty() && out.size() <= kMaxBytes) return {};
  return unexpected(path, value, fmt::format("1 to {} bytes of text", kMaxBytes));
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

FieldError GenerationFields::read(std::string_view name, Element value) {
  bool is_known = false;
  QUIRE_RETURN_IF_FIELD_ERROR(read_output_field(name, value, is_known));
  if (!is_known) QUIRE_RETURN_IF_FIELD_ERROR(read_restriction_field(name, value, is_known));
  if (!is_known) QUIRE_RETURN_IF_FIELD_ERROR(read_sampling_field(name, name, value, is_known));
  return is_known ? FieldError() : refuse_unsupported(name, value);
}

// The fields that choose the model, the response's form and the request's place in the engine.
FieldError GenerationFields::read_output_field(std::string_view name, Element value,
                                               bool& is_known) {
  const Path path(name);
  StreamOptions& streaming = request_.streaming;
  is_known = true;
  if (name == "model") return read_text(path, value, request_.model);
  if (name == "stream") return read_bool(path, value, streaming.stream);
  if (name == "stream_options") {
    has_stream_options_ = true;
    return read_stream_options(path, value, streaming);
  }
  if (name == "return_token_ids") return read_bool(path, value, request_.return_token_ids);
  if (name == "return_tokens_as_token_ids") {
    return read_bool(path, value, request_.return_tokens_as_token_ids);
  }
  if (name == "add_special_tokens") {
    return read_bool(path, value, engine_request_.add_special_tokens);
  }
  if (name == "priority") {
    return read_int(path, value, INT_MIN, INT_MAX, engine_request_.priority);
  }
  if (name == "cache_salt") return read_cache_salt(path, value, engine_request_.cache_salt);
  is_known = false;
  return {};
}

// The fields that restrict the text of the output.
FieldError GenerationFields::read_restriction_field(std::string_view name, Element value,
                                                    bool& is_known) {
  const Path path(name);
  std::optional<Restriction>& out = request_.restriction;
  is_known = true;
  if (name == "response_format") return read_response_format(path, value, limits_, out);
  if (name == "structured_outputs") return read_structured_outputs(path, value, limits_, out);
  if (const RestrictionField* const field = find_restriction(kBodyRestrictions, name)) {
    return read_restriction(field->kind, path, value, limits_, out);
  }
  is_known = false;
  return {};
}

// The fields of SamplingParams: by the table, after the checks that only the server makes.
FieldError GenerationFields::read_sampling_field(const Path& path, std::string_view name,
                                                 Element value, bool& is_known) {
  is_known = true;
  if (name == "n") {
    return read_int(path, value, 1, std::min(limits_.max_sequences, kMaxSequencesPerPrompt),
                    sampling_.n);
  }
  if (name == "best_of") return read_int(path, value, 1, limits_.max_sequences, best_of_);
  if (name == "seed") return read_seed(path, value);
  if (name == "prompt_logprobs") {
    request_.return_prompt_logprobs = true;
    return read_int(path, value, 0, limits_.max_logprobs, sampling_.prompt_logprobs.emplace());
  }
  if (name == "max_tokens") has_max_tokens_ = true;
  if (name == "stop" && value.is_array()) {
    simdjson::dom::array stops;
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_list(path, value, static_cast<size_t>(limits_.max_stops), stops));
  }
  if (name == "logit_bias") {
    simdjson::dom::object biases;
    QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, biases));
    if (biases.size() > static_cast<size_t>(limits_.max_biases)) {
      return unexpected(path, value, fmt::format("at most {} biases", limits_.max_biases));
    }
  }
  const SamplingField* field = find_sampling_field(name);
  is_known = field != nullptr;
  if (!is_known) return {};
  if (field->has_model_default) given_.push_back(field);
  return read_by_table(*field, path, value, sampling_);
}

void GenerationFields::replace_defaults(const SamplingParams& defaults) {
  for (const SamplingField& field : sampling_fields()) {
    if (!field.has_model_default || std::ranges::find(given_, &field) != given_.end()) continue;
    std::visit([&](auto member) { sampling_.*member = defaults.*member; }, field.member);
  }
}

// OpenAI's and vLLM's seeds are signed. simdjson reads an integer beyond 64 bits as a double, so a
// double counts only where it holds each integer.
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
  if (!has_max_tokens_) sampling_.max_tokens = max_tokens == 0 ? INT_MAX : max_tokens;
  const Status status = validate_sampling_params(sampling_, INT_MAX, INT_MAX);
  if (!status.ok()) return api_error(status);
  if (!has_max_tokens_) sampling_.max_tokens = max_tokens;
  return {};
}

}  // namespace quire::server
