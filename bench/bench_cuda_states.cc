// The time of gated delta nets of 16 key heads and 32 value heads of 128, BF16, in graphs.
// `bench_cuda_states` prints a row per decode step: the state that it reads and writes, and TB/s; a
// row per decode step with drafts; and a row per prompt step: its kernels, and those that compute
// the recurrence.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/numbers.h"
#include "cuda/base/device_info.h"
#include "cuda/base/graph.h"
#include "cuda/base/memory.h"
#include "cuda/states/state_kernels.h"

namespace quire::cuda {
namespace {

constexpr DeltaNetShape kShape = {16, 32, 128, 128, 4};
constexpr int kBlockSize = 16;
constexpr int kLongBlock = 1024;  // has all tokens of the steps with drafts
constexpr int kRepeats = 20;

// Device memory filled with one byte: small numbers in every type.
class Memory {
 public:
  explicit Memory(CudaStream& stream) : stream_(stream) {}

  Result<std::byte*> take(int64_t num_bytes, int byte) {
    QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(static_cast<size_t>(num_bytes)));
    stream_.fill(buffer.data(), byte, buffer.num_bytes());
    buffers_.push_back(std::move(buffer));
    return static_cast<std::byte*>(buffers_.back().data());
  }
  template <typename T>
  Result<T*> copy(const std::vector<T>& values) {
    const auto num_bytes = static_cast<int64_t>(values.size() * sizeof(T));
    QUIRE_ASSIGN_OR_RETURN(std::byte* const to, take(num_bytes, 0));
    stream_.copy_to_device(to, values.data(), values.size() * sizeof(T));
    QUIRE_RETURN_IF_ERROR(stream_.synchronize());
    return reinterpret_cast<T*>(to);
  }

 private:
  CudaStream& stream_;
  std::vector<Buffer> buffers_;
};

// Sequences of `length` tokens after `begin` others; each has one page.
Result<DeltaNet> make_net(Memory& memory, int num_seqs, int begin, int length, int num_drafts = 0) {
  const DeltaNetPage page(kShape, num_drafts);
  const int64_t page_bytes = round_up(page.size * 4, int64_t{64});
  const int64_t num_tokens = int64_t{num_seqs} * length;
  const int block_size = num_drafts == 0 ? kBlockSize : kLongBlock;
  const int64_t max_pages = ceil_div(begin + length, block_size);
  std::vector<int32_t> query_start;
  std::vector<int32_t> page_table;
  for (int i = 0; i <= num_seqs; ++i) query_start.push_back(i * length);
  for (int i = 0; i < num_seqs; ++i) {
    page_table.resize(page_table.size() + static_cast<size_t>(max_pages), 0);
    page_table.back() = i + 1;
  }
  DeltaNet net;
  net.shape = kShape;
  net.num_drafts = num_drafts;
  const auto rows = [&](int64_t width) -> Result<TensorView> {
    QUIRE_ASSIGN_OR_RETURN(std::byte* const data, memory.take(num_tokens * width * 2, 0x3C));
    return TensorView{data, DType::kBF16, {num_tokens, width}};
  };
  QUIRE_ASSIGN_OR_RETURN(net.x, rows(kShape.num_channels() + kShape.width()));
  QUIRE_ASSIGN_OR_RETURN(net.ba, rows(int64_t{2} * kShape.num_v_heads));
  QUIRE_ASSIGN_OR_RETURN(net.out, rows(kShape.width()));
  const auto floats = [&](int64_t count) -> Result<const float*> {
    QUIRE_ASSIGN_OR_RETURN(std::byte* const data, memory.take(count * 4, 0x3C));
    return reinterpret_cast<const float*>(data);
  };
  QUIRE_ASSIGN_OR_RETURN(net.conv, floats(kShape.kernel * kShape.num_channels()));
  QUIRE_ASSIGN_OR_RETURN(net.a_log, floats(kShape.num_v_heads));
  QUIRE_ASSIGN_OR_RETURN(net.dt_bias, floats(kShape.num_v_heads));
  QUIRE_ASSIGN_OR_RETURN(net.norm, floats(kShape.v_dim));
  StatePages& states = net.states;
  QUIRE_ASSIGN_OR_RETURN(states.first, memory.take((num_seqs + 1) * page_bytes, 0));
  states.page_bytes = page_bytes;
  states.block_size = block_size;
  states.num_seqs = num_seqs;
  states.num_decode_seqs = length <= 1 + num_drafts ? num_seqs : 0;
  QUIRE_ASSIGN_OR_RETURN(states.query_start, memory.copy(query_start));
  QUIRE_ASSIGN_OR_RETURN(states.seq_lens, memory.copy(std::vector<int32_t>(
                                              static_cast<size_t>(num_seqs), begin + length)));
  QUIRE_ASSIGN_OR_RETURN(states.page_table, memory.copy(page_table));
  states.max_pages = max_pages;
  QUIRE_ASSIGN_OR_RETURN(states.kv_slots,
                         memory.copy(std::vector<int64_t>(static_cast<size_t>(num_tokens), 1)));
  return net;
}

// Microseconds of one call of `run`, which gets the number of the repetition.
Result<double> time_steps(CudaStream& stream, const std::function<void(int)>& run) {
  QUIRE_ASSIGN_OR_RETURN(const CudaGraph graph, CudaGraph::capture(stream, [&]() -> Status {
                           for (int i = 0; i < kRepeats; ++i) run(i);
                           return {};
                         }));
  QUIRE_ASSIGN_OR_RETURN(const Stopwatch stopwatch, Stopwatch::create());
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const double us, stopwatch.time(stream, [&]() -> Status {
      graph.launch(stream);
      return {};
    }));
    best = std::min(best, us / kRepeats);
  }
  return best;
}
Result<double> time(CudaStream& stream, const std::function<void()>& run) {
  return time_steps(stream, [&](int) { run(); });
}

