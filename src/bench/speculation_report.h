// The effect of speculative decoding during a measurement, as all benchmarks report it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "quire/engine.h"

namespace quire::bench {

struct MeasuredSpeculation {
  SpeculationStats stats = {};
  bool has_synthetic_acceptance = false;
};

// Reads the totals of vLLM's counters (vllm:spec_decode_*) and of Quire's own from a server's
// /metrics. The series of a counter, such as one per engine, are added up. Returns nullopt if the
// server has none.
std::optional<MeasuredSpeculation> parse_speculation(std::string_view metrics);

// Adds `other` times `factor` to `stats`. A factor of -1 gives a difference.
void add(SpeculationStats& stats, const SpeculationStats& other, int64_t factor);

// One line; empty without speculation.
std::string draft_line(const MeasuredSpeculation& speculation);
// Writes the field "speculation" into the JSON object that is open; nothing without speculation.
void write_speculation(JsonWriter& json, const MeasuredSpeculation& speculation);

}  // namespace quire::bench
