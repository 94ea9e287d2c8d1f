// A question to the embedded model, and a schema for its answer.
#pragma once

#include <string>
#include <string_view>

#include "quire/engine.h"

namespace quire::testing {

inline constexpr std::string_view kApplesSchema = R"({"type": "object", "properties": {
    "answer": {"type": "integer", "minimum": 0, "maximum": 999},
    "unit": {"enum": ["apples", "coins"]}}, "required": ["answer", "unit"],
    "additionalProperties": false})";

// Even numbers are answered greedily, odd ones by sampling.
inline Request apples_question(const Engine& engine, int number, int max_tokens) {
  Request request;
  request.prompt = *engine.render_chat(
      {{"user", "Tom has " + std::to_string(number) + " apples and gets 5 more. How many?"}});
  request.add_special_tokens = false;
  request.sampling.temperature = number % 2 == 0 ? 0.0F : 0.9F;
  request.sampling.seed = static_cast<uint64_t>(number);
  request.sampling.max_tokens = max_tokens;
  return request;
}

}  // namespace quire::testing
