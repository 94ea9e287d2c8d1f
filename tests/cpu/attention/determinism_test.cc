// The cpu backend promises that a row's bits do not depend on other rows. All comparisons here are
// exact.
#include <gtest/gtest.h>

#include <bit>

#include "cpu/attention/simd.h"
#include "support/attention_cases.h"

namespace quire::testing {
namespace {

constexpr int kLength = 1100;  // three partitions

AttentionCase base_case(DType kv) {
  AttentionCase spec{.name = "base", .shape = make_attention_shape(8, 2, 64, 16, kv)};
  spec.max_decode_q_len = 0;
  return spec;
}

// All tokens of one request in one chunk, on one thread.
AttentionResult whole_prompt(const AttentionCase& base) {
  AttentionCase spec = base;
  spec.reqs = {{kLength, kLength, 1}};
  spec.max_decode_q_len = 0;
  ThreadPool pool(1);
  return run_attention(spec, *make_cpu_attention(pool));
}

// Rows [first, first + count) as bits: a NaN equals itself, and the sign of a zero counts.
std::vector<uint32_t> rows_of(const std::vector<float>& from, int first, int count,
                              int floats_per_row) {
  std::vector<uint32_t> bits(static_cast<size_t>(count) * static_cast<size_t>(floats_per_row));
  const size_t begin = static_cast<size_t>(first) * static_cast<size_t>(floats_per_row);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = std::bit_cast<uint32_t>(from[begin + i]);
  return bits;
}

// Compares each request's tokens with those at the same positions of the whole prompt.
void expect_same_bits(const AttentionCase& spec, const AttentionResult& actual,
                      const AttentionResult& whole) {
  const int row = spec.shape.num_heads * spec.shape.head_dim_v;
  int token = 0;
  for (const AttentionRequest& req : spec.reqs) {
    if (req.content == 1 && req.kv_len > 0) {
      const int first = req.kv_len - req.q_len;
      EXPECT_EQ(rows_of(actual.out, token, req.q_len, row),
                rows_of(whole.out, first, req.q_len, row))
          << "q_len " << req.q_len << " at " << first;
    }
    token += req.q_len;
  }
}

class CpuAttentionDeterminismTest : public ::testing::TestWithParam<DType> {
 protected:
  void check(const AttentionCase& spec, const AttentionResult& whole) const {
    const AttentionProblem problem(spec);
    for (const int num_threads : {1, 2, 3}) {
      ThreadPool pool(num_threads);
      expect_same_bits(spec, problem.run(*make_cpu_attention(pool)), whole);
    }
  }
};

TEST_P(CpuAttentionDeterminismTest, ChunksAndDecodeEqualTheWholePrompt) {
  for (const int window : {0, 100, 600}) {
    for (const bool extras : {false, true}) {
      AttentionCase spec = base_case(GetParam());
      spec.shape.window = window;
      spec.shape.sinks = extras;
      spec.shape.softcap = extras ? 3.0F : 0.0F;
      const AttentionResult whole = whole_prompt(spec);
      spec.max_decode_q_len = 1;
      // Each token is computed alone: the context is split among threads.
      for (const int kv_len : {kLength, 1025, 513}) {
        spec.reqs = {{1, kv_len, 1}};
        check(spec, whole);
      }
      // The tokens are computed together, in one batch with other requests and padding.
      spec.reqs = {{1, 1, 1},   {1, 40, 9},  {1, 17, 1},  {1, 0, 1},      {1, 64, 1},
                   {1, 512, 1}, {1, 513, 1}, {7, 7, 1},   {7, 519, 1},    {512, 512, 1},
                   {3, 77, 9},  {2, 2, 1},   {33, 65, 1}, {512, 1034, 1}, {40, kLength, 1}};
      check(spec, whole);
    }
  }
}

TEST_P(CpuAttentionDeterminismTest, PageSizeAndSharingDoNotMatter) {
  const AttentionResult whole = whole_prompt(base_case(GetParam()));
  for (const int page_size : {16, 32, 64}) {
    AttentionCase spec = base_case(GetParam());
    spec.shape.page_size = page_size;
    spec.share_pages = true;
    spec.reqs = {{1, 900, 1}, {1, 1100, 1}, {20, 600, 1}, {5, 64, 1}};
    spec.max_decode_q_len = 1;
    check(spec, whole);
  }
}

TEST_P(CpuAttentionDeterminismTest, HeadsThatShareAPassDoNotMatter) {
  AttentionCase spec = base_case(GetParam());
  spec.reqs = {{1, 700, 1}, {9, 300, 1}};
  ThreadPool pool(2);
  const auto backend = make_cpu_attention(pool);
  const AttentionResult together = run_attention(spec, *backend);
  const int num_heads = spec.shape.num_heads;
  const int dim = spec.shape.head_dim_v;
  for (int head = 0; head < num_heads; ++head) {
    AttentionCase alone = spec;
    alone.shape.num_heads = alone.shape.num_kv_heads = 1;
    alone.first_head = head;
    alone.first_kv_head = head / 4;
    const AttentionResult result = run_attention(alone, *backend);
    for (int token = 0; token < 10; ++token) {
      EXPECT_EQ(rows_of(result.out, token, 1, dim),
                rows_of(together.out, token * num_heads + head, 1, dim));
    }
  }
}

// The host may have only upper bounds of lengths. They change the plan, but not the result.
TEST_P(CpuAttentionDeterminismTest, LooseLengthBoundsDoNotMatter) {
  AttentionCase spec = base_case(GetParam());
  spec.max_decode_q_len = 1;
  const AttentionResult whole = whole_prompt(spec);
  for (const int window : {0, 600}) {
    spec.shape.window = window;
    const AttentionResult expected = window == 0 ? whole : whole_prompt(spec);
    for (const int slack : {1, 100, 511, 2000}) {
      spec.reqs = {{1, 1030, 1}, {1, 514, 1}, {1, 3, 1}};
      AttentionProblem problem(spec);
      for (int32_t& bound : problem.kv_len_bound()) bound += slack;
      for (const int num_threads : {1, 2, 3}) {
        ThreadPool pool(num_threads);
        expect_same_bits(spec, problem.run(*make_cpu_attention(pool)), expected);
      }
    }
  }
}

// A drafter and its target use plans of one backend and one shape, all updated before the first
// runs.
TEST_P(CpuAttentionDeterminismTest, OtherPlansDoNotMatter) {
  AttentionCase spec = base_case(GetParam());
  spec.max_decode_q_len = 1;
  const AttentionResult whole = whole_prompt(spec);
  AttentionCase other = spec;
  spec.reqs = {{1, 1030, 1}, {1, 3, 1}, {7, 519, 1}};
  other.reqs = {{1, 20, 1}, {1, 900, 1}, {1, 0, 1}, {1, 514, 1}, {512, 1034, 1}};
  const AttentionProblem first(spec);
  const AttentionProblem second(other);
  for (const int num_threads : {1, 3}) {
    ThreadPool pool(num_threads);
    const auto results = run_interleaved({&first, &second}, *make_cpu_attention(pool));
    expect_same_bits(spec, results[0], whole);
    expect_same_bits(other, results[1], whole);
  }
}

// The keys of a latent cache in 8-bit integers are scaled in a converted block, also for one row.
TEST(CpuAttentionLatentDeterminism, HeadsAndChunksDoNotMatter) {
  AttentionCase together{.name = "latent",
                         .shape = make_attention_shape(6, 1, 72, 16, DType::kI8),
                         .reqs = {{1, 700, 1}, {9, 700, 1}}};
  together.shape.head_dim_v = 56;
  together.shape.is_latent = true;
  ThreadPool pool(2);
  const auto backend = make_cpu_attention(pool);
  const AttentionResult all = run_attention(together, *backend);
  for (int head = 0; head < 6; ++head) {
    AttentionCase alone = together;
    alone.reqs = {{1, 700, 1}};
    alone.shape.num_heads = 1;
    alone.first_head = head;
    const std::vector<uint32_t> bits = rows_of(run_attention(alone, *backend).out, 0, 1, 56);
    EXPECT_EQ(bits, rows_of(all.out, head, 1, 56));
    EXPECT_EQ(bits, rows_of(all.out, 9 * 6 + head, 1, 56)) << "the last token of the chunk";
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuAttentionDeterminismTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                                           DType::kI8),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

}  // namespace
}  // namespace quire::testing
