#include "cuda/ops/cuda_linear.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace quire::cuda {
namespace {

bool is_weight_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Status check_block(const Shape& shape, const WeightScheme& scheme, int64_t in_features) {
  if (scheme.scales != ScaleLayout::kNone) {
    return unimplemented(fmt::format(
        "[ops] weight scheme on a GPU; got {}, expected f32, f16 or bf16 without scales",
        describe(scheme)));
  }
  if (!is_weight_type(scheme.values)) {
    return invalid_argument(fmt::format("[ops] weight type; got {}, expected f32, f16 or bf16",
                                        dtype_name(scheme.values)));
  }
  if (shape.rank() != 2 || shape[0] <= 0 || shape[1] != in_features || in_features <= 0) {
    return invalid_argument(fmt::format(
        "[ops] a block of weights; got {} axes of {} by {}, expected rows of {} columns",
        shape.rank(), shape[0], shape[1], in_features));
  }
  return {};
}

// One block of a source, in one of its two forms.
struct Block {
  const WeightView* memory = nullptr;
  const RepeatedRows* repeated = nullptr;

  const Shape& shape() const { return memory != nullptr ? memory->values.shape : repeated->shape; }
  WeightScheme scheme() const {
    return memory != nullptr ? memory->scheme : WeightScheme{.values = repeated->pool.dtype};
  }
};

std::vector<Block> blocks_of(const LinearSource& source) {
  std::vector<Block> blocks;
  for (const WeightView& view : source.weights) blocks.push_back({.memory = &view});
  for (const RepeatedRows& rows : source.repeated) blocks.push_back({.repeated = &rows});
  return blocks;
}

}  // namespace

Result<std::unique_ptr<CudaLinear>> CudaLinear::load(const LinearSource& source, DType dtype,
                                                     WeightUpload& upload, CudaStream& stream) {
  const std::vector<Block> blocks = blocks_of(source);
  if (blocks.empty() || (!source.weights.empty() && !source.repeated.empty())) {
    return invalid_argument("[ops] a Linear is made of blocks of weights of one kind");
  }
  const int64_t in_features = blocks.front().shape().rank() == 2 ? blocks.front().shape()[1] : 0;
  int64_t out_features = 0;
  for (const Block& block : blocks) {
    QUIRE_RETURN_IF_ERROR(check_block(block.shape(), block.scheme(), in_features));
    out_features += block.shape()[0];
  }
  std::unique_ptr<CudaLinear> linear(new CudaLinear());
  linear->weights_ = {nullptr, dtype, {out_features, in_features}};
  QUIRE_ASSIGN_OR_RETURN(linear->memory_, device_memory(linear->weights_.num_bytes()));
  linear->weights_.data = linear->memory_.data();
  int64_t first = 0;
  for (const Block& block : blocks) {
    const TensorView rows = linear->weights_.rows(first, block.shape()[0]);
    QUIRE_RETURN_IF_ERROR(block.memory != nullptr ? upload.upload(block.memory->values, rows)
                                                  : upload.fill(*block.repeated, rows));
    first += block.shape()[0];
  }
  if (source.biases.empty()) return linear;

  linear->bias_ = {nullptr, dtype, {out_features}};
  QUIRE_ASSIGN_OR_RETURN(linear->bias_memory_, device_memory(linear->bias_.num_bytes()));
  linear->bias_.data = linear->bias_memory_.data();
  stream.set_zero(linear->bias_.data, linear->bias_.num_bytes());
  if (source.biases.size() != blocks.size()) {
    return invalid_argument("[ops] a Linear has as many blocks of bias as of weights, or none");
  }
  first = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const TensorView& bias = source.biases[i];
    const int64_t count = blocks[i].shape()[0];
    if (!is_weight_type(bias.dtype) || bias.shape.num_elements() != count) {
      return invalid_argument(fmt::format("[ops] a block of bias; got {} numbers, expected {}",
                                          bias.shape.num_elements(), count));
    }
    if (bias.data != nullptr) {
      QUIRE_RETURN_IF_ERROR(upload.upload(bias, linear->bias_.rows(first, count)));
    }
    first += count;
  }
  return linear;
}

}  // namespace quire::cuda
