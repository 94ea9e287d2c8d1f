#include "cuda_attention_cases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "cuda_attention_problem.h"

namespace quire::testing {
namespace {

// The tolerance allows for backends that round the softmax's weights to the query type before they
// multiply.
float tolerance_of(DType q) {
  if (q == DType::kF32) return 1e-4F;
  return q == DType::kF16 ? 3e-3F : 1e-2F;
}

void take_rows(const std::vector<float>& from, size_t row_size, const PhaseRange& range,
               std::vector<float>& to) {
  const auto begin = from.begin() + static_cast<int64_t>(row_size) * range.first_token;
  to.insert(to.end(), begin, begin + static_cast<int64_t>(row_size) * range.num_tokens);
}

// The rows of one phase's tokens.
AttentionResult rows_of(const AttentionResult& all, const AttentionShape& shape,
                        const PhaseRange& range) {
  AttentionResult rows;
  const auto num_heads = static_cast<size_t>(shape.num_heads);
  take_rows(all.out, num_heads * static_cast<size_t>(shape.head_dim_v), range, rows.out);
  return rows;
}

void expect_same(const AttentionResult& actual, const AttentionResult& expected, DType q) {
  expect_close(actual.out, expected.out, tolerance_of(q));
}

void expect_untouched(const AttentionResult& rows) {
  EXPECT_TRUE(std::all_of(rows.out.begin(), rows.out.end(),
                          [](const float value) { return std::isnan(value); }));
}

// Reasons are sentences that a user can act on.
void expect_reasons(const Support& support) {
  for (const std::string& reason : support.reasons) {
    EXPECT_GE(reason.size(), size_t{10}) << reason;
    EXPECT_TRUE(reason.ends_with(".")) << reason;
  }
}

// Lengths of this step's tokens plus 1/divisor of the rest of the context.
std::vector<int32_t> shorter(const AttentionCase& spec, int divisor) {
  std::vector<int32_t> lengths;
  for (const AttentionRequest& req : spec.reqs) {
    lengths.push_back(req.kv_len == 0 ? 0 : req.q_len + (req.kv_len - req.q_len) / divisor);
  }
  return lengths;
}

std::vector<int32_t> with_padding(std::vector<int32_t> lengths) {
  for (size_t i = 1; i < lengths.size(); i += 2) lengths[i] = 0;
  return lengths;
}

void check_eager(CudaAttentionProblem& problem, AttentionBackend& backend, const Device& device,
                 const AttentionResult& expected) {
  const AttentionShape& shape = problem.shape();
  const AttentionBatch& batch = problem.host().batch();
  const AttentionResult actual = problem.run(backend, device);
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    SCOPED_TRACE(phase_name(phase));
    const PhaseRange& range = batch.range(phase);
    const AttentionResult rows = rows_of(actual, shape, range);
    if (problem.supports(backend, device, phase).ok()) {
      expect_same(rows, rows_of(expected, shape, range), shape.q);
    } else {
      expect_untouched(rows);
    }
  }
}

void check_replays(CudaAttentionProblem& problem, AttentionBackend& backend, const Device& device,
                   const AttentionResult& expected) {
  const AttentionCase& spec = problem.host().spec();
  constexpr int kAll = 1 << 30;
  const std::vector<std::vector<int32_t>> lengths = {
      shorter(spec, kAll), shorter(spec, 2), problem.seq_lens(), with_padding(problem.seq_lens())};
  const std::vector<AttentionResult> results = problem.replay(backend, device, lengths);
  for (size_t i = 0; i < lengths.size(); ++i) {
    SCOPED_TRACE(fmt::format("graph, lengths {}", i));
    const bool is_eager_length = lengths[i] == problem.seq_lens();
    expect_same(results[i], is_eager_length ? expected : problem.expected(lengths[i]),
                problem.shape().q);
  }
}

AttentionShape without(AttentionShape shape, float AttentionShape::*feature) {
  shape.*feature = 0.0F;
  return shape;
}

// Checks that a backend that ignored a feature would exceed the tolerance by far.
void expect_features_matter(const CudaAttentionProblem& problem) {
  const AttentionShape& shape = problem.shape();
  const std::vector<float> expected = problem.expected(problem.seq_lens()).out;
  const float threshold = 10.0F * tolerance_of(shape.q);
  const auto expect_change = [&](AttentionShape other, const char* feature) {
    const std::vector<float> ignored = problem.expected(problem.seq_lens(), other).out;
    EXPECT_GT(max_difference(expected, ignored), threshold) << feature;
  };
  if (shape.softcap > 0.0F) expect_change(without(shape, &AttentionShape::softcap), "soft cap");
  AttentionShape other = shape;
  other.window = 0;
  if (shape.window > 0) expect_change(other, "window");
  other = shape;
  other.chunked = false;
  if (shape.chunked) expect_change(other, "chunks");
  other = shape;
  other.sinks = false;
  if (shape.sinks) expect_change(other, "sinks");
}

constexpr std::pair<int, int> kModelHeads[] = {{64, 8}, {32, 8}, {16, 16},
                                               {40, 8}, {8, 1},  {32, 1}};
constexpr int kHeadDims[] = {64, 128, 256};
constexpr int kPageSizes[] = {16, 32, 64};
constexpr DType kCacheTypes[] = {DType::kBF16, DType::kF16, DType::kF8E4M3};

struct CaseList {
  std::vector<AttentionCase> cases;
  void add(const std::string& name, const AttentionShape& shape, std::vector<AttentionRequest> reqs,
           int max_decode_q_len = 1) {
    cases.push_back({.name = fmt::format("{}_{}", name, dtype_name(shape.kv)),
                     .shape = shape,
                     .reqs = std::move(reqs),
                     .max_decode_q_len = max_decode_q_len,
                     .k_scale = 0.02F,
                     .v_scale = 0.01F});
  }
};

// Every pair of head counts with every head_dim; the page size varies with both.
void add_head_cases(DType kv, CaseList& list) {
  for (size_t i = 0; i < std::size(kModelHeads); ++i) {
    const auto [num_heads, num_kv_heads] = kModelHeads[i];
    for (size_t j = 0; j < std::size(kHeadDims); ++j) {
      const int page = kPageSizes[(i + j) % 3];
      const AttentionShape shape =
          make_attention_shape(num_heads, num_kv_heads, kHeadDims[j], page, kv);
      const std::string name =
          fmt::format("{}_{}_dim{}_page{}", num_heads, num_kv_heads, kHeadDims[j], page);
      list.add(
          "decode_" + name, shape,
          {{1, 0, 1}, {1, 1, 2}, {1, page - 1, 3}, {1, page, 4}, {1, page + 1, 5}, {1, 777, 6}});
      // Decode, then prompts: short and long, with and without a cached prefix.
      list.add("mixed_" + name, shape,
               {{1, 300, 1}, {1, 0, 2}, {1, page + 1, 3}, {5, 5, 4}, {33, 33, 5}, {20, 150, 6}});
      list.add("ragged_" + name, shape,
               {{1, 70, 1}, {8, 200, 2}, {3, 3, 3}, {0, 0, 4}, {2, page, 5}, {7, 130, 6}}, 0);
    }
  }
}

// Contexts that end around a page's end and around the ends of kernels' tiles, so that the tokens
// of a request are in one tile or in two.
std::vector<AttentionRequest> verify_requests(int q_len, int page_size) {
  std::vector<AttentionRequest> reqs = {{q_len, 0, 1}, {q_len, q_len, 2}, {q_len, 2100, 3}};
  for (const int end : {page_size, 64, 128, 256}) {
    for (const int tokens_behind : {-1, 0, 1, q_len - 1, q_len}) {
      reqs.push_back({q_len, end + tokens_behind, reqs.size() + 1});
    }
  }
  return reqs;
}

// Each number of query heads per KV head for which kernels of several query tokens are built.
void add_verify_group_cases(DType kv, int q_len, CaseList& list) {
  constexpr struct {
    int group_size, head_dim;
  } kShapes[] = {{2, 64}, {2, 128}, {4, 64}, {4, 128}, {8, 64}, {8, 128}};
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    const auto [group_size, head_dim] = kShapes[i];
    const int page = kPageSizes[(static_cast<size_t>(q_len) + i) % 3];
    list.add(fmt::format("verify{}_group{}_dim{}_page{}", q_len, group_size, head_dim, page),
             make_attention_shape(2 * group_size, 2, head_dim, page, kv),
             verify_requests(q_len, page), q_len);
  }
}

