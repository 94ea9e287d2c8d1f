#include "server/admission_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace quire::server {
namespace {

StatusCode code_of(const Result<AdmissionTicket>& ticket) {
  return ticket.status().code();
}

TEST(AdmissionControl, AdmitsUpToTheSlotsAndTheQueue) {
  AdmissionControl admission({.max_num_seqs = 2, .max_num_queued_reqs = 1}, 0);
  Result<AdmissionTicket> a = admission.admit(-1, 2, 10);
  Result<AdmissionTicket> b = admission.admit(-1, 1, 10);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(code_of(admission.admit(-1, 1, 1)), StatusCode::kResourceExhausted);
  EXPECT_FALSE(admission.check_capacity(-1).ok());
  b = Status(StatusCode::kCancelled, "gone");  // releases its capacity
  EXPECT_TRUE(admission.check_capacity(-1).ok());
  EXPECT_EQ(admission.num_admitted(), 2);
}

TEST(AdmissionControl, RefusesRequestsThatCanNeverFit) {
  AdmissionControl admission({.max_num_seqs = 2, .max_num_queued_reqs = 1}, 0);
  EXPECT_EQ(code_of(admission.admit(-1, 4, 1)), StatusCode::kInvalidArgument);
}

TEST(AdmissionControl, BoundsThePromptsThatWaitButNeverOneAlone) {
  AdmissionControl admission({.max_num_queued_tokens = 100}, 0);
  Result<AdmissionTicket> big = admission.admit(-1, 1, 5000);
  ASSERT_TRUE(big.ok());
  EXPECT_EQ(code_of(admission.admit(-1, 1, 1)), StatusCode::kResourceExhausted);
  big->start_prompt(4000);
  EXPECT_EQ(code_of(admission.admit(-1, 1, 1)), StatusCode::kResourceExhausted)
      << "1000 sequences still wait";
  big->start_prompt(1000);
  EXPECT_TRUE(admission.admit(-1, 1, 60).ok());
  const Result<AdmissionTicket> waiting = admission.admit(-1, 1, 60);
  EXPECT_EQ(code_of(admission.admit(-1, 1, 60)), StatusCode::kResourceExhausted);
}

TEST(AdmissionControl, BoundsEachKeyByItself) {
  AdmissionControl admission({.max_concurrency_per_key = 2}, 2);
  const Result<AdmissionTicket> first = admission.admit(0, 2, 1);
  EXPECT_EQ(code_of(admission.admit(0, 1, 1)), StatusCode::kResourceExhausted);
  EXPECT_EQ(code_of(admission.admit(0, 3, 1)), StatusCode::kInvalidArgument);
  EXPECT_TRUE(admission.admit(1, 2, 1).ok());
}

TEST(AdmissionControl, AdmitsNoRequestOnceClosed) {
  AdmissionControl admission({}, 0);
  admission.close();
  EXPECT_EQ(code_of(admission.admit(-1, 1, 1)), StatusCode::kUnavailable);
}

TEST(AdmissionControl, AMovedTicketReleasesItsCapacityOnce) {
  AdmissionControl admission({}, 0);
  {
    Result<AdmissionTicket> ticket = admission.admit(-1, 3, 7);
    AdmissionTicket moved = std::move(*ticket);
    AdmissionTicket again;
    again = std::move(moved);
    EXPECT_EQ(admission.num_admitted(), 3);
  }
  EXPECT_EQ(admission.num_admitted(), 0);
}

}  // namespace
}  // namespace quire::server
