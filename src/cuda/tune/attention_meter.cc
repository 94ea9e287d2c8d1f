#include "cuda/tune/attention_meter.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "base/numbers.h"
#include "cuda/base/device_info.h"
#include "cuda/base/stream.h"
#include "cuda/step/decode_graphs.h"
#include "measure/rounds.h"
#include "platform/runner.h"

namespace quire::cuda {
namespace {

template <typename T>
Result<Buffer> upload(const std::vector<T>& values) {
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(values.size() * sizeof(T)));
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return buffer;
}

// Random numbers, which are finite because the exponent bits are restricted. Magnitudes in 16-bit
// formats are from 0.5 to below 2, and in E4M3 from 0 to below 2.
Result<Buffer> random_memory(size_t num_bytes, DType dtype) {
  std::mt19937 random(1);
  std::vector<uint16_t> chunk(std::min(size_t{16} << 20, (num_bytes + 1) / 2));
  for (uint16_t& x : chunk) {
    const auto bits = static_cast<uint16_t>(random());
    x = dtype == DType::kF8E4M3 ? bits & 0xBFBF : static_cast<uint16_t>((bits & 0x80FF) | 0x3F00);
  }
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(num_bytes));
  auto* bytes = static_cast<std::byte*>(buffer.data());
  size_t done = std::min(chunk.size() * sizeof(uint16_t), num_bytes);
  QUIRE_CUDA_RETURN_IF_ERROR(cudaMemcpy(bytes, chunk.data(), done, cudaMemcpyHostToDevice));
  for (; done < num_bytes; done = std::min(2 * done, num_bytes)) {
    QUIRE_CUDA_RETURN_IF_ERROR(cudaMemcpy(bytes + done, bytes, std::min(done, num_bytes - done),
                                          cudaMemcpyDeviceToDevice));
  }
  return buffer;
}

// `count` distinct pages, contiguous in memory, in random order.
std::vector<int32_t> distinct_pages(int64_t count, std::mt19937_64& random) {
  std::vector<int32_t> pages(static_cast<size_t>(count));
  std::iota(pages.begin(), pages.end(), 1);
  std::shuffle(pages.begin(), pages.end(), random);
  return pages;
}

std::vector<int32_t> drawn_pages(int64_t count, int64_t num_pages, std::mt19937_64& random) {
  std::vector<int32_t> pages(static_cast<size_t>(count));
  for (int32_t& page : pages) {
    page = 1 + static_cast<int32_t>(random() % static_cast<uint64_t>(num_pages));
  }
  return pages;
}

int64_t page_bytes(const AttentionShape& shape) {
  return kv_layout(shape).page_bytes();
}

// The number of distinct pages that the workload uses.
int64_t wanted_pages(const AttentionWorkload& workload, const AttentionShape& shape) {
  return workload.pool_pages > 0 ? workload.pool_pages
                                 : quire::num_pages(workload, shape.page_size);
}

// Allocates keys and values of num_pages pages, and page 0, which is never read.
Result<Buffer> random_pages(const AttentionShape& shape, int64_t num_pages) {
  return random_memory(static_cast<size_t>((num_pages + 1) * page_bytes(shape)), shape.kv);
}

// A batch of random queries, keys and values in device memory, for measurements.
class DeviceBatch {
 public:
  DeviceBatch(const AttentionShape& shape, const AttentionWorkload& workload)
      : shape_(shape), workload_(workload) {}
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;

  // Chooses the batch's pages among the num_pages of `pages`; they repeat if the batch needs more.
  Status fill(const Buffer& pages, int64_t num_pages);

  const AttentionShape& shape() const { return shape_; }
  const AttentionBatch& batch() const { return batch_; }
  PlanLimits limits() const;
  AttentionCall call(std::span<std::byte> workspace) const;

 private:
  int num_tokens() const { return workload_.num_reqs() * workload_.q_len; }
  std::vector<int32_t> block_table(int64_t num_pages) const;
  int max_pages() const { return ceil_div(workload_.longest(), shape_.page_size); }
  void describe();

