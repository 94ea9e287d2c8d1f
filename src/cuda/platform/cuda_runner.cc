#include "cuda/platform/cuda_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cuda/base/device_info.h"
#include "model/weights.h"

namespace quire::cuda {
namespace {

bool wants_prompt_logprobs(const SeqSpan& span) {
  return span.num_prompt_logprobs >= 0;
}

}  // namespace

Result<std::unique_ptr<Runner>> CudaRunner::create(const RunnerParts& parts, CudaOps& ops,
                                                   CudaStream& stream) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<StepParts> started, start_runner(parts, ops, stream));
  return std::unique_ptr<Runner>(new CudaRunner(std::move(started)));
}

CudaRunner::CudaRunner(std::unique_ptr<StepParts> parts) : parts_(std::move(parts)) {
  if (parts_->draft_costs) step_drafts_.adapt(*parts_->draft_costs);
}

void CudaRunner::enqueue(std::shared_ptr<const BatchPlan> plan) {
  QUIRE_CHECK(in_flight_.size() < parts_->results.size(),
              "[cuda] more steps are in flight than there are buffers for results");
  Step step;
  step.plan = step_drafts_.without_missing(std::move(plan));
  step.results = &parts_->results[next_results_];
  next_results_ = (next_results_ + 1) % parts_->results.size();
  if (fault_.ok()) fault_ = bind_thread();
  if (fault_.ok()) fault_ = enqueue_step(step);
  step.results->arrived.record(stream_);
  if (fault_.ok()) fault_ = stream_.take_error();
  step.error = fault_;
  in_flight_.push_back(std::move(step));
}

Status CudaRunner::enqueue_step(Step& step) {
  const BatchPlan& plan = *step.plan;
  step.prompts = parts_->prompt_logprobs.update(plan);
  target_.sampler->remove_slots(plan.slots_removed);
  QUIRE_RETURN_IF_ERROR(target_.sampler->add_slots(plan.slots_added, stream_));
  if (parts_->draft_stage) QUIRE_RETURN_IF_ERROR(parts_->draft_stage->update_slots(plan));
  if (step.results->timers) step.results->timers->verify.start(stream_);
  target_.inputs.describe(plan, target_.buffers.arrays());
  const DecodeGraph* graph = graph_for(plan);
  if (graph != nullptr) {
    step.ranges = sample_ranges(plan, &graph->batch);
    step.num_rows = graph->batch.num_tokens();
    QUIRE_RETURN_IF_ERROR(run_graph(step, *graph));
  } else {
    step.ranges = sample_ranges(plan, nullptr);
    for (const SampleRange& range : step.ranges) step.num_rows += range.num_rows;
    QUIRE_RETURN_IF_ERROR(run_eagerly(step));
  }
  if (target_.embeds()) {
    copy_hidden_states(step);
    return {};
  }
  if (step.num_rows > 0) QUIRE_RETURN_IF_ERROR(sample(step));
  return parts_->draft_stage ? draft(step, graph) : Status();
}

const DecodeGraph* CudaRunner::graph_for(const BatchPlan& plan) const {
  const bool only_decode = plan.num_decode == static_cast<int>(plan.spans.size());
  if (!only_decode || sizes_.enforce_eager) return nullptr;
  if (std::any_of(plan.spans.begin(), plan.spans.end(), wants_prompt_logprobs)) return nullptr;
  return parts_->graphs.find(decode_key(target_.inputs.batch()));
}

Status CudaRunner::run_graph(const Step& step, const DecodeGraph& graph) {
  const GraphBatch& batch = graph.batch;
  QUIRE_RETURN_IF_ERROR(target_.buffers.upload(*step.plan, step.ranges, &batch, stream_));
  target_.inputs.pad_to_graph(batch, sizes_.limits.max_kv_len());
  const auto choices =
      target_.attention.choose_for_graph(graph.attention, batch.num_reqs, batch.q_len);
  QUIRE_RETURN_IF_ERROR(
      target_.attention.update(target_.inputs.batches(), choices, stream_).status());
  graph.graph.launch(stream_);
  return {};
}

Status CudaRunner::run_eagerly(const Step& step) {
  const BatchPlan& plan = *step.plan;
  QUIRE_RETURN_IF_ERROR(target_.buffers.upload(plan, step.ranges, nullptr, stream_));
  target_.buffers.derive(static_cast<int>(plan.spans.size()), stream_);
  QUIRE_ASSIGN_OR_RETURN(
      const std::span<const KvGroupStep> steps,
      target_.attention.update(target_.inputs.batches(),
                               target_.attention.choose(target_.inputs.batch()), stream_));
  QUIRE_RETURN_IF_ERROR(target_.run_layers(plan.num_tokens(), steps));
  // Comes before compute_outputs(), because it uses the same tensor.
  QUIRE_RETURN_IF_ERROR(parts_->prompt_logprobs.enqueue(
      step.prompts, target_.model(), *target_.sampler, target_.outputs.view,
      step.results->prompt_logprobs.data(), stream_));
  return target_.compute_outputs(step.num_rows);
}

