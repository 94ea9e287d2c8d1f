#include "cuda/platform/cuda_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "cuda/ops/gemm_runner.h"
#include "cuda/step/draft_costs.h"
#include "model/weights.h"

namespace quire::cuda {
namespace {

// A step is enqueued before the results of the oldest one are released.
constexpr int kNumResultBuffers = kMaxStepsInFlight + 1;
// Device memory per graph, and per layer of a graph: 1.5 times the use on an H200, where 92 graphs
// of 32 layers took 96 MiB.
constexpr int64_t kGraphBytes = int64_t{64} << 10;
constexpr int64_t kGraphLayerBytes = int64_t{48} << 10;
// NCCL adds so much per layer of a graph: it took 4 to 5 times kGraphLayerBytes on two H200.
constexpr int64_t kGraphCollectivesBytes = 6 * kGraphLayerBytes;
// Device memory for kernels, which CUDA loads at their first launch, and for the rounding of
// allocations: an 8B model took 73 MiB on an H200.
constexpr int64_t kLibraryBytes = int64_t{256} << 20;
// Lengths of the warm-up prompts: long and short prompts use different kernels.
constexpr int kWarmUpPrompts[] = {512, 48, 4};

StepLimits step_limits(const ModelLimits& limits, int max_num_seqs, std::vector<int> windows) {
  // In every block table, the step's new tokens fill whole pages, and each sequence may begin one
  // more. A second page per sequence leaves room for short prefix hits; further pages are uploaded
  // before the packed step (overflow_pages).
  const int pages_per_table = limits.max_num_tokens / limits.page_size + 2 * max_num_seqs;
  const int new_pages = pages_per_table * static_cast<int>(windows.size());
  return {.max_num_seqs = max_num_seqs,
          .max_num_tokens = limits.max_num_tokens,
          .max_num_logit_rows = limits.max_num_logit_rows,
          .max_kv_len = limits.max_kv_len(),
          .page_size = limits.page_size,
          .decode_q_len = limits.decode_q_len(),
          .windows = std::move(windows),
          .max_new_pages = new_pages};
}

DeviceSamplerLimits sampler_limits(const RunnerSizes& sizes) {
  const ModelLimits& limits = sizes.limits;
  return {.max_num_seqs = sizes.max_num_seqs,
          .max_rule_seqs = sizes.max_num_rule_seqs,
          .max_rows = limits.max_num_logit_rows,
          .vocab_size = sizes.vocab_size,
          .max_tokens_per_seq = limits.max_model_len,
          .num_drafts = limits.num_drafts,
          .rank = limits.parallel.rank,
          .num_ranks = limits.parallel.size};
}

DecodeGraphs decode_graphs(std::span<const AttentionSelector> attention, const RunnerSizes& sizes) {
  return {attention, sizes.max_num_seqs, sizes.limits.max_kv_len(), sizes.decode_q_lens};
}

size_t draft_bytes(const RunnerSizes& sizes) {
  if (sizes.num_draft_layers == 0) return 0;
  StepLimits step = step_limits(sizes.limits, sizes.max_num_seqs, sizes.windows);
  step.max_num_tokens += sizes.max_num_seqs;  // the limit of an ordinary model, the largest
  const DraftLimits limits = {.step = std::move(step), .q_len = sizes.draft_q_len};
  return DraftInputs::device_bytes(limits);
}

// Passes of the drafter's model in the graphs for one batch shape: two of them read the step, one
// before proposals and one where none follow. Each of the others computes one draft, or all of them
// as a block.
int num_draft_passes(const RunnerSizes& sizes) {
  return 2 + (sizes.draft_q_len > 1 ? 1 : sizes.limits.num_drafts);
}

bool wants_prompt_logprobs(const SeqSpan& span) {
  return span.num_prompt_logprobs >= 0;
}

// Names the fields of EngineConfig that free memory in an out-of-memory error at start.
Status add_remedy(Status status) {
  if (status.code() != StatusCode::kResourceExhausted) return status;
  return resource_exhausted(
      "[cuda] GPU memory ran out while CUDA graphs were captured and libraries loaded; lower "
      "`gpu_memory_utilization` or `max_num_seqs`, or set `enforce_eager`: " +
      status.message());
}

}  // namespace

Result<std::unique_ptr<Runner>> CudaRunner::create(const RunnerParts& parts, CudaOps& ops,
                                                   CudaStream& stream) {
  std::unique_ptr<CudaRunner> runner(new CudaRunner(parts, ops, stream));
  ops.set_starting(true);
  const Status started = runner->start();
  ops.set_starting(false);
  if (!started.ok()) return add_remedy(started);
  stream.traffic() = {};  // the setup's traffic does not count as a step's
  return std::unique_ptr<Runner>(std::move(runner));
}

CudaRunner::CudaRunner(const RunnerParts& parts, CudaOps& ops, CudaStream& stream)
    : parts_(parts),
      ops_(ops),
      stream_(stream),
      graphs_(decode_graphs(target().attention, parts_.sizes)),
      step_drafts_(parts_.sizes.max_num_seqs),
      draft_stage_(parts_.drafter, stream) {}

CudaRunner::~CudaRunner() {
  (void)bind_thread();
  (void)stream_.synchronize();
}

Status CudaRunner::start() {
  QUIRE_RETURN_IF_ERROR(bind_thread());
  const int most = parts_.sizes.max_num_seqs * parts_.sizes.limits.decode_q_len();
  QUIRE_CHECK(
      most <= parts_.sizes.limits.max_num_tokens && most <= parts_.sizes.limits.max_num_logit_rows,
      fmt::format("[cuda] a step cannot decode all sequences at once; got max_num_seqs {} with {} "
                  "query tokens each, expected at most {} tokens and {} logits rows per step",
                  parts_.sizes.max_num_seqs, parts_.sizes.limits.decode_q_len(),
                  parts_.sizes.limits.max_num_tokens, parts_.sizes.limits.max_num_logit_rows));
  QUIRE_RETURN_IF_ERROR(ops_.end_loading());
  QUIRE_RETURN_IF_ERROR(allocate());
  QUIRE_RETURN_IF_ERROR(warm_up());
  QUIRE_RETURN_IF_ERROR(warm_up_prompts());
  if (!parts_.sizes.enforce_eager) QUIRE_RETURN_IF_ERROR(capture_graphs());
  return parts_.drafter == nullptr ? Status() : start_drafter();
}

RunnerBytes CudaRunner::device_bytes(const RunnerSizes& sizes,
                                     std::span<const AttentionSelector> attention) {
  const ModelLimits& limits = sizes.limits;
  const size_t buffers =
      StepBuffers::device_bytes(step_limits(limits, sizes.max_num_seqs, sizes.windows)) +
      DeviceSampler::device_bytes(sampler_limits(sizes)) + PromptLogprobs::device_bytes(limits) +
      draft_bytes(sizes);
  RunnerBytes bytes = {.buffers = static_cast<int64_t>(buffers), .reserve = kLibraryBytes};
  if (!sizes.enforce_eager) {
    const int64_t layer_bytes =
        kGraphLayerBytes + (limits.parallel.size > 1 ? kGraphCollectivesBytes : 0);
    const DecodeGraphs graphs = decode_graphs(attention, sizes);
    bytes.reserve +=
        static_cast<int64_t>(graphs.all().size()) * (kGraphBytes + sizes.num_layers * layer_bytes);
    if (sizes.num_draft_layers > 0) {
      // Per batch size and query length, two graphs read the step, and another proposes drafts.
      const auto num_shapes = static_cast<int64_t>(graphs.batch_sizes().size()) *
                              static_cast<int64_t>(graphs.q_lens().size());
      const int64_t num_layers = int64_t{num_draft_passes(sizes)} * sizes.num_draft_layers;
      bytes.reserve += num_shapes * (3 * kGraphBytes + num_layers * layer_bytes);
    }
  }
  return bytes;
}

Status CudaRunner::allocate() {
  const ModelLimits& limits = parts_.sizes.limits;
  QUIRE_ASSIGN_OR_RETURN(
      buffers_, StepBuffers::create(
                    step_limits(limits, parts_.sizes.max_num_seqs, parts_.sizes.windows), stream_));
  const int width = embeds() ? target().model->config().hidden_size : parts_.sizes.vocab_size;
  QUIRE_ASSIGN_OR_RETURN(outputs_, ops_.allocate({limits.max_num_logit_rows, width},
                                                 embeds() ? ops_.activation_dtype() : DType::kF32));
  DeviceSamplerLimits sampling = sampler_limits(parts_.sizes);
  sampling.verification = parts_.verification;
  QUIRE_ASSIGN_OR_RETURN(sampler_, DeviceSampler::create(sampling, stream_));
  buffers_.arrays().num_computed = sampler_->num_computed();
  buffers_.arrays().next_tokens = sampler_->next_tokens();
  QUIRE_ASSIGN_OR_RETURN(prompt_logprobs_,
                         PromptLogprobs::create(limits, parts_.sizes.max_num_seqs));
  const size_t sampled_bytes = embeds()
                                   ? outputs_.view.num_bytes()
                                   : DeviceSampler::results_bytes(limits.max_num_logit_rows, true);
  for (int i = 0; i < kNumResultBuffers; ++i) {
    QUIRE_ASSIGN_OR_RETURN(Buffer sampled, pinned_memory(sampled_bytes));
    QUIRE_ASSIGN_OR_RETURN(Buffer prompt_logprobs,
                           pinned_memory(PromptLogprobs::results_bytes(limits)));
    QUIRE_ASSIGN_OR_RETURN(CudaEvent arrived, CudaEvent::create());
    results_.push_back(
        {std::move(sampled), std::move(prompt_logprobs), {}, std::move(arrived), {}});
    if (parts_.drafter == nullptr) continue;
    QUIRE_ASSIGN_OR_RETURN(results_.back().next_tokens, pinned_memory(next_tokens_bytes()));
    QUIRE_ASSIGN_OR_RETURN(Stopwatch verify, Stopwatch::create());
    QUIRE_ASSIGN_OR_RETURN(Stopwatch draft, Stopwatch::create());
    results_.back().timers.emplace(std::move(verify), std::move(draft));
  }
  return {};
}

Status CudaRunner::upload_padding(const GraphBatch& batch) {
  const BatchPlan nothing;
  QUIRE_RETURN_IF_ERROR(buffers_.upload(nothing, {}, &batch, stream_));
  attention_inputs_.describe(nothing, buffers_.arrays());
  attention_inputs_.pad_to_graph(batch, parts_.sizes.limits.max_kv_len());
  return {};
}

Result<std::span<const KvGroupStep>> CudaRunner::plan_padding(const DecodeGraph& graph) {
  QUIRE_RETURN_IF_ERROR(upload_padding(graph.batch));
  return step_attention_.update(attention_inputs_.batches(), choices_of(graph), stream_);
}

// With enforce_eager there are no plans for graphs, so padding runs eagerly too.
std::span<const AttentionChoice> CudaRunner::choices_of(const DecodeGraph& graph) {
  if (parts_.sizes.enforce_eager) return step_attention_.choose(attention_inputs_.batch());
  return step_attention_.choose_for_graph(graph.attention, graph.batch.num_reqs, graph.batch.q_len);
}

Status CudaRunner::run_padding(const DecodeGraph& graph, int num_tokens) {
  QUIRE_ASSIGN_OR_RETURN(const auto steps, plan_padding(graph));
  buffers_.derive(graph.batch.num_reqs, stream_);
  QUIRE_RETURN_IF_ERROR(run_model(num_tokens, steps));
  return compute_outputs(graph.batch.num_tokens());
}

Status CudaRunner::warm_up() {
  const int max_num_tokens = parts_.sizes.limits.max_num_tokens;
  QUIRE_RETURN_IF_ERROR(ops_.tune_linears(
      row_buckets(max_num_tokens), [&] { return run_padding(graphs_.largest(), max_num_tokens); }));
  if (divides_logits()) QUIRE_RETURN_IF_ERROR(warm_up_choice());
  return stream_.synchronize();
}

Status CudaRunner::warm_up_choice() {
  const GraphBatch& batch = graphs_.largest().batch;
  const int num_rows = batch.num_tokens();
  QUIRE_RETURN_IF_ERROR(derive_padding(batch));
  target().model->gather_logits(num_rows, outputs(num_rows), stream_);
  for (const bool is_random : {false, true}) {
    sample_rows(sampler_->plan_padding(num_rows, is_random));
  }
  return {};
}

Status CudaRunner::warm_up_prompts() {
  constexpr AttentionUse kPrompts = {.phase = Phase::kPrefill};
  size_t most = 0;
  for (const AttentionSelector& selector : target().attention) {
    most = std::max(most, selector.candidates(kPrompts).size());
  }
  for (size_t i = 0; i < most; ++i) {
    std::vector<AttentionChoice> choices;
    for (size_t g = 0; g < target().attention.size(); ++g) {
      const auto candidates = target().attention[g].candidates(kPrompts);
      const AttentionBackend& backend = *candidates[std::min(i, candidates.size() - 1)];
      choices.push_back({.prefill = &target().plans[g].find(kPrompts, backend)});
    }
    for (const int num_tokens : kWarmUpPrompts) {
      QUIRE_RETURN_IF_ERROR(
          run_padded_prompt(std::min(num_tokens, parts_.sizes.limits.max_num_tokens), choices));
    }
  }
  return stream_.synchronize();
}

// The request has no slot: its tokens attend to nothing, and their keys and values are not written.
Status CudaRunner::run_padded_prompt(int num_tokens, std::span<const AttentionChoice> choices) {
  BatchPlan plan;
  plan.spans = {{.slot = -1, .num_tokens = num_tokens}};
  plan.token_ids.resize(static_cast<size_t>(num_tokens));
  QUIRE_RETURN_IF_ERROR(buffers_.upload(plan, {}, nullptr, stream_));
  buffers_.derive(1, stream_);
  attention_inputs_.describe(plan, buffers_.arrays());
  QUIRE_ASSIGN_OR_RETURN(const auto steps,
                         step_attention_.update(attention_inputs_.batches(), choices, stream_));
  return run_model(num_tokens, steps);
}

Status CudaRunner::capture_graphs() {
  for (const DecodeGraph* graph : graphs_.one_of_each_choice()) {
    QUIRE_RETURN_IF_ERROR(run_padding(*graph, graph->batch.num_tokens()));
  }
  return graphs_.capture(stream_.limits().device,
                         [this](const DecodeGraph& graph) { return capture(graph); });
}

Result<CudaGraph> CudaRunner::capture(const DecodeGraph& graph) {
  QUIRE_ASSIGN_OR_RETURN(const auto steps, plan_padding(graph));
  return CudaGraph::capture(stream_, [&]() -> Status {
    buffers_.derive(graph.batch.num_reqs, stream_);
    const int num_tokens = graph.batch.num_tokens();
    QUIRE_RETURN_IF_ERROR(run_model(num_tokens, steps));
    return compute_outputs(num_tokens);
  });
}

Status CudaRunner::start_drafter() {
  const int max_num_tokens = parts_.sizes.limits.max_num_tokens;
  const int num_drafts = parts_.sizes.limits.num_drafts;
  const auto run_largest = [&]() -> Status {
    const GraphBatch& batch = graphs_.largest().batch;
    QUIRE_RETURN_IF_ERROR(derive_padding(batch));
    return draft_stage_.run(draft_step(&batch, max_num_tokens), batch.num_reqs, num_drafts);
  };
  QUIRE_RETURN_IF_ERROR(ops_.tune_linears(row_buckets(max_num_tokens), run_largest));
  if (!parts_.sizes.enforce_eager) {
    for (const DecodeGraph& graph : graphs_.all()) {
      QUIRE_RETURN_IF_ERROR(derive_padding(graph.batch));
      QUIRE_RETURN_IF_ERROR(
          draft_stage_.capture(draft_step(&graph.batch, graph.batch.num_tokens())));
    }
    draft_stage_.log_graphs();
  }
  if (!parts_.verification.is_adaptive) return stream_.synchronize();
  // While a runner starts, eager steps leave out the collectives, so their times are too short.
  if (parts_.sizes.enforce_eager && parts_.sizes.limits.parallel.size > 1) {
    log_info(
        "[cuda] every step verifies all drafts, because `enforce_eager` is set and several GPUs "
        "share the model");
    return stream_.synchronize();
  }
  return measure_drafts();
}

Status CudaRunner::derive_padding(const GraphBatch& batch) {
  QUIRE_RETURN_IF_ERROR(upload_padding(batch));
  buffers_.derive(batch.num_reqs, stream_);
  return {};
}

Status CudaRunner::measure_drafts() {
  const auto verify = [this](const DecodeGraph& graph) -> Status {
    if (parts_.sizes.enforce_eager) return run_padding(graph, graph.batch.num_tokens());
    QUIRE_RETURN_IF_ERROR(plan_padding(graph).status());
    graph.graph.launch(stream_);
    return {};
  };
  const auto propose = [this](const DecodeGraph& graph, int num_drafts) {
    return draft_stage_.run(draft_step(&graph.batch, graph.batch.num_tokens()),
                            graph.batch.num_reqs, num_drafts);
  };
  // All ranks have loaded their kernels before one launches a graph that waits for the others.
  QUIRE_RETURN_IF_ERROR(stream_.synchronize());
  QUIRE_RETURN_IF_ERROR(ops_.wait_for_ranks());
  const auto start = std::chrono::steady_clock::now();
  QUIRE_ASSIGN_OR_RETURN(const DraftCosts own,
                         measure_draft_costs(graphs_, {verify, propose}, stream_));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  // Every rank chooses the number of proposals, so all choose by the same times.
  QUIRE_ASSIGN_OR_RETURN(const std::string bytes, ops_.from_first_rank(draft_costs_to_bytes(own)));
  QUIRE_ASSIGN_OR_RETURN(DraftCosts costs, draft_costs_from_bytes(bytes, own));
  if (parts_.sizes.limits.parallel.rank == 0) log_draft_costs(costs, took.count());
  step_drafts_.adapt(std::move(costs));
  return {};
}

DraftStep CudaRunner::draft_step(const GraphBatch* graph, int num_tokens) {
  return {.arrays = &buffers_.arrays(),
          .batches = attention_inputs_.batches(),
          .num_tokens = num_tokens,
          .graph = parts_.sizes.enforce_eager ? nullptr : graph,
          .sampler = sampler_.get()};
}

void CudaRunner::enqueue(std::shared_ptr<const BatchPlan> plan) {
  QUIRE_CHECK(in_flight_.size() < results_.size(),
              "[cuda] more steps are in flight than there are buffers for results");
  Step step;
  step.plan = step_drafts_.without_missing(std::move(plan));
  step.results = &results_[next_results_];
  next_results_ = (next_results_ + 1) % results_.size();
  if (fault_.ok()) fault_ = bind_thread();
  if (fault_.ok()) fault_ = enqueue_step(step);
  step.results->arrived.record(stream_);
  if (fault_.ok()) fault_ = stream_.take_error();
  step.error = fault_;
  in_flight_.push_back(std::move(step));
}

Status CudaRunner::enqueue_step(Step& step) {
  const BatchPlan& plan = *step.plan;
  step.prompts = prompt_logprobs_.update(plan);
  sampler_->remove_slots(plan.slots_removed);
  QUIRE_RETURN_IF_ERROR(sampler_->add_slots(plan.slots_added, stream_));
  if (parts_.drafter != nullptr) {
    QUIRE_RETURN_IF_ERROR(parts_.drafter->update_slots(plan, stream_));
  }
  if (step.results->timers) step.results->timers->verify.start(stream_);
  attention_inputs_.describe(plan, buffers_.arrays());
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
  if (embeds()) {
    copy_hidden_states(step);
    return {};
  }
  if (step.num_rows > 0) QUIRE_RETURN_IF_ERROR(sample(step));
  return parts_.drafter == nullptr ? Status() : draft(step, graph);
}

Status CudaRunner::draft(Step& step, const DecodeGraph* graph) {
  const BatchPlan& plan = *step.plan;
  const GraphBatch* batch = graph == nullptr ? nullptr : &graph->batch;
  const int num_tokens = batch == nullptr ? plan.num_tokens() : batch->num_tokens();
  const int num_spans = batch == nullptr ? static_cast<int>(plan.spans.size()) : batch->num_reqs;
  const int num_drafts = step.ranges.empty() ? 0 : step_drafts_.plan_proposals(plan);
  step.results->timers->verify.end(stream_);
  step.results->timers->draft.start(stream_);
  QUIRE_RETURN_IF_ERROR(draft_stage_.run(draft_step(batch, num_tokens), num_spans, num_drafts));
  step.results->timers->draft.end(stream_);
  report_drafts(step, num_drafts);
  return {};
}

// A draft that was sampled is accepted by its probability, which the host's mask would change.
void CudaRunner::report_drafts(Step& step, int num_drafts) {
  const bool is_needed = std::ranges::any_of(step.plan->spans, &SeqSpan::reports_drafts);
  if (!is_needed || num_drafts == 0 || parts_.verification.samples_drafts) return;
  stream_.copy_to_host(step.results->next_tokens.data(), sampler_->next_tokens(),
                       next_tokens_bytes());
  step.num_reported_drafts = num_drafts;
}

const DecodeGraph* CudaRunner::graph_for(const BatchPlan& plan) const {
  const bool only_decode = plan.num_decode == static_cast<int>(plan.spans.size());
  if (!only_decode || parts_.sizes.enforce_eager) return nullptr;
  if (std::any_of(plan.spans.begin(), plan.spans.end(), wants_prompt_logprobs)) return nullptr;
  return graphs_.find(decode_key(attention_inputs_.batch()));
}

Status CudaRunner::run_graph(const Step& step, const DecodeGraph& graph) {
  const GraphBatch& batch = graph.batch;
  QUIRE_RETURN_IF_ERROR(buffers_.upload(*step.plan, step.ranges, &batch, stream_));
  attention_inputs_.pad_to_graph(batch, parts_.sizes.limits.max_kv_len());
  QUIRE_RETURN_IF_ERROR(
      step_attention_.update(attention_inputs_.batches(), choices_of(graph), stream_).status());
  graph.graph.launch(stream_);
  return {};
}

Status CudaRunner::run_eagerly(const Step& step) {
  const BatchPlan& plan = *step.plan;
  QUIRE_RETURN_IF_ERROR(buffers_.upload(plan, step.ranges, nullptr, stream_));
  buffers_.derive(static_cast<int>(plan.spans.size()), stream_);
  QUIRE_ASSIGN_OR_RETURN(
      const std::span<const KvGroupStep> steps,
      step_attention_.update(attention_inputs_.batches(),
                             step_attention_.choose(attention_inputs_.batch()), stream_));
  QUIRE_RETURN_IF_ERROR(run_model(plan.num_tokens(), steps));
  // Comes before compute_outputs(), because it uses the same tensor.
  QUIRE_RETURN_IF_ERROR(prompt_logprobs_.enqueue(step.prompts, *target().model, *sampler_,
                                                 outputs_.view,
                                                 step.results->prompt_logprobs.data(), stream_));
  return compute_outputs(step.num_rows);
}

Status CudaRunner::run_model(int num_tokens, std::span<const KvGroupStep> steps) {
  const StepArrays& arrays = buffers_.arrays();
  return target().model->forward({.num_tokens = num_tokens,
                                  .token_ids = arrays.token_ids,
                                  .positions = arrays.positions,
                                  .kv_groups = steps},
                                 stream_);
}

Status CudaRunner::compute_outputs(int num_rows) {
  if (num_rows == 0) return {};
  Model& model = *target().model;
  const int32_t* tokens = buffers_.arrays().logit_tokens;
  if (divides_logits()) return model.compute_logits_part(tokens, num_rows, stream_);
  return embeds() ? model.hidden_states(tokens, num_rows, outputs(num_rows), stream_)
                  : model.compute_logits(tokens, num_rows, outputs(num_rows), stream_);
}

void CudaRunner::copy_hidden_states(const Step& step) {
  if (step.num_rows == 0) return;
  const TensorView rows = outputs(step.num_rows);
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
                         sampler_->plan(logits_rows_, step.plan->token_masks, stream_));
  step.has_logprobs = plan.has_logprobs;
  sample_rows(plan);
  sampler_->copy_results(plan, step.results->sampled.data(), stream_);
  return {};
}

