// Sums of rows over GPUs that write to each other's memory.
#include "cuda/ops/peer_sums.h"

#include <barrier>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "cuda/base/graph.h"
#include "several_gpus.h"

namespace quire::testing {
namespace {

constexpr float kEps = 1e-5F;

TEST(BestLimits, EndBeforeTheFirstSizeThatIsSlower) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto expect = [](const std::vector<cuda::SumTimes>& times, size_t one, size_t two) {
    const cuda::SumLimits limits = cuda::best_limits(times);
    EXPECT_EQ(limits.one_step, one);
    EXPECT_EQ(limits.two_steps, two);
  };
  expect({}, 0, 0);
  expect({{8, 10, 4, kNone}, {16, 10, 9, 12}, {32, 10, 10, 11}, {64, 10, 5, 4}}, 16, 0);
  expect({{8, 10, 11, 9}, {16, 10, 12, 9}, {32, 10, 12, 11}}, 0, 16);
  expect({{8, 10, 4, kNone}, {16, 10, 6, 5}, {32, 10, 3, 4}, {64, 10, kNone, 9}}, 8, 64);
  expect({{8, 10, 10, kNone}, {16, 10, 4, 5}}, 0, 0);
}

using PeerSumsTest = SeveralGpusTest;

// A rank's rows, with the numbers that are rare: zeros of both signs, and the words that mark an
// empty inbox.
std::vector<float> rows_of(int rank, int64_t count, DType dtype, uint32_t seed) {
  std::vector<float> rows =
      rounded(random_floats(count, seed * 8 + static_cast<uint32_t>(rank)), dtype);
  uint32_t empty = 0x80808080U;
  float mark = 0;
  std::memcpy(&mark, &empty, sizeof(mark));
  if (dtype == DType::kF16) mark = f16_to_f32(0x8080);
  if (dtype == DType::kBF16) mark = bf16_to_f32(0x8080);
  for (size_t i = 0; i + 8 < rows.size(); i += 16) {
    for (size_t j = 0; j < 4; ++j) rows[i + j] = mark;
    rows[i + 4] = -0.0F;
    rows[i + 5] = 0.0F;
  }
  return rows;
}

struct Case {
  cuda::SumMethod method;
  DType dtype;
  int64_t num_rows;
  int64_t width;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << (c.method == cuda::SumMethod::kOneStep ? "one step, " : "two steps, ")
             << dtype_name(c.dtype) << " " << c.num_rows << " x " << c.width;
}

// Rows of few vectors, of more vectors than a thread block has threads, and of the largest size; in
// two steps also fewer rows than ranks, and more than thread blocks.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const auto vector = static_cast<int64_t>(16 / dtype_bytes(dtype));
    for (const int64_t num_vectors : {1, 33, 512, 1024, 2048}) {
      for (const int64_t num_rows : {1, 3, 64}) {
        all.push_back({cuda::SumMethod::kOneStep, dtype, num_rows, num_vectors * vector});
      }
      for (const int64_t num_rows : {1, 3, 127, 252, 387}) {
        if ((num_rows + 3) * num_vectors * 16 > int64_t{cuda::kMaxTwoStepBytes}) continue;
        all.push_back({cuda::SumMethod::kTwoSteps, dtype, num_rows, num_vectors * vector});
      }
    }
  }
  return all;
}

TEST_F(PeerSumsTest, SumsRowsOnEveryRankToTheSameBits) {
  uint32_t seed = 1;
  for (const Case& c : cases()) {
    SCOPED_TRACE(::testing::Message() << c);
    const int64_t count = c.num_rows * c.width;
    std::vector<float> expected(static_cast<size_t>(count));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = 0;
    std::vector<double> exact(expected.size());
    for (int rank = 0; rank < size(); ++rank) {
      const std::vector<float> rows = rows_of(rank, count, c.dtype, seed);
      for (size_t i = 0; i < rows.size(); ++i) exact[i] += double{rows[i]};
    }
    for (size_t i = 0; i < exact.size(); ++i) expected[i] = static_cast<float>(exact[i]);
    std::vector<std::vector<std::byte>> bits(devices_.size());
    on_every_rank([&](int rank, const Rank& at) {
      DeviceData x(*at.stream, {c.num_rows, c.width}, c.dtype, rows_of(rank, count, c.dtype, seed));
      cuda::run_sum_rows(at.context, at.inboxes, c.method, x.view());
      bits[static_cast<size_t>(rank)] = x.bytes();
    });
    expect_near_all(decode(bits[0], c.dtype), expected, tolerance(c.dtype), "sum");
    for (const auto& of_rank : bits) EXPECT_EQ(of_rank, bits[0]);
    ++seed;
  }
}

