#include "cuda/platform/device_drafter.h"

#include <utility>

#include "cuda/base/memory.h"
#include "cuda/platform/cuda_drafter.h"
#include "cuda/platform/device_drafter_kernel.h"

namespace quire::cuda {
namespace {

class DeviceDrafter final : public CudaDrafter {
 public:
  static Result<std::shared_ptr<Drafter>> create(const testing::RecordedOutputs& outputs,
                                                 const DrafterLimits& limits) {
    std::shared_ptr<DeviceDrafter> drafter(new DeviceDrafter(outputs, limits));
    const auto slots = static_cast<size_t>(limits.max_num_seqs);
    const size_t num_words = slots * static_cast<size_t>(limits.max_model_len + 1);
    QUIRE_ASSIGN_OR_RETURN(drafter->memory_, device_memory(num_words * sizeof(int32_t)));
    return std::shared_ptr<Drafter>(std::move(drafter));
  }

  // A copy from pageable memory has read the host's memory when it returns.
  Status update_slots(const BatchPlan& plan, CudaStream& stream) override {
    for (const SlotAdded& added : plan.slots_added) {
      std::vector<int32_t> tokens(added.token_ids.begin(),
                                  added.token_ids.begin() + added.num_prompt_tokens);
      const std::vector<int32_t>& output = outputs_.at(tokens);
      tokens.insert(tokens.end(), output.begin(), output.end());
      const auto length = static_cast<int32_t>(tokens.size());
      stream.copy_to_device(lengths() + added.slot, &length, sizeof length);
      stream.copy_to_device(this->tokens() + added.slot * limits_.max_model_len, tokens.data(),
                            tokens.size() * sizeof(int32_t));
    }
    return {};
  }

  Status propose(const CudaDraftCall& call, CudaStream& stream) override {
    launch_draft({.tokens = tokens(),
                  .lengths = lengths(),
                  .max_tokens = limits_.max_model_len,
                  .num_drafts = limits_.num_drafts,
                  .vocab_size = limits_.vocab_size},
                 {.slots = call.slots,
                  .num_spans = call.num_spans,
                  .num_computed = call.num_computed,
                  .next_tokens = call.next_tokens},
                 stream);
    return {};
  }

 private:
  DeviceDrafter(const testing::RecordedOutputs& outputs, const DrafterLimits& limits)
      : outputs_(outputs), limits_(limits) {}

  int32_t* lengths() { return static_cast<int32_t*>(memory_.data()); }
  int32_t* tokens() { return lengths() + limits_.max_num_seqs; }

  const testing::RecordedOutputs& outputs_;
  DrafterLimits limits_;
  Buffer memory_;  // lengths [slots], tokens [slots, max_model_len]
};

}  // namespace

Result<std::shared_ptr<Drafter>> make_device_drafter(const testing::RecordedOutputs& outputs,
                                                     const DrafterLimits& limits) {
  return DeviceDrafter::create(outputs, limits);
}

}  // namespace quire::cuda
