#include "base/utc_time.h"

#include <fmt/format.h>

#include <ctime>

namespace quire {

std::string utc_time(std::chrono::system_clock::time_point time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto fraction = std::chrono::floor<std::chrono::microseconds>(time - second);
  const std::time_t since_epoch = std::chrono::system_clock::to_time_t(second);
  std::tm utc{};
  ::gmtime_r(&since_epoch, &utc);
  char text[32] = "";
  std::strftime(text, sizeof(text), "%FT%T", &utc);
  return fmt::format("{}.{:06}Z", text, fraction.count());
}

}  // namespace quire
