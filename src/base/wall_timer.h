// Measures wall time.
#pragma once

#include <chrono>

namespace quire {

class WallTimer {
 public:
  // Seconds since the construction.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace quire
