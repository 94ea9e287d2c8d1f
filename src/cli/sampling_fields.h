// The sampling flags: one for each field of SamplingParams that a user may set.
#pragma once

#include <functional>
#include <vector>

#include "cli/flags.h"
#include "quire/request.h"
#include "sample/sampling_fields.h"

namespace quire::cli {

// Only JSON has a place for what these ask for.
bool asks_for_logprobs(const SamplingParams& params);

// What the command line said, to be laid over defaults that are known only once a model is loaded.
class SamplingFlags {
 public:
  // max_tokens: of requests that say nothing about it.
  explicit SamplingFlags(int max_tokens) : max_tokens_(max_tokens) {}

  // One flag a field. This object outlives the parse.
  void add_to(FlagSet& flags);
  SamplingParams over(SamplingParams defaults) const;

 private:
  int max_tokens_;
  std::vector<std::function<void(SamplingParams&)>> edits_;
};

}  // namespace quire::cli
