// Times one layer's latent attention over prompts on a Hopper GPU in both forms, with the products
// of each (attn/expansion.h):
//   bench_mla_prefill [NUM_HEADS[:KEY_DIM:VALUE_DIM] ...]
// The default dimensions are DeepSeek's, 192 and 128. Without arguments, it runs 16 heads
// (DeepSeek-V2-Lite), 128 (DeepSeek-V3) and 20:256:256 (GLM-4.7-Flash). Each line has the
// number of requests, the query tokens and the context of each, the times of the absorbed and of
// the expanded form, the part of the latter that the expansion takes, the speed of both in
// TFLOP/s, by the multiplications of a head that expansion_work() counts, and the form that the
// plan chooses. The cache is BF16.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "attn/expansion.h"
#include "base/check.h"
#include "base/numbers.h"
#include "cuda/attention/flashinfer/expanded_plan.h"
#include "cuda/attention/flashinfer/latent.h"
#include "cuda/attention/flashinfer/latent_plan.h"
#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/ops/cuda_ops.h"
#include "model/mla.h"

namespace quire::bench {
namespace {

namespace fi = cuda::flashinfer_backend;

constexpr int kLatent = fi::kLatentDim;
constexpr int kRope = fi::kLatentRopeDim;
constexpr int kPageSize = 64;
constexpr int kRounds = 5;

void must(const Status& status) {
  QUIRE_CHECK(status.ok(), status.message());
}

struct Workload {
  int num_reqs;
  int q_len;
  int context;  // positions before the query tokens

  int num_tokens() const { return num_reqs * q_len; }
  int kv_len() const { return context + q_len; }
};

// The prompts of an empty cache, chunks of long ones, and short ones after a cached prefix, around
// the border between the forms.
constexpr Workload kWorkloads[] = {
    {1, 1024, 0},    {1, 8192, 0},    {1, 32768, 0},   {16, 1024, 0},    {8, 1000, 0},
    {1, 64, 0},      {1, 96, 0},      {1, 128, 0},     {1, 256, 0},      {1, 512, 0},
    {16, 64, 0},     {16, 128, 0},    {1, 8192, 8192}, {1, 8192, 24576}, {1, 2048, 32768},
    {1, 128, 1024},  {1, 256, 1024},  {1, 128, 4096},  {1, 192, 4096},   {1, 256, 4096},
    {1, 384, 4096},  {1, 512, 4096},  {1, 192, 32768}, {1, 256, 32768},  {1, 384, 32768},
    {1, 512, 32768}, {16, 128, 4096}, {16, 256, 4096}, {16, 512, 4096}};

std::unique_ptr<PerHeadLinear> random_matrices(cuda::CudaOps& ops, int num_heads, int64_t n,
                                               int64_t k) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0F, 0.05F);
  std::vector<float> numbers(static_cast<size_t>(n * k));
  for (float& number : numbers) number = normal(generator);
  const std::vector<TensorView> views(static_cast<size_t>(num_heads),
                                      {numbers.data(), DType::kF32, {n, k}});
  return ops.weights().make_per_head_linear(views).value();
}

struct Heads {
  int count = 0;
  fi::ExpandedDims dims = fi::kDeepSeekDims;
};

Heads parse_heads(const char* text) {
  Heads heads;
  const int fields =
      std::sscanf(text, "%d:%d:%d", &heads.count, &heads.dims.key, &heads.dims.value);
  QUIRE_CHECK(fields == 1 || fields == 3, "an argument is not NUM_HEADS[:KEY_DIM:VALUE_DIM]");
  return heads;
}

// A layer without projections.
MlaLayer random_layer(cuda::CudaOps& ops, const Heads& heads) {
  MlaLayer layer;
  layer.k_up = random_matrices(ops, heads.count, kLatent, heads.dims.nope());
  layer.v_up = random_matrices(ops, heads.count, heads.dims.value, kLatent);
  return layer;
}

// A part of the device's memory with random finite numbers, of magnitudes from 0.5 to below 2.
Buffer random_memory(int64_t num_elements) {
  std::mt19937 random(2);
  std::vector<uint16_t> chunk(static_cast<size_t>(std::min<int64_t>(num_elements, 1 << 22)));
  for (uint16_t& x : chunk) x = static_cast<uint16_t>((random() & 0x80FF) | 0x3F00);
  Buffer buffer = cuda::device_memory(static_cast<size_t>(num_elements) * 2).value();
  for (int64_t at = 0; at < num_elements; at += static_cast<int64_t>(chunk.size())) {
    const auto count = std::min(static_cast<int64_t>(chunk.size()), num_elements - at);
    QUIRE_CHECK(cudaMemcpy(static_cast<uint16_t*>(buffer.data()) + at, chunk.data(),
                           static_cast<size_t>(count) * 2, cudaMemcpyHostToDevice) == cudaSuccess,
                "upload");
  }
  return buffer;
}

