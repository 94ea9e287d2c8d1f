// Where a model's weights come from: a checkpoint on disk, one in memory, or nowhere (dummy).
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

// A tensor that repeats a pool of numbers: element i is pool[(first + i) % pool's length].
struct RepeatedTensor {
  TensorView pool;  // valid as long as the source
  int64_t first = 0;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // An F32, F16, BF16 or F8_E4M3 tensor of exactly this shape in host memory, aligned to its type.
  // Valid until release(name). Errors name the file and the tensor.
  virtual Result<TensorView> tensor(std::string_view name, const Shape& expected) = 0;
  virtual bool has(std::string_view name) const = 0;
  // The type of a tensor that tensor() would give, known without reading it. Absent: there is none.
  virtual std::optional<DType> dtype_of(std::string_view name) const = 0;
  // The numbers that a tensor repeats, if it does: a device can write such a tensor itself.
  virtual Result<std::optional<RepeatedTensor>> repeated(std::string_view /*name*/) {
    return std::optional<RepeatedTensor>();
  }
  // The tensor's memory may go. The tensor can be asked for again.
  virtual void release(std::string_view name) = 0;
  // Every tensor of the source, for the check that none was overlooked.
  virtual std::vector<std::string> names() const = 0;
};

// Random weights of whatever shape is asked for (--load-format dummy): the same name always gets
// the same numbers. Matrices and biases are about N(0, 0.02²); norm weights lie around 1.
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
  Tensor pool_;       // around 0
  Tensor norm_pool_;  // around 1
  std::unordered_map<std::string, Tensor> tensors_;
};

}  // namespace quire
