// Compares greedy ids of two trained models, starting from the beginning-of-sequence token.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/cpu_ops.h"
#include "model/model_loader.h"
#include "parity/golden_models.h"
#include "support/model_harness.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

std::vector<int32_t> read_golden_ids(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::load(path).value();
  std::vector<int32_t> ids;
  for (const simdjson::dom::element id : document.root()["bos_only_greedy_ids"].get_array()) {
    ids.push_back(static_cast<int32_t>(id.get_int64().value()));
  }
  return ids;
}

class Stories : public ::testing::TestWithParam<const char*> {
 protected:
  void check(AttentionBackend& attention, ThreadPool& pool) {
    const std::filesystem::path directory = shared_data_path("models") / GetParam();
    QUIRE_REQUIRE_SHARED(directory);
    const auto ops = make_cpu_ops(pool);
    ModelLimits limits;
    limits.max_num_tokens = limits.max_num_logit_rows = 64;
    limits.max_model_len = 256;
    limits.kv_dtype = DType::kF32;
    auto checkpoint = Checkpoint::open(directory).value();
    const ModelConfig config = read_config(directory / "config.json");
    const auto model = load_model(config, *checkpoint, *ops, limits).value();
    const std::vector<int32_t> expected = read_golden_ids(directory / "golden_greedy_ids.json");
    ASSERT_GT(expected.size(), 30U);

    ModelHarness harness(*model, attention, limits);
    const auto ids =
        value_of(greedy(harness, 0, expected.front(), static_cast<int>(expected.size())));
    EXPECT_EQ(ids, expected);

    // When the same text is one prompt, the logits of each token predict the next.
    const auto logits = value_of(harness.step({{1, expected}}));
    for (size_t i = 0; i + 1 < expected.size(); ++i) {
      const float* row = logits.front().data() + static_cast<int64_t>(i) * config.vocab_size;
      EXPECT_EQ(std::max_element(row, row + config.vocab_size) - row, expected[i + 1]) << i;
    }
  }
};

TEST_P(Stories, GreedyIdsThroughReferenceAttention) {
  ThreadPool pool(1);
  check(*make_reference_attention(), pool);
}

TEST_P(Stories, GreedyIdsThroughCpuAttention) {
  ThreadPool pool(2);
  check(*make_cpu_attention(pool), pool);
}

INSTANTIATE_TEST_SUITE_P(Trained, Stories, ::testing::Values("stories260K", "stories15M"));

}  // namespace
}  // namespace quire::testing