void CudaRunner::sample_rows(const SamplePlan& plan) {
  Model& model = *target().model;
  const StepArrays& arrays = buffers_.arrays();
  const int num_rows = plan.num_rows();
  if (divides_logits() && plan.chooses_from_parts()) {
    const auto [logits, first_id] = model.logits_part(num_rows);
    sampler_->find_best(plan, logits, first_id, arrays.sample_slots, arrays.sample_offsets,
                        stream_);
    ops_.all_gather_parts(sampler_->best_of_ranks(num_rows), stream_);
    return sampler_->sample_best(plan, arrays.sample_slots, arrays.sample_offsets, stream_);
  }
  if (divides_logits()) model.gather_logits(num_rows, outputs(num_rows), stream_);
  sampler_->sample(plan, outputs(num_rows), arrays.sample_slots, arrays.sample_offsets, stream_);
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
    if (embeds()) {
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

size_t CudaRunner::next_tokens_bytes() const {
  return static_cast<size_t>(parts_.sizes.max_num_seqs) * static_cast<size_t>(num_next_tokens()) *
         sizeof(int32_t);
}

std::vector<int32_t> CudaRunner::read_drafts(const Step& step, int slot) const {
  const auto* tokens = static_cast<const int32_t*>(step.results->next_tokens.data());
  const int32_t* drafts = tokens + int64_t{slot} * num_next_tokens() + 1;
  return {drafts, drafts + step.num_reported_drafts};
}

std::vector<float> CudaRunner::read_hidden_state(const Step& step, int row) const {
  TensorView host = outputs(step.num_rows);
  host.data = step.results->sampled.data();
  host = host.rows(row, 1);
  std::vector<float> state;
  for (int64_t i = 0; i < host.shape.num_elements(); ++i) {
    state.push_back(element_as_f32(host, i));
  }
  return state;
}

}  // namespace quire::cuda