void add_verify_cases(DType kv, CaseList& list) {
  for (int q_len = 2; q_len <= 8; ++q_len) {
    const auto [num_heads, num_kv_heads] = kModelHeads[static_cast<size_t>(q_len) % 6];
    const int head_dim = kHeadDims[static_cast<size_t>(q_len) % 3];
    list.add(fmt::format("verify{}_{}_{}_dim{}", q_len, num_heads, num_kv_heads, head_dim),
             make_attention_shape(num_heads, num_kv_heads, head_dim, 16, kv),
             {{q_len, 1300, 1}, {q_len, 40, 2}, {q_len, 0, 3}, {q_len, q_len, 4}}, q_len);
    add_verify_group_cases(kv, q_len, list);
  }
  // Eager plans also serve batches of fewer tokens than they are made for.
  list.add("verify3_planned_for_8", make_attention_shape(8, 2, 128, 16, kv), verify_requests(3, 16),
           8);
  list.add("verify1_planned_for_4", make_attention_shape(16, 2, 128, 16, kv),
           verify_requests(1, 16), 4);
}

void add_prefill_cases(DType kv, CaseList& list) {
  for (const int head_dim : kHeadDims) {
    const AttentionShape shape = make_attention_shape(8, 2, head_dim, 16, kv);
    const std::string dim = fmt::format("dim{}", head_dim);
    list.add("prefill_" + dim, shape, {{300, 300, 1}, {129, 129, 2}, {1, 1, 3}, {128, 128, 4}}, 0);
    list.add("prefill_prefix_" + dim, shape,
             {{200, 1000, 1}, {0, 0, 2}, {97, 98, 3}, {130, 0, 4}, {256, 500, 5}}, 0);
    list.add("prefill_mixed_" + dim, shape,
             {{1, 700, 1}, {1, 0, 2}, {1, 64, 3}, {260, 260, 4}, {131, 403, 5}});
  }
}

