// A tiny random model of every family, for tests that divide models among ranks: 8 heads of queries
// and, but for latent attention, 2 of keys and values or 1, and 101 tokens.
#pragma once

#include <vector>

#include "quire/config.h"

namespace quire::testing {

struct TinyFamily {
  const char* architecture;
  const char* name;
  const char* fields;  // of config.json, besides those of all
};

const std::vector<TinyFamily>& tiny_families();
// Dummy weights in F32, and a context of 128 tokens.
EngineConfig config_of(const TinyFamily& family);

}  // namespace quire::testing
