#include "cli/bench_serve_load.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/progress.h"

namespace quire::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::milliseconds(50);
constexpr size_t kMaxErrorBytes = 2048;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Reads the response of one call: its stream, or the error body.
class CallReader final : public http_client::ResponseHandler {
 public:
  CallReader(ServedAnswer& answer, std::function<void()> on_over)
      : answer_(answer), on_over_(std::move(on_over)), stream_(answer, Clock::now()) {}

  void on_head(int status) override { status_ = status; }

  void on_body(std::string_view piece) override {
    if (status_ == 200) {
      stream_.feed(piece, Clock::now());
    } else {
      refusal_.append(piece.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, refusal_.size())));
    }
  }

  void on_end(const Status& status) override {
    if (status_ == 200 && status.ok()) {
      stream_.finish();
    } else if (answer_.end != ServedAnswer::End::kFailed) {
      answer_.end = ServedAnswer::End::kFailed;
      answer_.error_kind = !status.ok() ? (status_ == 0 ? "no answer" : "cut stream")
                                        : fmt::format("HTTP {}", status_);
      answer_.error_message = status.ok() ? refusal_ : status.message();
    }
    on_over_();
  }

 private:
  ServedAnswer& answer_;
  std::function<void()> on_over_;
  StreamReader stream_;
  int status_ = 0;
  std::string refusal_;
};

class Load : public std::enable_shared_from_this<Load> {
 public:
  Load(http_client::Client& client, const std::vector<TimedCall>& calls, const LoadConfig& config)
      : client_(client), calls_(calls), config_(config), answers_(calls.size()) {
    if (!config.progress.empty()) progress_.emplace(config.progress, calls.size());
  }

  LoadResult run() {
    const double cpu_before = cpu_seconds();
    start_ = Clock::now();
    send_due();
    tick();
    if (num_over_ < calls_.size()) client_.run();
    is_over_ = true;
    LoadResult result;
    result.duration_s = seconds(Clock::now() - start_);
    result.cpu_s = cpu_seconds() - cpu_before;
    result.peak_concurrent = peak_;
    result.answers = answers_;  // a copy: calls still running keep writing to the member
    return result;
  }

 private:
  bool has_place() const {
    return config_.max_concurrency == 0 || in_flight() < config_.max_concurrency;
  }
  int in_flight() const { return static_cast<int>(next_ - num_over_); }

  void send_due() {
    if (is_over_) return;
    while (next_ < calls_.size() && has_place()) {
      const Clock::time_point due =
          start_ + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(calls_[next_].due_s));
      if (due > Clock::now()) return wait_until(due);
      send(next_++);
    }
  }

  // Keeps at most one timer, which is set for the next call.
  void wait_until(Clock::time_point due) {
    if (is_waiting_) return;
    is_waiting_ = true;
    client_.call_at(due, [self = shared_from_this()] {
      self->is_waiting_ = false;
      self->send_due();
    });
  }

  void send(size_t idx) {
    peak_ = std::max(peak_, in_flight());
    answers_[idx].sent_s = seconds(Clock::now() - start_);
    client_.send({.method = "POST", .target = config_.target, .body = calls_[idx].body},
                 std::make_shared<CallReader>(answers_[idx],
                                              [self = shared_from_this()] { self->on_over(); }));
  }

  void on_over() {
    if (is_over_) return;
    ++num_over_;
    if (progress_) progress_->update(num_over_, fmt::format("{} in work", in_flight()));
    if (num_over_ == calls_.size()) return client_.stop();
    send_due();
  }

  void tick() {
    if (is_over_) return;
    if (config_.interrupted()) return client_.stop();
    client_.call_at(Clock::now() + kTick, [self = shared_from_this()] { self->tick(); });
  }

  http_client::Client& client_;
  const std::vector<TimedCall>& calls_;
  const LoadConfig& config_;
  std::vector<ServedAnswer> answers_;  // one per call, never resized: readers hold references
  std::optional<Progress> progress_;
  Clock::time_point start_;
  size_t next_ = 0;  // index of the next call to send
  size_t num_over_ = 0;
  int peak_ = 0;
  bool is_waiting_ = false;
  bool is_over_ = false;
};

}  // namespace

LoadResult run_load(http_client::Client& client, const std::vector<TimedCall>& calls,
                    const LoadConfig& config) {
  return std::make_shared<Load>(client, calls, config)->run();
}

}  // namespace quire::cli
