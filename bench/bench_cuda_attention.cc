// Times attention backends on the current GPU as quire tune does (src/cuda/tune/measure.h).
//   bench_cuda_attention --backends native,xqa [--grid strict] [--kv fp8] [--q-len 1]
//                        [--peers decode_strict.csv]
//   bench_cuda_attention --backends native --prefill   (causal, TFLOP/s)
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "attn/backend.h"
#include "bench_cuda_attention_backends.h"
#include "cuda/base/device_info.h"
#include "cuda/tune/measure.h"

namespace quire::bench {
namespace {

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

using Cell = cuda::AttentionSize;

[[noreturn]] void fail(const Status& status) {
  fmt::print(stderr, "{}\n", status.message());
  std::exit(1);
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

// A decode step is limited by the bytes it must read, a prefill by its arithmetic.
double num_bytes(const AttentionShape& shape, const Cell& cell) {
  return 2.0 * cell.num_reqs * cell.kv_len * shape.num_kv_heads * shape.head_dim *
         static_cast<double>(dtype_bytes(shape.kv));
}
double num_operations(const AttentionShape& shape, const Cell& cell) {
  const double visible = cell.q_len * (cell.kv_len - (cell.q_len - 1) / 2.0);
  return 4.0 * cell.num_reqs * visible * shape.num_heads * shape.head_dim;
}

std::vector<Cell> cells_of(const Options& options) {
  std::vector<Cell> cells;
  if (options.prefill) {
    for (const auto& [num_reqs, length] :
         {std::pair{1, 2048}, std::pair{1, 8192}, std::pair{4, 2048}, std::pair{16, 1024}}) {
      cells.push_back({.num_reqs = num_reqs, .q_len = length, .kv_len = length});
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
      if (int64_t{batch} * kv_len > kMaxTokens) continue;
      cells.push_back({.num_reqs = batch, .q_len = options.q_len, .kv_len = kv_len});
    }
  }
  return cells;
}

int64_t most_pages(const AttentionShape& shape, const std::vector<Cell>& cells) {
  int64_t num_pages = 0;
  for (const Cell& cell : cells) {
    num_pages = std::max(num_pages, cuda::AttentionTimer::num_pages(shape, cell));
  }
  return num_pages;
}

void print_row(const AttentionShape& shape, const Options& options, std::string_view name,
               const Cell& cell, const Result<double>& result, double peer) {
  const std::string key = fmt::format("{},{},{},{}", name, cell.num_reqs, cell.kv_len, cell.q_len);
  if (!result.ok()) {
    fmt::print("{},,,,\"{}\"\n", key, result.status().message());
    return;
  }
  const double rate = options.prefill ? num_operations(shape, cell) : num_bytes(shape, cell);
  const std::string ratio = peer > 0 ? fmt::format("{:.3f}", *result / peer) : "";
  fmt::print("{},{:.2f},{:.3f},{}\n", key, *result, rate / *result * 1e-6, ratio);
}

int run(const Options& options) {
  const Result<cuda::DeviceInfo> device = cuda::open_device(0);
  if (!device.ok()) fail(device.status());
  const AttentionShape shape = make_shape(options);
  const std::vector<Cell> cells = cells_of(options);
  const auto timer = cuda::AttentionTimer::create(shape, most_pages(shape, cells));
  if (!timer.ok()) fail(timer.status());
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
      const auto peer = peers.find({cell.num_reqs, cell.kv_len});
      print_row(shape, options, name, cell, (*timer)->time(*backend, phase, cell),
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
