#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/output.h"

namespace quire::cli {

std::string progress_line(std::string_view label, size_t done, size_t total,
                          std::string_view note) {
  constexpr size_t kWidth = 30;
  const double share =
      total == 0 ? 1.0 : static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(share * kWidth);
  return fmt::format("{} [{:#>{}}{:->{}}] {:3.0f}% {}/{}{}{}", label, "", filled, "",
                     kWidth - filled, share * 100.0, done, total, note.empty() ? "" : "  ", note);
}

Progress::Progress(std::string label, size_t total)
    : label_(std::move(label)),
      total_(total),
      enabled_(::isatty(STDERR_FILENO) == 1),
      last_shown_(Clock::now()) {}

Progress::~Progress() {
  if (is_shown_) print_stderr("\r\033[K");
}

bool Progress::is_due() const {
  return enabled_ && Clock::now() - last_shown_ >= std::chrono::milliseconds(100);
}

void Progress::update(size_t done, std::string_view note) {
  const bool is_last = is_shown_ && done >= total_;
  if (!is_last && !is_due()) return;
  last_shown_ = Clock::now();
  is_shown_ = true;
  print_stderr("\r{}\033[K", progress_line(label_, done, total_, note));
  std::fflush(stderr);
}

}  // namespace quire::cli
