#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace quire {

// Limits on one render; beyond any of them the render ends with an error.
struct TemplateLimits {
  // Work: a node evaluated, an item visited or 64 bytes of text read is a step.
  int64_t max_steps = 2'000'000;
  size_t max_output_bytes = size_t{8} << 20;
  size_t max_source_bytes = size_t{1} << 20;
  int max_depth = 100;                       // nesting of the source, and of macro calls
  size_t max_live_bytes = size_t{64} << 20;  // memory made by the template: strings, lists
  // The time for strftime_now, in seconds since the epoch and in UTC; when absent, the machine's
  // clock in its time zone.
  std::optional<int64_t> now_unix_s = std::nullopt;
};

}  // namespace quire
