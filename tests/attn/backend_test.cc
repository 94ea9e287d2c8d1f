#include "attn/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/attention_cases.h"
#include "support/validate_batch.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ShapeFaults, NamesEachContradiction) {
  EXPECT_THAT(shape_faults(testing::make_attention_shape(8, 2, 64, 32, DType::kF16)), IsEmpty());
  const AttentionShape shape{
      .num_heads = 0, .num_kv_heads = -1, .scale = NAN, .window = 3, .causal = false};
  EXPECT_THAT(shape_faults(shape),
              ElementsAre(HasSubstr("num_heads is 0 and num_kv_heads is -1"),
                          HasSubstr("scale is nan"), HasSubstr("window is 3 and causal is false")));
}

// A valid batch, which each test damages in one place.
class ValidateBatchTest : public ::testing::Test {
 protected:
  testing::AttentionProblem problem_{
      {.name = "good",
       .shape = testing::make_attention_shape(2, 1, 16, 16, DType::kF32),
       .reqs = {{1, 40, 1}, {1, 0, 2}, {5, 20, 3}}}};
  AttentionBatch batch_ = problem_.batch();

  std::string fault() const {
    return testing::validate_batch(problem_.shape(), batch_, problem_.num_pages()).message();
  }
};

TEST_F(ValidateBatchTest, AcceptsAConsistentBatch) {
  EXPECT_EQ(fault(), "");
}

TEST_F(ValidateBatchTest, FindsRangesThatDoNotTile) {
  batch_.prefill.first_req = 1;
  EXPECT_THAT(fault(), HasSubstr("range prefill does not tile the batch"));
}

TEST_F(ValidateBatchTest, FindsWrongTokens) {
  batch_.decode.num_tokens = 3;
  EXPECT_THAT(fault(), HasSubstr("range decode names the wrong tokens"));
}

TEST_F(ValidateBatchTest, FindsDecodeOfSeveralQueryLengths) {
  batch_.decode.max_q_len = 2;
  EXPECT_THAT(fault(), HasSubstr("request 0 does not fit range decode; got q_len 1, kv_len 40, "
                                 "expected exactly 2"));
}

TEST_F(ValidateBatchTest, FindsLengthsAboveTheirBound) {
  const std::vector<int32_t> bounds = {39, 0, 20};
  batch_.kv_len_bound = bounds;
  EXPECT_THAT(fault(), HasSubstr("request 0 has seq_len 40, expected 0 to 39"));
}

TEST_F(ValidateBatchTest, FindsSequencesShorterThanTheirQueries) {
  const std::vector<int32_t> seq_lens = {40, 0, 4};
  batch_.seq_lens = seq_lens.data();
  EXPECT_THAT(fault(), HasSubstr("request 2 has seq_len 4"));
}

TEST_F(ValidateBatchTest, FindsPagesOutsideThePool) {
  EXPECT_THAT(testing::validate_batch(problem_.shape(), batch_, 1).message(),
              HasSubstr("request 0 page 0"));
}

TEST_F(ValidateBatchTest, FindsSlotsOutsideThePool) {
  std::vector<int64_t> kv_slots(7, -1);
  kv_slots[6] = problem_.num_pages() * 16;
  batch_.kv_slots = kv_slots.data();
  EXPECT_THAT(fault(), HasSubstr("token 6 is written to KV slot"));
}

}  // namespace
}  // namespace quire
