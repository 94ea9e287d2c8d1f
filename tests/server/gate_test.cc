#include "server/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace quire::server {
namespace {

StatusCode code_of(const Result<Ticket>& ticket) {
  return ticket.status().code();
}

TEST(Gate, LetsInWhatRunsAndWhatMayWait) {
  Gate gate({.max_num_seqs = 2, .max_num_queued_reqs = 1}, 0);
  Result<Ticket> a = gate.enter(-1, 2, 10);
  Result<Ticket> b = gate.enter(-1, 1, 10);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(code_of(gate.enter(-1, 1, 1)), StatusCode::kResourceExhausted);
  EXPECT_FALSE(gate.check_room(-1).ok());
  b = Status(StatusCode::kCancelled, "gone");  // gives its seat back
  EXPECT_TRUE(gate.check_room(-1).ok());
  EXPECT_EQ(gate.num_inside(), 2);
}

TEST(Gate, RefusesForGoodWhatCanNeverFit) {
  Gate gate({.max_num_seqs = 2, .max_num_queued_reqs = 1}, 0);
  EXPECT_EQ(code_of(gate.enter(-1, 4, 1)), StatusCode::kInvalidArgument);
}

TEST(Gate, BoundsThePromptsThatWaitButNeverOneAlone) {
  Gate gate({.max_num_queued_tokens = 100}, 0);
  Result<Ticket> big = gate.enter(-1, 1, 5000);
  ASSERT_TRUE(big.ok());
  EXPECT_EQ(code_of(gate.enter(-1, 1, 1)), StatusCode::kResourceExhausted);
  big->begun(4000);
  EXPECT_EQ(code_of(gate.enter(-1, 1, 1)), StatusCode::kResourceExhausted) << "1000 still wait";
  big->begun(1000);
  EXPECT_TRUE(gate.enter(-1, 1, 60).ok());
  const Result<Ticket> waiting = gate.enter(-1, 1, 60);
  EXPECT_EQ(code_of(gate.enter(-1, 1, 60)), StatusCode::kResourceExhausted);
}

TEST(Gate, BoundsEachKeyByItself) {
  Gate gate({.max_concurrency_per_key = 2}, 2);
  const Result<Ticket> first = gate.enter(0, 2, 1);
  EXPECT_EQ(code_of(gate.enter(0, 1, 1)), StatusCode::kResourceExhausted);
  EXPECT_EQ(code_of(gate.enter(0, 3, 1)), StatusCode::kInvalidArgument);
  EXPECT_TRUE(gate.enter(1, 2, 1).ok());
}

TEST(Gate, LetsNobodyInOnceClosed) {
  Gate gate({}, 0);
  gate.close();
  EXPECT_EQ(code_of(gate.enter(-1, 1, 1)), StatusCode::kUnavailable);
}

TEST(Gate, AMovedTicketGivesBackOneSeat) {
  Gate gate({}, 0);
  {
    Result<Ticket> ticket = gate.enter(-1, 3, 7);
    Ticket moved = std::move(*ticket);
    Ticket again;
    again = std::move(moved);
    EXPECT_EQ(gate.num_inside(), 3);
  }
  EXPECT_EQ(gate.num_inside(), 0);
}

}  // namespace
}  // namespace quire::server