  const AttentionShape& shape_;
  const AttentionWorkload& workload_;
  std::vector<int32_t> query_start_;
  Buffer device_block_table_, device_seq_lens_, device_settled_lens_, device_query_start_;
  Buffer q_, out_, sinks_;
  KvCacheView kv_;
  AttentionBatch batch_;
};

Status DeviceBatch::fill(const Buffer& pages, int64_t num_pages) {
  for (int req = 0; req <= workload_.num_reqs(); ++req) {
    query_start_.push_back(req * workload_.q_len);
  }
  QUIRE_ASSIGN_OR_RETURN(device_block_table_, upload(block_table(num_pages)));
  QUIRE_ASSIGN_OR_RETURN(device_seq_lens_, upload(workload_.kv_lens));
  std::vector<int32_t> settled_lens = workload_.kv_lens;
  for (int32_t& length : settled_lens) length -= workload_.q_len;
  QUIRE_ASSIGN_OR_RETURN(device_settled_lens_, upload(settled_lens));
  QUIRE_ASSIGN_OR_RETURN(device_query_start_, upload(query_start_));
  const size_t num_rows = static_cast<size_t>(num_tokens()) * static_cast<size_t>(shape_.num_heads);
  QUIRE_ASSIGN_OR_RETURN(
      q_, random_memory(num_rows * static_cast<size_t>(shape_.head_dim) * dtype_bytes(shape_.q),
                        shape_.q));
  QUIRE_ASSIGN_OR_RETURN(out_, device_memory(num_rows * static_cast<size_t>(shape_.head_dim_v) *
                                             dtype_bytes(shape_.out)));
  const std::vector<float> sinks(static_cast<size_t>(shape_.num_heads), 0.0F);
  QUIRE_ASSIGN_OR_RETURN(sinks_, upload(sinks));
  kv_ = kv_cache_view(kv_layout(shape_), pages.data());
  describe();
  // A copy may end after cudaMemcpy() returns, and the measured stream does not wait for it.
  QUIRE_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  return {};
}

// [num_reqs, max_pages]; entries after a request's pages are page 0.
std::vector<int32_t> DeviceBatch::block_table(int64_t num_pages) const {
  std::mt19937_64 random(2);
  const int64_t count = quire::num_pages(workload_, shape_.page_size);
  const bool are_distinct = workload_.pool_pages == 0 && count <= num_pages;
  const std::vector<int32_t> pages =
      are_distinct
          ? distinct_pages(count, random)
          : drawn_pages(count, std::min(wanted_pages(workload_, shape_), num_pages), random);
  const auto row_size = static_cast<size_t>(max_pages());
  std::vector<int32_t> table(workload_.kv_lens.size() * row_size, 0);
  auto next = pages.begin();
  for (size_t req = 0; req < workload_.kv_lens.size(); ++req) {
    const int used = ceil_div(workload_.kv_lens[req], shape_.page_size);
    std::copy_n(next, used, table.begin() + static_cast<std::ptrdiff_t>(req * row_size));
    next += used;
  }
  return table;
}

void DeviceBatch::describe() {
  const bool decodes = workload_.phase == Phase::kDecode;
  const PhaseRange all{.num_reqs = workload_.num_reqs(),
                       .num_tokens = num_tokens(),
                       .max_q_len = workload_.q_len,
                       .max_kv_len = workload_.longest()};
  PhaseRange no_prefill;
  no_prefill.first_req = workload_.num_reqs();
  no_prefill.first_token = num_tokens();
  batch_ = {
      .decode = decodes ? all : PhaseRange(),
      .prefill = decodes ? no_prefill : all,
      .query_start = {query_start_.data(), static_cast<const int32_t*>(device_query_start_.data())},
      .seq_lens = static_cast<const int32_t*>(device_seq_lens_.data()),
      .kv_len_bound = workload_.kv_lens,
      .block_table = static_cast<const int32_t*>(device_block_table_.data()),
      .max_pages = max_pages(),
      .settled_lens = static_cast<const int32_t*>(device_settled_lens_.data())};
}

