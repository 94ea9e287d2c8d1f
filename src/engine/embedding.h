// The embedding of one request, which is made from the last token's hidden state.
#pragma once

#include <vector>

#include "quire/request.h"
#include "quire/status.h"

namespace quire {

// How one request's embedding is made from a hidden state.
struct EmbeddingSpec {
  EmbeddingParams params;
  bool normalizes = false;
};

// Keeps the first params.dimensions numbers of `hidden_state` (0: all), and normalizes them in FP64
// if the spec says so. Fails if a number is not finite.
Result<std::vector<float>> make_embedding(std::vector<float> hidden_state,
                                          const EmbeddingSpec& spec);

}  // namespace quire
