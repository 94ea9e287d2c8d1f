// The fields that /v1/completions and /v1/chat/completions share.
#pragma once

#include <string_view>

#include "server/openai/json_fields.h"
#include "server/openai/requests.h"

namespace quire::server {

class AnswerFields {
 public:
  AnswerFields(GenerationRequest& call, Request& request, const RequestDefaults& defaults)
      : call_(call), request_(request), limits_(defaults.limits) {
    request_.sampling = defaults.sampling;
  }

  // Reads a field that is not null. Ignores unknown fields.
  FieldError read(std::string_view name, Element value);
  // Checks the fields against each other, after all of them were read. `max_tokens` is the default
  // for calls without that field; 0: set later, from the rest of the context. The engine gets
  // `num_prompts` copies of the request.
  FieldError finish(int max_tokens, size_t num_prompts);

 private:
  static const FieldHandlers<AnswerFields>& handlers();
  FieldError read_sampling(const Path& path, Element value);
  FieldError read_seed(const Path& path, Element value);
  FieldError read_stream_options(const Path& path, Element value);

  GenerationRequest& call_;
  Request& request_;
  const RequestLimits& limits_;
  bool has_max_tokens_ = false;
  bool has_stream_options_ = false;
  int best_of_ = 0;  // 0: not given
};

// Reads one field of SamplingParams by its entry in sampling_fields().
FieldError read_sampling_field(const Path& path, Element value, SamplingParams& params);

// These read response_format and structured_outputs into `out`, and return an error if `out` is
// already set.
FieldError read_response_format(const Path& path, Element value, const RequestLimits& limits,
                                std::optional<Restriction>& out);
FieldError read_structured_outputs(const Path& path, Element value, const RequestLimits& limits,
                                   std::optional<Restriction>& out);
// The error for a second restriction in one call.
FieldError second_restriction(const Path& path);
FieldError refuse_whitespace_pattern(const Path& path, Element value);
// `kind` is json, regex, choice, grammar or json_object.
FieldError read_restriction(std::string_view kind, const Path& path, Element value,
                            const RequestLimits& limits, std::optional<Restriction>& out);

}  // namespace quire::server
