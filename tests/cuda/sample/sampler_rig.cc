#include "cuda/sample/sampler_rig.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/base/device_info.h"

namespace quire::cuda {

Status open_test_device() {
  return open_device(0).status();
}

std::vector<float> random_logits(int count, float spread, int num_levels, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> logits(static_cast<size_t>(count));
  for (float& x : logits) {
    x = normal(random);
    if (num_levels > 0) {
      x = std::round(x * static_cast<float>(num_levels)) / static_cast<float>(num_levels);
    }
  }
  return logits;
}

Result<std::unique_ptr<SamplerRig>> SamplerRig::create(const DeviceSamplerLimits& limits) {
  auto rig = std::make_unique<SamplerRig>();
  rig->limits_ = limits;
  QUIRE_ASSIGN_OR_RETURN(rig->stream_, CudaStream::create());
  QUIRE_ASSIGN_OR_RETURN(rig->sampler_, DeviceSampler::create(limits, *rig->stream_));
  rig->samplers_ = {rig->sampler_.get()};
  const auto rows = static_cast<size_t>(limits.max_rows);
  for (int rank = 0; rank < limits.num_ranks; ++rank) {
    const auto width = static_cast<size_t>(ceil_div(limits.vocab_size, limits.num_ranks));
    QUIRE_ASSIGN_OR_RETURN(rig->parts_.emplace_back(), device_memory(rows * width * sizeof(float)));
    if (rank == 0) continue;
    DeviceSamplerLimits own = limits;
    own.rank = rank;
    QUIRE_ASSIGN_OR_RETURN(rig->other_ranks_.emplace_back(),
                           DeviceSampler::create(own, *rig->stream_));
    rig->samplers_.push_back(rig->other_ranks_.back().get());
  }
  QUIRE_ASSIGN_OR_RETURN(
      rig->logits_, device_memory(rows * static_cast<size_t>(limits.vocab_size) * sizeof(float)));
  QUIRE_ASSIGN_OR_RETURN(rig->row_ids_, device_memory(rows * sizeof(int32_t)));
  QUIRE_ASSIGN_OR_RETURN(rig->offsets_, device_memory(rows * sizeof(int32_t)));
  rig->stream_->set_zero(rig->offsets_.data(), rows * sizeof(int32_t));
  QUIRE_ASSIGN_OR_RETURN(rig->pinned_,
                         pinned_memory(DeviceSampler::results_bytes(limits.max_rows, true)));
  rig->states_.resize(static_cast<size_t>(limits.max_num_seqs));
  return rig;
}

Status SamplerRig::add_slots(const std::vector<SlotAdded>& added) {
  for (const SlotAdded& slot : added) {
    const SamplingSpec& spec = *slot.sampling;
    states_[static_cast<size_t>(slot.slot)] = std::make_unique<SamplerState>(
        spec.params, spec.seed, slot.token_ids.get(), slot.num_prompt_tokens, spec.end_token_ids,
        spec.bad_words_ids, limits_.vocab_size);
  }
  for (DeviceSampler* const sampler : samplers_) {
    QUIRE_RETURN_IF_ERROR(sampler->add_slots(added, *stream_));
  }
  return {};
}

TensorView SamplerRig::logits_view(int num_rows) const {
  return {.data = logits_.data(), .dtype = DType::kF32, .shape = {num_rows, limits_.vocab_size}};
}

SamplePlan SamplerRig::plan(const std::vector<int32_t>& slots, const std::vector<int32_t>& offsets,
                            const StepMasks& masks) {
  std::vector<LogitsRowUse> rows;
  for (size_t i = 0; i < slots.size(); ++i) {
    rows.push_back({.slot = slots[i],
                    .offset = offsets[i],
                    .mask_idx = masks.idx.empty() ? -1 : masks.idx[i]});
  }
  Result<SamplePlan> plan = sampler_->plan(rows, masks.masks, *stream_);
  QUIRE_CHECK(plan.ok(), plan.status().message());
  return *std::move(plan);
}

SamplePlan SamplerRig::plan(const std::vector<int32_t>& slots, const StepMasks& masks) {
  return plan(slots, std::vector<int32_t>(slots.size()), masks);
}

void SamplerRig::sample() {
  if (limits_.num_ranks > 1 && plan_.chooses_from_parts()) return sample_parts();
  sampler_->sample(plan_, logits_view(plan_.num_rows()), slots(), offsets(), *stream_);
}

void SamplerRig::sample_parts() {
  const int num_rows = plan_.num_rows();
  const int most = ceil_div(limits_.vocab_size, limits_.num_ranks);
  for (int rank = 0; rank < limits_.num_ranks; ++rank) {
    const int first = std::min(most * rank, limits_.vocab_size);
    const int width = std::min(most, limits_.vocab_size - first);
    const auto row_bytes = [](int count) { return static_cast<size_t>(count) * sizeof(float); };
    const size_t i = static_cast<size_t>(rank);
    if (width > 0) {
      stream_->record_error(
          cudaMemcpy2DAsync(parts_[i].data(), row_bytes(width), logits() + first,
                            row_bytes(limits_.vocab_size), row_bytes(width),
                            static_cast<size_t>(num_rows), cudaMemcpyDefault, stream_->get()),
          "copy of a part");
    }
    samplers_[i]->find_best(plan_, {parts_[i].data(), DType::kF32, {num_rows, width}}, first,
                            slots(), offsets(), *stream_);
  }
  for (const DeviceSampler* const to : samplers_) {
    for (int rank = 0; rank < limits_.num_ranks; ++rank) {
      const DeviceSampler* const from = samplers_[static_cast<size_t>(rank)];
      if (from == to) continue;
      const auto part_of = [&](const DeviceSampler& sampler) {
        const std::span<std::byte> all = sampler.best_of_ranks(num_rows);
        const size_t num_bytes = all.size() / samplers_.size();
        return all.subspan(static_cast<size_t>(rank) * num_bytes, num_bytes);
      };
      const std::span<std::byte> part = part_of(*from);
      stream_->record_error(cudaMemcpyAsync(part_of(*to).data(), part.data(), part.size(),
                                            cudaMemcpyDefault, stream_->get()),
                            "exchange");
    }
  }
  for (DeviceSampler* const sampler : samplers_) {
    sampler->sample_best(plan_, slots(), offsets(), *stream_);
  }
}

void SamplerRig::enqueue(bool captured) {
  if (!captured) return sample();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  stream_->record_error(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeThreadLocal),
                        "begin");
  sample();
  stream_->record_error(cudaStreamEndCapture(stream_->get(), &graph), "end");
  stream_->record_error(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  stream_->record_error(cudaGraphLaunch(exec, stream_->get()), "replay");
  stream_->record_error(cudaStreamSynchronize(stream_->get()), "synchronize");
  stream_->record_error(cudaGraphExecDestroy(exec), "destroy");
  stream_->record_error(cudaGraphDestroy(graph), "destroy");
}

Sampled SamplerRig::sample_on_host(int slot, std::vector<float> logits,
                                   std::optional<std::span<const uint32_t>> mask) {
  Sampled sampled;
  sampled.error =
      states_[static_cast<size_t>(slot)]->sample(logits, mask, sampled.token_id, sampled.logprobs);
  return sampled;
}

std::vector<Compared> SamplerRig::step(const std::vector<float>& logits,
                                       const std::vector<int32_t>& slots, const StepMasks& masks) {
  return run(logits, slots, masks, false);
}

std::vector<Compared> SamplerRig::step_captured(const std::vector<float>& logits,
                                                const std::vector<int32_t>& slots,
                                                const StepMasks& masks) {
  return run(logits, slots, masks, true);
}

void SamplerRig::run_on_device(const std::vector<float>& logits, const std::vector<int32_t>& slots,
                               const std::vector<int32_t>& offsets, const StepMasks& masks,
                               bool captured) {
  const int64_t copies_before = stream_->traffic().num_copies;
  stream_->copy_to_device(logits_.data(), logits.data(), logits.size() * sizeof(float));
  stream_->copy_to_device(row_ids_.data(), slots.data(), slots.size() * sizeof(int32_t));
  stream_->copy_to_device(offsets_.data(), offsets.data(), offsets.size() * sizeof(int32_t));
  plan_ = plan(slots, offsets, masks);
  enqueue(captured);
  sampler_->copy_results(plan_, pinned_.data(), *stream_);
  num_copies_ = stream_->traffic().num_copies - copies_before;
  const Status status = stream_->synchronize();
  QUIRE_CHECK(status.ok(), status.message());
}

std::vector<Compared> SamplerRig::run(const std::vector<float>& logits,
                                      const std::vector<int32_t>& slots, const StepMasks& masks,
                                      bool captured) {
  const auto vocab = static_cast<size_t>(limits_.vocab_size);
  const bool has_masks = !masks.idx.empty();
  run_on_device(logits, slots, std::vector<int32_t>(slots.size()), masks, captured);
  std::vector<Compared> compared(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    SpanResult span = DeviceSampler::read_span(pinned_.data(), plan_.num_rows(), plan_.has_logprobs,
                                               static_cast<int>(i));
    compared[i].device.error = span.error;
    if (!span.tokens.empty()) {
      compared[i].device.token_id = span.tokens[0].token_id;
      compared[i].device.logprobs = std::move(span.tokens[0].logprobs);
    }
    if (slots[i] < 0) continue;
    const float* first = logits.data() + i * vocab;
    std::optional<std::span<const uint32_t>> mask;
    if (has_masks && masks.idx[i] >= 0) mask = masks.masks[static_cast<size_t>(masks.idx[i])];
    compared[i].host = sample_on_host(slots[i], {first, first + vocab}, mask);
  }
  return compared;
}

// The sequential definition: samples one token after another until one differs from the next draft.
SpanResult SamplerRig::sample_span_on_host(int slot, const float* logits, int num_right,
                                           std::span<int32_t> drafts) {
  const auto vocab = static_cast<size_t>(limits_.vocab_size);
  SpanResult span;
  for (size_t i = 0; i <= drafts.size(); ++i) {
    const float* first = logits + i * vocab;
    Sampled sampled = sample_on_host(slot, {first, first + vocab}, {});
    if (!sampled.error.ok()) {
      if (i == 0) span.error = sampled.error;
      break;
    }
    span.tokens.push_back({sampled.token_id, std::move(sampled.logprobs)});
    const bool is_right = static_cast<int>(i) < num_right;
    if (i < drafts.size()) {
      drafts[i] = is_right ? sampled.token_id : (sampled.token_id + 1) % limits_.vocab_size;
    }
    if (!is_right) break;
  }
  return span;
}

std::vector<ComparedSpan> SamplerRig::step_spans(const std::vector<float>& logits,
                                                 const std::vector<int32_t>& slots,
                                                 const std::vector<int>& num_right, bool captured) {
  const auto q_len = static_cast<size_t>(1 + limits_.num_drafts);
  std::vector<ComparedSpan> compared(slots.size());
  std::vector<int32_t> rows, offsets;
  for (size_t i = 0; i < slots.size(); ++i) {
    std::vector<int32_t> drafts(q_len - 1, 3);
    compared[i].host = sample_span_on_host(
        slots[i], logits.data() + i * q_len * static_cast<size_t>(limits_.vocab_size), num_right[i],
        drafts);
    for (DeviceSampler* const sampler : samplers_) {
      stream_->copy_to_device(sampler->next_tokens() + static_cast<size_t>(slots[i]) * q_len + 1,
                              drafts.data(), drafts.size() * sizeof(int32_t));
    }
    for (size_t j = 0; j < q_len; ++j) {
      rows.push_back(slots[i]);
      offsets.push_back(static_cast<int32_t>(j));
    }
  }
  run_on_device(logits, rows, offsets, {}, captured);
  for (size_t i = 0; i < slots.size(); ++i) {
    compared[i].device = DeviceSampler::read_span(pinned_.data(), plan_.num_rows(),
                                                  plan_.has_logprobs, static_cast<int>(i * q_len));
  }
  return compared;
}

int32_t SamplerRig::read_word(const int32_t* device) {
  int32_t word = -1;
  stream_->copy_to_host(&word, device, sizeof word);
  const Status status = stream_->synchronize();
  QUIRE_CHECK(status.ok(), status.message());
  return word;
}

int32_t SamplerRig::last_token(int slot) {
  return read_word(sampler_->next_tokens() + slot * (1 + limits_.num_drafts));
}

int32_t SamplerRig::num_computed(int slot) {
  return read_word(sampler_->num_computed() + slot);
}

}  // namespace quire::cuda
