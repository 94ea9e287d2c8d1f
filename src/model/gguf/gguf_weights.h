// The weights of a GGUF file under the names that the model families ask for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/config.h"
#include "quire/status.h"
#include "tensor/gguf.h"
#include "tensor/weight_source.h"

namespace quire {

// F32, F16 and BF16 tensors are read in place where their layout is the checkpoint's. Others are
// expanded when tensor() is called, one at a time: matrices to gguf_weight_dtype, vectors to F32.
class GgufWeights : public WeightSource {
 public:
  // `config` is the one of gguf_model_config.
  static Result<std::unique_ptr<GgufWeights>> open(GgufModel gguf, const ModelConfig& config);

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  bool has(std::string_view name) const override;
  std::optional<DType> dtype_of(std::string_view name) const override;
  const GgufBlockType* block_type(std::string_view name) const override;
  Result<BlockMatrix> blocks(std::string_view name, const Shape& expected) override;
  void release(std::string_view name) override;
  std::vector<std::string> names() const override;

 private:
  // The differences between a tensor in the file and in the checkpoint that it was made from.
  struct Entry {
    const GgufTensor* tensor = nullptr;
    int num_heads = 0;    // of a matrix whose rows llama.cpp reorders per head; 0: in order
    float addend = 0.0F;  // added to each element at load
  };

  GgufWeights(GgufModel gguf, DType matrix_dtype)
      : gguf_(std::move(gguf)), matrix_dtype_(matrix_dtype) {}
  DType dtype_of(const Entry& entry) const;
  bool is_in_place(const Entry& entry) const;
  static BlockMatrix matrix_of(const Entry& entry);
  // Fails if the tensor does not exist or has another shape.
  Result<const Entry*> find(std::string_view name, const Shape& expected) const;

  GgufModel gguf_;
  DType matrix_dtype_;
  std::unordered_map<std::string, Entry> entries_;  // by the checkpoint's name
  std::unordered_map<std::string, Buffer> expanded_;
};

}  // namespace quire
