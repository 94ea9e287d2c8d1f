// Samples sequences on the device and by the CPU's definition, for comparison.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "cuda/sample/device_sampler.h"
#include "sample/sampler.h"

namespace quire::cuda {

// Returns ok, or the reason why there is no device to test on.
Status open_test_device();

// Random logits from nearly uniform (spread 1) to peaked (spread 8); `num_levels` > 0 rounds them,
// so that many are equal.
std::vector<float> random_logits(int count, float spread, int num_levels, std::mt19937& random);

struct Sampled {
  int32_t token_id = 0;
  PositionLogprobs logprobs;
  Status error;
};
struct Compared {
  Sampled device;
  Sampled host;
};
struct ComparedSpan {
  SpanResult device;
  SpanResult host;
};

// The masks of a step, and the index of each row's mask (< 0: none). Empty: no row has one.
struct StepMasks {
  std::vector<int32_t> idx = {};  // [slots.size()]
  std::vector<std::vector<uint32_t>> masks = {};
};

// The device has limits.num_ranks samplers; each chooses from its part of the vocabulary in steps
// that allow it. `limits.rank` is 0, and the results are those of rank 0.
class SamplerRig {
 public:
  static Result<std::unique_ptr<SamplerRig>> create(const DeviceSamplerLimits& limits);

  Status add_slots(const std::vector<SlotAdded>& added);
  // logits: [slots.size(), vocab_size]; slots < 0 are padding. Samples on both sides.
  std::vector<Compared> step(const std::vector<float>& logits, const std::vector<int32_t>& slots,
                             const StepMasks& masks = {});
  // Does what step() does, with the device's work captured in a graph and replayed.
  std::vector<Compared> step_captured(const std::vector<float>& logits,
                                      const std::vector<int32_t>& slots,
                                      const StepMasks& masks = {});

  // Samples a span of limits.num_drafts + 1 logits rows for each of slots (none is padding). The
  // first num_right[i] of its drafts are the tokens that the host samples, and the next one
  // differs.
  std::vector<ComparedSpan> step_spans(const std::vector<float>& logits,
                                       const std::vector<int32_t>& slots,
                                       const std::vector<int>& num_right, bool captured);

  DeviceSampler& sampler() { return *sampler_; }
  CudaStream& stream() { return *stream_; }
  TensorView logits_view(int num_rows) const;
  float* logits() const { return static_cast<float*>(logits_.data()); }
  int32_t* slots() const { return static_cast<int32_t*>(row_ids_.data()); }
  const int32_t* offsets() const { return static_cast<const int32_t*>(offsets_.data()); }
  // Plans a step of these rows, each a span of its own, for sampler().sample().
  SamplePlan plan(const std::vector<int32_t>& slots, const StepMasks& masks = {});
  // The plan of the last step.
  const SamplePlan& last_plan() const { return plan_; }
  int32_t last_token(int slot);
  int32_t num_computed(int slot);
  int num_tokens_on_host(int slot) const {
    return states_[static_cast<size_t>(slot)]->num_tokens();
  }
  int64_t num_copies() const { return num_copies_; }

 private:
  std::vector<Compared> run(const std::vector<float>& logits, const std::vector<int32_t>& slots,
                            const StepMasks& masks, bool captured);
  // Samples the logits rows on the device, and waits for the results.
  void run_on_device(const std::vector<float>& logits, const std::vector<int32_t>& slots,
                     const std::vector<int32_t>& offsets, const StepMasks& masks, bool captured);
  SamplePlan plan(const std::vector<int32_t>& slots, const std::vector<int32_t>& offsets,
                  const StepMasks& masks);
  void enqueue(bool captured);
  void sample();
  // Samples as ranks do: each from its part of the logits.
  void sample_parts();
  int32_t read_word(const int32_t* device);
  Sampled sample_on_host(int slot, std::vector<float> logits,
                         std::optional<std::span<const uint32_t>> mask);
  SpanResult sample_span_on_host(int slot, const float* logits, int num_right,
                                 std::span<int32_t> drafts);

  DeviceSamplerLimits limits_;
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<DeviceSampler> sampler_;
  std::vector<std::unique_ptr<DeviceSampler>> other_ranks_;
  std::vector<DeviceSampler*> samplers_;  // of all ranks
  std::vector<Buffer> parts_;             // of the logits, by rank
  Buffer logits_, row_ids_, offsets_, pinned_;
  std::vector<std::unique_ptr<SamplerState>> states_;
  SamplePlan plan_;
  int64_t num_copies_ = 0;  // to the host, of the last step
};

}  // namespace quire::cuda
