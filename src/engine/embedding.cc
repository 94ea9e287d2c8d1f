#include "engine/embedding.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

namespace quire {

Result<std::vector<float>> make_embedding(std::vector<float> hidden_state,
                                          const EmbeddingSpec& spec) {
  if (spec.params.dimensions > 0) {
    hidden_state.resize(static_cast<size_t>(spec.params.dimensions));
  }
  double sum = 0;
  for (const float value : hidden_state) sum += static_cast<double>(value) * value;
  if (!std::isfinite(sum)) {
    return internal_error(
        "[engine] the hidden state of the last token; got NaN or infinity, expected numbers: the "
        "weights or the model are broken");
  }
  if (!spec.normalizes || sum == 0) return hidden_state;
  const double length = std::sqrt(sum);
  for (float& value : hidden_state) value = static_cast<float>(value / length);
  return hidden_state;
}

}  // namespace quire
