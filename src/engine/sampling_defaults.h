// Decides the sampling values of requests without their own. The command line and the server use
// the same decision, and describe it in the same words.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config.h"
#include "quire/engine.h"

namespace quire {

// The model's values are a set: if the model states one of temperature, top_p, top_k and min_p, the
// others are off. `fallback` gives all four if it states none. A model with "do_sample": false is
// greedy. A repetition penalty is the model's own in any case.
SamplingDefaults choose_sampling_defaults(const GenerationConfig& model, SamplingFallback fallback);

// Name and number of each value that a model may give a default: {"temperature", "0.8"}, …
std::vector<std::pair<std::string_view, std::string>> default_values(const SamplingParams& params);
// "temperature 0.8, top_p 0.95, top_k 40, min_p 0.05, repetition_penalty 1".
std::string describe(const SamplingParams& params);
// describe() of the values, with "; from" and the source.
std::string describe(const SamplingDefaults& defaults);

}  // namespace quire
