// The expanded form of latent attention in the flashinfer backend: the plan, which needs no GPU,
// and one layer of it against F64, over a poisoned cache and with a scratch memory so small that
// contexts and prompts are cut into parts.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "base/numbers.h"
#include "base/thread_pool.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/flashinfer/expanded_plan.h"
#include "cuda/attention/flashinfer/latent.h"
#include "cuda/attention/flashinfer/latent_plan.h"
#include "cuda/base/memory.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda_attention_cases.h"

namespace quire::testing {
namespace {

namespace fi = cuda::flashinfer_backend;

constexpr int kLatent = fi::kLatentDim;
constexpr int kRope = fi::kLatentRopeDim;
constexpr int kPoisonByte = 0xFF;  // NaN in BF16 and F32
constexpr size_t kGuardBytes = 4096;

AttentionShape latent_shape(int num_heads, int page_size, DType kv = DType::kBF16,
                            const fi::ExpandedDims& dims = fi::kDeepSeekDims) {
  AttentionShape shape = make_attention_shape(num_heads, 1, kLatent + kRope, page_size, kv);
  shape.head_dim_v = kLatent;
  shape.is_latent = true;
  shape.q = shape.out = DType::kBF16;
  shape.scale = 1.0F / std::sqrt(static_cast<float>(dims.key));
  shape.expanded_key_dim = dims.key;
  shape.expanded_value_dim = dims.value;
  return shape;
}

std::vector<float> random_bf16(size_t count, uint32_t seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = bf16_to_f32(f32_to_bf16(normal(random)));
  return values;
}

void check(cudaError_t error) {
  QUIRE_CHECK(error == cudaSuccess, cudaGetErrorString(error));
}

Buffer poisoned(size_t num_bytes) {
  Buffer buffer = cuda::device_memory(std::max<size_t>(num_bytes, 16)).value();
  check(cudaMemset(buffer.data(), kPoisonByte, buffer.num_bytes()));
  check(cudaDeviceSynchronize());
  return buffer;
}

Buffer upload(const void* data, size_t num_bytes) {
  Buffer buffer = poisoned(num_bytes);
  check(cudaMemcpy(buffer.data(), data, num_bytes, cudaMemcpyHostToDevice));
  check(cudaDeviceSynchronize());  // the copy may end after cudaMemcpy() returns
  return buffer;
}

Buffer upload_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(f32_to_bf16(value));
  return upload(bits.data(), bits.size() * sizeof(uint16_t));
}

// One layer's matrices by head.
struct Matrices {
  Matrices(int heads, const fi::ExpandedDims& of)
      : num_heads(heads), dims(of), k_up(random(dims.nope(), 11)), v_up(random(dims.value, 12)) {}

  std::vector<float> random(int width, uint32_t seed) const {
    return random_bf16(static_cast<size_t>(num_heads) * kLatent * static_cast<size_t>(width), seed,
                       0.05F);
  }

  std::unique_ptr<PerHeadLinear> load(Ops& ops, std::vector<float>& of, int64_t rows,
                                      int64_t columns) const {
    std::vector<TensorView> views;
    for (int64_t h = 0; h < num_heads; ++h) {
      views.push_back({of.data() + h * rows * columns, DType::kF32, {rows, columns}});
    }
    return ops.weights().make_per_head_linear(views).value();
  }

  int num_heads;
  fi::ExpandedDims dims;
  std::vector<float> k_up;  // [heads, latent, nope]
  std::vector<float> v_up;  // [heads, value, latent]
};

class Expander final : public LatentExpander {
 public:
  Expander(cuda::CudaOps& ops, Matrices& matrices)
      : latents_(*ops.latents()),
        k_up_(matrices.load(ops, matrices.k_up, kLatent, matrices.dims.nope())),
        v_up_(matrices.load(ops, matrices.v_up, matrices.dims.value, kLatent)) {}

  void expand(TensorView latents, TensorView keys, TensorView values) override {
    latents_.shared_linear_transposed(*k_up_, latents, keys);
    latents_.shared_linear(*v_up_, latents, values);
    ++num_chunks;
  }
  int num_chunks = 0;

