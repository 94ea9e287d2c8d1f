// The buckets of step sizes, the set of graphs, and the graph that a step uses: needs no GPU.
#include "cuda/step/decode_graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "attn/fake_backend.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/step/draft_costs.h"
#include "support/value_of.h"

namespace quire::cuda {
namespace {

using quire::testing::PickyBackend;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr AttentionShape kShape = {.num_heads = 32, .num_kv_heads = 8, .head_dim = 128};
constexpr int kMaxNumSeqs = 64;
constexpr int kMaxModelLen = 16384;
constexpr std::array kQLens = {1, 5};

TEST(ContextBuckets, DoubleToTheLongest) {
  EXPECT_THAT(context_buckets(2), ElementsAre(2));
  EXPECT_THAT(context_buckets(256), ElementsAre(256));
  EXPECT_THAT(context_buckets(257), ElementsAre(256, 257));
  EXPECT_THAT(context_buckets(1100), ElementsAre(256, 512, 1024, 1100));
}

TEST(DecodeQLens, AreFewAndIncludeBothEnds) {
  EXPECT_THAT(decode_q_lens(0, true), ElementsAre(1));
  EXPECT_THAT(decode_q_lens(4, true), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(decode_q_lens(7, true), ElementsAre(1, 2, 3, 4, 6, 8));
  EXPECT_THAT(decode_q_lens(15, true), ElementsAre(1, 2, 3, 4, 6, 8, 12, 16));
  EXPECT_THAT(decode_q_lens(4, false), ElementsAre(5));
}

// Costs are measured for few of the graphs' sizes, but always for the smallest and the largest.
TEST(MeasuredBatchSizes, GrowByAThird) {
  EXPECT_THAT(measured_batch_sizes(graph_buckets(1)), ElementsAre(1));
  EXPECT_THAT(measured_batch_sizes(graph_buckets(20)), ElementsAre(1, 2, 4, 8, 16, 20));
  EXPECT_THAT(measured_batch_sizes(graph_buckets(256)),
              ElementsAre(1, 2, 4, 8, 16, 24, 32, 48, 64, 88, 120, 160, 216, 256));
}

class DecodeGraphsTest : public ::testing::Test {
 protected:
  DecodeGraphsTest() {
    for (const char* name : {"flashinfer", "xqa", "native"}) {
      backends_.add(std::make_unique<PickyBackend>(name, 64, Phase::kDecode));
    }
    backends_.add(std::make_unique<PickyBackend>("cudnn", 64, Phase::kPrefill));
  }

  // The table selects xqa for full lengths, native for many long requests, and flashinfer for many
  // requests of ragged lengths.
  AttentionSelector selector(std::string_view forced = "auto") const {
    const auto row = [](int num_reqs, int kv_len, bool ragged, std::string backend) {
      return TuningRow{tuning_point(kShape, Phase::kDecode, num_reqs, 1, kv_len, ragged),
                       std::move(backend), 1.0};
    };
    const std::vector<TuningRow> rows = {
        row(1, 1024, false, "xqa"),  row(64, 1024, false, "xqa"),
        row(1, 16384, false, "xqa"), row(64, 16384, false, "native"),
        row(1, 1024, true, "xqa"),   row(64, 1024, true, "flashinfer")};
    return testing::value_of(
        AttentionSelector::create(backends_, {kShape, kShape}, Device(), {.decode = forced},
                                  std::make_shared<TuningTable>(rows), kQLens));
  }
  DecodeGraphs graphs(std::string_view forced = "auto", int num_groups = 1,
                      const std::vector<int>& q_lens = {1}) const {
    const std::vector<AttentionSelector> selectors(static_cast<size_t>(num_groups),
                                                   selector(forced));
    return {selectors, kMaxNumSeqs, kMaxModelLen, q_lens};
  }
  PickyBackend& backend(size_t i) { return dynamic_cast<PickyBackend&>(*backends_.all()[i]); }

 private:
  BackendSet backends_;
};

std::string_view name(const DecodeGraph* graph) {
  return graph == nullptr ? "none" : graph->attention.at(0)->name();
}

TEST_F(DecodeGraphsTest, AStepTakesTheSmallestThatHoldsIt) {
  const DecodeGraphs graphs = this->graphs();
  const DecodeGraph* graph = graphs.find({3, 900, false});
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->batch.num_reqs, 4);
  EXPECT_EQ(graphs.find({4, 1024, false}), graph);
  EXPECT_EQ(graphs.find({5, 1024, false})->batch.num_reqs, 8);
  EXPECT_EQ(graphs.largest().batch.num_reqs, 64);
  EXPECT_EQ(graphs.find({65, 900, false}), nullptr);
  EXPECT_EQ(graphs.find({1, kMaxModelLen + 1, false}), nullptr);
}

TEST_F(DecodeGraphsTest, EveryKeyHasTheBackendOfItsBuckets) {
  const DecodeGraphs graphs = this->graphs();
  const AttentionSelector selector = this->selector();
  for (const DecodeKey& key : graph_keys(kMaxNumSeqs, kMaxModelLen, std::array{1})) {
    const DecodeGraph* graph = graphs.find(key);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(graph->batch.num_reqs, key.num_reqs);
    EXPECT_EQ(graph->attention.at(0), selector.decode(key));
  }
  EXPECT_EQ(name(graphs.find({64, 1000, false})), "xqa");
  EXPECT_EQ(name(graphs.find({64, 9000, false})), "native");
  EXPECT_EQ(name(graphs.find({64, 1000, true})), "flashinfer");
  EXPECT_EQ(name(graphs.find({1, 9000, true})), "xqa");
}

TEST_F(DecodeGraphsTest, KeysWithTheSameChoiceShareAGraph) {
  const DecodeGraphs graphs = this->graphs();
  EXPECT_EQ(graphs.find({1, 1000, true}), graphs.find({1, 1000, false}));
  EXPECT_NE(graphs.find({64, 1000, true}), graphs.find({64, 1000, false}));
  EXPECT_EQ(graphs.find({1, 9000, false}), graphs.find({1, 1000, false}));
  const size_t num_batch_sizes = graph_buckets(kMaxNumSeqs).size();
  EXPECT_GT(graphs.all().size(), num_batch_sizes);
  const DecodeGraphs forced = this->graphs("native");
  EXPECT_EQ(forced.all().size(), num_batch_sizes);
  for (const DecodeGraph& graph : forced.all()) EXPECT_EQ(name(&graph), "native");
}

TEST_F(DecodeGraphsTest, OneOfEachChoiceIsItsLargest) {
  const DecodeGraphs graphs = this->graphs();
  std::vector<std::string_view> names;
  for (const DecodeGraph* graph : graphs.one_of_each_choice()) {
    names.push_back(name(graph));
    for (const DecodeGraph& other : graphs.all()) {
      EXPECT_TRUE(other.attention != graph->attention ||
                  other.batch.num_reqs <= graph->batch.num_reqs);
    }
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("xqa", "native", "flashinfer"));
}

// If xqa supports only one query token, the table selects native for graphs of five.
TEST_F(DecodeGraphsTest, EachQueryLengthHasItsGraphs) {
  backend(1).max_q_len = 1;
  const DecodeGraphs graphs = this->graphs("auto", 1, {1, 5});
  for (const DecodeKey& key : graph_keys(kMaxNumSeqs, kMaxModelLen, kQLens)) {
    const DecodeGraph* graph = graphs.find(key);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(graph->batch.num_reqs, key.num_reqs);
    EXPECT_EQ(graph->batch.q_len, key.q_len);
  }
  const auto find = [&](int q_len) {
    return graphs.find({.num_reqs = 3, .max_kv_len = 900, .q_len = q_len});
  };
  EXPECT_EQ(name(find(1)), "xqa");
  EXPECT_EQ(name(find(5)), "native");
  EXPECT_EQ(find(3), nullptr) << "graphs have exactly one query length";
  EXPECT_THAT(graphs.q_lens(), ElementsAre(1, 5));
  EXPECT_EQ(graphs.batch_sizes().back(), kMaxNumSeqs);
  EXPECT_EQ(graphs.max_model_len(), kMaxModelLen);
  EXPECT_EQ(graphs.largest().batch.q_len, 5);
  EXPECT_EQ(graphs.largest().batch.num_reqs, 64);
  std::vector<std::pair<int, std::string_view>> choices;
  for (const DecodeGraph* graph : graphs.one_of_each_choice()) {
    choices.emplace_back(graph->batch.q_len, name(graph));
  }
  EXPECT_THAT(choices,
              ::testing::IsSupersetOf(
                  {std::pair<int, std::string_view>(1, "xqa"), {1, "native"}, {1, "flashinfer"}}));
}

TEST_F(DecodeGraphsTest, AGraphHasTheBackendOfEachKvGroup) {
  const DecodeGraphs graphs = this->graphs("auto", 2);
  EXPECT_THAT(graphs.largest().attention, SizeIs(2));
  EXPECT_EQ(graphs.all().size(), this->graphs().all().size());
}

// The row buckets that an engine measures at start include those of all its steps.
TEST(RowBuckets, AreAllThatAStepFallsInto) {
  for (const int max_rows : {1, 2, 3, 16, 17, 100, 256, 1000, 8192, 8200}) {
    const std::vector<int> buckets = row_buckets(max_rows);
    EXPECT_TRUE(std::ranges::is_sorted(buckets, std::ranges::less_equal()));
    EXPECT_EQ(buckets.back(), max_rows);
    for (int rows = 1; rows <= max_rows; ++rows) {
      const auto bucket = static_cast<int>(std::min<int64_t>(row_bucket(rows), max_rows));
      ASSERT_THAT(buckets, ::testing::Contains(bucket)) << rows;
    }
  }
  EXPECT_THAT(row_buckets(600), ElementsAre(1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 192, 256,
                                            320, 384, 448, 512, 600));
}

TEST(GraphBuckets, GrowInStepsAndEndWithTheMost) {
  EXPECT_THAT(graph_buckets(1), ElementsAre(1));
  EXPECT_THAT(graph_buckets(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(graph_buckets(20), ElementsAre(1, 2, 4, 8, 16, 20));
  const std::vector<int> large = graph_buckets(300);
  EXPECT_EQ(large.back(), 300);
  EXPECT_EQ(large[large.size() - 2], 288);
  EXPECT_EQ(graph_buckets(256).size(), 3U + 32U);
}

TEST(GraphBuckets, TheSmallestThatFitsServes) {
  const std::vector<int> buckets = graph_buckets(20);
  EXPECT_EQ(bucket_index(buckets, 1), 0);
  EXPECT_EQ(bucket_index(buckets, 5), 3);
  EXPECT_EQ(bucket_index(buckets, 20), 5);
  EXPECT_EQ(bucket_index(buckets, 21), -1);
}

}  // namespace
}  // namespace quire::cuda
