#include "cuda/tune/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "cuda/step/graph.h"
#include "kv/kv_layout.h"

namespace quire::cuda {
namespace {

constexpr int kCallsPerReplay = 4;
constexpr int kReplays = 7;
constexpr size_t kCounterBytes = size_t{1} << 20;

KvLayout layout_of(const AttentionShape& shape) {
  return {.page_size = shape.page_size,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .head_dim_v = shape.head_dim_v,
          .dtype = shape.kv};
}

int pages_per_req(const AttentionShape& shape, const AttentionSize& size) {
  return (size.kv_len + shape.page_size - 1) / shape.page_size;
}

template <typename T>
Result<Buffer> upload(const std::vector<T>& values) {
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(values.size() * sizeof(T)));
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return buffer;
}

// Numbers around 1 in any of the formats: bytes whose exponent bits are the middle ones.
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

// Start and end of a replay, with the times that only timing events have.
class Stopwatch {
 public:
  static Result<Stopwatch> create() {
    Stopwatch watch;
    for (cudaEvent_t& event : watch.events_) QUIRE_CUDA_RETURN_IF_ERROR(cudaEventCreate(&event));
    return watch;
  }
  Stopwatch(Stopwatch&& other) noexcept { std::swap(events_, other.events_); }
  Stopwatch& operator=(Stopwatch&&) = delete;
  ~Stopwatch() {
    for (cudaEvent_t event : events_) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
  }

  Result<double> microseconds(const CudaGraph& graph, CudaStream& stream) const {
    QUIRE_CUDA_RETURN_IF_ERROR(cudaEventRecord(events_[0], stream.get()));
    graph.launch(stream);
    QUIRE_CUDA_RETURN_IF_ERROR(cudaEventRecord(events_[1], stream.get()));
    QUIRE_RETURN_IF_ERROR(stream.synchronize());
    float milliseconds = 0.0F;
    QUIRE_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]));
    return 1000.0 * double{milliseconds};
  }

 private:
  Stopwatch() = default;

  cudaEvent_t events_[2] = {};
};