// The global layers of Gemma 4.
void add_gemma_cases(DType kv, CaseList& list) {
  for (const auto& [num_kv_heads, page] : {std::pair(1, 32), {2, 16}, {4, 64}}) {
    const AttentionShape shape =
        make_attention_shape(8 * num_kv_heads, num_kv_heads, 512, page, kv);
    const std::string name = fmt::format("gemma_{}_heads", 8 * num_kv_heads);
    list.add("decode_" + name, shape,
             {{1, 0, 1}, {1, 1, 2}, {1, page, 3}, {1, page + 1, 4}, {1, 1500, 5}});
    list.add("mixed_" + name, shape, {{1, 300, 1}, {1, 0, 2}, {33, 33, 3}, {20, 150, 4}});
    list.add("verify_" + name, shape, {{4, 300, 1}, {4, 4, 2}, {4, 0, 3}}, 4);
  }
}

// The last pages are beyond 2^31 elements.
void add_huge_pool(DType kv, CaseList& list) {
  list.add("huge_pool", make_attention_shape(16, 2, 128, 64, kv),
           {{1, 300, 1}, {1, 70, 2}, {5, 700, 3}, {100, 333, 4}});
  list.cases.back().num_unused_pages = (int64_t{1} << 31) / (2 * 2 * 64 * 128) + 10;
}

// A sink has an effect if there are few positions, a window if there are many.
void add_feature_cases(DType kv, CaseList& list) {
  const std::vector<AttentionRequest> decode = {{1, 0, 1}, {1, 7, 2}, {1, 90, 3}, {1, 1500, 4}};
  const std::vector<AttentionRequest> prompts = {{40, 40, 1}, {9, 1030, 2}, {130, 200, 3}};
  for (const int features : {1, 2, 4, 7}) {
    AttentionShape shape = make_attention_shape(8, 2, 128, 16, kv);
    std::string name;
    if ((features & 1) != 0) {
      shape.softcap = 1.0F;
      name += "_softcap";
    }
    if ((features & 2) != 0) {
      shape.window = 24;
      name += "_window";
    }
    if ((features & 4) != 0) {
      shape.sinks = true;
      name += "_sinks";
    }
    list.add("decode" + name, shape, decode);
    list.add("prefill" + name, shape, prompts, 0);
    list.add("verify" + name, shape, {{5, 300, 1}, {5, 5, 2}, {5, 0, 3}}, 5);
  }
}