// Steps that each verify `verified` drafts, of which `accepted` are right.
Status time_drafts(const LaunchContext& context, CudaStream& stream, int num_seqs, int num_drafts,
                   int verified, int accepted) {
  constexpr int kBegin = 20;
  Memory memory(stream);
  QUIRE_ASSIGN_OR_RETURN(const DeltaNet net,
                         make_net(memory, num_seqs, kBegin, 1 + verified, num_drafts));
  std::vector<DeltaNet> steps(kRepeats, net);
  for (int i = 0; i < kRepeats; ++i) {
    const int end = kBegin + i * (1 + accepted) + 1 + verified;
    QUIRE_ASSIGN_OR_RETURN(steps[static_cast<size_t>(i)].states.seq_lens,
                           memory.copy(std::vector<int32_t>(static_cast<size_t>(num_seqs), end)));
  }
  const auto lay_out = [&](std::byte* base) {
    return lay_out_by_token(base, kShape, num_drafts, net.out.shape[0], num_seqs);
  };
  QUIRE_ASSIGN_OR_RETURN(std::byte* const base,
                         memory.take(static_cast<int64_t>(lay_out(nullptr).num_bytes), 0));
  const DeltaWorkspace workspace = lay_out(base);
  const SeqRange seqs = {0, num_seqs};
  const auto decode = [&](int i) {
    run_delta_decode(context, steps[static_cast<size_t>(i)], seqs);
  };
  const auto recurrent = [&](int i) {
    run_delta_recurrent(context, steps[static_cast<size_t>(i)], seqs, workspace);
  };
  decode(0);
  recurrent(0);
  QUIRE_RETURN_IF_ERROR(stream.synchronize());
  QUIRE_ASSIGN_OR_RETURN(const double decode_us, time_steps(stream, decode));
  QUIRE_ASSIGN_OR_RETURN(const double recurrent_us, time_steps(stream, recurrent));
  fmt::print("{},{},{},{},{:.2f},{:.2f}\n", num_seqs, num_drafts, verified, accepted, decode_us,
             recurrent_us);
  return {};
}

