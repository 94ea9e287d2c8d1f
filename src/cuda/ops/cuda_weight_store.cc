#include "cuda/ops/cuda_weight_store.h"

#include <utility>
#include <variant>

#include "cuda/gemm/experts/cuda_experts.h"
#include "cuda/gemm/heads/heads_choice.h"
#include "cuda/gemm/packed/packed_matrices.h"
#include "ops/host_matrices.h"

namespace quire::cuda {

int64_t CudaWeightStore::quantized_bytes(const QuantizedForm& matrix) const {
  if (packed_ == nullptr) return 0;
  if (const auto* blocks = std::get_if<const GgufBlockType*>(&matrix.numbers)) {
    const GgufBlockType& type = **blocks;
    if (type.plain) return 0;
    return matrix.shape.num_elements() / type.block_elements * packed_block_bytes(type);
  }
  const auto& integers = std::get<IntegerForm>(matrix.numbers);
  return packed_bytes(integers.scheme, integers.scales, matrix.shape);
}

Result<DType> CudaWeightStore::linear_dtype(const WeightScheme& scheme) const {
  QUIRE_RETURN_IF_ERROR(check_scheme(scheme));
  if (scheme.values != DType::kF8E4M3) return activation_;
  QUIRE_RETURN_IF_ERROR(dense_.check_fp8());
  return scheme.values;
}

Result<std::unique_ptr<Linear>> CudaWeightStore::make_linear(const LinearSource& source) {
  if (packed_ != nullptr && is_quantized(source)) return make_packed(source);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CudaLinear> linear,
                         CudaLinear::load(source, activation_, upload_));
  if (linear->weights().dtype == DType::kF8E4M3) QUIRE_RETURN_IF_ERROR(dense_.prepare_fp8());
  return std::unique_ptr<Linear>(std::move(linear));
}

Result<std::unique_ptr<Linear>> CudaWeightStore::make_packed(const LinearSource& source) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CudaLinear> linear,
                         CudaLinear::load_packed(source, activation_, upload_));
  QUIRE_RETURN_IF_ERROR(packed_->reserve(*linear->packed()));
  return std::unique_ptr<Linear>(std::move(linear));
}

Result<std::unique_ptr<PerHeadLinear>> CudaWeightStore::make_per_head_linear(
    std::span<const TensorView> matrices) {
  QUIRE_ASSIGN_OR_RETURN(auto linear, CudaPerHeadLinear::load(matrices, activation_, upload_));
  return std::unique_ptr<PerHeadLinear>(std::move(linear));
}

Result<std::unique_ptr<Experts>> CudaWeightStore::make_experts(ExpertsSource& source) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CudaExperts> experts,
                         CudaExperts::load(source, activation_, upload_));
  if (experts->has_fp8_weights()) QUIRE_RETURN_IF_ERROR(dense_.prepare_fp8());
  return std::unique_ptr<Experts>(std::move(experts));
}

Result<Tensor> CudaWeightStore::make_vector(const TensorView& source) {
  QUIRE_RETURN_IF_ERROR(check_vector(source));
  QUIRE_ASSIGN_OR_RETURN(Tensor vector, device_tensor({source.shape.num_elements()}, DType::kF32));
  QUIRE_RETURN_IF_ERROR(upload_.upload(source, vector.view));
  return vector;
}

}  // namespace quire::cuda
