#include "cuda/platform/cuda_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace quire::cuda {
namespace {

// One more than the engine keeps in flight.
constexpr int kNumResultSlots = 3;
// Matrix products of prompts are measured from here on, in powers of two.
constexpr int kFirstPrefillRows = 256;

StepLimits step_limits(const ModelLimits& limits, int max_num_seqs) {
  // A step's new tokens fill pages of their own, and each sequence may begin one more. What a
  // prefix hit brings beyond that goes ahead of the block.
  const int new_pages = limits.max_num_tokens / limits.page_size + 2 * max_num_seqs;
  return {.max_num_seqs = max_num_seqs,
          .max_num_tokens = std::max(limits.max_num_tokens, max_num_seqs),
          .max_new_pages = new_pages};
}

DeviceSamplerLimits sampler_limits(const ModelLimits& limits, int max_num_seqs, int vocab_size) {
  return {.max_num_seqs = max_num_seqs,
          .max_rows = limits.max_num_logit_rows,
          .vocab_size = vocab_size,
          .max_tokens_per_seq = limits.max_model_len};
}

size_t target_bytes(const ModelLimits& limits) {
  return 2 * static_cast<size_t>(limits.max_num_logit_rows) * sizeof(int32_t);
}

size_t prompt_result_bytes(int num_rows) {
  return static_cast<size_t>(num_rows) * sizeof(LogprobsResult);
}

bool wants_prompt_logprobs(const SeqSlice& slice) {
  return slice.num_prompt_logprobs >= 0;
}

// The tokens of a slice whose successors in the prompt are known: [first, first + count).
struct PromptRange {
  int first = 0;
  int count = 0;
};

PromptRange prompt_range(const SeqSlice& slice, size_t num_prompt_tokens) {
  const int end =
      std::min(slice.num_computed + slice.num_tokens, static_cast<int>(num_prompt_tokens) - 1);
  return {slice.num_computed, std::max(0, end - slice.num_computed)};
}

}  // namespace

Result<std::unique_ptr<Runner>> CudaRunner::create(const RunnerParts& parts, int device_index,
                                                   CudaOps& ops, CudaStream& stream) {
  std::unique_ptr<CudaRunner> runner(new CudaRunner(parts, device_index, stream));
  QUIRE_RETURN_IF_ERROR(runner->allocate(ops));
  QUIRE_RETURN_IF_ERROR(runner->warm_up(ops));
  if (!parts.enforce_eager) QUIRE_RETURN_IF_ERROR(runner->capture_graphs());
  stream.traffic() = {};  // what was set up is not a step's
  return std::unique_ptr<Runner>(std::move(runner));
}

CudaRunner::CudaRunner(const RunnerParts& parts, int device_index, CudaStream& stream)
    : parts_(parts),
      device_index_(device_index),
      stream_(stream),
      graphs_(parts_.attention, parts_.max_num_seqs, parts_.limits.max_model_len) {}

CudaRunner::~CudaRunner() {
  (void)stream_.synchronize();
}

int64_t CudaRunner::device_bytes(const ModelLimits& limits, int max_num_seqs, int vocab_size) {
  const size_t num_bytes =
      StepBuffers::device_bytes(step_limits(limits, max_num_seqs), limits.max_model_len,
                                limits.page_size) +
      DeviceSampler::device_bytes(sampler_limits(limits, max_num_seqs, vocab_size)) +
      target_bytes(limits) + prompt_result_bytes(limits.max_num_logit_rows);
  return static_cast<int64_t>(num_bytes);
}

