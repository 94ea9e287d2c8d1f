// The wall clock's time as text.
#pragma once

#include <chrono>
#include <string>

namespace quire {

// Returns the time in UTC as RFC 3339 writes it, with microseconds: "2026-11-23T09:00:00.000000Z".
// The year is at most 9999.
std::string utc_time(std::chrono::system_clock::time_point time);

}  // namespace quire