PlanLimits DeviceBatch::limits() const {
  return {.use = use_of(workload_),
          .max_num_reqs = workload_.num_reqs(),
          .max_num_tokens = num_tokens(),
          .max_kv_len = workload_.longest()};
}

AttentionCall DeviceBatch::call(std::span<std::byte> workspace) const {
  return {.q = {q_.data(), shape_.q, {num_tokens(), shape_.num_heads, shape_.head_dim}},
          .out = {out_.data(), shape_.out, {num_tokens(), shape_.num_heads, shape_.head_dim_v}},
          .kv = kv_,
          .sinks = static_cast<const float*>(sinks_.data()),
          .workspace = workspace};
}

// The share of free memory for keys and values; the rest is for queries, workspaces and libraries.
constexpr double kPoolShare = 0.8;

constexpr int kCallsPerReplay = 4;
constexpr int kRounds = 7;
// Each round takes several samples of a short call: at 5 µs a single one is off by a few percent.
constexpr double kShortCallUs = 100.0;
constexpr int kShortSamples = 7;
// MeasureConfig::sample_long_calls_less: calls longer than kLongCallUs are measured in the first
// kLongRounds rounds only, with one call per replay.
constexpr double kLongCallUs = 1000.0;
constexpr size_t kLongRounds = 3;

// One backend at one batch: its plan, captured in a graph.
class Candidate {
 public:
  Candidate(AttentionBackend& backend, const DeviceBatch& batch, const Stopwatch& watch,
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
    is_long_ = config.sample_long_calls_less && us > kLongCallUs;
    return capture();
  }

  // Measures with events around the host's call.
  Result<double> host_call() {
    return watch_->time(*stream_, [&] { return plan_->run(call_, *stream_); });
  }

  // Adds the times of one round, in microseconds per call.
  Status take_samples(std::vector<double>& times) {
    const bool has_enough = is_long_ && times.size() >= kLongRounds;
    for (int i = 0; i < (is_short_ ? kShortSamples : 1) && !has_enough; ++i) {
      QUIRE_ASSIGN_OR_RETURN(const double us, replay());
      times.push_back(us);
    }
    return {};
  }

 private:
  int num_calls() const { return is_long_ ? 1 : kCallsPerReplay; }

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
  bool is_long_ = false;
};

Status time_host_calls(const MeasureConfig& config, Candidate& candidate, AttentionTimes& times) {
  for (int i = 0; i < config.num_warmups; ++i) {
    QUIRE_RETURN_IF_ERROR(candidate.host_call().status());
  }
  for (int i = 0; i < config.num_trials; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const double us, candidate.host_call());
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
  std::vector<Candidate> candidates;
  for (AttentionBackend* backend : backends) {
    candidates.emplace_back(*backend, batch, watch, *stream_);
    measured.times.push_back({.backend = backend->name()});
  }
  // All candidates finish a step before any starts the next.
  const auto for_each = [&](const auto& step) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      AttentionTimes& times = measured.times[i];
      if (times.status.ok()) times.status = step(candidates[i], times);
    }
  };
  for_each([&](Candidate& candidate, AttentionTimes&) { return candidate.prepare(config_); });
  for_each([&](Candidate& candidate, AttentionTimes& times) {
    return time_host_calls(config_, candidate, times);
  });
  const auto run_round = [&](std::span<const size_t> left, std::span<Trial> trials) -> Status {
    for (const size_t i : left) {
      trials[i].error = measured.times[i].status;
      if (trials[i].error.ok()) trials[i].error = candidates[i].take_samples(trials[i].times);
    }
    return {};
  };
  QUIRE_ASSIGN_OR_RETURN(const Comparison compared,
                         compare(candidates.size(), {.num_rounds = kRounds}, run_round));
  for (size_t i = 0; i < candidates.size(); ++i) {
    measured.times[i].status = compared.trials[i].error;
    if (compared.trials[i].error.ok()) measured.times[i].graph_us = compared.trials[i].median();
  }
  // After an error too, all work must end before its memory is freed.
  QUIRE_RETURN_IF_ERROR(stream_->synchronize());
  return measured;
}

}  // namespace quire::cuda
