// Which drafter an engine speculates with, and how far.
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

// Without a drafter every step computes one token per decoding sequence.
struct Speculation {
  int num_drafts = 0;
  // The context is the one that the drafter computes on, with the model that is sampled from.
  std::function<Result<std::unique_ptr<Drafter>>(DeviceContext&, const DrafterLimits&)>
      make_drafter = {};
};

// Engine::create of an engine that speculates. May throw where it does not.
Result<std::unique_ptr<Engine>> create_engine(const EngineConfig& config,
                                              const Speculation& speculation,
                                              const LoadProgress& progress = {});

}  // namespace quire
