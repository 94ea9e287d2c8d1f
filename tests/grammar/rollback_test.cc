// A constraint that has rolled tokens back equals one that never accepted them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "grammar/apples.h"
#include "grammar/grammar_compiler.h"
#include "grammar/walk.h"

namespace quire::testing {
namespace {

using Kind = GrammarSpec::Kind;

const GrammarSpec kSpecs[] = {
    {.kind = Kind::kJsonSchema, .text = std::string(kApplesSchema)},
    {.kind = Kind::kJsonObject},
    {.kind = Kind::kChoice, .choices = {"few", "fewer", "many apples"}},
    {.kind = Kind::kRegex, .text = "\\d{2} apples( and \\d+)?\\."},
    {.kind = Kind::kGrammar, .text = "root ::= \"(\" root \")\" | [a-c]+"},
};

class GrammarRollback : public ::testing::TestWithParam<GrammarSpec> {
 protected:
  GrammarRollback()
      : compiler_(*embedded_tokenizer(), std::array{kEmbeddedEosId}, ample_time()),
        factory_(compiler_.compile(GetParam()).value()) {}

  // Accepts up to `count` random allowed tokens, and adds them to `ids`. Before each one it may try
  // one that is forbidden.
  void walk(TokenConstraint& constraint, size_t count, std::vector<int32_t>& ids,
            bool tries_forbidden = true) {
    const int vocab_size = embedded_tokenizer()->vocab_size();
    for (size_t i = 0; i < count; ++i) {
      const std::vector<int32_t> allowed = allowed_ids(constraint.allowed_tokens(), vocab_size);
      if (allowed.empty()) return;
      const auto other = static_cast<int32_t>(random_() % static_cast<uint64_t>(vocab_size));
      if (tries_forbidden && !std::ranges::binary_search(allowed, other)) {
        EXPECT_FALSE(constraint.accept(other));
      }
      ids.push_back(allowed[random_() % allowed.size()]);
      ASSERT_TRUE(constraint.accept(ids.back()));
    }
  }

  std::mt19937_64 random_{7};
  GrammarCompiler compiler_;
  ConstraintFactory factory_;
};

TEST_P(GrammarRollback, LeavesTheConstraintAsItWas) {
  int num_ends = 0;
  for (int round = 0; round < 30; ++round) {
    const auto constraint = factory_();
    std::vector<int32_t> ids;
    for (int trial = 0; trial < 12; ++trial) {
      std::vector<int32_t> drafts;
      walk(*constraint, random_() % 9, drafts);
      num_ends += std::ranges::count(drafts, kEmbeddedEosId) > 0 ? 1 : 0;
      ASSERT_TRUE(constraint->can_roll_back());
      ASSERT_TRUE(constraint->rollback(static_cast<int>(drafts.size())));
      const auto fresh = factory_();
      for (const int32_t id : ids) ASSERT_TRUE(fresh->accept(id));
      ASSERT_EQ(constraint->allowed_tokens(), fresh->allowed_tokens());
      // Goes on by a part of the drafts, as if they had been verified, and another token.
      const size_t num_kept = drafts.empty() ? 0 : random_() % drafts.size();
      for (size_t i = 0; i < num_kept; ++i) {
        ids.push_back(drafts[i]);
        ASSERT_TRUE(constraint->accept(drafts[i]));
      }
      walk(*constraint, 1, ids);
    }
  }
  EXPECT_GT(num_ends, 0) << "no end was taken back";
}

TEST_P(GrammarRollback, FreesTheMemoryOfTheParse) {
  const auto constraint = factory_();
  const size_t before = compiler_.stats().held_bytes;
  std::vector<int32_t> ids;
  walk(*constraint, 8, ids, false);
  EXPECT_GT(compiler_.stats().held_bytes, before);
  ASSERT_TRUE(constraint->rollback(static_cast<int>(ids.size())));
  EXPECT_EQ(compiler_.stats().held_bytes, before);
}

TEST_P(GrammarRollback, RefusesMoreThanItHas) {
  const auto constraint = factory_();
  EXPECT_TRUE(constraint->rollback(0));
  EXPECT_FALSE(constraint->rollback(1));
  std::vector<int32_t> ids;
  walk(*constraint, 2, ids);
  EXPECT_FALSE(constraint->rollback(static_cast<int>(ids.size()) + 1));
  EXPECT_TRUE(constraint->rollback(static_cast<int>(ids.size())));
}

INSTANTIATE_TEST_SUITE_P(Kinds, GrammarRollback, ::testing::ValuesIn(kSpecs),
                         [](const auto& param) { return "spec_" + std::to_string(param.index); });

// Drafts end before they use up the allowance of the sequence itself.
TEST(GrammarRollbackBudget, StopsDraftsAtHalfOfTheAllowance) {
  GrammarLimits limits = ample_time();
  limits.sequence_bytes = 4000;
  GrammarCompiler compiler(*embedded_tokenizer(), std::array{kEmbeddedEosId}, limits);
  const ConstraintFactory factory =
      compiler.compile({.kind = Kind::kRegex, .text = "[a-z]{300}"}).value();
  const auto constraint = factory();
  const int32_t a = *embedded_tokenizer()->token_to_id("a");
  EXPECT_TRUE(constraint->can_roll_back());
  int num_accepted = 0;
  while (constraint->can_roll_back()) {
    ASSERT_TRUE(constraint->accept(a)) << constraint->status().message();
    ++num_accepted;
  }
  EXPECT_GT(num_accepted, 1);
  EXPECT_TRUE(constraint->status().ok());
  EXPECT_TRUE(constraint->accept(a)) << "the sequence goes on without drafts";
  EXPECT_TRUE(constraint->rollback(2));
  EXPECT_TRUE(constraint->can_roll_back());
}

}  // namespace
}  // namespace quire::testing
