#include "cpu/ops/cpu_weight_store.h"

#include <utility>
#include <variant>

#include "base/numbers.h"
#include "cpu/ops/experts.h"
#include "cpu/ops/gemm_quantized.h"
#include "cpu/ops/packed_linear.h"
#include "ops/host_matrices.h"
#include "ops/quantized_source.h"

namespace quire::cpu {
namespace {

int64_t bytes_of_blocks(const GgufBlockType& type, const Shape& matrix) {
  if (type.plain) return 0;
  const int64_t block_bytes =
      quantized::block_bytes(quantized_format(type), type.block_elements / quantized::kGroupK) /
      quantized::kFeatures;
  return matrix.num_elements() / type.block_elements * block_bytes;
}

int64_t bytes_of_integers(const IntegerForm& integers, const Shape& matrix) {
  const auto format = quantized_format(integers.scheme, integers.scales, matrix);
  if (!format) return 0;
  const int64_t num_groups = ceil_div(matrix[1], quantized::kGroupK);
  return quantized::row_bytes(*format, num_groups) * matrix[0] / quantized::kFeatures;
}

}  // namespace

int64_t CpuWeightStore::quantized_bytes(const QuantizedForm& matrix) const {
  if (const auto* blocks = std::get_if<const GgufBlockType*>(&matrix.numbers)) {
    return bytes_of_blocks(**blocks, matrix.shape);
  }
  return bytes_of_integers(std::get<IntegerForm>(matrix.numbers), matrix.shape);
}

Result<std::unique_ptr<Experts>> CpuWeightStore::make_experts(ExpertsSource& source) {
  QUIRE_ASSIGN_OR_RETURN(auto experts, CpuExperts::make(source, products_));
  return std::unique_ptr<Experts>(std::move(experts));
}

Result<Tensor> CpuWeightStore::make_vector(const TensorView& source) {
  QUIRE_RETURN_IF_ERROR(check_vector(source));
  const int64_t count = source.shape.num_elements();
  QUIRE_ASSIGN_OR_RETURN(Tensor vector, Tensor::host({count}, DType::kF32));
  convert_to_f32(source.data, source.dtype, count, vector.view.as<float>());
  return vector;
}

}  // namespace quire::cpu
