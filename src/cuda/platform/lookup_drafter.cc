#include "cuda/platform/lookup_drafter.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "cuda/base/memory.h"
#include "cuda/platform/lookup_kernel.h"

namespace quire::cuda {
namespace {

static_assert(kMaxLookupVotes == LookupConfig::kMaxVotes && kMaxLookupDrafts == kMaxDrafts);

// Tokens per slot of the pinned ring. The ring's slots together hold the prompts that most steps
// add, so that the host does not wait for the steps in flight.
constexpr size_t kStagedTokens = size_t{256} << 10;

// Copies arrays to the device through slots of a pinned ring. A slot holds many arrays, or a part
// of one.
class Upload {
 public:
  Upload(PinnedRing& ring, CudaStream& stream) : ring_(ring), stream_(stream) {}
  ~Upload() {
    if (staging_ != nullptr) ring_.end(stream_);
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  Status copy(std::span<const int32_t> from, int32_t* device) {
    while (!from.empty()) {
      QUIRE_RETURN_IF_ERROR(make_room());
      const size_t count = std::min(from.size(), kStagedTokens - num_staged_);
      int32_t* const staged = staging_ + num_staged_;
      std::copy_n(from.begin(), count, staged);
      stream_.copy_to_device(device, staged, count * sizeof(int32_t));
      num_staged_ += count;
      device += count;
      from = from.subspan(count);
    }
    return {};
  }

 private:
  Status make_room() {
    if (staging_ != nullptr && num_staged_ < kStagedTokens) return {};
    if (staging_ != nullptr) ring_.end(stream_);
    staging_ = nullptr;
    QUIRE_ASSIGN_OR_RETURN(std::byte* const slot, ring_.begin(stream_));
    staging_ = reinterpret_cast<int32_t*>(slot);
    num_staged_ = 0;
    return {};
  }

  PinnedRing& ring_;
  CudaStream& stream_;
  int32_t* staging_ = nullptr;  // null: no slot of the ring is in use
  size_t num_staged_ = 0;
};

class LookupDrafter final : public CudaDrafter {
 public:
  static Result<std::shared_ptr<CudaDrafter>> create(const LookupConfig& config,
                                                     const DrafterLimits& limits,
                                                     CudaStream& stream) {
    QUIRE_CHECK(config.min_match >= 1 && config.min_match <= config.max_match &&
                    limits.num_drafts <= kMaxLookupDrafts,
                "[cuda] the bounds of a lookup's matches or drafts are out of range");
    std::shared_ptr<LookupDrafter> drafter(new LookupDrafter(config, limits));
    QUIRE_ASSIGN_OR_RETURN(drafter->ring_, PinnedRing::create(kStagedTokens * sizeof(int32_t)));
    QUIRE_ASSIGN_OR_RETURN(drafter->memory_, device_memory(device_bytes(limits)));
    stream.set_zero(drafter->memory_.data(), device_bytes(limits));
    BumpAllocator allocator(drafter->memory_.data());
    drafter->slots_ = lay_out(allocator, limits);
    return std::shared_ptr<CudaDrafter>(std::move(drafter));
  }

  static size_t device_bytes(const DrafterLimits& limits) {
    BumpAllocator allocator;
    (void)lay_out(allocator, limits);
    return allocator.num_bytes();
  }

  Status update_slots(const BatchPlan& plan, CudaStream& stream) override {
    Upload upload(ring_, stream);
    for (const SlotAdded& added : plan.slots_added) {
      const auto length = static_cast<int32_t>(added.token_ids.size());
      QUIRE_CHECK(length <= slots_.max_tokens, "[cuda] a sequence is longer than max_model_len");
      QUIRE_RETURN_IF_ERROR(upload.copy({&length, 1}, slots_.lengths + added.slot));
      int32_t* const tokens = slots_.tokens + static_cast<int64_t>(added.slot) * slots_.max_tokens;
      QUIRE_RETURN_IF_ERROR(upload.copy(added.token_ids.get(), tokens));
    }
    return {};
  }

  Status propose(const CudaDraftCall& call, CudaStream& stream) override {
    launch_lookup(slots_, rules_,
                  {.slots = call.slots,
                   .num_spans = call.num_spans,
                   .num_drafts = call.num_drafts,
                   .num_computed = call.num_computed,
                   .next_tokens = call.next_tokens},
                  stream);
    return {};
  }

 private:
  LookupDrafter(const LookupConfig& config, const DrafterLimits& limits)
      : rules_{.min_match = config.min_match,
               .max_match = config.max_match,
               .num_votes = config.by_vote ? LookupConfig::kMaxVotes : 1,
               .max_drafts = limits.num_drafts} {}

  static LookupSlots lay_out(BumpAllocator& allocator, const DrafterLimits& limits) {
    const auto num_slots = static_cast<size_t>(limits.max_num_seqs);
    const auto max_tokens = static_cast<size_t>(limits.max_model_len);
    return {.tokens = allocator.allocate<int32_t>(num_slots * max_tokens),
            .lengths = allocator.allocate<int32_t>(num_slots),
            .max_tokens = limits.max_model_len};
  }

  LookupRules rules_;
  PinnedRing ring_;
  Buffer memory_;
  LookupSlots slots_;
};

}  // namespace

Result<std::shared_ptr<CudaDrafter>> make_lookup_drafter(const LookupConfig& config,
                                                         const DrafterLimits& limits,
                                                         CudaStream& stream) {
  return LookupDrafter::create(config, limits, stream);
}

size_t lookup_drafter_bytes(const DrafterLimits& limits) {
  return LookupDrafter::device_bytes(limits);
}

}  // namespace quire::cuda
