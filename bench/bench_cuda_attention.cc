// Times attention backends on the current GPU, all by one method: the call captured in a CUDA
// graph, four to a replay, median of the replays. Pages are distinct and shuffled.
//   bench_cuda_attention --backends native,xqa [--grid strict] [--kv fp8] [--q-len 1]
//                        [--peers decode_strict.csv]
//   bench_cuda_attention --backends native --prefill   (causal, TFLOP/s)
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>

#include "attn/backend.h"
#include "bench_cuda_attention_backends.h"
#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/base/stream.h"

namespace quire::bench {
namespace {

constexpr int kCallsPerReplay = 4;
constexpr int kReplays = 7;
constexpr size_t kCounterBytes = size_t{1} << 20;

struct Options {
  std::vector<std::string> backends;
  std::vector<int> batches = {1, 4, 16, 64, 256};
  std::vector<int> kv_lens = {1024, 4096, 16384};
  std::string grid = "short";
  std::string kv = "bf16";
  std::string peers;
  int q_len = 1;
  int num_heads = 64;
  int num_kv_heads = 8;
  int head_dim = 128;
  int page_size = 16;
  bool prefill = false;
};

struct Cell {
  int num_reqs;
  int kv_len;
  int q_len;
};

[[noreturn]] void fail(const Status& status) {
  fmt::print(stderr, "{}\n", status.message());
  std::exit(1);
}

void check(const Status& status) {
  if (!status.ok()) fail(status);
}

void check(cudaError_t error) {
  check(cuda::to_status(error, "the benchmark"));
}

Buffer allocate(size_t num_bytes) {
  Result<Buffer> buffer = cuda::device_memory(num_bytes);
  if (!buffer.ok()) fail(buffer.status());
  return std::move(*buffer);
}

template <typename T>
Buffer upload(const std::vector<T>& values) {
  Buffer buffer = allocate(values.size() * sizeof(T));
  check(cudaMemcpy(buffer.data(), values.data(), buffer.num_bytes(), cudaMemcpyHostToDevice));
  return buffer;
}

// Numbers around 1 in any of the formats: bytes whose exponent bits are the middle ones.
Buffer random_memory(size_t num_bytes, DType dtype) {
  std::mt19937 generator(1);
  std::vector<uint16_t> chunk(size_t{16} << 20);
  for (uint16_t& x : chunk) {
    const auto bits = static_cast<uint16_t>(generator());
    x = dtype == DType::kF8E4M3 ? bits & 0xBFBF : static_cast<uint16_t>((bits & 0x80FF) | 0x3F00);
  }
  Buffer buffer = allocate(num_bytes);
  const size_t chunk_bytes = chunk.size() * sizeof(uint16_t);
  for (size_t at = 0; at < num_bytes; at += chunk_bytes) {
    check(cudaMemcpy(static_cast<char*>(buffer.data()) + at, chunk.data(),
                     std::min(chunk_bytes, num_bytes - at), cudaMemcpyHostToDevice));
  }
  return buffer;
}

// "num_seqs,max_seq_len" -> the best peer's microseconds, from decode_strict.csv.
std::map<std::pair<int, int>, double> read_peers(const std::string& path) {
  std::map<std::pair<int, int>, double> best;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream fields(line);
    std::vector<std::string> columns;
    for (std::string field; std::getline(fields, field, ',');) columns.push_back(field);
    if (columns.size() < 10) continue;
    best[{std::stoi(columns[0]), std::stoi(columns[1])}] = std::stod(columns[9]);
  }
  return best;
}

AttentionShape make_shape(const Options& options) {
  const DType kv = options.kv == "fp8" ? DType::kF8E4M3 : DType::kBF16;
  return {.num_heads = options.num_heads,
          .num_kv_heads = options.num_kv_heads,
          .head_dim = options.head_dim,
          .head_dim_v = options.head_dim,
          .page_size = options.page_size,
          .q = DType::kBF16,
          .kv = kv,
          .out = DType::kBF16,
          .scale = 0.01F};
}

// One batch in device memory, over a pool that all cells share.
class Problem {
 public:
  Problem(const AttentionShape& shape, const Cell& cell, const Buffer& pool, bool prefill)
      : shape_(shape), cell_(cell), bounds_(static_cast<size_t>(cell.num_reqs), cell.kv_len) {
    const int pages_per_req = (cell.kv_len + shape.page_size - 1) / shape.page_size;
    std::vector<int32_t> pages(static_cast<size_t>(cell.num_reqs) *
                               static_cast<size_t>(pages_per_req));
    std::iota(pages.begin(), pages.end(), 1);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(2));
    block_table_ = upload(pages);
    seq_lens_ = upload(bounds_);
    for (int req = 0; req <= cell.num_reqs; ++req) query_start_host_.push_back(req * cell.q_len);
    query_start_ = upload(query_start_host_);
    const int num_tokens = cell.num_reqs * cell.q_len;
    const auto bytes = static_cast<size_t>(num_tokens) * static_cast<size_t>(shape.num_heads) *
                       static_cast<size_t>(shape.head_dim) * 2;
    q_ = random_memory(bytes, DType::kBF16);
    out_ = allocate(bytes);
    const PhaseRange range{.num_reqs = cell.num_reqs,
                           .num_tokens = num_tokens,
                           .max_q_len = cell.q_len,
                           .max_kv_len = cell.kv_len,
                           .uniform_q = true};
    PhaseRange none;
    none.first_req = cell.num_reqs;
    none.first_token = num_tokens;
    batch_ = {
        .decode = prefill ? PhaseRange{} : range,
        .prefill = prefill ? range : none,
        .query_start = {query_start_host_.data(), static_cast<const int32_t*>(query_start_.data())},
        .seq_lens = static_cast<const int32_t*>(seq_lens_.data()),
        .kv_len_bound = bounds_,
        .block_table = static_cast<const int32_t*>(block_table_.data()),
        .max_pages = pages_per_req,
        .for_graph = true};
    const KvLayout layout{.page_size = shape.page_size,
                          .num_kv_heads = shape.num_kv_heads,
                          .head_dim = shape.head_dim,
                          .head_dim_v = shape.head_dim,
                          .dtype = shape.kv};
    const Shape token_shape{num_tokens, shape.num_heads, shape.head_dim};
    call_ = {.shape = &shape_,
             .batch = &batch_,
             .phase = prefill ? Phase::kPrefill : Phase::kDecode,
             .q = {q_.data(), DType::kBF16, token_shape},
             .out = {out_.data(), DType::kBF16, token_shape},
             .kv = kv_cache_view(layout, pool.data()),
             .workspace = {}};
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  // Microseconds a call, or the reason why not.
  Result<double> time(AttentionBackend& backend, cuda::CudaStream& stream) {
    const AttentionLimits limits{.max_num_reqs = cell_.num_reqs,
                                 .max_num_tokens = cell_.num_reqs * cell_.q_len,
                                 .max_kv_len = cell_.kv_len};
    const size_t num_bytes = backend.workspace_bytes(shape_, limits);
    const Buffer arena = allocate(num_bytes + 256);
    const Buffer counters = allocate(kCounterBytes);
    check(cudaMemset(counters.data(), 0, kCounterBytes));
    check(cudaDeviceSynchronize());
    call_.workspace = {.arena = {static_cast<std::byte*>(arena.data()), num_bytes},
                       .counters = {static_cast<std::byte*>(counters.data()), kCounterBytes}};
    QUIRE_RETURN_IF_ERROR(backend.plan(shape_, batch_, call_.workspace, stream));
    QUIRE_RETURN_IF_ERROR(backend.run(call_, stream));  // lazy loading, outside of the capture
    QUIRE_RETURN_IF_ERROR(stream.synchronize());
    return replay(backend, stream);
  }

