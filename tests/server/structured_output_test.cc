// Tests how a call's requested form becomes a constraint.
#include "server/structured_output.h"

#include <gtest/gtest.h>

#include "server/fake_engine.h"

namespace quire::server {
namespace {

// Allows token 5 alone and knows what it was told.
class Five final : public TokenConstraint {
 public:
  explicit Five(std::vector<int32_t>& accepted) : accepted_(accepted) {}
  std::vector<uint32_t> allowed_tokens() override { return {1U << 5}; }
  bool accept(int32_t token_id) override {
    accepted_.push_back(token_id);
    return token_id == 5;
  }
  Status status() const override { return invalid_argument("five"); }

 private:
  std::vector<int32_t>& accepted_;
};

TEST(AfterReasoning, IsFreeUntilTheBlockEnds) {
  const testing::FakeEngine engine;  // a token is a byte
  std::vector<int32_t> accepted;
  const ConstraintFactory factory =
      after_reasoning([&] { return std::make_unique<Five>(accepted); }, engine);
  const auto constraint = factory();
  for (const char c : std::string("if </think or <</think>")) {
    EXPECT_EQ(constraint->allowed_tokens(), std::vector<uint32_t>(256 / 32, ~0U)) << c;
    EXPECT_TRUE(constraint->accept(c));
  }
  EXPECT_EQ(constraint->allowed_tokens(), std::vector<uint32_t>{1U << 5});
  EXPECT_TRUE(accepted.empty());
  EXPECT_TRUE(constraint->accept(5));
  EXPECT_FALSE(constraint->accept(6));
  EXPECT_EQ(accepted, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(constraint->status().message(), "five");
}

}  // namespace
}  // namespace quire::server
