// The host memory that requests in transit take: its upper bound, and when memory that they have
// freed goes back to the system.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "server/http/server.h"
#include "server/service.h"

namespace quire::server {

// Upper bounds in bytes. Limits of the transport and of the grammars enforce them.
struct TransitMemory {
  int64_t bodies = 0;     // --max-total-request-bytes, until they are parsed
  int64_t parsing = 0;    // by all workers at once, for the largest bodies and stored conversations
  int64_t responses = 0;  // not sent yet
  int64_t grammars = 0;
  int64_t connections = 0;  // heads, and the part of each response that the budget does not count
};

TransitMemory plan_transit_memory(const http::Limits& limits, const ServiceConfig& config);

// Returns one line for the log at start.
std::string describe(const TransitMemory& memory);

// Decides when the heap is trimmed: after traffic, as soon as only probes are in transit, and under
// continuous traffic every 30 s.
class TrimSchedule {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kMinBytes = int64_t{1} << 20;     // traffic that makes a trim worthwhile
  static constexpr int64_t kProbeBytes = int64_t{64} << 10;  // traffic per second of probes alone
  static constexpr std::chrono::seconds kMaxInterval{30};

  // Called about once per second. `num_bytes`: received and sent since the start. `is_idle`: no
  // request is in transit or runs.
  bool is_due(int64_t num_bytes, bool is_idle, Clock::time_point now);

 private:
  int64_t num_bytes_at_trim_ = 0;
  int64_t num_bytes_seen_ = 0;
  Clock::time_point trimmed_at_ = Clock::now();
};

}  // namespace quire::server
