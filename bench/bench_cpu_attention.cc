// Times the CPU attention backends on the shapes of Quire's speed targets. Prints the median time
// of one layer's call in µs, and the rate at which K and V are read (decode) or multiplied
// (prefill).
//   bench_cpu_attention [threads] [repetitions]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "base/check.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "cpu/attention/simd.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

struct BenchCase {
  const char* name;
  int num_heads, num_kv_heads, head_dim;
  int num_layers;  // each has its own cache, read in turn as in a step
  DType kv;
  int num_reqs, q_len, kv_len;
};

class NullStream final : public Stream {};

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void fill(void* data, DType dtype, int64_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> some(4096);
  for (float& x : some) x = uniform(random);
  for (int64_t i = 0; i < count; ++i) {
    const float x = some[static_cast<size_t>(i % 4093)];
    switch (dtype) {
      case DType::kF32:
        static_cast<float*>(data)[i] = x;
        break;
      case DType::kF16:
        static_cast<uint16_t*>(data)[i] = f32_to_f16(x);
        break;
      case DType::kBF16:
        static_cast<uint16_t*>(data)[i] = f32_to_bf16(x);
        break;
      case DType::kI8:
        static_cast<int8_t*>(data)[i] = f32_to_i8(x, i8_scale(1.0F));
        break;
      default:
        static_cast<uint8_t*>(data)[i] = f32_to_e4m3(x);
    }
  }
}

// The scales of all keys and values, of which fill() has written the integers.
void fill_scales(const KvLayout& layout, void* data, int64_t num_pages) {
  const int64_t num_heads = num_pages * 2 * layout.num_kv_heads;
  for (int64_t head = 0; head < num_heads; ++head) {
    auto* const scales = reinterpret_cast<float*>(
        static_cast<int8_t*>(data) + head * layout.head_stride_k() + layout.scale_offset_k());
    std::fill_n(scales, layout.page_size, i8_scale(1.0F));
  }
}

// Requests of one length whose pages lie as a fresh pool hands them out.
struct BenchBatch {
  explicit BenchBatch(const BenchCase& c, int page_size) {
    const int pages = ceil_div(c.kv_len, page_size);
    for (int req = 0; req < c.num_reqs; ++req) {
      query_start.push_back(req * c.q_len);
      for (int i = 0; i < pages; ++i) block_table.push_back(1 + req * pages + i);
    }
    query_start.push_back(c.num_reqs * c.q_len);
    seq_lens.assign(static_cast<size_t>(c.num_reqs), c.kv_len);
    num_pages = 1 + int64_t{c.num_reqs} * pages;
    const PhaseRange range{.num_reqs = c.num_reqs,
                           .num_tokens = c.num_reqs * c.q_len,
                           .max_q_len = c.q_len,
                           .max_kv_len = c.kv_len};
    (c.q_len == 1 ? batch.decode : batch.prefill) = range;
    batch.query_start = {query_start.data(), query_start.data()};
    batch.seq_lens = seq_lens.data();
    batch.kv_len_bound = seq_lens;
    batch.block_table = block_table.data();
    batch.max_pages = pages;
  }

  std::vector<int32_t> query_start, seq_lens, block_table;
  int64_t num_pages = 0;
  AttentionBatch batch;
};

struct BenchTimes {
  double plan_us, run_us;
};

BenchTimes time_case(const BenchCase& c, ThreadPool& pool, int repetitions) {
  const AttentionShape shape{.num_heads = c.num_heads,
                             .num_kv_heads = c.num_kv_heads,
                             .head_dim = c.head_dim,
                             .head_dim_v = c.head_dim,
                             .page_size = 16,
                             .kv = c.kv,
                             .scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim))};
  const KvLayout layout{.page_size = 16,
                        .num_kv_heads = c.num_kv_heads,
                        .head_dim = c.head_dim,
                        .head_dim_v = c.head_dim,
                        .dtype = c.kv};
  BenchBatch batch(c, shape.page_size);
  std::vector<Tensor> caches;
  for (int layer = 0; layer < c.num_layers; ++layer) {
    auto cache = Tensor::host({batch.num_pages, layout.page_stride()}, c.kv);
    QUIRE_CHECK(cache.ok(), cache.status().message());
    fill(cache->view.data, c.kv, batch.num_pages * layout.page_stride());
    if (c.kv == DType::kI8) fill_scales(layout, cache->view.data, batch.num_pages);
    caches.push_back(std::move(*cache));
  }
  const int num_tokens = c.num_reqs * c.q_len;
  auto q = Tensor::host({num_tokens, c.num_heads, c.head_dim}, DType::kF32);
  auto out = Tensor::host({num_tokens, c.num_heads, c.head_dim}, DType::kF32);
  QUIRE_CHECK(q.ok() && out.ok(), "memory for queries");
  fill(q->view.data, DType::kF32, q->view.shape.num_elements());

  const auto backend = make_cpu_attention(pool);
  auto plan =
      backend->make_plan(shape, {.use = {.phase = c.q_len == 1 ? Phase::kDecode : Phase::kPrefill},
                                 .max_num_reqs = c.num_reqs,
                                 .max_num_tokens = num_tokens,
                                 .max_kv_len = c.kv_len});
  QUIRE_CHECK(plan.ok(), plan.status().message());
  std::vector<std::byte> workspace((*plan)->workspace_bytes());
  AttentionCall call{
      .q = q->view, .out = out->view, .kv = {}, .sinks = nullptr, .workspace = workspace};
  NullStream stream;
  std::vector<double> plan_us, run_us;
  for (int i = -1; i < repetitions; ++i) {  // the first is a warm-up
    const int64_t begin = now_ns();
    QUIRE_CHECK((*plan)->update(batch.batch, stream).ok(), "update");
    const int64_t planned = now_ns();
    for (const Tensor& cache : caches) {
      call.kv = kv_cache_view(layout, cache.view.data);
      QUIRE_CHECK((*plan)->run(call, stream).ok(), "run");
    }
    if (i < 0) continue;
    plan_us.push_back(static_cast<double>(planned - begin) * 1e-3);
    run_us.push_back(static_cast<double>(now_ns() - planned) * 1e-3 / c.num_layers);
  }
  return {median(plan_us), median(run_us)};
}

