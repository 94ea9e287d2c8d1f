// Decides the sampling values of requests without their own, for the command line and the server.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config.h"
#include "quire/engine.h"

namespace quire {

// If the model states any of temperature, top_p, top_k and min_p, the others are off; otherwise
// `fallback` gives all four. A model with "do_sample": false is greedy. A repetition penalty is
// always the model's own.
SamplingDefaults choose_sampling_defaults(const GenerationConfig& model, SamplingFallback fallback);

// Name and number of each value that a model may give a default: {"temperature", "0.8"}, …
std::vector<std::pair<std::string_view, std::string>> default_values(const SamplingParams& params);
// "temperature 0.8, top_p 0.95, top_k 40, min_p 0.05, repetition_penalty 1".
std::string describe(const SamplingParams& params);
// describe() of the values, with "; from" and the source.
std::string describe(const SamplingDefaults& defaults);

}  // namespace quire