Buffer upload(const std::vector<int32_t>& values) {
  Buffer buffer = cuda::device_memory(values.size() * sizeof(int32_t)).value();
  QUIRE_CHECK(cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(int32_t),
                         cudaMemcpyHostToDevice) == cudaSuccess,
              "upload");
  // The copy may end after cudaMemcpy() returns, and other streams do not wait for it.
  QUIRE_CHECK(cudaDeviceSynchronize() == cudaSuccess, "upload");
  return buffer;
}

// The step's batch, of prompts alone.
struct Batch {
  explicit Batch(const Workload& workload) {
    const int pages = ceil_div(workload.kv_len(), kPageSize);
    std::vector<int32_t> table;
    for (int req = 0; req < workload.num_reqs; ++req) {
      query_start.push_back(req * workload.q_len);
      kv_lens.push_back(workload.kv_len());
      for (int page = 0; page < pages; ++page) table.push_back(1 + req * pages + page);
    }
    query_start.push_back(workload.num_tokens());
    std::shuffle(table.begin(), table.end(), std::mt19937(3));
    num_pages = 1 + static_cast<int64_t>(table.size());
    device_query_start = upload(query_start);
    device_lens = upload(kv_lens);
    device_table = upload(table);
    batch.prefill = {.num_reqs = workload.num_reqs,
                     .num_tokens = workload.num_tokens(),
                     .max_q_len = workload.q_len,
                     .max_kv_len = workload.kv_len()};
    batch.query_start = {query_start.data(),
                         static_cast<const int32_t*>(device_query_start.data())};
    batch.seq_lens = static_cast<const int32_t*>(device_lens.data());
    batch.kv_len_bound = kv_lens;
    batch.block_table = static_cast<const int32_t*>(device_table.data());
    batch.max_pages = pages;
  }

  std::vector<int32_t> query_start, kv_lens;
  Buffer device_query_start, device_lens, device_table;
  int64_t num_pages = 0;
  AttentionBatch batch;
};

struct Bench {
  std::unique_ptr<cuda::CudaStream> stream = cuda::CudaStream::create().value();
  cuda::DeviceInfo device = cuda::open_device(0).value();
  std::unique_ptr<cuda::CudaOps> ops = cuda::CudaOps::create(*stream, DType::kBF16).value();

  // The median time in microseconds.
  template <typename Body>
  double time(const Body& body) const {
    body();
    must(stream->synchronize());
    const cuda::Stopwatch watch = cuda::Stopwatch::create().value();
    std::vector<double> times;
    for (int i = 0; i < kRounds; ++i) {
      times.push_back(watch
                          .time(*stream,
                                [&]() -> Status {
                                  body();
                                  return {};
                                })
                          .value());
    }
    std::ranges::sort(times);
    return times[kRounds / 2];
  }
};

