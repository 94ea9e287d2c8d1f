#include "bench_gemm_probes.h"

#include <algorithm>
#include <cstdint>

#include "base/numbers.h"
#include "cpu/ops/gemm_bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench_gemm_probes.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

uint64_t read_range(const uint64_t* data, size_t count) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d);
  auto b = hn::Zero(d);
  for (size_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Xor(a, hn::Xor(hn::Load(d, data + i), hn::Load(d, data + i + lanes)));
    b = hn::Xor(b, hn::Xor(hn::Load(d, data + i + 2 * lanes), hn::Load(d, data + i + 3 * lanes)));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Xor(a, b)));
}

// Twelve chains hide the latency of two units. Returns the number of operations.
double multiply_add(float* sink) {
  constexpr int kRounds = 2000000;
  constexpr int kChains = 12;
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, *sink);
  hn::Vec<decltype(d)> a[kChains];
  for (auto& chain : a) chain = scale;
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) a[c] = hn::MulAdd(a[c], scale, scale);
  }
  for (int c = 1; c < kChains; ++c) a[0] = hn::Add(a[0], a[c]);
  *sink = hn::GetLane(a[0]);
  return 2.0 * kRounds * kChains * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace quire::bench {

HWY_EXPORT(read_range);
HWY_EXPORT(multiply_add);

void read_all(const void* data, size_t num_bytes, ThreadPool& pool) {
  constexpr size_t kPiece = size_t{1} << 20;
  const auto* bytes = static_cast<const std::byte*>(data);
  std::atomic<uint64_t> sink = 0;
  pool.parallel_for(static_cast<int64_t>(ceil_div(num_bytes, kPiece)), [&](int64_t i) {
    const size_t begin = static_cast<size_t>(i) * kPiece;
    const size_t piece_bytes = std::min(kPiece, num_bytes - begin);
    sink += HWY_DYNAMIC_DISPATCH(read_range)(reinterpret_cast<const uint64_t*>(bytes + begin),
                                             piece_bytes / 8);
  });
}

#if HWY_ARCH_X86
// multiply_add() with vdpbf16ps. Each chain starts from another value, so that the compiler cannot
// merge them.
__attribute__((target("avx512f,avx512bf16"))) double multiply_add_bf16(float* sink) {
  constexpr int kRounds = 2000000;
  constexpr int kChains = 12;
  constexpr double kOperations = 4.0 * 16;  // of an instruction
  const auto pairs = (__m512bh)_mm512_set1_ps(*sink);
  __m512 a[kChains];
  for (int c = 0; c < kChains; ++c) a[c] = _mm512_set1_ps(static_cast<float>(c));
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) a[c] = _mm512_dpbf16_ps(a[c], pairs, pairs);
  }
  for (int c = 1; c < kChains; ++c) a[0] = _mm512_add_ps(a[0], a[c]);
  *sink = _mm512_cvtss_f32(a[0]);
  return kOperations * kRounds * kChains;
}
#else
double multiply_add_bf16(float*) {
  return 0.0;
}
#endif

namespace {

// Calls multiply(sink) on all threads, and returns the sum of the numbers of operations.
template <typename Multiply>
double on_all_threads(ThreadPool& pool, const Multiply& multiply) {
  std::atomic<double> operations = 0.0;
  pool.run([&](int) {
    float seed = 0.5F;
    operations += multiply(&seed) + (seed > 1e30F ? 1.0 : 0.0);
  });
  return operations;
}

}  // namespace

double multiply_add_all(ThreadPool& pool) {
  return on_all_threads(pool, [](float* sink) { return HWY_DYNAMIC_DISPATCH(multiply_add)(sink); });
}

double multiply_add_bf16_all(ThreadPool& pool) {
  return cpu::avx512_bf16_usable() ? on_all_threads(pool, multiply_add_bf16) : 0.0;
}

}  // namespace quire::bench
#endif  // HWY_ONCE
