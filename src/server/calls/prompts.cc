#include "server/calls/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace quire::server {
namespace {

CallError too_long(size_t num_tokens, int max_model_len) {
  return make_call_error(
      400,
      fmt::format("the prompt is too long: {} tokens, where the model's context of {} leaves room "
                  "for {} and one token of answer",
                  num_tokens, max_model_len, max_model_len - 1),
      "prompt", "context_length_exceeded");
}

}  // namespace

CallDefaults call_defaults(const CallContext& context) {
  CallDefaults defaults;
  defaults.sampling = context.engine.default_sampling();
  return defaults;
}

std::optional<CallError> prepare_prompt(const CallContext& context, Request& request) {
  const int max_model_len = context.engine.model_info().max_model_len;
  std::vector<int32_t>& ids = request.prompt_token_ids;
  if (ids.empty()) {
    auto encoded = context.engine.encode(request.prompt, request.add_special_tokens);
    if (!encoded.ok()) return call_error(encoded.status());
    ids = std::move(*encoded);
  }
  if (ids.empty()) return make_call_error(400, "the prompt is empty", "prompt");
  if (ids.size() >= static_cast<size_t>(max_model_len)) return too_long(ids.size(), max_model_len);
  const int room = max_model_len - static_cast<int>(ids.size());
  if (request.sampling.max_tokens == 0) request.sampling.max_tokens = room;
  return std::nullopt;
}

std::optional<Result<ConstraintFactory>> find_constraint(const CallContext& context,
                                                         const StructuredOutput& wanted) {
  if (!context.config.find_constraint) return std::nullopt;
  return context.config.find_constraint(wanted);
}

Result<ConstraintFactory> compile_constraint(const CallContext& context,
                                             const StructuredOutput& wanted) {
  if (!context.config.compile_constraint) {
    return unimplemented("[server] structured output is not served here");
  }
  return context.config.compile_constraint(wanted);
}

}  // namespace quire::server
