// The drafter of an engine and its number of draft tokens.
#pragma once

#include <functional>
#include <memory>

#include "platform/drafter.h"
#include "platform/platform.h"
#include "quire/engine.h"

namespace quire {

struct DrafterLimits {
  int num_drafts = 0;
  int max_num_seqs = 0;
  int max_model_len = 0;
  int vocab_size = 0;
};

// Without a drafter, every step computes one token per decoding sequence.
struct Speculation {
  int num_drafts = 0;
  // The drafter computes on this context, together with the target model.
  std::function<Result<std::unique_ptr<Drafter>>(DeviceContext&, const DrafterLimits&)>
      make_drafter = {};
};

// Same as Engine::create for an engine with speculation, but may throw where Engine::create does
// not.
Result<std::unique_ptr<Engine>> create_engine(const EngineConfig& config,
                                              const Speculation& speculation,
                                              const LoadProgress& progress = {});

}  // namespace quire
