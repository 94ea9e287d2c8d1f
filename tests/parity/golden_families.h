// The tiny models of tests/golden/families, which tools/golden/families.py made. Their weights are
// not stored: they are generated from a seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tensor/weight_source.h"

namespace quire::testing {

// A tensor of approximately normal numbers, or of random bytes if it is part of a matrix in MXFP4.
struct GoldenTensor {
  std::vector<int64_t> shape;  // a vision tower has tensors of more than kMaxRank axes
  double mean = 0.0;
  double deviation = 1.0;
};

struct GoldenPrompt {
  std::vector<int32_t> ids;
  std::vector<int32_t> following;            // the greedy tokens
  std::map<int, std::vector<float>> logits;  // by position, for a few
};

struct GoldenFamily {
  std::string name;
  uint64_t seed = 0;
  int max_model_len = 0;
  std::map<std::string, std::string> configs;  // "published" and "saved": the texts of config.json
  std::map<std::string, GoldenTensor, std::less<>> tensors;
  std::vector<GoldenPrompt> prompts;
};

// One file of this form.
GoldenFamily read_golden_family(const std::filesystem::path& path);
// All families. The files are committed, so a missing one ends the test program.
std::vector<GoldenFamily> read_golden_families();

// The weights of a family in F32, except MXFP4. Every number is also exact in BF16. `family` must
// outlive them.
class GeneratedWeights final : public WeightSource {
 public:
  explicit GeneratedWeights(const GoldenFamily& family) : family_(family) {}

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  bool has(std::string_view name) const override { return family_.tensors.contains(name); }
  std::optional<DType> dtype_of(std::string_view name) const override;
  void release(std::string_view name) override { made_.erase(std::string(name)); }
  std::vector<std::string> names() const override;

 private:
  const GoldenFamily& family_;
  std::map<std::string, Tensor> made_;
};

}  // namespace quire::testing
