#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace quire::cli {

// A progress bar on standard error. Shows nothing if that is not a terminal or if the work ends
// soon.
class Progress {
 public:
  Progress(std::string label, size_t total);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether update() would draw now. Frequent callers use it to skip the work for an update.
  bool is_due() const;
  // Draws at most ten times per second; `note` is printed after the bar.
  void update(size_t done, std::string_view note = {});

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  size_t total_;
  bool enabled_;
  bool is_shown_ = false;
  Clock::time_point last_shown_;
};

// For example "label [#####-----] 50% 5/10 note".
std::string progress_line(std::string_view label, size_t done, size_t total, std::string_view note);

}  // namespace quire::cli
