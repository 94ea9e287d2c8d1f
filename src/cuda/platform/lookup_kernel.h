// The kernel that drafts by lookup. look_up_drafts (platform/drafter.h) defines its drafts.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda {

// Upper bounds that the kernel has shared memory for.
inline constexpr int kMaxLookupVotes = 64;
inline constexpr int kMaxLookupDrafts = 15;

// The known tokens of every slot.
struct LookupSlots {
  int32_t* tokens = nullptr;   // [max_num_seqs, max_tokens]
  int32_t* lengths = nullptr;  // [max_num_seqs]
  int max_tokens = 0;
};

// LookupConfig, and the number of drafts that a slot has space for.
struct LookupRules {
  int min_match = 1;
  int max_match = 1;
  int num_votes = 1;  // among the longest matches, the newest ones; at most kMaxLookupVotes
  int max_drafts = 0;
};

// The parts of a CudaDraftCall. Device code does not include its header, which uses simdjson and
// fmt.
struct LookupCall {
  const int32_t* slots = nullptr;
  int num_spans = 0;
  int num_drafts = 0;  // to write, at most LookupRules::max_drafts
  const int32_t* num_computed = nullptr;
  int32_t* next_tokens = nullptr;
};

// Appends the tokens that the step sampled to each span's slot, then writes the slot's drafts.
// Without a match they repeat the newest token.
void launch_lookup(const LookupSlots& slots, const LookupRules& rules, const LookupCall& call,
                   CudaStream& stream);

}  // namespace quire::cuda
