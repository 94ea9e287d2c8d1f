// The fields that /v1/completions and /v1/chat/completions share. ChatBuilder reads them for the
// other APIs.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "sample/sampling_fields.h"
#include "server/openai/field_table.h"
#include "server/openai/json_fields.h"
#include "server/openai/requests.h"

namespace quire::server {

// Reads the shared fields of one body into a GenerationRequest and the engine's Request.
class GenerationFields {
 public:
  GenerationFields(GenerationRequest& request, Request& engine_request,
                   const RequestDefaults& defaults)
      : request_(request),
        engine_request_(engine_request),
        sampling_(engine_request.sampling),
        limits_(defaults.limits) {
    sampling_ = defaults.sampling;
  }

  // The fields that SamplingParams lacks, or whose description differs here.
  static FieldTable<GenerationFields> table();
  auto parts() {
    return std::tie(request_, request_.streaming, request_.restriction, engine_request_, sampling_,
                    limits_);
  }

  // Reads a field that is not null. Ignores unknown fields.
  FieldError read(std::string_view name, Element value) { return read(name, name, value); }
  // Reads a field. Adds the name of an unknown field to the request's `ignored`, or only counts it
  // if the name must not appear in a header.
  FieldError read_or_report(std::string_view name, Element value);
  // Reads a field that has another place or name in the body.
  FieldError read(const Path& path, std::string_view name, Element value);
  // Sets each field that has a default of the model and is not in the body to its value in
  // `defaults`.
  void replace_defaults(const SamplingParams& defaults);
  // Checks the fields against each other, after all of them were read. `max_tokens` is the default
  // for requests without that field; 0: the rest of the context, set later. The engine gets
  // `num_prompts` copies of the request.
  FieldError finish(int max_tokens, size_t num_prompts);

 private:
  // Reads a field that is not null, and sets its error. Returns false if there is no such field.
  bool read_known(const Path& path, std::string_view name, Element value, FieldError& error);
  FieldError read_sampling(const SamplingField& field, const Path& path, Element value);
  // The reader of rows that only describe a field of SamplingParams.
  static FieldError read_row(GenerationFields& body, const Field& field, const Path& path,
                             Element value);
  FieldError read_stream_options(const Path& path, Element value);
  FieldError read_max_tokens(const Path& path, Element value);
  FieldError read_names_of_llama_cpp();
  FieldError read_seed(const Path& path, Element value);
  FieldError read_prompt_logprobs(const Path& path, Element value);
  FieldError read_stop(const Path& path, Element value);
  FieldError read_biases(const Path& path, Element value);

  GenerationRequest& request_;
  Request& engine_request_;
  SamplingParams& sampling_;
  const RequestLimits& limits_;
  std::vector<const SamplingField*> given_;  // fields of the body with a default of the model
  std::optional<int> max_tokens_;            // of the body; 0: the rest of the context
  std::optional<Element> n_predict_;
  std::optional<Element> repeat_penalty_;
  bool has_stream_options_ = false;
  int best_of_ = 0;  // 0: not given
};

// Adds the description of all fields that GenerationFields reads.
void add_generation_fields(ObjectSchema& out);
// Returns the description of one of these fields.
Field generation_field(std::string_view name);
// The objects stream_options and structured_outputs, and the bodies of completions and chats.
std::vector<ObjectSchema> generation_option_schemas();
ObjectSchema completion_schema();
ObjectSchema chat_schema();

// Parses a body and reads its fields in their order, then checks them against each other. An empty
// list means that the field is absent, except for the request's own inputs.
template <typename Fields>
FieldError read_body(std::string_view body, const RequestLimits& limits, Fields&& fields) {
  std::optional<JsonDocument> document;
  QUIRE_RETURN_IF_FIELD_ERROR(parse_body(body, limits.max_json_depth, document));
  for (const auto& [name, value] : simdjson::dom::object(document->root())) {
    const bool is_input =
        name == "messages" || name == "input" || name == "prompt" || name == "tokens";
    if (value.is_null() || (!is_input && is_absent(value))) continue;
    QUIRE_RETURN_IF_FIELD_ERROR(fields.read(name, value));
  }
  return fields.finish();
}

// Restrict the output to a schema, or to any JSON object.
FieldError read_schema_restriction(const Path& path, Element schema, const RequestLimits& limits,
                                   std::optional<Restriction>& out);
FieldError restrict_to_object(const Path& path, std::optional<Restriction>& out);

// Reads the format of the output, {"type": "json_schema", …}, whose place depends on the API.
FieldError read_response_format(const Path& path, Element value, const RequestLimits& limits,
                                std::optional<Restriction>& out);

inline constexpr std::string_view kPromptWords = "a text, token ids, or a list of these";

// Reads text, token ids, or a list of either: the prompts of a request, at least one.
FieldError read_prompts(const Path& path, Element value, int max_prompts,
                        std::vector<CompletionPrompt>& out);

// Fields of every request to the engine.
inline constexpr Field kModelField = {"model", kTextValue,
                                      "A name from /v1/models; without it, the served model."};
inline constexpr Field kPriorityField = {
    "priority", integer(INT_MIN),
    "Lower values run first. No effect unless the operator sets `--allow-request-priority`."};
inline constexpr Field kCacheSaltField = {
    "cache_salt", string_of(1, 1024), "Only requests with the same salt share cached prefixes."};
inline constexpr Field kAddSpecialTokensField = {
    "add_special_tokens", kBoolean, "Adds the tokens that the tokenizer puts around a text."};

// llama.cpp's clients send -1 for no limit.
inline constexpr FieldType kTokenLimit =
    schema("an integer of at least 1, or -1: the rest of the context",
           R"({"type":"integer","minimum":-1,"maximum":2147483647,"not":{"const":0}})");

// The error for a second restriction in one request.
FieldError second_restriction(const Path& path);

}  // namespace quire::server
