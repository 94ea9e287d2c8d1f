#include "server/transit_memory.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/numbers.h"
#include "grammar/grammar_compiler.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

// Bytes of one JSON value of a conversation: a string, the most expensive kind, and its share of a
// list's spare capacity.
constexpr int64_t kTemplateValueBytes = 200;
// A response of up to 64 KiB, which the response budget does not count, and OpenSSL's buffers.
constexpr int64_t kConnectionBytes = int64_t{128} << 10;
// A connection can hold a head as text and as fields in strings, and the text of the next head.
constexpr int64_t kHeadCopies = 3;

int64_t mib(int64_t bytes) {
  return ceil_div(bytes, int64_t{1} << 20);
}

}  // namespace

TransitMemory plan_transit_memory(const http::Limits& limits, const ServiceConfig& config) {
  const auto head_bytes = static_cast<int64_t>(limits.max_header_bytes);
  const RequestLimits request;
  const int64_t bytes_per_body =
      kJsonParserBytesPerByte * static_cast<int64_t>(limits.max_body_bytes) +
      kTemplateValueBytes * static_cast<int64_t>(request.max_template_values);
  const bool is_storing = config.stored_responses.max_responses > 0;
  const int64_t bytes_per_stored =
      is_storing ? kJsonParserBytesPerByte * static_cast<int64_t>(request.max_stored_conversation)
                 : 0;
  return {.bodies = static_cast<int64_t>(limits.max_total_body_bytes),
          .parsing = (config.num_workers + kNumTokenizeWorkers) * bytes_per_body +
                     config.num_workers * bytes_per_stored,
          .responses = static_cast<int64_t>(limits.max_total_response_bytes),
          .grammars = static_cast<int64_t>(GrammarLimits().shared_bytes),
          .connections = limits.max_connections * (kConnectionBytes + kHeadCopies * head_bytes)};
}

std::string describe(const TransitMemory& memory) {
  const int64_t total =
      memory.bodies + memory.parsing + memory.responses + memory.grammars + memory.connections;
  return fmt::format(
      "requests in transit take at most {} MiB of host memory: bodies {}, parsing {}, unread "
      "responses {}, grammars {}, connections {}",
      mib(total), mib(memory.bodies), mib(memory.parsing), mib(memory.responses),
      mib(memory.grammars), mib(memory.connections));
}

bool TrimSchedule::is_due(int64_t num_bytes, bool is_idle, Clock::time_point now) {
  const bool is_quiet = is_idle && num_bytes - num_bytes_seen_ <= kProbeBytes;
  num_bytes_seen_ = num_bytes;
  if (num_bytes - num_bytes_at_trim_ < kMinBytes) return false;
  if (!is_quiet && now - trimmed_at_ < kMaxInterval) return false;
  num_bytes_at_trim_ = num_bytes;
  trimmed_at_ = now;
  return true;
}

}  // namespace quire::server
