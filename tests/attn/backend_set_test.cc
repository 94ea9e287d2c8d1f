#include "attn/backend_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attn/fake_backend.h"

namespace quire {
namespace {

using quire::testing::PickyBackend;
using ::testing::ElementsAre;
using ::testing::StartsWith;

class BackendSetTest : public ::testing::Test {
 protected:
  BackendSetTest() {
    set_.add(std::make_unique<PickyBackend>("small", 4, Phase::kDecode));
    set_.add(std::make_unique<PickyBackend>("large", 64, Phase::kDecode));
  }
  std::string choose(int num_heads, Phase phase, std::string_view name,
                     std::string_view flag = "--attention-backend") {
    const auto chosen = set_.select({.num_heads = num_heads}, {.phase = phase}, Device(),
                                    {.name = name, .flag = flag});
    if (chosen.ok()) return std::string(chosen.value()[0]->name());
    EXPECT_EQ(chosen.status().code(), StatusCode::kInvalidArgument);
    return chosen.status().message();
  }

  BackendSet set_;
};

TEST_F(BackendSetTest, AutoTakesTheFirstThatServes) {
  EXPECT_THAT(set_.names(), ElementsAre("small", "large"));
  EXPECT_EQ(choose(4, Phase::kDecode, "auto"), "small");
  EXPECT_EQ(choose(8, Phase::kDecode, ""), "large");
  EXPECT_EQ(choose(8, Phase::kPrefill, "auto"),
            "[attention] no backend can serve prefill: small: a) too many heads. b) wrong phase. | "
            "large: a) wrong phase.");
}

TEST_F(BackendSetTest, AForcedBackendIsTakenOrRefusedNeverReplaced) {
  EXPECT_EQ(choose(4, Phase::kDecode, "large"), "large");
  EXPECT_EQ(choose(8, Phase::kPrefill, "small"),
            "[attention] --attention-backend small cannot serve prefill: a) too many heads. b) "
            "wrong phase.");
  EXPECT_EQ(choose(4, Phase::kDecode, "xqa"),
            "[attention] --attention-backend names no backend of this build; got xqa, expected "
            "auto, small, large");
}

TEST_F(BackendSetTest, ARefusalNamesTheFlagThatForced) {
  EXPECT_EQ(
      choose(8, Phase::kPrefill, "small", "--prefill-attention-backend"),
      "[attention] --prefill-attention-backend small cannot serve prefill: a) too many heads. "
      "b) wrong phase.");
  EXPECT_THAT(choose(4, Phase::kDecode, "xqa", "--decode-attention-backend"),
              StartsWith("[attention] --decode-attention-backend names no backend"));
}

TEST_F(BackendSetTest, ABackendWithReservationsServesWhereNoOtherDoes) {
  auto& small = dynamic_cast<PickyBackend&>(*set_.all()[0]);
  auto& large = dynamic_cast<PickyBackend&>(*set_.all()[1]);
  const AttentionShape shape = {.num_heads = 4};
  small.is_for_graphs = true;
  EXPECT_THAT(set_.supporting(shape, {.in_graph = true}, Device()), ElementsAre(&small, &large));
  EXPECT_THAT(set_.supporting(shape, {}, Device()), ElementsAre(&large));
  EXPECT_EQ(choose(4, Phase::kDecode, "small"), "small");
  large.max_q_len = 1;
  EXPECT_THAT(set_.supporting(shape, {.q_len = 2}, Device()), ElementsAre(&small));
  small.max_q_len = 1;
  EXPECT_THAT(set_.select(shape, {.q_len = 2}, Device(), {}).status().message(),
              StartsWith("[attention] no backend can serve decode of 2 query tokens: small: a) too "
                         "many query tokens."));
}

TEST(EmptyBackendSet, SaysSo) {
  const auto chosen = BackendSet().select({}, AttentionUse(), Device(), {});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.status().message(), "[attention] no backend can serve decode: none is built in");
}

}  // namespace
}  // namespace quire
