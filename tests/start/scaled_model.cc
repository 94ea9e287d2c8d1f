#include "start/scaled_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <vector>

#include "quire/engine.h"
#include "support/reference_layer.h"
#include "support/shared_data.h"
#include "support/source_models.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;

// Multiplies a BF16 matrix by 2^exponent.
void multiply(StoredTensor& matrix, float exponent) {
  ASSERT_EQ(matrix.dtype, "BF16");
  const float factor = std::exp2(exponent);
  for (size_t i = 0; i < matrix.bytes.size(); i += sizeof(uint16_t)) {
    uint16_t bits = 0;
    std::memcpy(&bits, matrix.bytes.data() + i, sizeof(bits));
    bits = f32_to_bf16(bf16_to_f32(bits) * factor);
    std::memcpy(matrix.bytes.data() + i, &bits, sizeof(bits));
  }
}

// The prefixes of the attention's tensors, by layer: "model.layers.0.self_attn.".
std::set<std::string> attention_names(const StoredTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    const size_t end = name.find("q_proj.weight");
    if (end != std::string::npos) names.insert(name.substr(0, end));
  }
  return names;
}

}  // namespace

ScaledModel::ScaledModel(float k_scale, float v_scale, float values_exponent, int num_scaled) {
  const fs::path source = abacus_path();
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
    directory_.copy(source / name, name);
  }
  StoredTensors tensors = stored_tensors(abacus_model().bytes());
  for (const std::string& attention : attention_names(tensors)) {
    multiply(tensors.at(attention + "v_proj.weight"), values_exponent);
    multiply(tensors.at(attention + "o_proj.weight"), -values_exponent);
    if (k_scale == 0 || v_scale == 0 || --num_scaled < 0) continue;
    tensors[attention + "k_scale"] = stored_floats({}, {&k_scale, 1});
    tensors[attention + "v_scale"] = stored_floats({}, {&v_scale, 1});
  }
  directory_.write("model.safetensors", safetensors_file(tensors));
}

EngineConfig ScaledModel::config(const std::string& kv_cache_dtype) const {
  EngineConfig config;
  config.model = directory_.path();
  config.device = "cpu";
  config.num_threads = 2;
  config.max_model_len = 256;
  config.kv_cache_dtype = kv_cache_dtype;
  return config;
}

Started start(const EngineConfig& config) {
  ::testing::internal::CaptureStderr();
  const auto engine = Engine::create(config);
  return {::testing::internal::GetCapturedStderr(), engine.ok() ? "" : engine.status().message()};
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace quire::testing
