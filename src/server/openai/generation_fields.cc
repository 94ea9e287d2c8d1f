#include "server/openai/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sample/sampling_fields.h"

namespace quire::server {
namespace {

using Kind = GrammarSpec::Kind;

constexpr std::string_view kKinds = "json, regex, choice, grammar or json_object";

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

// Reads a schema that is given as an object or as its text.
FieldError read_schema(const Path& path, Element value, const RequestLimits& limits,
                       std::string& out) {
  if (value.is_object()) {
    out = simdjson::to_string(value);
    return check_size(path, out, limits.grammar.max_text_bytes);
  }
  if (!value.is_string()) return unexpected(path, value, "a JSON schema: an object or its text");
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out));
  QUIRE_RETURN_IF_FIELD_ERROR(check_size(path, out, limits.grammar.max_text_bytes));
  const auto document = JsonDocument::parse(out, "schema", {.max_depth = limits.max_json_depth});
  if (document.ok() && document->root().is_object()) return {};
  return unexpected(path, value, "a JSON schema: valid JSON, an object");
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

// `kind` is one of kKinds; other kinds leave `is_known` unchanged.
FieldError read_restriction(std::string_view kind, const Path& path, Element value,
                            const RequestLimits& limits, std::optional<Restriction>& out,
                            bool& is_known) {
  is_known = true;
  if (kind == "regex") {
    return read_pattern(Kind::kRegex, path, value, limits.grammar.max_regex_bytes, out);
  }
  if (kind == "grammar") {
    return read_pattern(Kind::kGrammar, path, value, limits.grammar.max_text_bytes, out);
  }
  if (kind == "json") {
    QUIRE_RETURN_IF_FIELD_ERROR(begin_restriction(path, Kind::kJsonSchema, out));
    return read_schema(path, value, limits, out->grammar.text);
  }
  if (kind == "choice") {
    QUIRE_RETURN_IF_FIELD_ERROR(begin_restriction(path, Kind::kChoice, out));
    return read_choices(path, value, limits, out->grammar.choices);
  }
  if (kind == "json_object") {
    bool is_wanted = false;
    QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, is_wanted));
    return is_wanted ? begin_restriction(path, Kind::kJsonObject, out) : FieldError();
  }
  is_known = false;
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
    bool is_known = false;
    QUIRE_RETURN_IF_FIELD_ERROR(read_restriction(name, at, field, limits, out, is_known));
    if (!is_known) QUIRE_RETURN_IF_FIELD_ERROR(read_option(name, at, field));
  }
  return {};
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
  if (type == "text") return {};
  if (type == "json_object") return begin_restriction(path, Kind::kJsonObject, out);
  if (type != "json_schema") return unexpected(type_path, type_value, kTypes);
  const Path format_path(path, "json_schema");
  simdjson::dom::object format;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "json_schema", format));
  Element schema;
  const Path schema_path(format_path, "schema");
  if (format["schema"].get(schema)) return missing(schema_path, "a JSON schema");
  QUIRE_RETURN_IF_FIELD_ERROR(begin_restriction(schema_path, Kind::kJsonSchema, out));
  return read_schema(schema_path, schema, limits, out->grammar.text);
}

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

FieldError read_cache_salt(const Path& path, Element value, std::string& out) {
  constexpr size_t kMaxBytes = 1024;
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out));
  if (!out.empty() && out.size() <= kMaxBytes) return {};
  return unexpected(path, value, fmt::format("1 to {} bytes of text", kMaxBytes));
}

// Reads one field of SamplingParams by its entry in the table of sampling fields.
FieldError read_by_table(const SamplingField& field, const Path& path, Element value,
                         SamplingParams& params) {
  const Status status = set_sampling_field(field, value, params);
  if (status.ok()) return {};
  std::string_view what = status.message();
  constexpr std::string_view kExpected = "expected ";
  if (what.starts_with(kExpected)) what.remove_prefix(kExpected.size());
  return unexpected(path, value, what);
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
  if (name == "prompt_embeds" || name == "logits_processors" || name == "truncate_prompt_tokens") {
    return unexpected(path, value, "no such field: this server does not support it");
  }
  return {};
}

}  // namespace

FieldError second_restriction(const Path& path) {
  return field_error(path,
                     "got a second restriction of the output, expected one of response_format, "
                     "structured_outputs, guided_… and a tool_choice that forces a call");
}

FieldError GenerationFields::read(std::string_view name, Element value) {
  bool is_known = false;
  QUIRE_RETURN_IF_FIELD_ERROR(read_output_field(name, value, is_known));
  if (!is_known) QUIRE_RETURN_IF_FIELD_ERROR(read_restriction_field(name, value, is_known));
  if (!is_known) QUIRE_RETURN_IF_FIELD_ERROR(read_sampling_field(name, value, is_known));
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
  for (const std::string_view kind : {"json", "regex", "choice", "grammar"}) {
    if (name.starts_with("guided_") && name.substr(7) == kind) {
      return read_restriction(kind, path, value, limits_, out, is_known);
    }
  }
  is_known = false;
  return {};
}

// The fields of SamplingParams: by the table, after the checks that only the server makes.
FieldError GenerationFields::read_sampling_field(std::string_view name, Element value,
                                                 bool& is_known) {
  const Path path(name);
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
  return is_known ? read_by_table(*field, path, value, sampling_) : FieldError();
}

// OpenAI's and vLLM's seeds are signed. The bounds are the last integers that a JSON reader with
// numbers as doubles can distinguish from integers beyond 64 bits.
FieldError GenerationFields::read_seed(const Path& path, Element value) {
  constexpr int64_t kLeast = INT64_MIN + 1024;
  constexpr uint64_t kMost = UINT64_MAX - 2047;
  int64_t number = 0;
  uint64_t large = 0;
  double real = 0;
  if (!value.get_int64().get(number) && number >= kLeast) {
    sampling_.seed = static_cast<uint64_t>(number);
  } else if (!value.get_uint64().get(large) && large <= kMost) {
    sampling_.seed = large;
  } else if (value.type() == simdjson::dom::element_type::DOUBLE && !value.get_double().get(real) &&
             real == std::trunc(real) && real >= static_cast<double>(kLeast) &&
             real <= static_cast<double>(kMost)) {
    // an integer in the form 5.0 or 1e19
    sampling_.seed =
        real < 0 ? static_cast<uint64_t>(static_cast<int64_t>(real)) : static_cast<uint64_t>(real);
  } else {
    return unexpected(path, value, fmt::format("an integer from {} to {}", kLeast, kMost));
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
