// Speculative decoding as the configuration asks for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/draft_model.h"
#include "platform/platform.h"
#include "quire/status.h"
#include "sched/scheduler.h"

namespace quire {

// Without a drafter, every step computes one token per decoding sequence.
struct Speculation {
  std::string method = {};  // as `speculative_config` names it; empty: no drafter
  int num_drafts = 0;
  std::vector<DraftRange> draft_ranges = {};
  Verification verification = {};
  std::optional<DraftModelChoice> draft_model = {};  // absent: make_drafter makes the drafter
  // The drafter computes on this context, together with the target model.
  std::function<Result<std::unique_ptr<Drafter>>(DeviceContext&, const DrafterLimits&)>
      make_drafter = {};
  bool by_lookup = false;         // make_drafter calls DeviceContext::make_lookup_drafter
  bool wants_no_padding = false;  // refused on a GPU, whose drafters compute padded batches
};

// Reads EngineConfig::speculative_config, a JSON object with vLLM's keys; empty: no speculation.
// Errors begin with the wrong key; the caller adds the name of its setting.
Result<Speculation> read_speculation(std::string_view speculative_config);

// Names the method and its number of drafts, for example "eagle3, up to 4 tokens per step". There
// must be a drafter.
std::string describe(const Speculation& speculation);

}  // namespace quire