  // A decode step is limited by the bytes it must read, a prefill by its arithmetic.
  double num_bytes() const {
    return 2.0 * cell_.num_reqs * cell_.kv_len * shape_.num_kv_heads * shape_.head_dim *
           static_cast<double>(dtype_bytes(shape_.kv));
  }
  double num_operations() const {
    const double visible = cell_.q_len * (cell_.kv_len - (cell_.q_len - 1) / 2.0);
    return 4.0 * cell_.num_reqs * visible * shape_.num_heads * shape_.head_dim;
  }

 private:
  Result<double> replay(AttentionBackend& backend, cuda::CudaStream& stream) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < kCallsPerReplay; ++i) check(backend.run(call_, stream));
    check(cudaStreamEndCapture(stream.get(), &graph));
    check(stream.take_error());
    check(cudaGraphInstantiate(&executable, graph, 0));
    cudaEvent_t start = nullptr;
    cudaEvent_t end = nullptr;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&end));
    std::vector<double> microseconds;
    for (int i = 0; i < kReplays + 1; ++i) {
      check(cudaEventRecord(start, stream.get()));
      check(cudaGraphLaunch(executable, stream.get()));
      check(cudaEventRecord(end, stream.get()));
      check(cudaEventSynchronize(end));
      float milliseconds = 0.0F;
      check(cudaEventElapsedTime(&milliseconds, start, end));
      if (i > 0) microseconds.push_back(1000.0 * double{milliseconds} / kCallsPerReplay);
    }
    check(cudaEventDestroy(start));
    check(cudaEventDestroy(end));
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    std::sort(microseconds.begin(), microseconds.end());
    return microseconds[microseconds.size() / 2];
  }

  AttentionShape shape_;
  Cell cell_;
  std::vector<int32_t> bounds_, query_start_host_;
  Buffer block_table_, seq_lens_, query_start_, q_, out_;
  AttentionBatch batch_;
  AttentionCall call_;
};

