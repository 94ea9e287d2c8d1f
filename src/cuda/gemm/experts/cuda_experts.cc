#include "cuda/gemm/experts/cuda_experts.h"

#include <fmt/format.h>

#include "cuda/base/memory.h"

namespace quire::cuda {
namespace {

// The matrix of expert `idx` in a stack, as a tensor without the first axis.
TensorView slice(const TensorView& stack, int64_t idx) {
  if (stack.data == nullptr) return {};
  const TensorView row = stack.rows(idx, 1);
  if (stack.shape.rank() == 2) return {row.data, row.dtype, {stack.shape[1]}};
  return {row.data, row.dtype, {stack.shape[1], stack.shape[2]}};
}

// The shape of a stack of `count` tensors of this shape.
Shape stack_of(int64_t count, const Shape& shape) {
  return shape.rank() == 1 ? Shape{count, shape[0]} : Shape{count, shape[0], shape[1]};
}

Status different_types() {
  return unimplemented(
      "[ops] the experts of a layer have different types of weights or scales; expected one "
      "type; use `device` cpu");
}

}  // namespace

// Either all experts have biases, or none has.
Status CudaExperts::add_biases(int idx, const LinearSource& source, const Shape& shape, DType dtype,
                               WeightUpload& upload, Stack& stack) {
  const bool has_biases = !source.biases.empty();
  if (has_biases && idx == 0) {
    QUIRE_ASSIGN_OR_RETURN(stack.biases, device_tensor({shape[0], shape[1]}, dtype));
  }
  if (has_biases != (stack.biases.view.data != nullptr)) {
    return invalid_argument("[ops] some experts of a layer have biases, and others have none");
  }
  return has_biases ? upload_biases(source, slice(stack.biases.view, idx), upload) : Status();
}

Status CudaExperts::add(int idx, const LinearSource& source, const Shape& shape, DType dtype,
                        WeightUpload& upload, Stack& stack) {
  constexpr int64_t kFp8Step = 16;  // values per load
  QUIRE_RETURN_IF_ERROR(add_biases(idx, source, shape, dtype, upload, stack));
  if (is_quantized(source)) return add_packed(idx, source, shape, upload, stack);
  QUIRE_ASSIGN_OR_RETURN(const DType kept, kept_dtype(source, dtype));
  if (kept == DType::kF8E4M3 && shape[2] % kFp8Step != 0) {
    return unimplemented(
        fmt::format("[ops] experts with FP8 weights need sizes that are multiples of 16; got {} "
                    "columns; use `device` cpu",
                    shape[2]));
  }
  const ScalesLayout layout = kept == DType::kF8E4M3 ? scales_layout(source) : ScalesLayout{};
  if (idx == 0) {
    QUIRE_ASSIGN_OR_RETURN(stack.weights, device_tensor(shape, kept));
    stack.layout = layout;
    if (kept == DType::kF8E4M3) {
      QUIRE_ASSIGN_OR_RETURN(stack.scales,
                             device_tensor(stack_of(shape[0], layout.shape), DType::kF32));
    }
  }
  if (stack.packed || kept != stack.weights.view.dtype || layout != stack.layout) {
    return different_types();
  }
  return upload_matrix(source, slice(stack.weights.view, idx), slice(stack.scales.view, idx),
                       upload);
}

Status CudaExperts::add_packed(int idx, const LinearSource& source, const Shape& shape,
                               WeightUpload& upload, Stack& stack) {
  if (idx == 0) {
    QUIRE_ASSIGN_OR_RETURN(stack.packed, PackedMatrices::allocate(source, shape[0]));
    if (stack.packed->num_rows() != shape[1] || stack.packed->num_columns() != shape[2]) {
      return invalid_argument(fmt::format(
          "[ops] a matrix of an expert has a wrong shape; got {} x {}, expected {} x {}",
          stack.packed->num_rows(), stack.packed->num_columns(), shape[1], shape[2]));
    }
  }
  if (!stack.packed) return different_types();
  return stack.packed->load(idx, source, upload);
}

Result<std::unique_ptr<CudaExperts>> CudaExperts::load(ExpertsSource& source, DType dtype,
                                                       WeightUpload& upload) {
  std::unique_ptr<CudaExperts> experts(new CudaExperts(source.shape()));
  const ExpertsShape& shape = experts->shape_;
  const Shape gate_up_shape = {shape.num_experts, 2 * shape.intermediate_size, shape.hidden_size};
  const Shape down_shape = {shape.num_experts, shape.hidden_size, shape.intermediate_size};
  Stack& gate_up = experts->gate_up_;
  Stack& down = experts->down_;
  for (int i = 0; i < shape.num_experts; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const LinearSource gate_up_source, source.gate_up(i));
    QUIRE_RETURN_IF_ERROR(add(i, gate_up_source, gate_up_shape, dtype, upload, gate_up));
    QUIRE_ASSIGN_OR_RETURN(const LinearSource down_source, source.down(i));
    QUIRE_RETURN_IF_ERROR(add(i, down_source, down_shape, dtype, upload, down));
  }
  if (gate_up.packed.has_value() != down.packed.has_value()) return different_types();
  experts->matrices_ = {.gate_up = gate_up.weights.view,
                        .gate_up_scales = gate_up.scales.view,
                        .gate_up_scale_rows = gate_up.layout.scale_rows,
                        .gate_up_bias = gate_up.biases.view,
                        .down = down.weights.view,
                        .down_scales = down.scales.view,
                        .down_scale_rows = down.layout.scale_rows,
                        .down_bias = down.biases.view};
  return experts;
}

size_t CudaExperts::num_bytes() const {
  size_t bytes = 0;
  for (const Stack* stack : {&gate_up_, &down_}) {
    bytes += stack->weights.buffer.num_bytes() + stack->scales.buffer.num_bytes() +
             stack->biases.buffer.num_bytes() + (stack->packed ? stack->packed->num_bytes() : 0);
  }
  return bytes;
}

bool CudaExperts::has_fp8_weights() const {
  return gate_up_.weights.view.dtype == DType::kF8E4M3 ||
         down_.weights.view.dtype == DType::kF8E4M3;
}

bool CudaExperts::has_one_type() const {
  return gate_up_.weights.view.dtype == down_.weights.view.dtype;
}

}  // namespace quire::cuda
