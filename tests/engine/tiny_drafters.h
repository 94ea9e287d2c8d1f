// Tiny models that draft for tiny models, and the requests of their tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quire/engine.h"

namespace quire::testing {

// The configuration with a drafter that always proposes num_drafts drafts. `model` is empty if the
// drafter is in the target's checkpoint.
EngineConfig with_drafter(EngineConfig config, const std::string& model, int num_drafts,
                          std::string_view method = "draft_model");

// Many share a prefix, of which some have the length of whole pages.
std::vector<Request> greedy_requests();
// The greedy requests with temperatures, rules and log probabilities.
std::vector<Request> sampled_requests();

// A model of 8 tokens: a random head is right so often that the number of accepted drafts shows
// whether the head computes the same.
EngineConfig eagle_target();
std::string eagle_head(int vocab_size = 8);
// Requests for a model of 8 tokens. Their prompts share prefixes, some of whole pages, and differ
// after them.
std::vector<Request> eagle_requests();

// A model of 8 tokens with layers for multi-token prediction.
EngineConfig mimo_target(int num_mtp_layers = 1);
// A model of 8 tokens with recurrent states and such a layer. has_experts: in every layer, also in
// the one for drafts. k_dim, v_dim: of the heads of delta nets.
EngineConfig qwen_target(bool has_experts, int k_dim = 8, int v_dim = 12);

// A Gemma 4 of 8 tokens, whose last layers share keys and values, and the path of a drafter for it.
EngineConfig gemma4_target();
std::string gemma4_drafter();

// The path of a block drafter for a model of 4 layers and hidden size 64. method: dflash or dspark.
std::string block_drafter(std::string_view method, int vocab_size = 8);
// The path of such a drafter in the layout of `speculators`, with 6 of the target's 8 tokens as its
// draft vocabulary.
std::string speculators_block_drafter(std::string_view method);

}  // namespace quire::testing