std::vector<Cell> cells_of(const Options& options) {
  std::vector<Cell> cells;
  if (options.prefill) {
    for (const auto& [num_reqs, length] :
         {std::pair{1, 2048}, std::pair{1, 8192}, std::pair{4, 2048}, std::pair{16, 1024}}) {
      cells.push_back({num_reqs, length, length});
    }
    return cells;
  }
  std::vector<int> batches = options.batches;
  std::vector<int> kv_lens = options.kv_lens;
  if (options.grid == "strict") {
    batches = {1, 4, 8, 16, 32, 64, 128, 256};
    kv_lens = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
  }
  constexpr int64_t kMaxTokens = int64_t{256} * 16384;
  for (const int kv_len : kv_lens) {
    for (const int batch : batches) {
      if (int64_t{batch} * kv_len <= kMaxTokens) cells.push_back({batch, kv_len, options.q_len});
    }
  }
  return cells;
}

Buffer make_pool(const Options& options, const AttentionShape& shape,
                 const std::vector<Cell>& cells) {
  int64_t pages = 0;
  for (const Cell& cell : cells) {
    const int64_t per_req = (cell.kv_len + options.page_size - 1) / options.page_size;
    pages = std::max(pages, cell.num_reqs * per_req);
  }
  const KvLayout layout{.page_size = options.page_size,
                        .num_kv_heads = options.num_kv_heads,
                        .head_dim = options.head_dim,
                        .head_dim_v = options.head_dim,
                        .dtype = shape.kv};
  return random_memory(static_cast<size_t>((pages + 1) * layout.page_bytes()), shape.kv);
}

void print_row(const Problem& problem, const Options& options, std::string_view name,
               const Cell& cell, const Result<double>& result, double peer) {
  const std::string key = fmt::format("{},{},{},{}", name, cell.num_reqs, cell.kv_len, cell.q_len);
  if (!result.ok()) {
    fmt::print("{},,,,\"{}\"\n", key, result.status().message());
    return;
  }
  const double rate = options.prefill ? problem.num_operations() : problem.num_bytes();
  const std::string ratio = peer > 0 ? fmt::format("{:.3f}", *result / peer) : "";
  fmt::print("{},{:.2f},{:.3f},{}\n", key, *result, rate / *result * 1e-6, ratio);
}

int run(const Options& options) {
  const Result<cuda::DeviceInfo> device = cuda::open_device(0);
  if (!device.ok()) fail(device.status());
  Result<std::unique_ptr<cuda::CudaStream>> stream = cuda::CudaStream::create();
  if (!stream.ok()) fail(stream.status());
  const AttentionShape shape = make_shape(options);
  const std::vector<Cell> cells = cells_of(options);
  const Buffer pool = make_pool(options, shape, cells);
  const auto peers = read_peers(options.peers);
  const Phase phase = options.prefill ? Phase::kPrefill : Phase::kDecode;
  fmt::print("backend,num_seqs,kv_len,q_len,graph_us,{},over_best_peer\n",
             options.prefill ? "TFLOPs" : "TBps");
  for (const std::string& name : options.backends) {
    const auto factories = cuda_attention_factories();
    const auto factory = factories.find(name);
    if (factory == factories.end()) {
      fail(invalid_argument(fmt::format("[bench] no backend '{}' in this build", name)));
    }
    const std::unique_ptr<AttentionBackend> backend = factory->second(*device);
    const Support support = backend->supports(shape, phase, device->device);
    if (!support.ok()) {
      fmt::print("{},,,,,,\"{}\"\n", name, support.reasons[0]);
      continue;
    }
    for (const Cell& cell : cells) {
      Problem problem(shape, cell, pool, options.prefill);
      const auto peer = peers.find({cell.num_reqs, cell.kv_len});
      print_row(problem, options, name, cell, problem.time(*backend, **stream),
                peer == peers.end() ? 0.0 : peer->second);
    }
  }
  return 0;
}

}  // namespace
}  // namespace quire::bench

int main(int argc, char** argv) {
  quire::bench::Options options;
  CLI::App app("Times the attention backends of the GPU.");
  app.add_option("--backends", options.backends)->delimiter(',')->required();
  app.add_option("--batches", options.batches)->delimiter(',');
  app.add_option("--kv-lens", options.kv_lens)->delimiter(',');
  app.add_option("--grid", options.grid)->check(CLI::IsMember({"short", "strict"}));
  app.add_option("--kv", options.kv)->check(CLI::IsMember({"bf16", "fp8"}));
  app.add_option("--peers", options.peers);
  app.add_option("--q-len", options.q_len);
  app.add_option("--heads", options.num_heads);
  app.add_option("--kv-heads", options.num_kv_heads);
  app.add_option("--head-dim", options.head_dim);
  app.add_option("--page-size", options.page_size);
  app.add_flag("--prefill", options.prefill);
  CLI11_PARSE(app, argc, argv);
  return quire::bench::run(options);
}
