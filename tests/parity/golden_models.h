// The tiny checkpoints of tests/golden/models, which tools/golden/models.py made, and those in
// integers of 4 and 8 bits of tests/golden/integers, which tools/golden/integers.py made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/model.h"
#include "tensor/checkpoint.h"

namespace quire::testing {

struct GoldenCase {
  std::string name;  // "qwen2.sliding"
  std::filesystem::path weights;
  std::filesystem::path config;
  std::filesystem::path logits;
  bool has_integers = false;
};

struct GoldenCases {
  std::vector<int32_t> input_ids;
  std::vector<GoldenCase> cases;
};

// The files are committed, so a missing one ends the test program.
GoldenCases read_golden_cases();
GoldenCases read_integer_cases();
ModelConfig read_config(const std::filesystem::path& path);
std::vector<float> read_logits(const GoldenCase& golden, int64_t num_tokens, int64_t vocab_size);

}  // namespace quire::testing
