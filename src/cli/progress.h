#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace quire::cli {

// A bar on standard error while work goes on; nothing where that is not a terminal, nor for work
// that is soon done.
class Progress {
 public:
  Progress(std::string label, size_t total);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether an update would be shown: for callers that have news more often than that.
  bool is_due() const;
  // Shows at most ten times a second; `note` stands behind the bar.
  void update(size_t done, std::string_view note = {});

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  size_t total_;
  bool enabled_;
  bool is_shown_ = false;
  Clock::time_point last_shown_;
};

// "label [#####-----] 50% 5/10 note"
std::string progress_line(std::string_view label, size_t done, size_t total, std::string_view note);

}  // namespace quire::cli