 private:
  cuda::CudaLatentOps& latents_;
  std::unique_ptr<PerHeadLinear> k_up_, v_up_;
};

double rounded(double value) {
  return bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
}

ThreadPool& oracle_threads() {
  static ThreadPool threads(static_cast<int>(std::thread::hardware_concurrency()));
  return threads;
}

// One head of one request in F64: q [q_len, heads, key] → out [q_len, heads, value]. The expanded
// keys and values are rounded to BF16, as the operation's are, and so are the latent vectors of an
// FP8 cache: with scores this large, unrounded ones give results that differ by up to 0.02.
void attend_head(const AttentionProblem& problem, const Matrices& matrices, int req, int head,
                 const float* q, float* out) {
  const AttentionRequest& request = problem.spec().reqs[static_cast<size_t>(req)];
  const int key_dim = matrices.dims.key;
  const int nope_dim = matrices.dims.nope();
  const int value_dim = matrices.dims.value;
  const auto num_positions = static_cast<size_t>(request.kv_len);
  std::vector<double> keys(num_positions * key_dim), values(num_positions * value_dim);
  const float* const k_up = matrices.k_up.data() + int64_t{head} * kLatent * nope_dim;
  const float* const v_up = matrices.v_up.data() + int64_t{head} * value_dim * kLatent;
  for (int position = 0; position < request.kv_len; ++position) {
    double* const key = keys.data() + int64_t{position} * key_dim;
    double* const value = values.data() + int64_t{position} * value_dim;
    std::vector<double> latent(kLatent);
    for (int i = 0; i < kLatent; ++i) {
      latent[static_cast<size_t>(i)] = rounded(problem.key(req, position, 0, i));
      for (int d = 0; d < nope_dim; ++d) {
        key[d] += latent[static_cast<size_t>(i)] * double{k_up[i * nope_dim + d]};
      }
    }
    for (int d = 0; d < nope_dim; ++d) key[d] = rounded(key[d]);
    for (int d = 0; d < kRope; ++d) {
      key[nope_dim + d] = rounded(problem.key(req, position, 0, kLatent + d));
    }
    for (int d = 0; d < value_dim; ++d) {
      for (int i = 0; i < kLatent; ++i) {
        value[d] += latent[static_cast<size_t>(i)] * double{v_up[d * kLatent + i]};
      }
      value[d] = rounded(value[d]);
    }
  }
  const int num_heads = matrices.num_heads;
  for (int t = 0; t < request.q_len; ++t) {
    const float* const query = q + (int64_t{t} * num_heads + head) * key_dim;
    float* const result = out + (int64_t{t} * num_heads + head) * value_dim;
    const int visible = request.kv_len == 0 ? 0 : request.kv_len - request.q_len + t + 1;
    std::vector<double> weights;
    double largest = -std::numeric_limits<double>::infinity();
    for (int position = 0; position < visible; ++position) {
      double score = 0;
      for (int d = 0; d < key_dim; ++d) {
        score += double{query[d]} *
                 keys[static_cast<size_t>(position) * key_dim + static_cast<size_t>(d)];
      }
      weights.push_back(score * double{problem.shape().scale});
      largest = std::max(largest, weights.back());
    }
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (int d = 0; d < value_dim; ++d) {
      double total = 0;
      for (int position = 0; position < visible; ++position) {
        total += weights[static_cast<size_t>(position)] *
                 values[static_cast<size_t>(position) * value_dim + static_cast<size_t>(d)];
      }
      result[d] = static_cast<float>(visible == 0 ? 0.0 : total / sum);
    }
  }
}

struct ExpandedCase {
  std::string name = {};
  fi::ExpandedDims dims = fi::kDeepSeekDims;
  int num_heads = 16;
  int page_size = 16;
  DType kv = DType::kBF16;
  std::vector<AttentionRequest> reqs = {};
  int max_rows = 0;  // of the scratch memory; 0: the default
  int max_decode_q_len = 0;
  int bound_excess = 0;
};

std::ostream& operator<<(std::ostream& out, const ExpandedCase& spec) {
  return out << spec.name;
}

AttentionCase attention_case(const ExpandedCase& spec) {
  return {.name = spec.name,
          .shape = latent_shape(spec.num_heads, spec.page_size, spec.kv, spec.dims),
          .reqs = spec.reqs,
          .max_decode_q_len = spec.max_decode_q_len,
          .k_scale = 0.07F,
          .v_scale = 0.07F,
          .bound_excess = spec.bound_excess};
}

class ExpandedAttention : public ::testing::TestWithParam<ExpandedCase> {
 protected:
  void SetUp() override {
    const Result<cuda::DeviceInfo> device = test_device();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    if (device->device.compute_capability != 90) GTEST_SKIP() << "the GPU is not a Hopper";
    device_ = *device;
  }

