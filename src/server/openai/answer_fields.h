// The fields that /v1/completions and /v1/chat/completions share.
#pragma once

#include <string_view>

#include "server/openai/fields.h"
#include "server/openai/parse.h"

namespace quire::server {

class AnswerFields {
 public:
  AnswerFields(AnswerCall& call, Request& request, const CallDefaults& defaults)
      : call_(call), request_(request), limits_(defaults.limits) {
    request_.sampling = defaults.sampling;
  }

  // Takes a field that is not null; what nobody knows is ignored.
  Fault read(std::string_view name, Element value);
  // After all fields: what they must be to each other. `max_tokens`: of a call that names none,
  // 0: unknown. `num_prompts` requests will be copies of this one.
  Fault finish(int max_tokens, size_t num_prompts);

 private:
  static const FieldHandlers<AnswerFields>& handlers();
  Fault read_sampling(const Path& path, Element value);
  Fault read_seed(const Path& path, Element value);
  Fault read_stream_options(const Path& path, Element value);

  AnswerCall& call_;
  Request& request_;
  const CallLimits& limits_;
  bool has_max_tokens_ = false;
  bool has_stream_options_ = false;
  int best_of_ = 0;  // 0: not said
};

// A field of SamplingParams by its table.
Fault read_sampling_field(const Path& path, Element value, SamplingParams& params);

// response_format, structured_outputs and guided_…; a second one is refused.
Fault read_response_format(const Path& path, Element value, const CallLimits& limits,
                           std::optional<Restriction>& out);
Fault read_structured_outputs(const Path& path, Element value, const CallLimits& limits,
                              std::optional<Restriction>& out);
// That a field asks for another one than has been asked for.
Fault second_restriction(const Path& path);
Fault refuse_whitespace_pattern(const Path& path, Element value);
// `kind`: json, regex, choice, grammar, json_object
Fault read_restriction(std::string_view kind, const Path& path, Element value,
                       const CallLimits& limits, std::optional<Restriction>& out);

}  // namespace quire::server
