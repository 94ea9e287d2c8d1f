// The sampling flags: one for each field of SamplingParams that a user may set.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags.h"
#include "quire/engine.h"
#include "quire/request.h"
#include "sample/sampling_fields.h"

namespace quire::cli {

// Whether the params ask for log probabilities, which only the JSON format can print.
bool asks_for_logprobs(const SamplingParams& params);

// The sampling flags given on the command line. They are applied over defaults that are known only
// once the model is loaded.
class SamplingFlags {
 public:
  // `max_tokens` describes the default of that field in --help.
  explicit SamplingFlags(std::string max_tokens) : max_tokens_(std::move(max_tokens)) {}

  // Adds one flag per field. This object must outlive the parse.
  void add_to(FlagSet& flags);
  SamplingParams applied_to(SamplingParams defaults) const;
  // Also adds the command line to the source if a flag replaces a value.
  SamplingDefaults applied_to(SamplingDefaults defaults) const;

 private:
  std::string max_tokens_;
  std::vector<std::function<void(SamplingParams&)>> edits_;
};

}  // namespace quire::cli
