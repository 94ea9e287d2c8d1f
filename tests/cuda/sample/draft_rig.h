// Chooses and verifies drafts on the device and by the CPU's definition, for comparison.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/sample/device_sampler.h"
#include "sample/sampler.h"

namespace quire::cuda {

SlotAdded make_draft_slot(int slot, const SamplingParams& params, uint64_t seed,
                          std::vector<int32_t> token_ids = {0});

class DraftRig {
 public:
  static Result<std::unique_ptr<DraftRig>> create(const DeviceSamplerLimits& limits);

  Status add_slots(const std::vector<SlotAdded>& added);

  // ---- On the device
  // Chooses draft `draft_idx` of each of slots (< 0: padding) from logits [slots.size(), width].
  void choose(std::span<const float> logits, std::span<const int32_t> slots, int draft_idx,
              std::span<const int32_t> target_ids = {}, bool captured = false);
  // Verifies the drafts of each of slots (none is padding) against logits [slots.size(), 1 +
  // num_drafts, vocab_size].
  std::vector<SpanResult> verify(std::span<const float> logits, std::span<const int32_t> slots,
                                 bool captured = false);
  // [max_num_seqs, 1 + num_drafts]
  std::vector<int32_t> next_tokens();
  // [max_num_seqs, num_drafts, vocab_size]
  std::vector<float> draft_probs();
  void set_drafts(const std::vector<int32_t>& next_tokens, const std::vector<float>& probs);

  // ---- On the host
  SamplerState& state(int slot) { return *states_[static_cast<size_t>(slot)]; }
  // Verifies a span as HostRunner does, by limits.verification. `probs` are the distributions of
  // the drafts: [num_drafts, vocab_size], or empty without samples_drafts.
  SpanResult verify_on_host(int slot, std::span<const float> logits,
                            std::span<const int32_t> drafts, std::span<const float> probs);

 private:
  Status match_on_host(SamplerState& state, std::span<const float> logits,
                       std::span<const int32_t> drafts, std::vector<SampledToken>& tokens) const;
  Status compare_on_host(SamplerState& state, std::span<const float> logits,
                         std::span<const int32_t> drafts, std::span<const float> probs,
                         std::vector<SampledToken>& tokens) const;
  std::span<const float> row(std::span<const float> logits, size_t i) const;
  // Runs the work at once, or as a graph.
  template <typename Enqueue>
  void run(bool captured, const Enqueue& enqueue);
  template <typename T>
  void upload(void* device, std::span<const T> values);
  void synchronize();

  DeviceSamplerLimits limits_;
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<DeviceSampler> sampler_;
  Buffer logits_, row_slots_, offsets_, target_ids_, pinned_;
  std::vector<std::unique_ptr<SamplerState>> states_;
};

}  // namespace quire::cuda
