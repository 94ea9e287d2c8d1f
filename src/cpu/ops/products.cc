#include "cpu/ops/products.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/host_matrices.h"
#include "ops/quantized_source.h"

namespace quire::cpu {
namespace {

// Returns the kernel that the options name, or all kernels of this processor if the name is empty
// or unknown.
std::span<const QuantizedKernel> choose_kernels(const CpuOpsOptions& options) {
  const std::span<const QuantizedKernel> kernels = quantized_kernels();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].name == options.quantized_kernel) return kernels.subspan(i, 1);
  }
  const bool skips_amx = !options.use_amx && kernels.front().name == kAmxInt8Name;
  return kernels.subspan(skips_amx ? 1 : 0);
}

const amx::Kernel* choose_amx(const CpuOpsOptions& options) {
  if (!options.use_amx) return nullptr;
  return options.amx_kernel != nullptr ? options.amx_kernel : amx_kernel();
}

}  // namespace

Products::Products(ThreadPool& pool, const CpuOpsOptions& options)
    : pool_(pool),
      amx_kernel_(choose_amx(options)),
      use_bf16_(amx_kernel_ == nullptr && options.use_avx512_bf16 && avx512_bf16_usable()),
      quantized_kernels_(choose_kernels(options)),
      rounding_(options.rounding),
      kept_(options.kept) {}

Result<std::unique_ptr<Linear>> Products::make_linear(const LinearSource& source) {
  if (pool_.nodes().size() == 1) return pack(source);
  const BoundThread bound = pool_.bind_caller();
  return pack(source);
}

Result<std::unique_ptr<Linear>> Products::pack(const LinearSource& source) {
  if (is_quantized(source)) {
    QUIRE_ASSIGN_OR_RETURN(auto quantized, QuantizedLinear::pack(source, pool_, kept_));
    QUIRE_RETURN_IF_ERROR(quantized_scratch_.reserve(*quantized));
    return std::unique_ptr<Linear>(std::move(quantized));
  }
  std::vector<Tensor> copies;
  QUIRE_ASSIGN_OR_RETURN(const std::vector<WeightView> matrices,
                         matrices_in_memory(source, copies, pool_));
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<PackedLinear> packed,
      PackedLinear::pack(matrices, source.biases, amx_kernel_ != nullptr, pool_, kept_));
  switch (kernel_of(*packed)) {
    case Kernel::kAmx:
      QUIRE_RETURN_IF_ERROR(amx_scratch_.reserve(packed->padded_k(), pool_.num_threads()));
      break;
    case Kernel::kBf16:
      QUIRE_RETURN_IF_ERROR(bf16_scratch_.reserve(packed->padded_k(), pool_.num_threads()));
      break;
    default:
      QUIRE_RETURN_IF_ERROR(fma_scratch_.reserve(packed->in_features(), pool_.num_threads()));
  }
  return std::unique_ptr<Linear>(std::move(packed));
}

Products::Kernel Products::kernel_of(const Linear& w) const {
  if (dynamic_cast<const QuantizedLinear*>(&w) != nullptr) return Kernel::kQuantized;
  const auto& packed = static_cast<const PackedLinear&>(w);
  if (amx_kernel_ != nullptr && packed.layout() == PanelLayout::kPairs) return Kernel::kAmx;
  return use_bf16_ && packed.dtype() == DType::kBF16 ? Kernel::kBf16 : Kernel::kFma;
}

void Products::multiply(const Linear& w, const float* x, int64_t num_rows, float* out) {
  struct Rows {
    int64_t first_row = 0;
    int64_t num_rows = 0;
  };
  const auto matrix_of = [&w](const Rows&) -> const Linear& { return w; };
  for (int64_t row = 0; row < num_rows; row += kMaxGroupedRows) {
    const Rows part = {0, std::min(kMaxGroupedRows, num_rows - row)};
    multiply_parts(std::span(&part, 1), matrix_of, x + row * w.in_features(),
                   out + row * w.out_features());
  }
}

void Products::multiply_packed(Kernel kernel, std::span<const RowGroup> groups, const float* x,
                               float* out) {
  const int num_terms = rounding_ == InputRounding::kBf16 ? 1 : 2;
  if (kernel == Kernel::kAmx) {
    return linear_amx(groups, *amx_kernel_, x, num_terms, out, pool_, amx_scratch_);
  }
  if (kernel == Kernel::kBf16) {
    return linear_bf16(groups, x, num_terms, out, pool_, bf16_scratch_);
  }
  linear_fma(groups, x, out, pool_, fma_scratch_);
}

void Products::multiply_quantized(std::span<const QuantizedRowGroup> groups, const float* x,
                                  float* out) {
  const int num_terms = rounding_ == InputRounding::kInt8 ? 1 : 2;
  linear_quantized(groups, quantized_kernels_, x, num_terms, out, pool_, quantized_scratch_);
}

}  // namespace quire::cpu