void report(const BenchCase& c, const BenchTimes& times) {
  const double vector_bytes =
      c.head_dim * static_cast<double>(dtype_bytes(c.kv)) + (c.kv == DType::kI8 ? 4.0 : 0.0);
  const double kv_bytes = 2.0 * c.num_reqs * c.kv_len * c.num_kv_heads * vector_bytes;
  const double visible = c.q_len * (c.kv_len - (c.q_len - 1) / 2.0);
  const double flops = 4.0 * c.num_reqs * c.num_heads * c.head_dim * visible;
  fmt::print(
      "{:<28} {:>9} {:>10.1f} µs/layer {:>10.1f} µs/step {:>7.2f} GB/s {:>7.1f} GFLOP/s  "
      "plan {:.2f} µs\n",
      c.name, dtype_name(c.kv), times.run_us, times.run_us * c.num_layers,
      kv_bytes / times.run_us * 1e-3, flops / times.run_us * 1e-3, times.plan_us);
}

int bench(int num_threads, int repetitions) {
  ThreadPool pool(num_threads);
  fmt::print("{} threads, median of {} steps\n", num_threads, repetitions);
  const BenchCase cases[] = {
      {"stories15M decode @32", 6, 6, 48, 6, DType::kF16, 1, 1, 32},
      {"stories15M decode @256", 6, 6, 48, 6, DType::kF16, 1, 1, 256},
      {"stories15M decode @1024", 6, 6, 48, 6, DType::kF16, 1, 1, 1024},
      {"stories15M decode @1024", 6, 6, 48, 6, DType::kBF16, 1, 1, 1024},
      {"stories15M decode @1024", 6, 6, 48, 6, DType::kF32, 1, 1, 1024},
      {"stories15M decode @1024", 6, 6, 48, 6, DType::kF8E4M3, 1, 1, 1024},
      {"stories15M decode @1024", 6, 6, 48, 6, DType::kI8, 1, 1, 1024},
      {"stories15M prefill 512", 6, 6, 48, 6, DType::kF16, 1, 512, 512},
      {"1B decode @32", 32, 8, 64, 16, DType::kF16, 1, 1, 32},
      {"1B decode @1024", 32, 8, 64, 16, DType::kF16, 1, 1, 1024},
      {"1B decode @1024", 32, 8, 64, 16, DType::kBF16, 1, 1, 1024},
      {"1B decode @1024", 32, 8, 64, 16, DType::kF8E4M3, 1, 1, 1024},
      {"1B decode @1024", 32, 8, 64, 16, DType::kI8, 1, 1, 1024},
      {"1B decode @8192", 32, 8, 64, 16, DType::kBF16, 1, 1, 8192},
      {"1B decode @8192", 32, 8, 64, 16, DType::kF8E4M3, 1, 1, 8192},
      {"1B decode @8192", 32, 8, 64, 16, DType::kI8, 1, 1, 8192},
      {"MHA 32:32 decode @8192", 32, 32, 64, 4, DType::kBF16, 1, 1, 8192},
      {"MHA 32:32 decode @8192", 32, 32, 64, 4, DType::kI8, 1, 1, 8192},
      {"1B decode @16384", 32, 8, 64, 4, DType::kF16, 1, 1, 16384},
      {"1B decode 32 reqs @512", 32, 8, 64, 4, DType::kF16, 32, 1, 512},
      {"1B decode 256 reqs @64", 32, 8, 64, 4, DType::kF16, 256, 1, 64},
      {"1B prefill 512", 32, 8, 64, 16, DType::kF16, 1, 512, 512},
      {"1B prefill 512", 32, 8, 64, 16, DType::kBF16, 1, 512, 512},
      {"1B prefill 512", 32, 8, 64, 16, DType::kI8, 1, 512, 512},
      {"1B prefill 512 @4096", 32, 8, 64, 4, DType::kF16, 1, 512, 4096},
      {"head_dim 128 prefill 512", 32, 8, 128, 4, DType::kF16, 1, 512, 512},
  };
  for (const BenchCase& c : cases) {
    // Long calls are repeated less often, because their median needs fewer.
    const double macs = static_cast<double>(c.num_reqs) * c.q_len * c.kv_len * c.num_heads *
                        c.head_dim * c.num_layers;
    const int count = std::clamp(static_cast<int>(4e9 / macs), 5, repetitions);
    report(c, time_case(c, pool, count));
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  const int num_threads = argc > 1 ? std::atoi(argv[1]) : quire::num_usable_cpus();
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 200;
  return quire::bench(std::max(1, num_threads), std::max(1, repetitions));
}
