// The kernels for processors other than x86.
#include "cpu/ops/gemm_quantized.h"

namespace quire::cpu {

std::span<const QuantizedKernel> quantized_kernels() {
  static const QuantizedKernel kPlainOnly = {"plain", &quantized::kPlain};
  return {&kPlainOnly, 1};
}

}  // namespace quire::cpu