  cuda::DeviceInfo device_;
};

TEST_P(ExpandedAttention, EqualsTheDefinition) {
  const ExpandedCase& spec = GetParam();
  const AttentionCase attention = attention_case(spec);
  const AttentionProblem host(attention);
  const AttentionShape& shape = host.shape();
  const auto num_tokens = static_cast<size_t>(host.num_tokens());
  const auto heads = num_tokens * static_cast<size_t>(spec.num_heads);
  const int key_dim = spec.dims.key;
  const int value_dim = spec.dims.value;
  Matrices matrices(spec.num_heads, spec.dims);
  const std::vector<float> queries = random_bf16(heads * key_dim, 3, 2.0F);

  const auto stream = cuda::CudaStream::create().value();
  const auto ops = cuda::CudaOps::create(*stream, DType::kBF16).value();
  Expander expander(*ops, matrices);
  const Buffer cache = upload(host.cache_memory().data(), host.cache_memory().num_bytes());
  const Buffer q = upload_bf16(queries);
  const Buffer out = poisoned(heads * value_dim * 2);
  const Buffer scratch = poisoned(heads * kExpandedScratch * value_dim * 2);
  const float scales[] = {attention.k_scale};
  const Buffer scale = upload(scales, sizeof(scales));
  AttentionBatch batch = host.batch();
  const size_t num_reqs = spec.reqs.size();
  const Buffer query_start = upload(batch.query_start.host, (num_reqs + 1) * sizeof(int32_t));
  const Buffer seq_lens = upload(batch.seq_lens, num_reqs * sizeof(int32_t));
  const Buffer block_table =
      upload(batch.block_table, num_reqs * static_cast<size_t>(batch.max_pages) * sizeof(int32_t));
  batch.query_start.device = static_cast<const int32_t*>(query_start.data());
  batch.seq_lens = static_cast<const int32_t*>(seq_lens.data());
  batch.block_table = static_cast<const int32_t*>(block_table.data());
  KvCacheView kv = host.cache();
  kv.k = cache.data();
  kv.v = nullptr;
  kv.k_scale = kv.v_scale = static_cast<const float*>(scale.data());

  PlanLimits limits = host.limits(Phase::kPrefill);
  limits.max_kv_len = static_cast<int>(batch.max_pages) * shape.page_size;
  const int64_t max_bytes =
      spec.max_rows == 0 ? fi::kMaxExpandedBytes : spec.max_rows * fi::expanded_row_bytes(shape);
  const auto plan = fi::make_expanding_plan(shape, limits, device_, max_bytes, true).value();
  const size_t workspace_bytes = plan->workspace_bytes();
  const Buffer workspace = poisoned(workspace_bytes + kGuardBytes);
  ASSERT_EQ(plan->update(batch, *stream).message(), "");
  EXPECT_EQ(plan->expanding_plan(), plan.get());
  const auto rows = [&](const Buffer& memory, int width) {
    return TensorView{
        memory.data(), DType::kBF16, {static_cast<int64_t>(num_tokens), spec.num_heads, width}};
  };
  ASSERT_EQ(plan->run_expanded(
                    {.q = rows(q, key_dim),
                     .out = rows(out, value_dim),
                     .scratch = rows(scratch, kExpandedScratch * value_dim),
                     .kv = kv,
                     .expander = &expander,
                     .workspace = {static_cast<std::byte*>(workspace.data()), workspace_bytes}},
                    *stream)
                .message(),
            "");
  ASSERT_EQ(stream->synchronize().message(), "");

  std::vector<uint16_t> bits(heads * value_dim);
  check(cudaMemcpy(bits.data(), out.data(), bits.size() * 2, cudaMemcpyDeviceToHost));
  std::vector<char> guard(kGuardBytes);
  check(cudaMemcpy(guard.data(), static_cast<char*>(workspace.data()) + workspace_bytes,
                   kGuardBytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::count(guard.begin(), guard.end(), static_cast<char>(kPoisonByte)),
            static_cast<ptrdiff_t>(kGuardBytes));

  std::vector<float> expected(heads * value_dim, NAN);
  const PhaseRange& range = batch.prefill;
  oracle_threads().parallel_for(range.num_reqs * spec.num_heads, [&](int64_t i) {
    const int req = range.first_req + static_cast<int>(i) / spec.num_heads;
    const int64_t row = int64_t{batch.query_start.host[req]} * spec.num_heads;
    attend_head(host, matrices, req, static_cast<int>(i) % spec.num_heads,
                queries.data() + row * key_dim, expected.data() + row * value_dim);
  });
  std::vector<float> actual, wanted;
  const auto first = static_cast<size_t>(range.first_token) * static_cast<size_t>(spec.num_heads);
  for (size_t i = 0; i < bits.size(); ++i) {
    if (i < first * value_dim) {
      EXPECT_EQ(bits[i], 0xFFFF) << "a row of the decode range was written";
      continue;
    }
    actual.push_back(bf16_to_f32(bits[i]));
    wanted.push_back(expected[i]);
  }
  // Results of parts are rounded to BF16 before they are merged, and sums are not.
  expect_close(actual, wanted, spec.max_rows == 0 ? 1e-2F : 1.5e-2F);
  // The scratch memory was as small as the case says.
  int64_t total_rows = 0;
  for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
    total_rows += round_up(int64_t{batch.kv_len_bound[static_cast<size_t>(req)]}, 128);
  }
  if (spec.max_rows == 0) return;
  EXPECT_GE(expander.num_chunks, ceil_div(total_rows, spec.max_rows));
}

using Reqs = std::vector<AttentionRequest>;

std::vector<ExpandedCase> expanded_cases() {
  // Fresh prompts; prompts after a context that ends around a page; padding between them.
  const Reqs fresh = {{1, 1, 1},     {2, 2, 2},     {127, 127, 3}, {128, 128, 4},
                      {129, 129, 5}, {300, 300, 6}, {40, 40, 7}};
  const Reqs contexts = {{5, 5, 1},     {5, 6, 2},     {33, 48, 3},   {33, 49, 4},
                         {33, 50, 5},   {129, 144, 6}, {129, 145, 7}, {129, 146, 8},
                         {64, 1064, 9}, {300, 811, 10}};
  const Reqs padded = {{129, 0, 1}, {0, 0, 2}, {70, 200, 3}, {0, 0, 4}, {300, 0, 5}, {1, 700, 6}};
  // Contexts and prompts that are cut: own tokens in one part, in two, and in all of them.
  const Reqs cut = {{300, 300, 1}, {300, 1500, 2}, {1, 700, 3}, {128, 256, 4},
                    {130, 386, 5}, {257, 1281, 6}, {20, 20, 7}};
  const Reqs mixed = {{1, 300, 1}, {1, 0, 2}, {1, 77, 3}, {200, 333, 4}, {33, 33, 5}};
  std::vector<ExpandedCase> cases = {
      {.name = "fresh", .reqs = fresh},
      {.name = "contexts", .reqs = contexts},
      {.name = "contexts_page64", .page_size = 64, .reqs = contexts},
      {.name = "padded", .reqs = padded},
      {.name = "mixed", .reqs = mixed, .max_decode_q_len = 1},
      {.name = "bounds", .page_size = 32, .reqs = contexts, .bound_excess = 40},
      {.name = "fp8", .kv = DType::kF8E4M3, .reqs = contexts},
      {.name = "one_head", .num_heads = 1, .reqs = contexts},
      {.name = "128_heads", .num_heads = 128, .reqs = {{70, 70, 1}, {130, 260, 2}, {1, 50, 3}}}};
  for (const int max_rows : {128, 256, 640}) {
    const auto add = [&](const char* name, ExpandedCase spec) {
      spec.name = fmt::format("{}_{}_rows", name, max_rows);
      spec.max_rows = max_rows;
      cases.push_back(spec);
    };
    add("cut", {.reqs = cut});
    add("cut_fp8", {.page_size = 64, .kv = DType::kF8E4M3, .reqs = cut});
    add("cut_mixed", {.reqs = mixed, .max_decode_q_len = 1});
    add("cut_bounds", {.page_size = 32, .reqs = cut, .bound_excess = 33});
    add("cut_padded", {.reqs = padded});
  }
  cases.push_back({.name = "cut_128_heads",
                   .num_heads = 128,
                   .reqs = {{70, 300, 1}, {130, 260, 2}},
                   .max_rows = 128});
  const auto add_glm = [&](const char* name, ExpandedCase spec) {
    spec.name = fmt::format("glm_{}", name);
    spec.dims = fi::kGlmDims;
    cases.push_back(spec);
  };
  add_glm("fresh", {.num_heads = 20, .reqs = fresh});
  add_glm("contexts", {.num_heads = 5, .reqs = contexts});
  add_glm("fp8", {.num_heads = 10, .page_size = 64, .kv = DType::kF8E4M3, .reqs = contexts});
  add_glm("padded", {.num_heads = 5, .reqs = padded});
  add_glm("bounds", {.num_heads = 5, .page_size = 32, .reqs = contexts, .bound_excess = 40});
  add_glm("cut_128_rows", {.num_heads = 5, .reqs = cut, .max_rows = 128});
  add_glm("cut_640_rows", {.num_heads = 5, .reqs = cut, .max_rows = 640});
  add_glm("cut_mixed_256_rows",
          {.num_heads = 20, .reqs = mixed, .max_rows = 256, .max_decode_q_len = 1});
  // 79 partial results.
  cases.push_back(
      {.name = "many_parts", .num_heads = 4, .reqs = {{130, 10100, 1}}, .max_rows = 128});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(FlashInfer, ExpandedAttention, ::testing::ValuesIn(expanded_cases()),
                         [](const auto& test) { return test.param.name; });

// A batch of one phase and its plan, all of it on the host.
struct Planned {
  std::vector<int32_t> query_start = {0};
  std::vector<int32_t> kv_lens;
  AttentionBatch batch;
  fi::ExpandedPlanner planner;
  std::vector<int32_t> words;
  fi::ExpandedArrays arrays;
};

void describe(Planned& planned, const std::vector<AttentionRequest>& reqs) {
  for (const AttentionRequest& req : reqs) {
    planned.query_start.push_back(planned.query_start.back() + req.q_len);
    planned.kv_lens.push_back(req.kv_len);
  }
  planned.batch.query_start.host = planned.query_start.data();
  planned.batch.kv_len_bound = planned.kv_lens;
  planned.batch.prefill = {.num_reqs = static_cast<int>(reqs.size()),
                           .num_tokens = planned.query_start.back()};
}

void plan(Planned& planned, int max_rows) {
  const PhaseRange& range = planned.batch.prefill;
  planned.planner.plan(planned.batch, range, max_rows);
  const int64_t num_tiles = planned.planner.num_tiles();
  planned.words.resize(static_cast<size_t>(fi::expanded_words(num_tiles, range.num_reqs)));
  planned.arrays = fi::place_expanded_arrays(planned.words.data(), num_tiles, range.num_reqs);
  planned.planner.fill(planned.arrays);
}

// Every pair of a query token and a position that it sees is in exactly one chunk, and the first
// chunk of a token has its first position.
void expect_complete(const Planned& planned, int max_rows) {
  std::map<std::pair<int, int>, int64_t> pairs;  // request, tile → pairs
  for (const fi::ExpandedChunk& chunk : planned.planner.chunks()) {
    EXPECT_LE(chunk.num_rows, max_rows);
    EXPECT_EQ(chunk.num_rows % fi::kExpandedTile, 0);
    EXPECT_TRUE(!chunk.is_part() || chunk.num_reqs == 1);
    int next_row = 0;
    for (int i = chunk.first_req; i < chunk.first_req + chunk.num_reqs; ++i) {
      const auto req = static_cast<size_t>(i);
      if (planned.query_start[req] == planned.query_start[req + 1]) continue;
      EXPECT_EQ(planned.arrays.row_start[i], next_row);
      // Padding has the rows of a prompt.
      const int kv_len =
          std::max(planned.kv_lens[req], planned.query_start[req + 1] - planned.query_start[req]);
      next_row += round_up(std::min(chunk.kv_end, kv_len) - chunk.kv_start, 128);
    }
    EXPECT_EQ(next_row, chunk.num_rows);
    for (int tile = chunk.first_tile; tile < chunk.first_tile + chunk.num_tiles; ++tile) {
      const int i = planned.arrays.tile_req[tile];
      EXPECT_TRUE(i >= chunk.first_req && i < chunk.first_req + chunk.num_reqs);
      const auto req = static_cast<size_t>(i);
      const int q_len = planned.query_start[req + 1] - planned.query_start[req];
      const int idx = planned.arrays.tile_idx[tile];
      EXPECT_LT(idx * 128, q_len);
      const auto [found, is_new] = pairs.try_emplace({i, idx}, 0);
      EXPECT_TRUE(is_new == (chunk.kv_start == 0));
      for (int t = idx * 128; t < std::min(q_len, (idx + 1) * 128); ++t) {
        const int visible = std::min(chunk.kv_end, planned.kv_lens[req] - q_len + t + 1);
        found->second += std::max(0, visible - chunk.kv_start);
      }
    }
  }
  size_t num_tiles = 0;
  for (size_t req = 0; req < planned.kv_lens.size(); ++req) {
    const int q_len = planned.query_start[req + 1] - planned.query_start[req];
    for (int idx = 0; idx * 128 < q_len; ++idx, ++num_tiles) {
      int64_t expected = 0;
      for (int t = idx * 128; t < std::min(q_len, (idx + 1) * 128); ++t) {
        expected += std::max(0, planned.kv_lens[req] - q_len + t + 1);
      }
      const std::pair<int, int> key = {static_cast<int>(req), idx};
      EXPECT_EQ(pairs[key], expected) << "request " << req << ", tile " << idx;
    }
  }
  EXPECT_EQ(pairs.size(), num_tiles);
}

TEST(ExpandedPlan, CoversEveryPairOnce) {
  const std::vector<Reqs> batches = {
      {{300, 300, 1}},
      {{1, 1, 1}, {128, 128, 2}, {129, 129, 3}, {40, 4000, 4}, {300, 5000, 5}, {7, 7, 6}},
      {{0, 0, 1}, {129, 0, 2}, {0, 0, 3}},
      {{512, 0, 1}},
      {{2000, 2000, 1}, {0, 0, 2}, {2000, 7000, 3}, {1, 1, 4}},
      Reqs(100, {33, 77, 1})};
  for (const Reqs& reqs : batches) {
    for (const int max_rows : {128, 256, 1024, 8192}) {
      Planned planned;
      describe(planned, reqs);
      plan(planned, max_rows);
      expect_complete(planned, max_rows);
      PlanLimits limits;
      limits.max_num_reqs = planned.batch.prefill.num_reqs;
      limits.max_num_tokens = planned.query_start.back();
      limits.max_kv_len = *std::ranges::max_element(planned.kv_lens);
      EXPECT_LE(planned.planner.num_tiles(), fi::max_expanded_tiles(limits, max_rows));
    }
  }
}

TEST(ExpandedPlan, LongTilesComeFirst) {
  Planned planned;
  describe(planned, {{256, 256, 1}, {128, 4000, 2}});
  plan(planned, 8192);
  ASSERT_EQ(planned.planner.num_tiles(), 3);
  EXPECT_EQ(planned.arrays.tile_req[0], 1);
  EXPECT_EQ(planned.arrays.tile_idx[1], 1);
  EXPECT_EQ(planned.arrays.tile_idx[2], 0);
}

bool pays(const Reqs& reqs, const fi::ExpandedDims& dims = fi::kDeepSeekDims) {
  Planned planned;
  describe(planned, reqs);
  return fi::expansion_pays(fi::expansion_work(planned.batch, planned.batch.prefill), dims);
}

TEST(ExpandedPlan, PaysForManyQueryTokens) {
  EXPECT_TRUE(pays({{1000, 1000, 1}}));
  EXPECT_TRUE(pays({{8192, 8192, 1}}));
  EXPECT_TRUE(pays({{8192, 32768, 1}}));
  EXPECT_TRUE(pays(Reqs(16, {1000, 1000, 1})));
  EXPECT_TRUE(pays({{512, 0, 1}})) << "the warm-up's padding";
  // Few tokens fill no tile.
  EXPECT_FALSE(pays({{1, 1, 1}}));
  EXPECT_FALSE(pays({{48, 48, 1}}));
  // Few tokens after a long context: its expansion costs more than their attention.
  EXPECT_FALSE(pays({{16, 32768, 1}}));
  EXPECT_FALSE(pays({{128, 32768, 1}}));
  EXPECT_TRUE(pays({{512, 32768, 1}}));
  EXPECT_FALSE(pays({{256, 4352, 1}}));
  EXPECT_TRUE(pays({{384, 4480, 1}}));
  // Wider heads take more multiplications per pair and per expanded position.
  EXPECT_TRUE(pays({{1000, 1000, 1}}, fi::kGlmDims));
  EXPECT_TRUE(pays({{8192, 32768, 1}}, fi::kGlmDims));
  EXPECT_FALSE(pays({{384, 4480, 1}}, fi::kGlmDims));
  // The whole phase has one form.
  EXPECT_TRUE(pays({{8192, 8192, 1}, {16, 1000, 2}}));
  EXPECT_FALSE(pays({{200, 200, 1}, {16, 32768, 2}}));
}

TEST(ExpandedPlan, ScratchIsBounded) {
  PlanLimits limits;
  limits.max_num_reqs = 256;
  limits.max_num_tokens = 8192;
  limits.max_kv_len = 131072;
  for (const int num_heads : {1, 16, 128}) {
    const AttentionShape shape = latent_shape(num_heads, 16);
    const int rows = fi::max_expanded_rows(shape, limits, fi::kMaxExpandedBytes);
    EXPECT_EQ(rows % fi::kExpandedTile, 0);
    EXPECT_LE(rows * fi::expanded_row_bytes(shape), fi::kMaxExpandedBytes);
    EXPECT_GT((rows + fi::kExpandedTile) * fi::expanded_row_bytes(shape), fi::kMaxExpandedBytes);
  }
  EXPECT_EQ(fi::expanded_row_bytes(latent_shape(16, 16)), 2 * (16 * (192 + 128) + 512));
  EXPECT_EQ(fi::expanded_row_bytes(latent_shape(20, 16, DType::kBF16, fi::kGlmDims)),
            2 * (20 * (256 + 256) + 512));
  EXPECT_EQ(fi::max_expanded_rows(latent_shape(16, 16), limits, 0), fi::kExpandedTile);
  limits.max_num_reqs = 2;
  limits.max_kv_len = 300;
  EXPECT_EQ(fi::max_expanded_rows(latent_shape(16, 16), limits, fi::kMaxExpandedBytes), 768);
}

}  // namespace
}  // namespace quire::testing
