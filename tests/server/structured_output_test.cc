#include "server/structured_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "server/fake_engine.h"

namespace quire::server {

namespace {

// Allows only token 5, and records the accepted tokens.
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
  const testing::FakeEngine engine;  // one token per byte
  std::vector<int32_t> accepted;
  const ConstraintFactory factory =
      after_marker([&] { return std::make_unique<Five>(accepted); }, engine);
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

TEST(AfterReasoning, EndsOnlyAtTheTokenThatTheMarkerIs) {
  const testing::FakeEngine engine;
  std::vector<int32_t> accepted;
  const auto constraint =
      after_marker([&] { return std::make_unique<Five>(accepted); }, engine, "</think>", 1)();
  for (const char c : std::string("a</think>")) EXPECT_TRUE(constraint->accept(c));
  EXPECT_EQ(constraint->allowed_tokens(), std::vector<uint32_t>(256 / 32, ~0U));
  EXPECT_TRUE(constraint->accept(1));
  EXPECT_EQ(constraint->allowed_tokens(), std::vector<uint32_t>{1U << 5});
}

// Allows one token, the number of accepted ones.
class Counts final : public TokenConstraint {
 public:
  std::vector<uint32_t> allowed_tokens() override { return {1U << num_accepted_}; }
  bool accept(int32_t token_id) override {
    if (token_id != num_accepted_) return false;
    ++num_accepted_;
    return true;
  }
  bool can_roll_back() const override { return true; }
  bool rollback(int num_tokens) override {
    num_accepted_ -= num_tokens;
    return num_accepted_ >= 0;
  }

 private:
  int num_accepted_ = 0;
};

// Rolls every number of tokens back after every number of tokens, and goes on differently.
TEST(AfterReasoning, RollsBackAcrossTheEndOfTheBlock) {
  const testing::FakeEngine engine;
  const ConstraintFactory factory = after_marker([] { return std::make_unique<Counts>(); }, engine);
  std::vector<int32_t> ids;
  for (const char c : std::string("a </th</</think></think>")) ids.push_back(c);
  const size_t end = std::string_view("a </th</</think>").size();
  ids.resize(end);
  for (int32_t id = 0; id < 5; ++id) ids.push_back(id);
  for (size_t size = 0; size <= ids.size(); ++size) {
    for (size_t count = 0; count <= size; ++count) {
      const auto constraint = factory();
      for (const int32_t id : std::span(ids).first(size)) ASSERT_TRUE(constraint->accept(id));
      ASSERT_TRUE(constraint->can_roll_back());
      ASSERT_TRUE(constraint->rollback(static_cast<int>(count)));
      const auto fresh = factory();
      for (const int32_t id : std::span(ids).first(size - count)) ASSERT_TRUE(fresh->accept(id));
      for (const int32_t id : std::span(ids).subspan(size - count)) {
        EXPECT_EQ(constraint->allowed_tokens(), fresh->allowed_tokens());
        EXPECT_TRUE(constraint->accept(id) && fresh->accept(id)) << size << " - " << count;
      }
    }
  }
  EXPECT_FALSE(factory()->rollback(1));
}

}  // namespace

namespace {

using ::testing::HasSubstr;

class GrammarQueueTest : public ::testing::Test {
 protected:
  // Occupies the only worker until release().
  GrammarQueueTest() {
    workers_.post([this] { may_go_.get_future().wait(); });
  }
  ~GrammarQueueTest() override { release(); }
  void release() {
    if (!std::exchange(is_released_, true)) may_go_.set_value();
    std::promise<void> done;
    workers_.post([&] { done.set_value(); });
    done.get_future().wait();
  }
  Status push(int key_idx, const char* id, int num_sequences = 1) {
    return queue_.push(key_idx, id, num_sequences, [this, id] { ran_ += id; });
  }

  std::promise<void> may_go_;
  bool is_released_ = false;
  std::string ran_;
  WorkerPool workers_{1};
  GrammarQueue queue_{workers_, {.max_requests = 5, .max_sequences = 8}};
};

TEST_F(GrammarQueueTest, KeysTakeTurns) {
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(push(0, id).ok());
  EXPECT_TRUE(push(1, "x").ok());
  EXPECT_TRUE(push(2, "y").ok());
  EXPECT_EQ(queue_.num_waiting(), 5);
  release();
  EXPECT_EQ(ran_, "axybc");
  EXPECT_EQ(queue_.num_waiting(), 0);
}

TEST_F(GrammarQueueTest, BoundsRequestsAndTheirSequences) {
  EXPECT_TRUE(push(0, "a", 100).ok());  // a single request has no bound
  const Status full = push(1, "b");
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("1 requests wait"));
  EXPECT_TRUE(queue_.remove("a"));
  for (const char* id : {"c", "d", "e", "f", "g"}) EXPECT_TRUE(push(0, id).ok());
  EXPECT_FALSE(push(0, "h").ok());
  release();
  EXPECT_EQ(ran_, "cdefg");
  EXPECT_TRUE(push(0, "h").ok());
}

TEST_F(GrammarQueueTest, RemovedTasksDoNotRun) {
  EXPECT_TRUE(push(0, "a").ok());
  EXPECT_TRUE(push(0, "b").ok());
  EXPECT_TRUE(queue_.remove("a"));
  EXPECT_FALSE(queue_.remove("a"));
  EXPECT_EQ(queue_.num_waiting(), 1);
  release();
  EXPECT_EQ(ran_, "b");
  EXPECT_FALSE(queue_.remove("b"));
}

TEST_F(GrammarQueueTest, RunsAllThatWaitsWhileTheWorkersAreBusy) {
  for (const char* id : {"a", "b"}) EXPECT_TRUE(push(0, id).ok());
  EXPECT_TRUE(push(1, "x").ok());
  EXPECT_TRUE(queue_.push(2, "bad", 1, [] { throw std::bad_alloc(); }).ok());
  EXPECT_TRUE(push(3, "y").ok());
  queue_.run_all();
  EXPECT_EQ(ran_, "axyb");
  EXPECT_EQ(queue_.num_waiting(), 0);
  release();
  EXPECT_EQ(ran_, "axyb") << "once each";
}

}  // namespace

}  // namespace quire::server
