// A runner without a model, which injects faults.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <new>
#include <string>

#include "platform/runner.h"

namespace quire::testing {

// Samples token 7 for every sequence, except for the requested faults.
class FakeRunner final : public Runner {
 public:
  struct Faults {
    SeqId seq_fault = 0;        // this sequence's logits are NaN
    int step_fault_after = -1;  // the device fails in this step and in all later ones
    int no_memory_in = -1;      // enqueueing this step throws std::bad_alloc
    const char* step_error = "[device] launch failed in step ";  // before the step's number
  };

  explicit FakeRunner(Faults faults) : faults_(faults) {}

  void enqueue(std::shared_ptr<const BatchPlan> plan) override {
    if (num_enqueued_++ == faults_.no_memory_in) throw std::bad_alloc();
    EXPECT_EQ(plan->decode_q_len, 1 + num_drafts_);
    plans_.push_back(plan);
  }

  // Another number for each step.
  int drafts_worth(int /*num_decoding*/, int max_drafts) const override {
    num_drafts_ = std::min(max_drafts, num_enqueued_ % 3);
    return num_drafts_;
  }

  StepResult wait() override {
    const std::shared_ptr<const BatchPlan> plan = plans_.front();
    plans_.pop_front();
    StepResult result;
    const int step = num_steps_++;
    if (faults_.step_fault_after >= 0 && step >= faults_.step_fault_after) {
      result.error = internal_error(faults_.step_error + std::to_string(step));
      return result;
    }
    for (const SeqSpan& span : plan->spans) {
      if (!span.samples) continue;
      SpanResult sampled;
      sampled.seq_id = span.seq_id;
      sampled.tokens.push_back({.token_id = 7, .logprobs = {}});
      if (span.seq_id == faults_.seq_fault) sampled.error = internal_error("[sample] NaN logits");
      result.spans.push_back(std::move(sampled));
    }
    return result;
  }

 private:
  Faults faults_;
  std::deque<std::shared_ptr<const BatchPlan>> plans_;
  int num_steps_ = 0;
  int num_enqueued_ = 0;
  mutable int num_drafts_ = 0;  // of the step that is planned
};

}  // namespace quire::testing
