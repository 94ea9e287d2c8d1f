#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace quire {

// Limits on one render. Exceeding one of them ends the render with an error.
struct TemplateLimits {
  // The limit on work. A step is a node evaluated, an item visited or 64 bytes of text read.
  int64_t max_steps = 2'000'000;
  size_t max_output_bytes = size_t{8} << 20;
  size_t max_source_bytes = size_t{1} << 20;
  int max_depth = 100;                       // nesting of the source, and of macro calls
  size_t max_live_bytes = size_t{64} << 20;  // memory allocated by the template: strings, lists
  // The time for strftime_now, in seconds since the epoch, shown in UTC. nullopt: the machine's
  // clock in its time zone.
  std::optional<int64_t> now_unix_s = std::nullopt;
};

}  // namespace quire
