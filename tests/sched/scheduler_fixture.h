// The fixture of the scheduler's tests. Sequences get ids in order of arrival, and each step
// returns a new token for every span that samples.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sched/scheduler.h"

namespace quire {

struct Options {
  int priority = 0;
  std::string salt = {};
  std::optional<int> prompt_logprobs = {};
  bool has_rules = false;
  int first_id = 1000;  // prompts share prefixes only if this is equal
  int num_history_tokens = 0;
};

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() {
    config_.max_num_seqs = 4;
    config_.max_num_batched_tokens = 64;
    config_.max_model_len = 256;
    config_.tables = {{.num_blocks = 65}};
  }

  Scheduler& scheduler() {
    if (!scheduler_) scheduler_ = std::make_unique<Scheduler>(config_);
    return *scheduler_;
  }

  static std::shared_ptr<const SamplingSpec> spec(const Options& options) {
    SamplingParams params;
    params.prompt_logprobs = options.prompt_logprobs;
    if (options.has_rules) params.presence_penalty = 1.0F;
    SamplingSpec resolved;
    resolved.params = std::make_shared<const SamplingParams>(params);
    return std::make_shared<const SamplingSpec>(resolved);
  }

  // Sequences get the ids 1, 2, … in order of arrival.
  Status try_add(int num_prompt, int max_tokens, const Options& options = {}) {
    auto seq = std::make_unique<Sequence>();
    seq->id = seq->arrival = ++last_id_;
    seq->priority = options.priority;
    seq->cache_salt = options.salt;
    seq->sampling = spec(options);
    std::vector<int32_t> prompt(static_cast<size_t>(num_prompt));
    const int first =
        options.first_id == 1000 ? static_cast<int>(1000 * last_id_) : options.first_id;
    std::iota(prompt.begin(), prompt.end(), first);
    seq->token_ids = std::move(prompt);
    seq->num_prompt_tokens = num_prompt;
    seq->num_history_tokens = options.num_history_tokens;
    seq->max_total_tokens = num_prompt + max_tokens;
    return scheduler().add(std::move(seq));
  }
  SeqId add(int num_prompt, int max_tokens, const Options& options = {}) {
    const Status status = try_add(num_prompt, max_tokens, options);
    EXPECT_TRUE(status.ok()) << status.message();
    return last_id_;
  }

  BatchPlan schedule(int max_drafts = kMaxDrafts) {
    BatchPlan plan = scheduler().schedule(max_drafts);
    scheduler().check_invariants();
    return plan;
  }
  // Completes the plan. Each sampling span returns new tokens, with `num_accepted` of its drafts.
  std::vector<Sequence*> complete(const BatchPlan& plan, int num_accepted = 0) {
    std::vector<SpanResult> spans;
    for (const SeqSpan& span : plan.spans) {
      if (!span.samples) continue;
      spans.emplace_back();
      spans.back().seq_id = span.seq_id;
      spans.back().num_drafts = span.num_drafts;
      const Sequence* of_span = scheduler().find(span.seq_id);
      if (of_span != nullptr && of_span->is_constrained) spans.back().next_drafts = next_drafts_;
      for (int i = 0; i <= std::min(num_accepted, span.num_drafts); ++i) {
        spans.back().tokens.push_back({.token_id = ++last_token_, .logprobs = {}});
      }
    }
    std::vector<Sequence*> seqs;
    for (const auto& progress : scheduler().complete(plan, spans)) seqs.push_back(progress.seq);
    scheduler().check_invariants();
    return seqs;
  }
  BatchPlan step() {
    BatchPlan plan = schedule();
    complete(plan);
    return plan;
  }

  Sequence& seq(SeqId id) { return *scheduler().find(id); }
  static std::vector<std::pair<SeqId, int>> parts(const BatchPlan& plan) {
    std::vector<std::pair<SeqId, int>> all;
    for (const SeqSpan& span : plan.spans) all.emplace_back(span.seq_id, span.num_tokens);
    return all;
  }

  SchedulerConfig config_;
  std::unique_ptr<Scheduler> scheduler_;
  SeqId last_id_ = 0;
  int32_t last_token_ = 1000000;
  std::vector<int32_t> next_drafts_;  // in the results of constrained sequences
};

using Parts = std::vector<std::pair<SeqId, int>>;

}  // namespace quire