// The layers of gpt-oss, of which every second one has a window.
void add_gpt_oss_cases(DType kv, CaseList& list) {
  AttentionShape shape = make_attention_shape(64, 8, 64, 16, kv);
  shape.sinks = true;
  for (const int window : {0, 128}) {
    shape.window = window;
    const std::string name = fmt::format("gpt_oss_window{}", window);
    list.add("decode_" + name, shape,
             {{1, 0, 1}, {1, 1, 2}, {1, 128, 3}, {1, 129, 4}, {1, 145, 5}, {1, 1500, 6}});
    list.add("prefill_" + name, shape, {{40, 40, 1}, {9, 1030, 2}, {200, 300, 3}}, 0);
    list.add("verify_" + name, shape, {{4, 300, 1}, {4, 4, 2}, {4, 0, 3}, {4, 130, 4}}, 4);
  }
}

// Only some backends have chunks. The queries of a request are in several of them.
void add_chunk_cases(DType kv, CaseList& list) {
  AttentionShape shape = make_attention_shape(8, 2, 128, 16, kv);
  shape.window = 24;
  shape.chunked = true;
  list.add("decode_chunks", shape, {{1, 0, 1}, {1, 24, 2}, {1, 90, 3}, {1, 1500, 4}});
  list.add("prefill_chunks", shape, {{40, 40, 1}, {9, 1030, 2}, {130, 200, 3}}, 0);
  list.add("verify_chunks", shape, {{5, 291, 1}, {5, 5, 2}, {5, 0, 3}}, 5);
}

std::vector<CudaAttentionParam> params_of(const CudaAttentionSuite& suite, const CaseList& list,
                                          bool features_matter) {
  std::vector<CudaAttentionParam> params;
  for (const AttentionCase& spec : list.cases) {
    const DType q = spec.shape.kv == DType::kF16 ? DType::kF16 : DType::kBF16;
    params.push_back({suite.make, spec, q, features_matter});
  }
  return params;
}

}  // namespace

Result<cuda::DeviceInfo> test_device() {
  static const Result<cuda::DeviceInfo> device = cuda::open_device(0);
  return device;
}

void check_cuda_attention(AttentionBackend& backend, const cuda::DeviceInfo& device,
                          const AttentionCase& spec, DType q) {
  AttentionShape shape = spec.shape;
  shape.q = shape.out = q;
  const auto support = [&](Phase phase) {
    return backend.supports(shape, {.phase = phase, .q_len = std::max(1, spec.max_decode_q_len)},
                            device.device);
  };
  const Support decode = support(Phase::kDecode);
  const Support prefill = support(Phase::kPrefill);
  expect_reasons(decode);
  expect_reasons(prefill);
  if (!decode.ok() && !prefill.ok()) GTEST_SKIP() << decode.reasons[0];
  CudaAttentionProblem problem(spec, q);
  const AttentionResult expected = problem.expected(problem.seq_lens());
  check_eager(problem, backend, device.device, expected);
  if (decode.ok() && problem.host().batch().prefill.num_reqs == 0) {
    check_replays(problem, backend, device.device, expected);
  }
}

void check_late_tokens(AttentionBackend& backend, const cuda::DeviceInfo& device,
                       const AttentionCase& spec, DType q) {
  CudaAttentionProblem problem(spec, q);
  const AttentionResult expected = problem.expected(problem.seq_lens());
  check_eager(problem, backend, device.device, expected);  // CUDA loads kernels when they first run
  problem.write_new_tokens_late();
  check_eager(problem, backend, device.device, expected);
  check_replays(problem, backend, device.device, expected);
}

