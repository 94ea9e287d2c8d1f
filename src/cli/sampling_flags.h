// The sampling flags: one for each field of SamplingParams that a user may set.
#pragma once

#include <functional>
#include <vector>

#include "cli/flags.h"
#include "quire/request.h"
#include "sample/sampling_fields.h"

namespace quire::cli {

// Whether the params ask for log probabilities, which only the JSON format can print.
bool asks_for_logprobs(const SamplingParams& params);

// The sampling flags given on the command line. They are applied over defaults that are known only
// once the model is loaded.
class SamplingFlags {
 public:
  // `max_tokens` is the default for requests that do not set it.
  explicit SamplingFlags(int max_tokens) : max_tokens_(max_tokens) {}

  // Adds one flag per field. This object must outlive the parse.
  void add_to(FlagSet& flags);
  SamplingParams applied_to(SamplingParams defaults) const;

 private:
  int max_tokens_;
  std::vector<std::function<void(SamplingParams&)>> edits_;
};

}  // namespace quire::cli
