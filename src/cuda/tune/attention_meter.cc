#include "cuda/tune/attention_meter.h"

#include <algorithm>
#include <utility>

#include "cuda/base/device_info.h"
#include "cuda/base/stream.h"
#include "cuda/step/decode_graphs.h"

namespace quire::cuda {
namespace {

// The share of free memory for keys and values; the rest is for queries, workspaces and libraries.
constexpr double kPoolShare = 0.8;

constexpr int kCallsPerReplay = 4;
constexpr int kRounds = 7;
// Each round takes several samples of a short call: at 5 µs a single one is off by a few percent.
constexpr double kShortCallUs = 100.0;
constexpr int kShortSamples = 7;
constexpr double kLongCallUs = 1000.0;
constexpr int kSparedRounds = 3;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One backend at one batch: its plan, captured in a graph.
class Contender {
 public:
  Contender(AttentionBackend& backend, const DeviceBatch& batch, const Stopwatch& watch,
            CudaStream& stream)
      : backend_(&backend), batch_(&batch), watch_(&watch), stream_(&stream) {}

  Status prepare(const MeasureConfig& config) {
    QUIRE_ASSIGN_OR_RETURN(plan_, backend_->make_plan(batch_->shape(), batch_->limits()));
    const size_t num_bytes = plan_->workspace_bytes();
    QUIRE_ASSIGN_OR_RETURN(workspace_, device_memory(num_bytes));
    QUIRE_RETURN_IF_ERROR(plan_->update(batch_->batch(), *stream_));
    call_ = batch_->call({static_cast<std::byte*>(workspace_.data()), num_bytes});
    // The first call makes CUDA load the kernels.
    QUIRE_RETURN_IF_ERROR(call_once());
    QUIRE_ASSIGN_OR_RETURN(const double us, host_call());
    is_short_ = us < kShortCallUs;
    is_spared_ = config.spare_long_calls && us > kLongCallUs;
    return capture();
  }

  // Measures with events around the host's call.
  Result<double> host_call() {
    return watch_->time(*stream_, [&] { return plan_->run(call_, *stream_); });
  }

  Status take_samples(int round) {
    if (is_spared_ && round >= kSparedRounds) return {};
    for (int i = 0; i < (is_short_ ? kShortSamples : 1); ++i) {
      QUIRE_ASSIGN_OR_RETURN(const double us, replay());
      samples_.push_back(us);
    }
    return {};
  }
  double graph_us() { return median(samples_); }

 private:
  int num_calls() const { return is_spared_ ? 1 : kCallsPerReplay; }

  Status call_once() {
    QUIRE_RETURN_IF_ERROR(plan_->run(call_, *stream_));
    return stream_->synchronize();
  }
  Status capture() {
    const auto enqueue = [&]() -> Status {
      for (int i = 0; i < num_calls(); ++i) QUIRE_RETURN_IF_ERROR(plan_->run(call_, *stream_));
      return {};
    };
    QUIRE_ASSIGN_OR_RETURN(graph_, CudaGraph::capture(*stream_, enqueue));
    return replay().status();  // warms up
  }
  Result<double> replay() {
    QUIRE_ASSIGN_OR_RETURN(const double us, watch_->time(*stream_, [&]() -> Status {
      graph_.launch(*stream_);
      return {};
    }));
    return us / num_calls();
  }

  AttentionBackend* backend_;
  const DeviceBatch* batch_;
  const Stopwatch* watch_;
  CudaStream* stream_;
  std::unique_ptr<AttentionPlan> plan_;
  Buffer workspace_;
  AttentionCall call_;
  CudaGraph graph_;
  bool is_short_ = false;
  bool is_spared_ = false;
  std::vector<double> samples_;
};

Status time_host_calls(const MeasureConfig& config, Contender& contender, AttentionTimes& times) {
  for (int i = 0; i < config.num_warmups; ++i) {
    QUIRE_RETURN_IF_ERROR(contender.host_call().status());
  }
  for (int i = 0; i < config.num_trials; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const double us, contender.host_call());
    times.event_us.push_back(us);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<AttentionMeter>> AttentionMeter::create(const MeasureConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CudaStream> stream, CudaStream::create());
  int64_t num_pages = 1;
  for (const AttentionWorkload& workload : config.workloads) {
    num_pages = std::max(num_pages, wanted_pages(workload, config.shape));
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t free_bytes, free_device_bytes(stream->limits().device));
  const auto room =
      static_cast<int64_t>(kPoolShare * static_cast<double>(free_bytes)) / page_bytes(config.shape);
  num_pages = std::clamp<int64_t>(num_pages, 1, std::max<int64_t>(room - 1, 1));
  QUIRE_ASSIGN_OR_RETURN(Buffer pages, random_pages(config.shape, num_pages));
  return std::unique_ptr<AttentionMeter>(
      new AttentionMeter(config, std::move(stream), std::move(pages), num_pages));
}

Result<MeasuredWorkload> AttentionMeter::measure(const AttentionWorkload& workload,
                                                 std::span<AttentionBackend* const> backends) {
  DeviceBatch batch(config_.shape, workload);
  QUIRE_RETURN_IF_ERROR(batch.fill(pages_, num_pages_));
  QUIRE_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  QUIRE_ASSIGN_OR_RETURN(const Stopwatch watch, Stopwatch::create());
  MeasuredWorkload measured;
  measured.repeats_pages = wanted_pages(workload, config_.shape) > num_pages_;
  std::vector<Contender> contenders;
  for (AttentionBackend* backend : backends) {
    contenders.emplace_back(*backend, batch, watch, *stream_);
    measured.times.push_back({.backend = backend->name()});
  }
  // All contenders finish a step before any starts the next.
  const auto for_each = [&](const auto& step) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      AttentionTimes& times = measured.times[i];
      if (times.status.ok()) times.status = step(contenders[i], times);
    }
  };
  for_each([&](Contender& contender, AttentionTimes&) { return contender.prepare(config_); });
  for_each([&](Contender& contender, AttentionTimes& times) {
    return time_host_calls(config_, contender, times);
  });
  for (int round = 0; round < kRounds; ++round) {
    for_each([&](Contender& contender, AttentionTimes&) { return contender.take_samples(round); });
  }
  for_each([](Contender& contender, AttentionTimes& times) {
    times.graph_us = contender.graph_us();
    return Status();
  });
  // After an error too, all work must end before its memory is freed.
  QUIRE_RETURN_IF_ERROR(stream_->synchronize());
  return measured;
}

}  // namespace quire::cuda
