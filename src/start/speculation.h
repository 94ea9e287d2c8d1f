// Speculative decoding, as the configuration describes it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "quire/status.h"
#include "sched/scheduler.h"

namespace quire {

enum class DraftModelKind {
  kModel,   // an ordinary model, which reads tokens
  kEagle3,  // a head, which also reads hidden states of the target (model/eagle3)
  // A head in the target's own checkpoint (model/mtp). With a `model`, the drafter of Gemma 4,
  // which has a checkpoint of its own (model/gemma4_drafter).
  kMtp,
  kDFlash,  // a block drafter, which reads hidden states of the target (model/dflash)
  kDSpark,  // kDFlash with transitions between drafts
};

struct DraftModelChoice {
  DraftModelKind kind = DraftModelKind::kModel;
  // A directory, or a name in the hub's cache. Empty: with kMtp, the target's checkpoint; otherwise
  // the drafter of the embedded model.
  std::string model;
  std::string method = {};  // of `speculative_config`: names the embedded drafter
  int num_drafts = 0;       // per sequence and step
};

// The expected value in the error for a `speculative_config` that names no drafter.
inline constexpr std::string_view kWhichDrafter =
    "the drafter's directory, or its name in the hub's cache";

// Without a drafter, every step computes one token per decoding sequence.
struct Speculation {
  std::string method = {};  // as `speculative_config` names it; empty: no drafter
  // The configuration leaves the method to the checkpoint. Until settle_method(), `method` is then
  // the method for a checkpoint without a layer for drafts.
  bool is_auto = false;
  int num_drafts = 0;
  std::vector<DraftRange> draft_ranges = {};
  Verification verification = {};
  // With a method, exactly one of these two is set.
  std::optional<DraftModelChoice> draft_model = {};
  std::optional<LookupConfig> lookup = {};
  // For tests: makes a drafter that replaces these two.
  std::function<Result<std::shared_ptr<Drafter>>(DeviceContext&, const DrafterLimits&)>
      make_drafter = {};
  bool wants_no_padding = false;  // refused on a GPU, whose drafters compute padded batches
};

// Reads EngineConfig::speculative_config, a JSON object with vLLM's keys; empty: no speculation.
// Errors begin with the wrong key; the caller adds the name of its setting.
Result<Speculation> read_speculation(std::string_view speculative_config);

// Chooses the method if `speculation`, read from the configuration, leaves it to the checkpoint.
// has_own_drafter: of the checkpoint (start/draft_model.h).
Result<Speculation> settle_method(const Speculation& speculation,
                                  std::string_view speculative_config, bool has_own_drafter);

// Fails if the configuration asks for unpadded drafts, which only a CPU computes. Called for a GPU.
Status refuse_unpadded_drafts(const Speculation& speculation);

// Names the method and its number of drafts, for example "eagle3, up to 4 tokens per step".
std::string describe_drafts(std::string_view method, int num_drafts);

}  // namespace quire