Status CudaRunner::allocate(CudaOps& ops) {
  const ModelLimits& limits = parts_.limits;
  const int vocab_size = parts_.model->config().vocab_size;
  QUIRE_ASSIGN_OR_RETURN(
      buffers_, StepBuffers::create(step_limits(limits, parts_.max_num_seqs), limits.max_model_len,
                                    limits.page_size, stream_));
  QUIRE_ASSIGN_OR_RETURN(logits_,
                         ops.allocate({limits.max_num_logit_rows, vocab_size}, DType::kF32));
  QUIRE_ASSIGN_OR_RETURN(
      sampler_,
      DeviceSampler::create(sampler_limits(limits, parts_.max_num_seqs, vocab_size), stream_));
  buffers_.arrays().last_tokens = sampler_->last_tokens();
  QUIRE_ASSIGN_OR_RETURN(targets_ring_, PinnedRing::create(target_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(targets_, device_memory(target_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(prompt_results_,
                         device_memory(prompt_result_bytes(limits.max_num_logit_rows)));
  for (int i = 0; i < kNumResultSlots; ++i) {
    QUIRE_ASSIGN_OR_RETURN(Buffer sampled, pinned_memory(DeviceSampler::results_bytes(
                                               SampleKind::kFull, limits.max_num_logit_rows)));
    QUIRE_ASSIGN_OR_RETURN(Buffer prompt_logprobs,
                           pinned_memory(prompt_result_bytes(limits.max_num_tokens)));
    QUIRE_ASSIGN_OR_RETURN(CudaEvent arrived, CudaEvent::create());
    results_.push_back({std::move(sampled), std::move(prompt_logprobs), std::move(arrived)});
  }
  return {};
}

Result<std::span<const KvGroupStep>> CudaRunner::plan_padding(const DecodeGraph& graph) {
  const BatchPlan nothing;
  QUIRE_RETURN_IF_ERROR(buffers_.upload(nothing, graph.num_reqs, true, stream_));
  attention_.describe(nothing, buffers_.arrays());
  attention_.pad_to_graph(graph.num_reqs, parts_.limits.max_model_len);
  return backends_.plan(attention_.batch, graph.attention, stream_);
}

Status CudaRunner::run_padding(const DecodeGraph& graph, int num_tokens) {
  QUIRE_ASSIGN_OR_RETURN(const auto steps, plan_padding(graph));
  buffers_.derive(graph.num_reqs, stream_);
  QUIRE_RETURN_IF_ERROR(run_model(num_tokens, steps));
  return compute_logits(graph.num_reqs);
}

Status CudaRunner::warm_up(CudaOps& ops) {
  ops.record_linears();
  QUIRE_RETURN_IF_ERROR(run_padding(graphs_.largest(), parts_.limits.max_num_tokens));
  const std::span<const int> batch_sizes = graphs_.batch_sizes();
  std::vector<int> row_counts(batch_sizes.begin(), batch_sizes.end());
  for (int rows = kFirstPrefillRows; rows <= parts_.limits.max_num_tokens; rows *= 2) {
    if (rows > row_counts.back()) row_counts.push_back(rows);
  }
  QUIRE_RETURN_IF_ERROR(ops.tune_linears(row_counts));
  return stream_.synchronize();
}

Status CudaRunner::capture_graphs() {
  for (const DecodeGraph* graph : graphs_.one_of_each_choice()) {
    QUIRE_RETURN_IF_ERROR(run_padding(*graph, graph->num_reqs));
  }
  return graphs_.capture([this](const DecodeGraph& graph) { return capture(graph); });
}

Result<CudaGraph> CudaRunner::capture(const DecodeGraph& graph) {
  QUIRE_ASSIGN_OR_RETURN(const auto steps, plan_padding(graph));
  return CudaGraph::capture(stream_, [&]() -> Status {
    buffers_.derive(graph.num_reqs, stream_);
    QUIRE_RETURN_IF_ERROR(run_model(graph.num_reqs, steps));
    return compute_logits(graph.num_reqs);
  });
}

void CudaRunner::enqueue(std::shared_ptr<const BatchPlan> plan) {
  QUIRE_CHECK(in_flight_.size() < results_.size(), "[cuda] more steps than slots for results");
  Step step;
  step.plan = std::move(plan);
  step.results = &results_[next_results_];
  next_results_ = (next_results_ + 1) % results_.size();
  if (fault_.ok()) fault_ = to_status(cudaSetDevice(device_index_), "cudaSetDevice");
  if (fault_.ok()) fault_ = enqueue_step(step);
  if (fault_.ok()) fault_ = stream_.take_error();
  step.error = fault_;
  step.results->arrived.record(stream_);
  in_flight_.push_back(std::move(step));
}

Status CudaRunner::enqueue_step(Step& step) {
  const BatchPlan& plan = *step.plan;
  QUIRE_RETURN_IF_ERROR(update_rows(plan));
  sampling_rows_.clear();
  for (const SeqSlice& slice : plan.slices) {
    if (slice.samples) sampling_rows_.push_back(slice.row);
  }
  attention_.describe(plan, buffers_.arrays());
  const DecodeGraph* graph = graph_for(plan);
  step.for_graph = graph != nullptr;
  if (step.for_graph) {
    step.num_rows = graph->num_reqs;
    QUIRE_RETURN_IF_ERROR(run_graph(plan, *graph));
  } else {
    step.num_rows = static_cast<int>(sampling_rows_.size());
    QUIRE_RETURN_IF_ERROR(run_eagerly(plan, step));
  }
  return sample(step);
}

Status CudaRunner::update_rows(const BatchPlan& plan) {
  for (const int row : plan.rows_removed) prompt_rows_.erase(row);
  for (const RowAdded& added : plan.rows_added) {
    prompt_rows_.erase(added.row);
    if (!added.sampling->params->prompt_logprobs) continue;
    PromptRow& prompt = prompt_rows_[added.row];
    prompt.token_ids.assign(added.token_ids.begin(),
                            added.token_ids.begin() + added.num_prompt_tokens);
    prompt.logprobs.resize(1);  // nothing predicts the first token
  }
  return sampler_->add_rows(plan.rows_added, stream_);
}

const DecodeGraph* CudaRunner::graph_for(const BatchPlan& plan) const {
  const bool only_decode = plan.num_decode == static_cast<int>(plan.slices.size());
  if (!only_decode || parts_.enforce_eager) return nullptr;
  if (std::any_of(plan.slices.begin(), plan.slices.end(), wants_prompt_logprobs)) return nullptr;
  return graphs_.find(decode_key(attention_.batch));
}

Status CudaRunner::run_graph(const BatchPlan& plan, const DecodeGraph& graph) {
  QUIRE_RETURN_IF_ERROR(buffers_.upload(plan, graph.num_reqs, true, stream_));
  attention_.pad_to_graph(graph.num_reqs, parts_.limits.max_model_len);
  QUIRE_RETURN_IF_ERROR(backends_.plan(attention_.batch, graph.attention, stream_).status());
  graph.graph.launch(stream_);
  return {};
}

Status CudaRunner::run_eagerly(const BatchPlan& plan, const Step& step) {
  const auto num_reqs = static_cast<int>(plan.slices.size());
  QUIRE_RETURN_IF_ERROR(buffers_.upload(plan, num_reqs, false, stream_));
  buffers_.derive(num_reqs, stream_);
  QUIRE_ASSIGN_OR_RETURN(
      const std::span<const KvGroupStep> steps,
      backends_.plan(attention_.batch, backends_.choose(attention_.batch), stream_));
  QUIRE_RETURN_IF_ERROR(run_model(plan.num_tokens(), steps));
  QUIRE_RETURN_IF_ERROR(enqueue_prompt_logprobs(plan, *step.results));
  return compute_logits(step.num_rows);
}

Status CudaRunner::run_model(int num_tokens, std::span<const KvGroupStep> steps) {
  const StepArrays& arrays = buffers_.arrays();
  return parts_.model->forward({.num_tokens = num_tokens,
                                .token_ids = arrays.token_ids,
                                .positions = arrays.positions,
                                .kv_groups = steps},
                               stream_);
}

Status CudaRunner::compute_logits(int num_rows) {
  if (num_rows == 0) return {};
  return parts_.model->compute_logits(buffers_.arrays().logit_rows, num_rows, logits(num_rows),
                                      stream_);
}

TensorView CudaRunner::logits(int num_rows) const {
  return logits_.view.rows(0, num_rows);
}

Status CudaRunner::sample(Step& step) {
  if (step.num_rows == 0) return {};
  step.kind = sampler_->kind_of(sampling_rows_);
  if (!step.plan->token_masks.empty()) {
    step.kind = SampleKind::kMasked;
    QUIRE_RETURN_IF_ERROR(upload_masks(step));
  }
  sampler_->sample(step.kind, logits(step.num_rows), buffers_.arrays().sample_rows, step.num_rows,
                   stream_);
  sampler_->copy_results(step.kind, step.num_rows, step.results->sampled.data(), stream_);
  return {};
}

Status CudaRunner::upload_masks(const Step& step) {
  mask_idx_.assign(static_cast<size_t>(step.num_rows), -1);
  size_t num_sampling = 0;
  for (size_t i = 0; i < step.plan->slices.size(); ++i) {
    const SeqSlice& slice = step.plan->slices[i];
    if (slice.samples) mask_idx_[step.for_graph ? i : num_sampling++] = slice.mask_idx;
  }
  return sampler_->upload_masks(step.plan->token_masks, mask_idx_, stream_);
}

Status CudaRunner::enqueue_prompt_logprobs(const BatchPlan& plan, Results& results) {
  for (const SeqSlice& slice : plan.slices) {
    if (!wants_prompt_logprobs(slice)) continue;
    const PromptRange range = prompt_range(slice, prompt_rows_[slice.row].token_ids.size());
    for (int i = 0; i < range.count; i += parts_.limits.max_num_logit_rows) {
      const int count = std::min(parts_.limits.max_num_logit_rows, range.count - i);
      QUIRE_RETURN_IF_ERROR(enqueue_prompt_logprobs(slice, range.first + i, count, results));
    }
  }
  return {};
}

// The token at position p predicts the one at p + 1.
Status CudaRunner::enqueue_prompt_logprobs(const SeqSlice& slice, int first, int count,
                                           Results& results) {
  const std::vector<int32_t>& prompt = prompt_rows_[slice.row].token_ids;
  const int token_idx = slice.first_token + first - slice.num_computed;
  QUIRE_ASSIGN_OR_RETURN(std::byte* const slot, targets_ring_.begin(stream_));
  auto* rows = reinterpret_cast<int32_t*>(slot);
  int32_t* targets = rows + count;
  std::iota(rows, rows + count, token_idx);
  std::copy_n(prompt.begin() + first + 1, count, targets);
  auto* device_rows = static_cast<int32_t*>(targets_.data());
  stream_.copy_to_device(device_rows, rows, 2 * static_cast<size_t>(count) * sizeof(int32_t));
  targets_ring_.end(stream_);
  QUIRE_RETURN_IF_ERROR(parts_.model->compute_logits(device_rows, count, logits(count), stream_));
  auto* device_results = static_cast<LogprobsResult*>(prompt_results_.data());
  sampler_->prompt_logprobs(logits(count), device_rows + count, count, slice.num_prompt_logprobs,
                            device_results, stream_);
  auto* host = static_cast<LogprobsResult*>(results.prompt_logprobs.data()) + token_idx;
  stream_.copy_to_host(host, device_results, prompt_result_bytes(count));
  return {};
}

StepResult CudaRunner::wait() {
  const Step step = std::move(in_flight_.front());
  in_flight_.pop_front();
  StepResult result;
  result.error = step.results->arrived.wait(stream_);
  if (!step.error.ok()) result.error = step.error;
  if (!result.error.ok()) {
    if (fault_.ok()) fault_ = result.error;
    return result;
  }
  read_prompt_logprobs(step);
  result.sampled = read_sampled(step);
  return result;
}

void CudaRunner::read_prompt_logprobs(const Step& step) {
  const auto* results = static_cast<const LogprobsResult*>(step.results->prompt_logprobs.data());
  for (const SeqSlice& slice : step.plan->slices) {
    const auto found = prompt_rows_.find(slice.row);
    if (!wants_prompt_logprobs(slice) || found == prompt_rows_.end()) continue;
    const PromptRange range = prompt_range(slice, found->second.token_ids.size());
    for (int i = 0; i < range.count; ++i) {
      found->second.logprobs.push_back(to_position_logprobs(results[slice.first_token + i]));
    }
  }
}

std::vector<SampledToken> CudaRunner::read_sampled(const Step& step) {
  std::vector<SampledToken> sampled;
  if (step.num_rows == 0) return sampled;
  std::vector<SampledToken> rows =
      DeviceSampler::read_results(step.kind, step.num_rows, step.results->sampled.data());
  size_t num_sampling = 0;
  for (size_t i = 0; i < step.plan->slices.size(); ++i) {
    const SeqSlice& slice = step.plan->slices[i];
    if (!slice.samples) continue;
    SampledToken& token = rows[step.for_graph ? i : num_sampling++];
    token.seq_id = slice.seq_id;
    const auto prompt = prompt_rows_.find(slice.row);
    if (prompt != prompt_rows_.end()) {
      token.prompt_logprobs = std::exchange(prompt->second.logprobs, {});
    }
    sampled.push_back(std::move(token));
  }
  return sampled;
}

}  // namespace quire::cuda
