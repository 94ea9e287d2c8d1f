// Runs the kernels for products of few rows.
#pragma once

#include <string>
#include <vector>

#include "cuda/gemm/dense/dense_kernels.h"
#include "cuda/ops/device_data.h"

namespace quire::testing {

// Runs `call` by the generic kernel, and by every variant of the skinny kernel if that takes it,
// and compares each result with `expected`. out: where the call writes its F32 output.
inline void expect_kernels_of_few_rows(const cuda::LaunchContext& context,
                                       const cuda::GemmCall& call, DeviceData& out,
                                       const std::vector<float>& expected) {
  constexpr float kTolerance = 2e-5F;
  cuda::run_generic_gemm(context, call);
  expect_near_all(out.values(), expected, kTolerance, "generic");
  if (!cuda::skinny_takes(call)) return;
  for (int variant = 0; variant < cuda::num_skinny_variants(); ++variant) {
    out.poison();
    cuda::run_skinny_gemm(context, call, variant);
    expect_near_all(out.values(), expected, kTolerance, cuda::skinny_variant_name(variant));
  }
}

}  // namespace quire::testing
