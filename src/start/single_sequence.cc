#include "start/single_sequence.h"

#include <memory>
#include <utility>

#include "sched/policy.h"

namespace quire {
namespace {

std::unique_ptr<Sequence> make_sequence(const std::vector<int32_t>& prompt, SamplingParams params) {
  params.temperature = 0.0F;
  params.max_tokens = 1;
  auto seq = std::make_unique<Sequence>();
  seq->sampling = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(std::move(params))});
  seq->token_ids = prompt;
  seq->num_prompt_tokens = static_cast<int>(prompt.size());
  seq->max_total_tokens = seq->num_prompt_tokens + 1;
  return seq;
}

}  // namespace

Result<SpanResult> run_sequence(Runner& runner, const SchedulerConfig& config,
                                const std::vector<int32_t>& prompt, SamplingParams params) {
  Scheduler scheduler(config);
  QUIRE_RETURN_IF_ERROR(scheduler.add(make_sequence(prompt, std::move(params))));
  while (true) {
    const auto plan = std::make_shared<const BatchPlan>(scheduler.schedule());
    if (plan->empty()) return internal_error("[engine] a single sequence was not scheduled");
    runner.enqueue(plan);
    StepResult step = runner.wait();
    QUIRE_RETURN_IF_ERROR(step.error);
    if (!step.spans.empty()) return std::move(step.spans.front());
    scheduler.complete(*plan, step.spans);
  }
}

}  // namespace quire
