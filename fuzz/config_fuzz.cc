// Parses config.json and generation_config.json. Accepted values are in range and usable.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/config.h"
#include "model/decoder.h"
#include "model/families.h"

namespace quire {
namespace {

void check_error(const Status& status) {
  QUIRE_CHECK(!status.message().empty() && status.message().size() < 1000, status.message());
  QUIRE_CHECK(status.message().find('\n') == std::string::npos, status.message());
}

void check_rope(const RopeConfig& rope, const DecoderConfig& decoder) {
  for (const int max_model_len : {1, decoder.max_position_embeddings, 1 << 28}) {
    const RopeFrequencies frequencies =
        rope_frequencies(rope, decoder.head_dim, decoder.max_position_embeddings, max_model_len);
    QUIRE_CHECK(frequencies.inv_freq.size() * 2 == static_cast<size_t>(decoder.head_dim),
                "a pair each");
    for (const double frequency : frequencies.inv_freq) {
      QUIRE_CHECK(std::isfinite(frequency) && frequency >= 0.0, "frequencies are finite");
    }
    QUIRE_CHECK(std::isfinite(frequencies.attention_factor), "the attention factor is finite");
  }
}

void check_config(const ModelConfig& config) {
  const DecoderConfig& decoder = decoder_config(config);
  const auto num_layers = static_cast<size_t>(config.num_layers);
  QUIRE_CHECK(decoder.head_dim >= 2 && decoder.head_dim % 2 == 0, "head_dim is even");
  QUIRE_CHECK(decoder.num_heads % decoder.num_kv_heads == 0, "heads share keys evenly");
  QUIRE_CHECK(decoder.layer_windows.size() == num_layers, "windows");
  QUIRE_CHECK(decoder.layer_ropes.size() == num_layers, "rotations");
  for (const int rope : decoder.layer_ropes) {
    QUIRE_CHECK(rope >= 0 && static_cast<size_t>(rope) < decoder.ropes.size(), "rotations");
  }
  QUIRE_CHECK(config.longest_model_len > 0 && config.longest_model_len <= kMaxModelLen, "context");
  QUIRE_CHECK(std::isfinite(decoder.attention_scale), "the scale is finite");
  QUIRE_CHECK(num_parameters(config) > 0, "the count does not overflow");
  for (const RopeConfig& rope : decoder.ropes) check_rope(rope, decoder);
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
