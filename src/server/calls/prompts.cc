#include "server/calls/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace quire::server {
namespace {

ApiError too_long(const std::string& size, int max_model_len) {
  return make_api_error(
      400,
      fmt::format("the prompt is too long: {}, where the model's context of {} leaves room "
                  "for {} and one token of answer",
                  size, max_model_len, max_model_len - 1),
      "prompt", "context_length_exceeded");
}

}  // namespace

RequestDefaults request_defaults(const CallContext& context) {
  RequestDefaults defaults;
  defaults.sampling = context.engine.default_sampling();
  defaults.chat_template = context.engine.chat_template();
  return defaults;
}

size_t max_prompt_bytes(const EngineApi& engine) {
  const ModelInfo& info = engine.model_info();
  size_t longest = 0;
  for (int32_t id = 0; id < info.vocab_size; ++id) {
    longest = std::max(longest, engine.token_bytes(id).size());
  }
  if (longest == 0) return SIZE_MAX;  // no tokenizer: encode() returns the error
  return longest * static_cast<size_t>(info.max_model_len);
}

std::optional<ApiError> check_prompt_bytes(const CallContext& context, size_t num_bytes) {
  if (num_bytes <= context.max_prompt_bytes) return std::nullopt;
  return too_long(fmt::format("{} bytes", num_bytes), context.engine.model_info().max_model_len);
}

std::optional<ApiError> prepare_prompt(const CallContext& context, Request& request) {
  const int max_model_len = context.engine.model_info().max_model_len;
  std::vector<int32_t>& ids = request.prompt_token_ids;
  if (ids.empty()) {
    if (auto error = check_prompt_bytes(context, request.prompt.size())) return error;
    auto encoded = context.engine.encode(request.prompt, request.add_special_tokens);
    if (!encoded.ok()) return api_error(encoded.status());
    ids = std::move(*encoded);
  }
  if (ids.empty()) return make_api_error(400, "the prompt is empty", "prompt");
  if (ids.size() >= static_cast<size_t>(max_model_len)) {
    return too_long(fmt::format("{} tokens", ids.size()), max_model_len);
  }
  const int room = max_model_len - static_cast<int>(ids.size());
  if (request.sampling.max_tokens == 0) request.sampling.max_tokens = room;
  return std::nullopt;
}

}  // namespace quire::server
