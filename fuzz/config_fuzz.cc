// config.json and generation_config.json: what is accepted is in range and can be computed with.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/config.h"

namespace quire {
namespace {

void check_error(const Status& status) {
  QUIRE_CHECK(!status.message().empty() && status.message().size() < 1000, status.message());
  QUIRE_CHECK(status.message().find('\n') == std::string::npos, status.message());
}

void check_config(const ModelConfig& config) {
  QUIRE_CHECK(config.head_dim >= 2 && config.head_dim % 2 == 0, "head_dim is even");
  QUIRE_CHECK(config.num_heads % config.num_kv_heads == 0, "heads share keys evenly");
  QUIRE_CHECK(config.layer_windows.size() == static_cast<size_t>(config.num_layers), "windows");
  QUIRE_CHECK(num_parameters(config) > 0, "the count does not overflow");
  for (const int max_model_len : {1, config.max_position_embeddings, 1 << 28}) {
    const RopeFrequencies rope = rope_frequencies(config.rope, config.head_dim,
                                                  config.max_position_embeddings, max_model_len);
    QUIRE_CHECK(rope.inv_freq.size() * 2 == static_cast<size_t>(config.head_dim), "a pair each");
    for (const double frequency : rope.inv_freq) {
      QUIRE_CHECK(std::isfinite(frequency) && frequency >= 0.0, "frequencies are finite");
    }
    QUIRE_CHECK(std::isfinite(rope.attention_factor), "the attention factor is finite");
  }
}

void fuzz(std::string_view text) {
  const auto model = parse_model_config(text, "input");
  if (model.ok()) {
    check_config(*model);
  } else {
    check_error(model.status());
  }
  const auto generation = parse_generation_config(text, "input");
  if (!generation.ok()) check_error(generation.status());
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