void check_independent_plans(AttentionBackend& backend, const cuda::DeviceInfo& device,
                             const AttentionShape& shape) {
  const Device& gpu = device.device;
  // Both have the same number of requests and different lengths, so that using the wrong plan would
  // change the result.
  AttentionCase spec{.name = "first",
                     .shape = shape,
                     .reqs = {{1, 3000, 1}, {1, 1, 2}, {1, 77, 3}, {1, 0, 4}, {1, 1024, 5}}};
  CudaAttentionProblem first(spec, shape.q);
  spec.reqs = {{1, 5, 6}, {1, 900, 7}, {1, 2500, 8}, {1, 64, 9}, {1, 33, 10}};
  CudaAttentionProblem second(spec, shape.q);
  const auto expect_both = [&] {
    expect_same(first.read_back(), first.expected(first.seq_lens()), shape.q);
    expect_same(second.read_back(), second.expected(second.seq_lens()), shape.q);
  };
  for (const bool in_graph : {false, true}) {
    SCOPED_TRACE(in_graph ? "graphs" : "eager");
    if (const Support support = first.supports(backend, gpu, Phase::kDecode, in_graph);
        !support.ok()) {
      GTEST_SKIP() << support.reasons[0];
    }
    for (CudaAttentionProblem* problem : {&first, &second}) {
      problem->make_plans(backend, gpu, in_graph);
    }
    const auto run = [&](CudaAttentionProblem& problem) {
      in_graph ? problem.launch_graph() : problem.run_plans();
    };
    if (in_graph) {
      for (CudaAttentionProblem* problem : {&first, &second}) {
        problem->update();
        problem->capture();
      }
    }
    first.update();
    second.update();
    run(first);
    run(second);
    expect_both();
    // Runs them in the other order, and the first again without an update between.
    first.poison();
    second.poison();
    second.update();
    first.update();
    run(second);
    run(first);
    run(first);
    expect_both();
  }
}

void CudaAttentionTest::SetUp() {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  device_ = *device;
}

TEST_P(CudaAttentionTest, EqualsReference) {
  const auto backend = GetParam().make(device_);
  if (GetParam().features_matter) {
    expect_features_matter(CudaAttentionProblem(GetParam().spec, GetParam().q));
  }
  check_cuda_attention(*backend, device_, GetParam().spec, GetParam().q);
}

std::vector<CudaAttentionParam> cuda_attention_params(const CudaAttentionSuite& suite) {
  std::vector<CudaAttentionParam> params;
  for (const DType q : suite.q_dtypes) {
    for (const AttentionCase& spec : suite.cases) {
      params.push_back({suite.make, spec, q});
    }
  }
  return params;
}

std::vector<CudaAttentionParam> cuda_model_params(const CudaAttentionSuite& suite) {
  CaseList list;
  for (const DType kv : kCacheTypes) {
    add_head_cases(kv, list);
    add_verify_cases(kv, list);
    add_prefill_cases(kv, list);
    add_gemma_cases(kv, list);
    add_huge_pool(kv, list);
  }
  return params_of(suite, list, false);
}

std::vector<CudaAttentionParam> cuda_feature_params(const CudaAttentionSuite& suite) {
  CaseList list;
  for (const DType kv : kCacheTypes) {
    add_feature_cases(kv, list);
    add_gpt_oss_cases(kv, list);
    add_chunk_cases(kv, list);
  }
  return params_of(suite, list, true);
}

int num_served(const std::vector<CudaAttentionParam>& params, const cuda::DeviceInfo& device) {
  if (params.empty()) return 0;
  const auto backend = params.front().make(device);
  const auto serves = [&](const CudaAttentionParam& param) {
    AttentionShape shape = param.spec.shape;
    shape.q = shape.out = param.q;
    const AttentionUse decode = {.q_len = std::max(1, param.spec.max_decode_q_len)};
    return backend->supports(shape, decode, device.device).ok() ||
           backend->supports(shape, {.phase = Phase::kPrefill}, device.device).ok();
  };
  return static_cast<int>(std::ranges::count_if(params, serves));
}

std::string cuda_attention_name(const ::testing::TestParamInfo<CudaAttentionParam>& info) {
  return fmt::format("{}_q_{}", info.param.spec.name, dtype_name(info.param.q));
}

}  // namespace quire::testing
