// Sources of a model's weights: a checkpoint on disk, one in memory, or random numbers (dummy).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

// A tensor that repeats a pool of numbers: element i is pool[(first + i) % length of pool].
struct RepeatedTensor {
  TensorView pool;  // valid as long as the source
  int64_t first = 0;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Returns an F32, F16, BF16 or F8_E4M3 tensor of exactly this shape in host memory, aligned to
  // its type. It is valid until release(name). Errors name the file and the tensor.
  virtual Result<TensorView> tensor(std::string_view name, const Shape& expected) = 0;
  virtual bool has(std::string_view name) const = 0;
  // The type of the tensor that tensor() would return, without reading it; absent: no such tensor.
  virtual std::optional<DType> dtype_of(std::string_view name) const = 0;
  // If the tensor repeats a pool, returns the pool, so that a device can fill the tensor itself.
  virtual Result<std::optional<RepeatedTensor>> repeated(std::string_view /*name*/) {
    return std::optional<RepeatedTensor>();
  }
  // Frees the tensor's memory. The tensor can be requested again.
  virtual void release(std::string_view name) = 0;
  // The names of all tensors, to check that none was overlooked.
  virtual std::vector<std::string> names() const = 0;
};

// Random weights of any requested shape (--load-format dummy). A name always gets the same numbers.
// Matrices and biases are approximately N(0, 0.02²); norm weights are near 1.
class DummyWeights : public WeightSource {
 public:
  explicit DummyWeights(DType dtype);

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  bool has(std::string_view /*name*/) const override { return true; }
  std::optional<DType> dtype_of(std::string_view /*name*/) const override { return dtype_; }
  Result<std::optional<RepeatedTensor>> repeated(std::string_view name) override;
  void release(std::string_view name) override;
  std::vector<std::string> names() const override { return {}; }

 private:
  Result<RepeatedTensor> numbers_of(std::string_view name);

  DType dtype_;
  Tensor pool_;       // numbers around 0
  Tensor norm_pool_;  // numbers around 1
  std::unordered_map<std::string, Tensor> tensors_;
};

}  // namespace quire
