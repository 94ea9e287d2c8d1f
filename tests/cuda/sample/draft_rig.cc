#include "cuda/sample/draft_rig.h"

#include "base/check.h"

namespace quire::cuda {

SlotAdded make_draft_slot(int slot, const SamplingParams& params, uint64_t seed,
                          std::vector<int32_t> token_ids) {
  SlotAdded added;
  added.slot = slot;
  added.num_prompt_tokens = static_cast<int>(token_ids.size());
  added.token_ids = std::move(token_ids);
  added.sampling = std::make_shared<SamplingSpec>(
      SamplingSpec{.params = std::make_shared<SamplingParams>(params), .seed = seed});
  return added;
}

Result<std::unique_ptr<DraftRig>> DraftRig::create(const DeviceSamplerLimits& limits) {
  auto rig = std::make_unique<DraftRig>();
  rig->limits_ = limits;
  QUIRE_ASSIGN_OR_RETURN(rig->stream_, CudaStream::create());
  QUIRE_ASSIGN_OR_RETURN(rig->sampler_, DeviceSampler::create(limits, *rig->stream_));
  const auto rows = static_cast<size_t>(limits.max_rows);
  const auto vocab = static_cast<size_t>(limits.vocab_size);
  QUIRE_ASSIGN_OR_RETURN(rig->logits_, device_memory(rows * vocab * sizeof(float)));
  QUIRE_ASSIGN_OR_RETURN(rig->row_slots_, device_memory(rows * sizeof(int32_t)));
  QUIRE_ASSIGN_OR_RETURN(rig->offsets_, device_memory(rows * sizeof(int32_t)));
  QUIRE_ASSIGN_OR_RETURN(rig->target_ids_, device_memory(vocab * sizeof(int32_t)));
  QUIRE_ASSIGN_OR_RETURN(rig->pinned_,
                         pinned_memory(DeviceSampler::results_bytes(limits.max_rows, true)));
  rig->states_.resize(static_cast<size_t>(limits.max_num_seqs));
  return rig;
}

Status DraftRig::add_slots(const std::vector<SlotAdded>& added) {
  std::vector<int> removed;
  for (const SlotAdded& slot : added) {
    const SamplingSpec& spec = *slot.sampling;
    states_[static_cast<size_t>(slot.slot)] = std::make_unique<SamplerState>(
        spec.params, spec.seed, slot.token_ids.get(), slot.num_prompt_tokens, spec.end_token_ids,
        spec.bad_words_ids, limits_.vocab_size);
    removed.push_back(slot.slot);
  }
  sampler_->remove_slots(removed);
  return sampler_->add_slots(added, *stream_);
}

template <typename T>
void DraftRig::upload(void* device, std::span<const T> values) {
  if (!values.empty()) stream_->copy_to_device(device, values.data(), values.size_bytes());
}

void DraftRig::synchronize() {
  const Status status = stream_->synchronize();
  QUIRE_CHECK(status.ok(), status.message());
}

template <typename Enqueue>
void DraftRig::run(bool captured, const Enqueue& enqueue) {
  if (!captured) return enqueue();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  stream_->record_error(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeThreadLocal),
                        "begin");
  enqueue();
  stream_->record_error(cudaStreamEndCapture(stream_->get(), &graph), "end");
  stream_->record_error(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  stream_->record_error(cudaGraphLaunch(exec, stream_->get()), "replay");
  synchronize();
  stream_->record_error(cudaGraphExecDestroy(exec), "destroy");
  stream_->record_error(cudaGraphDestroy(graph), "destroy");
}

void DraftRig::choose(std::span<const float> logits, std::span<const int32_t> slots, int draft_idx,
                      std::span<const int32_t> target_ids, bool captured) {
  upload(logits_.data(), logits);
  upload(row_slots_.data(), slots);
  upload(target_ids_.data(), target_ids);
  const DraftLogits call = {
      .logits = static_cast<const float*>(logits_.data()),
      .width = static_cast<int>(logits.size() / slots.size()),
      .slots = static_cast<const int32_t*>(row_slots_.data()),
      .num_spans = static_cast<int>(slots.size()),
      .draft_idx = draft_idx,
      .target_ids = target_ids.empty() ? nullptr : static_cast<const int32_t*>(target_ids_.data())};
  run(captured, [&] { sampler_->choose_drafts(call, *stream_); });
  synchronize();
}

std::vector<SpanResult> DraftRig::verify(std::span<const float> logits,
                                         std::span<const int32_t> slots, bool captured) {
  const int q_len = 1 + limits_.num_drafts;
  std::vector<LogitsRowUse> uses;
  std::vector<int32_t> row_slots, offsets;
  for (const int32_t slot : slots) {
    for (int offset = 0; offset < q_len; ++offset) {
      uses.push_back({.slot = slot, .offset = offset});
      row_slots.push_back(slot);
      offsets.push_back(offset);
    }
  }
  upload(logits_.data(), logits);
  upload(row_slots_.data(), std::span<const int32_t>(row_slots));
  upload(offsets_.data(), std::span<const int32_t>(offsets));
  const Result<SamplePlan> plan = sampler_->plan(uses, {}, *stream_);
  QUIRE_CHECK(plan.ok(), plan.status().message());
  const int num_rows = plan->num_rows();
  const TensorView view = {
      .data = logits_.data(), .dtype = DType::kF32, .shape = {num_rows, limits_.vocab_size}};
  run(captured, [&] {
    sampler_->sample(*plan, view, static_cast<const int32_t*>(row_slots_.data()),
                     static_cast<const int32_t*>(offsets_.data()), *stream_);
  });
  sampler_->copy_results(*plan, pinned_.data(), *stream_);
  synchronize();
  std::vector<SpanResult> spans;
  for (int i = 0; i < num_rows; i += q_len) {
    spans.push_back(DeviceSampler::read_span(pinned_.data(), num_rows, plan->has_logprobs, i));
  }
  return spans;
}

std::vector<int32_t> DraftRig::next_tokens() {
  std::vector<int32_t> tokens(states_.size() * static_cast<size_t>(1 + limits_.num_drafts));
  stream_->copy_to_host(tokens.data(), sampler_->next_tokens(), tokens.size() * sizeof(int32_t));
  synchronize();
  return tokens;
}

std::vector<float> DraftRig::draft_probs() {
  std::vector<float> probs(states_.size() * static_cast<size_t>(limits_.num_drafts) *
                           static_cast<size_t>(limits_.vocab_size));
  stream_->copy_to_host(probs.data(), sampler_->draft_probs(), probs.size() * sizeof(float));
  synchronize();
  return probs;
}

void DraftRig::set_drafts(const std::vector<int32_t>& next_tokens,
                          const std::vector<float>& probs) {
  upload(sampler_->next_tokens(), std::span<const int32_t>(next_tokens));
  if (!probs.empty()) upload(sampler_->draft_probs(), std::span<const float>(probs));
  synchronize();
}

std::span<const float> DraftRig::row(std::span<const float> logits, size_t i) const {
  const auto vocab = static_cast<size_t>(limits_.vocab_size);
  return logits.subspan(i * vocab, vocab);
}

Status DraftRig::match_on_host(SamplerState& state, std::span<const float> logits,
                               std::span<const int32_t> drafts,
                               std::vector<SampledToken>& tokens) const {
  const Verification& verification = limits_.verification;
  const size_t num_accepted =
      count_synthetic(verification.synthetic_rates, state.draft_noise().synthetic_acceptance());
  for (size_t i = 0; i <= drafts.size(); ++i) {
    int32_t token_id = 0;
    QUIRE_RETURN_IF_ERROR(state.choose(row(logits, i), {}, token_id));
    if (i < num_accepted) token_id = drafts[i];
    state.append(token_id);
    tokens.push_back({.token_id = token_id, .logprobs = state.logprobs(row(logits, i), token_id)});
    if (i >= num_accepted) break;
  }
  return {};
}

Status DraftRig::compare_on_host(SamplerState& state, std::span<const float> logits,
                                 std::span<const int32_t> drafts, std::span<const float> probs,
                                 std::vector<SampledToken>& tokens) const {
  std::vector<Draft> sampled;
  for (size_t i = 0; i < drafts.size(); ++i) {
    sampled.push_back({.token_id = drafts[i], .probs = row(probs, i)});
  }
  TokenDistribution target;
  Status status;
  const TargetAt target_at = [&](size_t i) -> const TokenDistribution* {
    if (i > 0) state.assume(drafts[i - 1]);
    status = state.distribution(row(logits, i), {}, target);
    return status.ok() ? &target : nullptr;
  };
  const auto [num_accepted, next_token] =
      quire::verify_drafts(limits_.verification.method, sampled, target_at, state.draft_noise());
  state.settle(num_accepted);
  const auto report = [&](size_t i, int32_t token_id) {
    tokens.push_back({.token_id = token_id, .logprobs = state.logprobs(row(logits, i), token_id)});
  };
  for (size_t i = 0; i < num_accepted; ++i) report(i, drafts[i]);
  if (next_token >= 0) {
    state.append(next_token);
    report(num_accepted, next_token);
  }
  return status;
}

SpanResult DraftRig::verify_on_host(int slot, std::span<const float> logits,
                                    std::span<const int32_t> drafts, std::span<const float> probs) {
  SpanResult span;
  const Status status = limits_.verification.compares_probs()
                            ? compare_on_host(state(slot), logits, drafts, probs, span.tokens)
                            : match_on_host(state(slot), logits, drafts, span.tokens);
  if (span.tokens.empty()) span.error = status;
  return span;
}

}  // namespace quire::cuda