// One batch in device memory.
class Problem {
 public:
  Problem(const AttentionShape& shape, Phase phase, const AttentionSize& size)
      : shape_(shape), phase_(phase), size_(size) {}
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  Status fill(const Buffer& pool) {
    std::vector<int32_t> pages(static_cast<size_t>(AttentionTimer::num_pages(shape_, size_)));
    std::iota(pages.begin(), pages.end(), 1);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(2));
    bounds_.assign(static_cast<size_t>(size_.num_reqs), size_.kv_len);
    for (int req = 0; req <= size_.num_reqs; ++req) query_start_.push_back(req * size_.q_len);
    QUIRE_ASSIGN_OR_RETURN(device_block_table_, upload(pages));
    QUIRE_ASSIGN_OR_RETURN(device_seq_lens_, upload(bounds_));
    QUIRE_ASSIGN_OR_RETURN(device_query_start_, upload(query_start_));
    const Shape rows{num_tokens(), shape_.num_heads, shape_.head_dim};
    const size_t num_bytes = static_cast<size_t>(num_tokens()) *
                             static_cast<size_t>(shape_.num_heads) *
                             static_cast<size_t>(shape_.head_dim) * dtype_bytes(shape_.q);
    QUIRE_ASSIGN_OR_RETURN(q_, random_memory(num_bytes, shape_.q));
    QUIRE_ASSIGN_OR_RETURN(out_, device_memory(num_bytes));
    describe_batch();
    call_ = {.shape = &shape_,
             .batch = &batch_,
             .phase = phase_,
             .q = {q_.data(), shape_.q, rows},
             .out = {out_.data(), shape_.out, rows},
             .kv = kv_cache_view(layout_of(shape_), pool.data()),
             .workspace = {}};
    return {};
  }

  Result<double> time(AttentionBackend& backend, CudaStream& stream) {
    const AttentionLimits limits{
        .max_num_reqs = size_.num_reqs, .max_num_tokens = num_tokens(), .max_kv_len = size_.kv_len};
    const size_t arena_bytes = backend.workspace_bytes(shape_, limits);
    QUIRE_ASSIGN_OR_RETURN(const Buffer arena, device_memory(arena_bytes + 256));
    QUIRE_ASSIGN_OR_RETURN(const Buffer counters, device_memory(kCounterBytes));
    stream.set_zero(counters.data(), kCounterBytes);
    call_.workspace = {.arena = {static_cast<std::byte*>(arena.data()), arena_bytes},
                       .counters = {static_cast<std::byte*>(counters.data()), kCounterBytes}};
    QUIRE_RETURN_IF_ERROR(backend.plan(shape_, batch_, call_.workspace, stream));
    QUIRE_RETURN_IF_ERROR(backend.run(call_, stream));  // what is loaded on first use is loaded
    QUIRE_RETURN_IF_ERROR(stream.synchronize());
    return replay(backend, stream);
  }

 private:
  int num_tokens() const { return size_.num_reqs * size_.q_len; }

  void describe_batch() {
    const bool decodes = phase_ == Phase::kDecode;
    const PhaseRange all{.num_reqs = size_.num_reqs,
                         .num_tokens = num_tokens(),
                         .max_q_len = size_.q_len,
                         .max_kv_len = size_.kv_len,
                         .uniform_q = true};
    PhaseRange none_behind;
    none_behind.first_req = size_.num_reqs;
    none_behind.first_token = num_tokens();
    batch_ = {.decode = decodes ? all : PhaseRange(),
              .prefill = decodes ? none_behind : all,
              .query_start = {query_start_.data(),
                              static_cast<const int32_t*>(device_query_start_.data())},
              .seq_lens = static_cast<const int32_t*>(device_seq_lens_.data()),
              .kv_len_bound = bounds_,
              .block_table = static_cast<const int32_t*>(device_block_table_.data()),
              .max_pages = pages_per_req(shape_, size_),
              .for_graph = decodes};  // as the engine does: prompts run eagerly
  }

  Result<double> replay(AttentionBackend& backend, CudaStream& stream) {
    const auto enqueue = [&]() -> Status {
      for (int i = 0; i < kCallsPerReplay; ++i) QUIRE_RETURN_IF_ERROR(backend.run(call_, stream));
      return {};
    };
    QUIRE_ASSIGN_OR_RETURN(const CudaGraph graph, CudaGraph::capture(stream, enqueue));
    QUIRE_ASSIGN_OR_RETURN(const Stopwatch watch, Stopwatch::create());
    std::vector<double> times;
    for (int i = 0; i < kReplays + 1; ++i) {
      QUIRE_ASSIGN_OR_RETURN(const double us, watch.microseconds(graph, stream));
      if (i > 0) times.push_back(us / kCallsPerReplay);  // the first warms up
    }
    std::nth_element(times.begin(), times.begin() + kReplays / 2, times.end());
    return times[kReplays / 2];
  }

  AttentionShape shape_;
  Phase phase_;
  AttentionSize size_;
  std::vector<int32_t> bounds_, query_start_;
  Buffer device_block_table_, device_seq_lens_, device_query_start_, q_, out_;
  AttentionBatch batch_;
  AttentionCall call_;
};

}  // namespace

Result<std::unique_ptr<AttentionTimer>> AttentionTimer::create(const AttentionShape& shape,
                                                               int64_t num_pages) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<CudaStream> stream, CudaStream::create());
  const auto num_bytes = static_cast<size_t>((num_pages + 1) * page_bytes(shape));
  QUIRE_ASSIGN_OR_RETURN(Buffer pool, random_memory(num_bytes, shape.kv));
  return std::unique_ptr<AttentionTimer>(
      new AttentionTimer(shape, std::move(stream), std::move(pool)));
}

int64_t AttentionTimer::num_pages(const AttentionShape& shape, const AttentionSize& size) {
  return int64_t{size.num_reqs} * pages_per_req(shape, size);
}

int64_t AttentionTimer::page_bytes(const AttentionShape& shape) {
  return layout_of(shape).page_bytes();
}

Result<double> AttentionTimer::time(AttentionBackend& backend, Phase phase,
                                    const AttentionSize& size) {
  Problem problem(shape_, phase, size);
  QUIRE_RETURN_IF_ERROR(problem.fill(pool_));
  QUIRE_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  Result<double> us = problem.time(backend, *stream_);
  // Whatever failed, nothing of it may still run when its memory goes.
  const Status finished = stream_->synchronize();
  if (us.ok() && !finished.ok()) return finished;
  return us;
}

}  // namespace quire::cuda