void CudaRunner::copy_hidden_states(const Step& step) {
  if (step.num_rows == 0) return;
  const TensorView rows = target_.output_rows(step.num_rows);
  stream_.copy_to_host(step.results->sampled.data(), rows.data, rows.num_bytes());
}

Status CudaRunner::sample(Step& step) {
  logits_rows_.assign(static_cast<size_t>(step.num_rows), {});
  for (const SampleRange& range : step.ranges) {
    const SeqSpan& span = step.plan->spans[range.span_idx];
    for (int i = 0; i < range.num_rows; ++i) {
      logits_rows_[static_cast<size_t>(range.first_row + i)] = {
          .slot = span.slot, .offset = i, .mask_idx = span.mask_idx < 0 ? -1 : span.mask_idx + i};
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const SamplePlan plan,
                         target_.sampler->plan(logits_rows_, step.plan->token_masks, stream_));
  step.has_logprobs = plan.has_logprobs;
  target_.sample(plan);
  target_.sampler->copy_results(plan, step.results->sampled.data(), stream_);
  return {};
}

Status CudaRunner::draft(Step& step, const DecodeGraph* graph) {
  const BatchPlan& plan = *step.plan;
  const GraphBatch* batch = graph == nullptr ? nullptr : &graph->batch;
  const int num_tokens = batch == nullptr ? plan.num_tokens() : batch->num_tokens();
  const int num_spans = batch == nullptr ? static_cast<int>(plan.spans.size()) : batch->num_reqs;
  const int num_drafts = step.ranges.empty() ? 0 : step_drafts_.plan_proposals(plan);
  step.results->timers->verify.end(stream_);
  step.results->timers->draft.start(stream_);
  QUIRE_RETURN_IF_ERROR(
      parts_->draft_stage->run(target_.draft_step(batch, num_tokens), num_spans, num_drafts));
  step.results->timers->draft.end(stream_);
  report_drafts(step, num_drafts);
  return {};
}

// Does not report sampled drafts: the host's mask would change the probability that accepts them.
void CudaRunner::report_drafts(Step& step, int num_drafts) {
  const bool is_needed = std::ranges::any_of(step.plan->spans, &SeqSpan::reports_drafts);
  if (!is_needed || num_drafts == 0 || parts_->runner.verification.samples_drafts) return;
  stream_.copy_to_host(step.results->next_tokens.data(), target_.sampler->next_tokens(),
                       step.results->next_tokens.num_bytes());
  step.num_reported_drafts = num_drafts;
}

StepResult CudaRunner::wait() {
  const Step step = std::move(in_flight_.front());
  in_flight_.pop_front();
  StepResult result;
  result.error = bind_thread();
  if (result.error.ok()) result.error = step.results->arrived.wait(stream_);
  if (!step.error.ok()) result.error = step.error;
  if (result.error.ok()) result.error = read_times(step, result);
  if (!result.error.ok()) {
    if (fault_.ok()) fault_ = result.error;
    return result;
  }
  result.spans = read_spans(step);
  step_drafts_.observe(*step.plan, result.spans);
  PromptLogprobs::read(step.prompts, step.results->prompt_logprobs.data(), result.spans);
  return result;
}

Status CudaRunner::read_times(const Step& step, StepResult& result) {
  if (!step.results->timers) return {};
  QUIRE_ASSIGN_OR_RETURN(const double verify_us, step.results->timers->verify.elapsed());
  QUIRE_ASSIGN_OR_RETURN(const double draft_us, step.results->timers->draft.elapsed());
  result.verify_seconds = verify_us * 1e-6;
  result.draft_seconds = draft_us * 1e-6;
  return {};
}

std::vector<SpanResult> CudaRunner::read_spans(const Step& step) const {
  std::vector<SpanResult> spans;
  spans.reserve(step.ranges.size());
  for (const SampleRange& range : step.ranges) {
    if (target_.embeds()) {
      spans.emplace_back().hidden_state = read_hidden_state(step, range.first_row);
    } else {
      spans.push_back(DeviceSampler::read_span(step.results->sampled.data(), step.num_rows,
                                               step.has_logprobs, range.first_row));
    }
    const SeqSpan& span = step.plan->spans[range.span_idx];
    spans.back().seq_id = span.seq_id;
    spans.back().num_drafts = span.num_drafts;
    if (span.reports_drafts && step.num_reported_drafts > 0) {
      spans.back().next_drafts = read_drafts(step, span.slot);
    }
  }
  return spans;
}

std::vector<int32_t> CudaRunner::read_drafts(const Step& step, int slot) const {
  const auto* tokens = static_cast<const int32_t*>(step.results->next_tokens.data());
  const int32_t* drafts = tokens + int64_t{slot} * sizes_.limits.decode_q_len() + 1;
  return {drafts, drafts + step.num_reported_drafts};
}

std::vector<float> CudaRunner::read_hidden_state(const Step& step, int row) const {
  TensorView host = target_.output_rows(step.num_rows);
  host.data = step.results->sampled.data();
  host = host.rows(row, 1);
  std::vector<float> state;
  for (int64_t i = 0; i < host.shape.num_elements(); ++i) {
    state.push_back(element_as_f32(host, i));
  }
  return state;
}

}  // namespace quire::cuda