TEST_F(PeerSumsTest, AddsTheSumAndNorms) {
  uint32_t seed = 1000;
  for (const Case& c : cases()) {
    SCOPED_TRACE(::testing::Message() << c);
    const int64_t count = c.num_rows * c.width;
    const std::vector<float> residual = rounded(random_floats(count, seed + 7), c.dtype);
    const std::vector<float> weight = random_floats(c.width, seed + 8);
    std::vector<double> exact(residual.begin(), residual.end());
    for (int rank = 0; rank < size(); ++rank) {
      const std::vector<float> rows = rows_of(rank, count, c.dtype, seed);
      for (size_t i = 0; i < rows.size(); ++i) exact[i] += double{rows[i]};
    }
    std::vector<float> sum(exact.begin(), exact.end());
    std::vector<float> normed(sum.size());
    for (int64_t t = 0; t < c.num_rows; ++t) {
      double squares = 0;
      const auto at = [&](int64_t i) { return static_cast<size_t>(t * c.width + i); };
      for (int64_t i = 0; i < c.width; ++i) squares += exact[at(i)] * exact[at(i)];
      const double scale = 1 / std::sqrt(squares / static_cast<double>(c.width) + double{kEps});
      for (int64_t i = 0; i < c.width; ++i) {
        normed[at(i)] =
            static_cast<float>(exact[at(i)] * scale * double{weight[static_cast<size_t>(i)]});
      }
    }
    std::vector<std::vector<std::byte>> bits(devices_.size());
    on_every_rank([&](int rank, const Rank& at) {
      const Shape shape = {c.num_rows, c.width};
      DeviceData x(*at.stream, shape, c.dtype, residual);
      const DeviceData delta(*at.stream, shape, c.dtype, rows_of(rank, count, c.dtype, seed));
      const DeviceData scale(*at.stream, {c.width}, DType::kF32, weight);
      DeviceData out(*at.stream, shape, c.dtype);
      const ResidualNorm norm = {x.view(), delta.view(), scale.as<float>(), kEps, true};
      cuda::run_sum_rows_and_norm(at.context, at.inboxes, c.method, norm, out.view());
      bits[static_cast<size_t>(rank)] = out.bytes();
      if (rank == 0) expect_near_all(x.values(), sum, tolerance(c.dtype), "residual");
    });
    expect_near_all(decode(bits[0], c.dtype), normed, 2 * tolerance(c.dtype), "norm");
    for (const auto& of_rank : bits) EXPECT_EQ(of_rank, bits[0]);
    ++seed;
  }
}

// A norm over the queries, or keys, of all ranks, whose sums of squares are one row of whole
// vectors.
TEST_F(PeerSumsTest, NormsTheRowsOfAllRanks) {
  constexpr int64_t kQWidth = 256;  // of a rank
  constexpr int64_t kKWidth = 64;
  constexpr int64_t kWidth = kQWidth + 2 * kKWidth;
  for (const int64_t num_tokens : {1, 2, 33}) {
    const int64_t count = num_tokens * kWidth;
    std::vector<double> means(static_cast<size_t>(2 * num_tokens));
    for (int rank = 0; rank < size(); ++rank) {
      const std::vector<float> x = rows_of(rank, count, DType::kBF16, 77);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t column = i % kWidth;
        if (column >= kQWidth + kKWidth) continue;
        const bool is_key = column >= kQWidth;
        const double number = x[static_cast<size_t>(i)];
        means[static_cast<size_t>(i / kWidth * 2 + (is_key ? 1 : 0))] +=
            number * number / static_cast<double>(size() * (is_key ? kKWidth : kQWidth));
      }
    }
    std::barrier loaded(size());
    on_every_rank([&](int rank, const Rank& at) {
      const std::vector<float> x = rows_of(rank, count, DType::kBF16, 77);
      const std::vector<float> weight = random_floats(kQWidth, 5);
      DeviceData qkv(*at.stream, {num_tokens, kWidth}, DType::kBF16, x);
      const DeviceData weights(*at.stream, {kQWidth}, DType::kF32, weight);
      const int64_t num_sums = (2 * num_tokens + 3) / 4 * 4;
      DeviceData sums(*at.stream, {1, num_sums}, DType::kF32);
      const WideNorm norm = {.qkv = qkv.view(),
                             .q_width = kQWidth,
                             .k_width = kKWidth,
                             .q_norm = weights.as<float>(),
                             .k_norm = weights.as<float>(),
                             .eps = kEps,
                             .sums = {sums.view().data, DType::kF32, {num_tokens, 2}}};
      const auto run_sums = [&] {
        cuda::run_wide_norm(at.context, norm, cuda::WideNormPart::kSums, 1);
      };
      const auto run_scaling = [&] {
        cuda::run_wide_norm(at.context, norm, cuda::WideNormPart::kScaling, size());
      };
      // Loads the kernels, which could otherwise wait for a sum that waits for this rank.
      run_sums();
      run_scaling();
      loaded.arrive_and_wait();
      qkv.set(x);
      run_sums();
      cuda::run_sum_rows(at.context, at.inboxes, cuda::SumMethod::kOneStep, sums.view());
      run_scaling();
      std::vector<float> expected = x;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t column = i % kWidth;
        if (column >= kQWidth + kKWidth) continue;
        const bool is_key = column >= kQWidth;
        const double mean = means[static_cast<size_t>(i / kWidth * 2 + (is_key ? 1 : 0))];
        const float w = weight[static_cast<size_t>(is_key ? column - kQWidth : column)];
        float& number = expected[static_cast<size_t>(i)];
        number = static_cast<float>(double{number} * double{w} / std::sqrt(mean + double{kEps}));
      }
      expect_near_all(qkv.values(), expected, tolerance(DType::kBF16), "normed");
    });
  }
}