Status run() {
  QUIRE_RETURN_IF_ERROR(open_device(0).status());
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<CudaStream> stream, CudaStream::create());
  const LaunchContext context = {.stream = stream.get(), .overlap_start = true};
  fmt::print("sequences,state_bytes,us,TB/s\n");
  for (const int num_seqs : {1, 8, 32, 64, 128, 256, 1024}) {
    Memory memory(*stream);
    QUIRE_ASSIGN_OR_RETURN(const DeltaNet net, make_net(memory, num_seqs, 20, 1));
    const SeqRange seqs = {0, num_seqs};
    run_delta_decode(context, net, seqs);
    QUIRE_RETURN_IF_ERROR(stream->synchronize());
    QUIRE_ASSIGN_OR_RETURN(const double us,
                           time(*stream, [&] { run_delta_decode(context, net, seqs); }));
    const double bytes = 2.0 * num_seqs * kShape.num_v_heads * kShape.k_dim * kShape.v_dim * 4;
    fmt::print("{},{:.0f},{:.2f},{:.3f}\n", num_seqs, bytes, us, bytes / us * 1e-6);
  }
  fmt::print("sequences,num_drafts,verified,accepted,decode_us,recurrent_us\n");
  for (const int num_seqs : {1, 4, 8, 32, 128, 256}) {
    for (const auto& [num_drafts, verified, accepted] :
         {std::array{3, 0, 0}, {3, 1, 0}, {3, 3, 0}, {3, 3, 2}, {3, 3, 3}, {7, 7, 4}}) {
      QUIRE_RETURN_IF_ERROR(
          time_drafts(context, *stream, num_seqs, num_drafts, verified, accepted));
    }
  }
  fmt::print("sequences,length,prepare_us,chunks_us,scan_us,finish_us,recurrence_us\n");
  for (const auto& [num_seqs, length] : {std::pair{1, 128},
                                         {1, 1024},
                                         {1, 8192},
                                         {2, 4096},
                                         {4, 2048},
                                         {8, 1024},
                                         {16, 1024},
                                         {64, 128},
                                         {1, 65536}}) {
    Memory memory(*stream);
    QUIRE_ASSIGN_OR_RETURN(DeltaNet net, make_net(memory, num_seqs, 0, length));
    const int64_t num_tokens = int64_t{num_seqs} * length;
    const auto lay_out = [&](std::byte* base) {
      return lay_out_by_chunk(base, kShape, 0, DType::kBF16, num_tokens, num_seqs);
    };
    QUIRE_ASSIGN_OR_RETURN(std::byte* const base,
                           memory.take(static_cast<int64_t>(lay_out(nullptr).num_bytes), 0));
    const DeltaWorkspace workspace = lay_out(base);
    const SeqRange seqs = {0, num_seqs};
    double us[4];
    const std::function<void()> parts[] = {
        [&] { run_delta_prepare(context, net, seqs, workspace); },
        [&] { run_delta_chunks(context, net, seqs, workspace); },
        [&] { run_delta_scan(context, net, seqs, workspace); },
        [&] { run_delta_finish(context, net, seqs, workspace); }};
    for (const auto& part : parts) part();
    QUIRE_RETURN_IF_ERROR(stream->synchronize());
    for (int i = 0; i < 4; ++i) {
      QUIRE_ASSIGN_OR_RETURN(us[i], time(*stream, parts[i]));
    }
    fmt::print("{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f}\n", num_seqs, length, us[0], us[1], us[2],
               us[3], us[1] + us[2]);
  }
  return {};
}

}  // namespace
}  // namespace quire::cuda

int main() {
  const quire::Status status = quire::cuda::run();
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", status.message());
  return 1;
}
