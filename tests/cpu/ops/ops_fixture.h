// Shared by the tests of the CPU operations: all variants that this machine can run, and seeded
// random numbers.
#pragma once

#include <hwy/targets.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cpu/ops/cpu_ops.h"
#include "cpu/ops/gemm_amx.h"
#include "support/thread_places.h"

namespace quire::testing {

// AMX's products on tiles in plain C++; null where the processor lacks the AVX-512 around them.
const cpu::amx::Kernel* emulated_amx();

// One Highway target (all better ones hidden) without AMX and AVX-512's BF16 products, or the best
// one with these or with emulated AMX. Without the processor's AMX, "best_with_amx" is the same as
// "best_with_avx512_bf16", and without that the same as the best target.
struct Variant {
  int64_t target;
  CpuOpsOptions options;
  std::string name;
};

inline bool uses_amx(const Variant& variant) {
  const CpuOpsOptions& options = variant.options;
  return options.use_amx && (options.amx_kernel != nullptr || cpu::amx_usable());
}

inline std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const int64_t target : {HWY_SCALAR, HWY_EMU128, HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_NEON}) {
    if ((hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    all.push_back({target, {.use_amx = false, .use_avx512_bf16 = false}, hwy::TargetName(target)});
  }
  all.push_back({hwy::SupportedTargets(), {.use_amx = false}, "best_with_avx512_bf16"});
  all.push_back({hwy::SupportedTargets(), {}, "best_with_amx"});
  if (const cpu::amx::Kernel* amx = emulated_amx()) {
    all.push_back({hwy::SupportedTargets(), {.amx_kernel = amx}, "best_with_emulated_amx"});
  }
  return all;
}

// The operations of one variant, on a thread pool of their own. The destructor restores the choice
// of targets.
class VariantOps {
 public:
  explicit VariantOps(const Variant& variant, std::vector<ThreadPlace> places = on_nodes({0, 0}))
      : pool_(std::move(places)) {
    choose(variant.target);
    ops_ = make_cpu_ops(pool_, variant.options);
  }
  ~VariantOps() { choose(0); }
  VariantOps(const VariantOps&) = delete;
  VariantOps& operator=(const VariantOps&) = delete;

  Ops* operator->() { return ops_.get(); }
  Ops& operator*() { return *ops_; }

 private:
  // 0: the best target
  static void choose(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
};

inline std::vector<float> random_floats(size_t count, uint32_t seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline TensorView matrix(std::vector<float>& data, int64_t rows, int64_t columns) {
  return {data.data(), DType::kF32, {rows, columns}};
}

}  // namespace quire::testing
