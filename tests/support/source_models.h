// The checkpoints of the source tree, which tests convert, and the numbers of their tensors.
#pragma once

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/shared_data.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

namespace quire::testing {

struct SourceModel {
  std::string config;   // the text of config.json
  std::string weights;  // the bytes of model.safetensors

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(weights)); }
};

inline SourceModel read_source_model(const std::filesystem::path& config,
                                     const std::filesystem::path& weights) {
  return {read_file(config, 1 << 20).value(), read_file(weights, size_t{64} << 20).value()};
}

// A directory of tests/golden/models, whose configurations share the weights.
inline SourceModel golden_model(const std::string& name, const std::string& config = "default") {
  const auto folder = source_path("tests/golden/models") / name;
  return read_source_model(folder / (config + ".config.json"), folder / "model.safetensors");
}

// The model that is embedded in the binary.
inline SourceModel abacus_model() {
  return read_source_model(abacus_path() / "config.json", abacus_path() / "model.safetensors");
}

// The numbers of a tensor in F32, F16 or BF16.
inline std::vector<float> floats_of(const SafetensorsEntry& entry) {
  const bool is_f32 = entry.dtype == "F32";
  std::vector<float> numbers(entry.bytes.size() / (is_f32 ? 4 : 2));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (is_f32) {
      std::memcpy(&numbers[i], entry.bytes.data() + 4 * i, 4);
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, entry.bytes.data() + 2 * i, 2);
    numbers[i] = entry.dtype == "F16" ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
  return numbers;
}

}  // namespace quire::testing
