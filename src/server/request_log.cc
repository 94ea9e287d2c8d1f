#include "server/request_log.h"

#include <algorithm>

#include "base/log.h"
#include "server/openai/api_error.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

constexpr size_t kMaxIdBytes = 128;

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

std::string request_id(std::string_view wanted) {
  const bool is_usable = !wanted.empty() && wanted.size() <= kMaxIdBytes &&
                         std::ranges::all_of(wanted, is_id_character);
  return is_usable ? std::string(wanted) : random_id();
}

void RequestLog::write(int http_status) const {
  if (!log_enabled(LogLevel::kInfo)) return;
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - arrived).count();
  const auto count = [](int number) { return number > 0 ? std::to_string(number) : ""; };
  log_event(LogLevel::kInfo, "[server] answered",
            {{"request_id", id},
             {"peer", peer},
             {"method", method},
             {"path", path},
             {"status", std::to_string(http_status)},
             {"ms", fmt::format("{:.1f}", ms)},
             {"prompt_tokens", count(num_prompt_tokens)},
             {"completion_tokens", count(num_completion_tokens)},
             {"outcome", outcome}});
}

void RequestLog::write_failure(const ApiError& error) const {
  constexpr int kOurFault = 500;
  if (error.http_status != kOurFault) return;
  log_event(LogLevel::kError, "[server] failed",
            {{"request_id", id},
             {"method", method},
             {"path", path},
             {"cause", error.cause.empty() ? error.message : error.cause}});
}

}  // namespace quire::server