void run(Bench& bench, const MlaLayer& layer, const Heads& of, const Workload& workload) {
  const int num_heads = of.count;
  const fi::ExpandedDims& dims = of.dims;
  AttentionShape shape;
  shape.num_heads = num_heads;
  shape.num_kv_heads = 1;
  shape.head_dim = kLatent + kRope;
  shape.head_dim_v = kLatent;
  shape.is_latent = true;
  shape.page_size = kPageSize;
  shape.q = shape.kv = shape.out = DType::kBF16;
  shape.scale = 0.05F;
  shape.expanded_key_dim = dims.key;
  shape.expanded_value_dim = dims.value;
  const Batch batch(workload);
  const PlanLimits limits = {.use = {.phase = Phase::kPrefill},
                             .max_num_reqs = workload.num_reqs,
                             .max_num_tokens = workload.num_tokens(),
                             .max_kv_len = workload.kv_len()};
  AttentionShape unexpanded = shape;
  unexpanded.expanded_key_dim = unexpanded.expanded_value_dim = 0;
  const auto absorbed_plan = fi::make_latent_plan(unexpanded, limits, bench.device).value();
  const auto expanded_plan =
      fi::make_expanding_plan(shape, limits, bench.device, fi::kMaxExpandedBytes, true).value();
  must(absorbed_plan->update(batch.batch, *bench.stream));
  must(expanded_plan->update(batch.batch, *bench.stream));
  const size_t bytes = std::max(absorbed_plan->workspace_bytes(), expanded_plan->workspace_bytes());
  const Buffer workspace = cuda::device_memory(bytes).value();
  const std::span<std::byte> memory = {static_cast<std::byte*>(workspace.data()), bytes};
  const Buffer cache = random_memory(batch.num_pages * kPageSize * (kLatent + kRope));
  const KvCacheView kv = kv_cache_view(kv_layout(shape), cache.data());
  const int64_t num_tokens = workload.num_tokens();
  const auto heads = [&](const Buffer& buffer, int width) {
    return TensorView{buffer.data(), DType::kBF16, {num_tokens, num_heads, width}};
  };
  const auto allocate = [&](int width) { return random_memory(num_tokens * num_heads * width); };
  const Buffer q = allocate(dims.key), absorbed = allocate(kLatent + kRope),
               attended = allocate(std::max(kLatent, kExpandedScratch * dims.value)),
               out = allocate(dims.value);

  const auto run_absorbed = [&] {
    bench.ops->latents()->per_head_linear(*layer.k_up, heads(q, dims.key),
                                          heads(absorbed, kLatent + kRope));
    AttentionCall call;
    call.q = heads(absorbed, kLatent + kRope);
    call.out = heads(attended, kLatent);
    call.kv = kv;
    call.workspace = memory;
    must(absorbed_plan->run(call, *bench.stream));
    bench.ops->latents()->per_head_linear(*layer.v_up, heads(attended, kLatent),
                                          heads(out, dims.value));
  };
  const int rows[] = {static_cast<int>(num_tokens)};
  must(bench.ops->tune_linears(rows, [&]() -> Status {
    run_absorbed();
    return {};
  }));

  MlaExpander expander(layer, *bench.ops->latents());
  const auto run_expanded = [&] {
    must(expanded_plan->run_expanded({.q = heads(q, dims.key),
                                      .out = heads(out, dims.value),
                                      .scratch = heads(attended, kExpandedScratch * dims.value),
                                      .kv = kv,
                                      .expander = &expander,
                                      .workspace = memory},
                                     *bench.stream));
  };
  // The products alone, of as many rows at a time as the plan's.
  const int max_rows = fi::max_expanded_rows(shape, limits, fi::kMaxExpandedBytes);
  const auto elements = [&](int64_t offset) {
    return static_cast<uint16_t*>(workspace.data()) + offset;
  };
  const auto run_products = [&] {
    const int64_t total = int64_t{workload.num_reqs} * round_up(workload.kv_len(), 128);
    for (int64_t at = 0; at < total; at += max_rows) {
      const int64_t count = std::min<int64_t>(max_rows, total - at);
      const int64_t keys = int64_t{max_rows} * kLatent;
      const int64_t values = keys + int64_t{max_rows} * num_heads * dims.key;
      expander.expand({elements(0), DType::kBF16, {count, kLatent}},
                      {elements(keys), DType::kBF16, {count, num_heads, dims.key}},
                      {elements(values), DType::kBF16, {count, num_heads, dims.value}});
    }
  };
  const double absorbed_us = bench.time(run_absorbed);
  const double expanded_us = bench.time(run_expanded);
  const double products_us = bench.time(run_products);

  const fi::ExpansionWork work = fi::expansion_work(batch.batch, batch.batch.prefill);
  const auto tflops = [&](int64_t per_head, double us) {
    return 2e-6 * num_heads * static_cast<double>(per_head) / us;
  };
  fmt::print(
      "{:>5} {:>4} {:>6} {:>8} {:>11.1f} {:>11.1f} {:>11.1f} {:>7.2f} {:>9.0f} {:>9.0f}  {}\n",
      num_heads, workload.num_reqs, workload.q_len, workload.context, absorbed_us, expanded_us,
      products_us, absorbed_us / expanded_us,
      tflops(work.num_tokens * fi::per_vector(dims) + work.num_pairs * fi::kPerAbsorbedPair,
             absorbed_us),
      tflops(
          work.num_positions * fi::per_vector(dims) + work.num_pairs * fi::per_expanded_pair(dims),
          expanded_us),
      fi::expansion_pays(work, dims) ? "expanded" : "absorbed");
  std::fflush(stdout);
}

int run_all(std::span<char*> arguments) {
  Bench bench;
  std::vector<Heads> all_heads;
  for (const char* argument : arguments) all_heads.push_back(parse_heads(argument));
  if (all_heads.empty()) {
    all_heads = {{.count = 16}, {.count = 128}, {.count = 20, .dims = fi::kGlmDims}};
  }
  fmt::print("{:>5} {:>4} {:>6} {:>8} {:>11} {:>11} {:>11} {:>7} {:>9} {:>9}  {}\n", "heads",
             "reqs", "tokens", "context", "absorbed us", "expanded us", "products us", "ratio",
             "absorbed", "expanded", "chosen");
  for (const Heads& heads : all_heads) {
    const MlaLayer layer = random_layer(*bench.ops, heads);
    for (const Workload& workload : kWorkloads) {
      // With 128 heads, the absorbed queries of longer prompts would take tens of gigabytes.
      if (heads.count > 20 && workload.num_tokens() > 8192) continue;
      run(bench, layer, heads, workload);
    }
  }
  return 0;
}

}  // namespace
}  // namespace quire::bench

int main(int argc, char** argv) {
  return quire::bench::run_all({argv + 1, static_cast<size_t>(argc - 1)});
}
