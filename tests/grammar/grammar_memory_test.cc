// Fails each allocation of a constraint in turn.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "grammar/grammar_compiler.h"
#include "grammar/walk.h"
#include "support/scarce_memory.h"

namespace quire::testing {
namespace {

// Returns nullopt if it throws.
std::optional<bool> accept(TokenConstraint& constraint, int32_t token_id, int num_left) {
  const ScarceMemory scarce(num_left);
  try {
    return constraint.accept(token_id);
  } catch (...) {
    return std::nullopt;
  }
}

TEST(GrammarOutOfMemory, EndsItsSequenceWithAStatus) {
  constexpr std::array kEos = {kEmbeddedEosId};
  GrammarCompiler compiler(*embedded_tokenizer(), kEos);
  const auto factory = compiler.compile({.kind = GrammarSpec::Kind::kJsonObject});
  ASSERT_TRUE(factory.ok());
  const int32_t brace = *embedded_tokenizer()->token_to_id("{");
  bool is_accepted = false;
  for (int num_left = 0; !is_accepted; ++num_left) {
    ASSERT_LT(num_left, 10'000);
    const auto constraint = (*factory)();
    const std::optional<bool> result = accept(*constraint, brace, num_left);
    ASSERT_TRUE(result) << num_left;
    is_accepted = *result;
    EXPECT_EQ(constraint->status().ok(), is_accepted) << num_left;
    if (is_accepted) break;
    EXPECT_FALSE(constraint->accept(brace)) << num_left;
  }
}

}  // namespace
}  // namespace quire::testing