// Every call adds 1 on each rank, in integers that the type holds: a row that was read too early,
// or from an earlier call, changes the result. Sizes and methods alternate, ranks are delayed in
// turn, and half of the calls are a graph's.
TEST_F(PeerSumsTest, ManyCallsInGraphsAndOutside) {
  constexpr int kRounds = 300;
  struct Rows {
    cuda::SumMethod method;
    int64_t num_rows;
    int64_t width;
  };
  constexpr auto kOne = cuda::SumMethod::kOneStep;
  constexpr auto kTwo = cuda::SumMethod::kTwoSteps;
  // With one row in two steps, ranks that do not own it exchange nothing directly.
  constexpr Rows kRows[] = {{kOne, 1, 4096}, {kTwo, 200, 1024}, {kOne, 7, 64},
                            {kTwo, 3, 4096}, {kOne, 1, 1024},   {kTwo, 129, 64},
                            {kTwo, 1, 2048}, {kOne, 64, 8192},  {kTwo, 1, 64}};
  on_every_rank([&](int rank, const Rank& at) {
    std::vector<DeviceData> rows;
    std::vector<DeviceData> expected;
    std::vector<cuda::CudaGraph> graphs;
    for (const Rows& some : kRows) {
      rows.emplace_back(*at.stream, Shape{some.num_rows, some.width}, DType::kF32,
                        std::vector<float>(static_cast<size_t>(some.num_rows * some.width), 1.0F));
      graphs.push_back(cuda::CudaGraph::capture(*at.stream, [&]() -> Status {
                         cuda::run_sum_rows(at.context, at.inboxes, some.method,
                                            rows.back().view());
                         return {};
                       }).value());
    }
    for (int round = 0; round < kRounds; ++round) {
      const size_t which = static_cast<size_t>(round) % rows.size();
      // Lets another rank be the last one each time.
      if (round % size() == rank) std::this_thread::sleep_for(std::chrono::microseconds(50));
      // 1, N, then 1 again: the sum of N ranks' ones, set back by the test.
      rows[which].set(
          std::vector<float>(static_cast<size_t>(rows[which].view().shape.num_elements()),
                             static_cast<float>(round + 1)));
      for (int i = 0; i < 3; ++i) {
        if ((round + i) % 2 == 0) {
          graphs[which].launch(*at.stream);
        } else {
          cuda::run_sum_rows(at.context, at.inboxes, kRows[which].method, rows[which].view());
        }
      }
      const float sum = static_cast<float>(round + 1) * std::pow(static_cast<float>(size()), 3.0F);
      for (const float value : rows[which].values()) ASSERT_EQ(value, sum) << "round " << round;
    }
  });
}

TEST_F(PeerSumsTest, ComputesWholeVectorsUpToItsLimits) {
  const auto method = [&](int64_t rows, int64_t width) {
    return peers_->method(TensorView{nullptr, DType::kBF16, {rows, width}});
  };
  EXPECT_EQ(method(64, 16384), cuda::SumMethod::kOneStep);
  EXPECT_EQ(method(65, 64), cuda::SumMethod::kTwoSteps);
  EXPECT_EQ(method(256, 16384), cuda::SumMethod::kTwoSteps);
  EXPECT_EQ(method(257, 16384), cuda::SumMethod::kNccl);
  EXPECT_EQ(method(1, 16392), cuda::SumMethod::kNccl);
  EXPECT_EQ(method(1, 12), cuda::SumMethod::kNccl);
  EXPECT_EQ(method(0, 64), cuda::SumMethod::kNccl);
  peers_->set_limits({.one_step = 128, .two_steps = 1024});
  EXPECT_EQ(method(1, 64), cuda::SumMethod::kOneStep);
  EXPECT_EQ(method(2, 64), cuda::SumMethod::kTwoSteps);
  EXPECT_EQ(method(9, 64), cuda::SumMethod::kNccl);
}

// Kernels whose peers never come end after release().
TEST_F(PeerSumsTest, ReleaseEndsKernelsThatWait) {
  ASSERT_TRUE(cuda::use_device(0).ok());
  cuda::CudaStream& stream = *streams_[0];
  DeviceData x(stream, {2, 64}, DType::kF32, std::vector<float>(128, 1.0F));
  for (const cuda::SumMethod method : {cuda::SumMethod::kOneStep, cuda::SumMethod::kTwoSteps}) {
    cuda::run_sum_rows({.stream = &stream}, peers_->inboxes(0), method, x.view());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // longer than they would run
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
  peers_->release();
  EXPECT_EQ(stream.synchronize().message(), "");
}

}  // namespace
}  // namespace quire::testing
