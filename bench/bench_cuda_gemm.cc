// Times the operations of a step of Llama-3.1-8B on a GPU, except attention:
//   bench_cuda_gemm [products] [batches] [layers] [rows] [load] [fp8] [fp8_batches] [fusion]
//                   [experts] [router] [one_row] [packed] [packed_experts] [tails]
// Without arguments, it runs all.
// products: every kernel for each weight matrix at 1 to 16 rows (GEMM M). batches: cuBLASLt and the
// wgmma kernels' plans at 32 to 2048 rows. layers: whole layers as a graph. rows: the operations
// between the products. load: upload, dummy weights, tuning. fp8: products with FP8 weights, also
// of Llama-3.1-70B. fp8_batches: their kernels and plans at 16 to 512 rows. fusion: norms, products
// with FP8 weights and SiLU(gate) * up of both models, as separate operations and as fused ones.
// experts: the routing and the experts of Qwen3-30B-A3B and DeepSeek-V2-Lite, in BF16 and FP8.
// router: a layer's o, router and experts at 1 to 8 rows, with the router in one kernel or in
// three. one_row: the products of one row of these models, between small kernels. packed: products
// with weights in 4, 6 and 8 bits, and layers of them. packed_experts: the experts of
// Qwen3-30B-A3B, gpt-oss-20b and gpt-oss-120b in 4 bits. tails: the fused layer tail and separate
// kernels. Other weights are BF16. Weights differ from call to call, so that the L2 holds none of
// them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cuda/base/device_info.h"
#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/gemm/experts/expert_kernels.h"
#include "cuda/gemm/experts/experts_choice.h"
#include "cuda/gemm/experts/kernels/router_kernel.h"
#include "cuda/gemm/packed/packed_choice.h"
#include "cuda/gemm/tail/layer_tail.h"
#include "cuda/ops/cuda_ops.h"
#include "tensor/weight_source.h"

namespace quire::bench {
namespace {

constexpr int64_t kHidden = 4096;
constexpr int64_t kInner = 14336;
constexpr int64_t kQkv = 6144;
constexpr int64_t kVocab = 128256;
constexpr double kPeak = 4.4e12;  // bytes per second of a plain read on an H200
constexpr int kLayers = 8;

void must(const Status& status) {
  QUIRE_CHECK(status.ok(), status.message());
}

struct Bench {
  std::unique_ptr<cuda::CudaStream> stream = cuda::CudaStream::create().value();
  DummyWeights weights{DType::kBF16};

  Tensor random(cuda::CudaOps& ops, const Shape& shape) {
    const RepeatedTensor numbers = *weights.repeated("x").value();
    Tensor tensor = ops.allocate(shape, DType::kBF16).value();
    const auto bytes = std::min(numbers.pool.num_bytes(), tensor.view.num_bytes());
    stream->copy_to_device(tensor.view.data, numbers.pool.data, bytes);
    return tensor;
  }
  std::unique_ptr<Linear> linear(cuda::CudaOps& ops, int64_t n, int64_t k, int layer) {
    const RepeatedTensor numbers = *weights.repeated(fmt::format("{} {}", n, layer)).value();
    const RepeatedRows rows[] = {{numbers.pool, numbers.first, k, {n, k}}};
    return ops.weights().make_linear({.numbers = RepeatedMatrices{rows}}).value();
  }

  // Returns the median time of one run of a graph of `body`, in microseconds.
  double time_graph(const std::function<void()>& body) {
    body();
    must(stream->synchronize());
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaEvent_t start = nullptr;
    cudaEvent_t stop = nullptr;
    QUIRE_CHECK(
        cudaStreamBeginCapture(stream->get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess,
        "capture");
    body();
    QUIRE_CHECK(cudaStreamEndCapture(stream->get(), &graph) == cudaSuccess, "capture");
    QUIRE_CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess, "graph");
    (void)cudaEventCreate(&start);
    (void)cudaEventCreate(&stop);
    std::vector<double> times;
    for (int i = 0; i < 12; ++i) {
      (void)cudaEventRecord(start, stream->get());
      (void)cudaGraphLaunch(executable, stream->get());
      (void)cudaEventRecord(stop, stream->get());
      must(stream->synchronize());
      float milliseconds = 0;
      (void)cudaEventElapsedTime(&milliseconds, start, stop);
      if (i >= 2) times.push_back(double{milliseconds} * 1e3);
    }
    (void)cudaGraphExecDestroy(executable);
    (void)cudaGraphDestroy(graph);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
};

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Matrix {
  const char* name;
  int64_t n, k;
  bool is_gated = false;  // followed by SiLU(gate) * up

  bool is_head() const { return n == kVocab; }
  // As many copies as make one gigabyte.
  int64_t copies() const { return std::max<int64_t>(2, (int64_t{1} << 29) / (n * k)); }
};

constexpr Matrix kMatrices[] = {
    {"qkv", kQkv, kHidden},           {"o", kHidden, kHidden},
    {"gate_up", 2 * kInner, kHidden}, {"and silu", 2 * kInner, kHidden, true},
    {"down", kHidden, kInner},        {"lm_head", kVocab, kHidden}};

// Allocates all copies as the rows of one matrix.
Tensor make_copies(Bench& bench, cuda::CudaOps& ops, const Matrix& m) {
  Tensor memory = ops.allocate({m.copies() * m.n, m.k}, DType::kBF16).value();
  const RepeatedTensor numbers = *bench.weights.repeated("w").value();
  for (int64_t at = 0; at < memory.view.shape.num_elements();
       at += numbers.pool.shape.num_elements()) {
    const auto left = static_cast<size_t>(memory.view.shape.num_elements() - at) * 2;
    bench.stream->copy_to_device(memory.view.as<uint16_t>() + at, numbers.pool.data,
                                 std::min(left, numbers.pool.num_bytes()));
  }
  must(bench.stream->synchronize());
  return memory;
}

std::vector<cuda::GemmCall> make_calls(const Matrix& m, int64_t rows, const Tensor& x,
                                       const Tensor& copies, const Tensor& out,
                                       const Tensor& gated_out) {
  std::vector<cuda::GemmCall> calls;
  for (int64_t i = 0; i < m.copies(); ++i) {
    calls.push_back({{x.view.data, DType::kBF16, {rows, m.k}},
                     copies.view.rows(i * m.n, m.n),
                     {},
                     {out.view.data, m.is_head() ? DType::kF32 : DType::kBF16, {rows, m.n}}});
    if (m.is_gated) calls.back().gated_out = gated_out.view.rows(0, rows);
  }
  return calls;
}

void bench_products(Bench& bench) {
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const auto runner = cuda::GemmRunner::create(context).value();
  const int64_t max_rows = 256;
  const Tensor x = bench.random(*ops, {max_rows, kInner});
  const Tensor out = ops->allocate({max_rows, kVocab}, DType::kF32).value();
  const Tensor product = ops->allocate({max_rows, kInner}, DType::kBF16).value();
  fmt::print("{:8} {:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  variants (us)\n", "matrix", "rows",
             "cublas0", "cublas", "skinny", "generic", "wgmma", "share");
  for (const Matrix& m : kMatrices) {
    const Tensor memory = make_copies(bench, *ops, m);
    for (const int64_t rows : {1, 2, 4, 8, 16, 64, 256}) {
      const std::vector<cuda::GemmCall> calls = make_calls(m, rows, x, memory, out, product);
      using Kind = cuda::GemmChoice::Kind;
      double first = 0;
      double cublas = INFINITY;
      double skinny = INFINITY;
      double generic = INFINITY;
      double wgmma = INFINITY;
      std::string variants;
      const std::vector<cuda::GemmTiming> timings =
          runner->measure(calls, rows, cuda::gemm_search(rows)).value();
      for (const cuda::GemmTiming& timing : timings) {
        const double us = timing.microseconds;
        if (timing.choice.kind == Kind::kCublasLt) {
          if (first == 0) first = us;
          cublas = std::min(cublas, us);
        } else if (timing.choice.kind == Kind::kGeneric) {
          generic = us;
        } else if (timing.choice.kind == Kind::kWgmma) {
          wgmma = std::min(wgmma, us);
        } else {
          skinny = std::min(skinny, us);
          variants += fmt::format(" {} {:.2f}",
                                  cuda::skinny_variant_name(timing.choice.skinny_variant), us);
        }
      }
      const double best = std::min({cublas, skinny, generic, wgmma});
      fmt::print("{:8} {:4} {:9.2f} {:9.2f} {:9.2f} {:9.2f} {:9.2f} {:6.3f} {}\n", m.name, rows,
                 first, cublas, skinny, generic, wgmma,
                 static_cast<double>(m.n * m.k) * 2 / best * 1e6 / kPeak, variants);
    }
  }
}

// Prints the times in microseconds of the best of cuBLASLt's first 8 suggestions, the best of all
// suggestions, and the ten fastest plans of the wgmma kernels (with their places in the estimate's
// order), and the fraction of the bound by memory and tensor cores that the best reaches.
void bench_batches(Bench& bench) {
  constexpr double kMemoryRate = 4.6e12;
  constexpr double kMultiplyRate = 800e12;
  constexpr cuda::GemmSearch kSearch = {.max_algorithms = 32, .max_plans = 48};
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const auto runner = cuda::GemmRunner::create(context).value();
  const Tensor x = bench.random(*ops, {2048, kInner});
  const Tensor out = ops->allocate({512, kVocab}, DType::kF32).value();
  const Tensor product = ops->allocate({2048, kInner}, DType::kBF16).value();
  fmt::print("{:8} {:>4} {:>8} {:>8} {:>8} {:>8} {:>6}  plans\n", "matrix", "rows", "limit",
             "cublas8", "cublas", "wgmma", "share");
  for (const Matrix& m : kMatrices) {
    const Tensor memory = make_copies(bench, *ops, m);
    for (const int64_t rows :
         {16, 32, 64, 96, 128, 192, 256, 320, 384, 448, 500, 512, 1024, 2048}) {
      if (m.is_head() && rows > 512) continue;
      const std::vector<cuda::GemmCall> calls = make_calls(m, rows, x, memory, out, product);
      double first_algorithms = INFINITY;
      double cublas = INFINITY;
      int num_algorithms = 0;
      std::vector<std::pair<double, std::string>> plans;
      const auto timings = runner->measure(calls, rows, kSearch).value();
      for (const cuda::GemmTiming& timing : timings) {
        const double us = timing.microseconds;
        if (timing.choice.kind == cuda::GemmChoice::Kind::kCublasLt) {
          if (++num_algorithms <= 8) first_algorithms = std::min(first_algorithms, us);
          cublas = std::min(cublas, us);
        } else if (timing.choice.kind == cuda::GemmChoice::Kind::kWgmma) {
          plans.emplace_back(us, fmt::format("{} (#{})", cuda::wgmma_plan_name(timing.choice.wgmma),
                                             plans.size()));
        }
      }
      std::sort(plans.begin(), plans.end());
      const auto weights = static_cast<double>(m.n * m.k);
      const double limit = 1e6 * std::max(2 * weights / kMemoryRate,
                                          2 * weights * static_cast<double>(rows) / kMultiplyRate);
      const double wgmma = plans.empty() ? INFINITY : plans.front().first;
      fmt::print("{:8} {:4} {:8.2f} {:8.2f} {:8.2f} {:8.2f} {:6.3f} ", m.name, rows, limit,
                 first_algorithms, cublas, wgmma, limit / std::min(cublas, wgmma));
      plans.resize(std::min(plans.size(), size_t{10}));
      for (const auto& [us, name] : plans) fmt::print(" {} {:.2f},", name, us);
      fmt::print("\n");
    }
  }
}

std::string choice_name(const cuda::GemmChoice& choice) {
  switch (choice.kind) {
    case cuda::GemmChoice::Kind::kSkinny:
      return fmt::format("skinny {}", cuda::skinny_variant_name(choice.skinny_variant));
    case cuda::GemmChoice::Kind::kCublasLt:
      return "cublas";
    case cuda::GemmChoice::Kind::kWgmma:
      return fmt::format("wgmma {}", cuda::wgmma_plan_name(choice.wgmma));
    case cuda::GemmChoice::Kind::kGrouped:
      return fmt::format("grouped {}", choice.tile_rows);
    case cuda::GemmChoice::Kind::kGeneric:
      return "generic";
  }
  return "";
}

constexpr Matrix kFp8Matrices[] = {
    {"8B qkv", kQkv, kHidden},    {"8B o", kHidden, kHidden}, {"8B gate_up", 2 * kInner, kHidden},
    {"8B down", kHidden, kInner}, {"70B qkv", 10240, 8192},   {"70B o", 8192, 8192},
    {"70B gate_up", 57344, 8192}, {"70B down", 8192, 28672}};

// The copies of a matrix in BF16 and in E4M3 with a scale per row, as the rows of one matrix.
struct Fp8Copies {
  Tensor memory;
  Tensor weights;
  Tensor scales;

  std::vector<cuda::GemmCall> calls(const Matrix& m, std::vector<cuda::GemmCall> bf16) const {
    for (size_t i = 0; i < bf16.size(); ++i) {
      const int64_t first = static_cast<int64_t>(i) * m.n;
      bf16[i].w = weights.view.rows(first, m.n);
      bf16[i].w_scales = scales.view.rows(first, m.n);
    }
    return bf16;
  }
};

Fp8Copies make_fp8_copies(Bench& bench, cuda::CudaOps& ops, const Matrix& m) {
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const int64_t num_rows = m.copies() * m.n;
  Fp8Copies copies = {make_copies(bench, ops, m),
                      ops.allocate({num_rows, m.k}, DType::kF8E4M3).value(),
                      ops.allocate({num_rows}, DType::kF32).value()};
  cuda::run_quantize_rows(context, copies.memory.view, copies.weights.view, copies.scales.view);
  return copies;
}

// The fastest time of each kind of kernel.
struct KindTimes {
  double cublas = INFINITY;
  double wgmma = INFINITY;
  double others = INFINITY;

  explicit KindTimes(std::span<const cuda::GemmTiming> timings) {
    for (const cuda::GemmTiming& timing : timings) {
      double& best = this->*of(timing.choice.kind);
      best = std::min(best, timing.microseconds);
    }
  }
  double fastest() const { return std::min({cublas, wgmma, others}); }

  static double KindTimes::*of(cuda::GemmChoice::Kind kind) {
    using Kind = cuda::GemmChoice::Kind;
    return kind == Kind::kCublasLt ? &KindTimes::cublas
           : kind == Kind::kWgmma  ? &KindTimes::wgmma
                                   : &KindTimes::others;
  }
};

// Prints the fastest kernel with FP8 weights (the quantization of the activations included), with a
// scale per row and with one per block of 128 x 128, and with BF16 weights, the quantization of
// rows alone, and the fastest kernels of each kind with a scale per row. GB/s are of the FP8
// weights.
void bench_fp8(Bench& bench) {
  constexpr int64_t kMaxRows = 2048;
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const auto runner = cuda::GemmRunner::create(context).value();
  must(runner->prepare_fp8());
  const Tensor x = bench.random(*ops, {kMaxRows, 28672});
  const Tensor quantized = ops->allocate({kMaxRows, 28672}, DType::kF8E4M3).value();
  const Tensor row_scales = ops->allocate({kMaxRows}, DType::kF32).value();
  const Tensor out = ops->allocate({kMaxRows, 57344}, DType::kBF16).value();
  const auto measure = [&](std::span<const cuda::GemmCall> calls, int64_t rows) {
    return runner->measure(calls, rows, cuda::gemm_search(rows)).value();
  };
  const auto fastest = [&](std::span<const cuda::GemmTiming> timings) {
    return *std::min_element(timings.begin(), timings.end(), [](const auto& a, const auto& b) {
      return a.microseconds < b.microseconds;
    });
  };
  fmt::print("{:12} {:>5} {:>9} {:>7} {:>8} {:>9} {:>7} {:>8} {:>9} {:>9} {:>9} {:>9}  kernels\n",
             "matrix", "rows", "fp8 us", "GB/s", "TFLOP/s", "blocks us", "GB/s", "TFLOP/s",
             "bf16 us", "quant us", "cublas us", "wgmma us");
  for (const Matrix& m : kFp8Matrices) {
    const Fp8Copies copies = make_fp8_copies(bench, *ops, m);
    for (const int64_t rows : {1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 304, 384, 512, 1024, 2048}) {
      const std::vector<cuda::GemmCall> bf16_calls = make_calls(m, rows, x, copies.memory, out, {});
      const std::vector<cuda::GemmCall> calls = copies.calls(m, bf16_calls);
      // All copies share some of the row scales, whose number suffices for each matrix.
      std::vector<cuda::GemmCall> block_calls = calls;
      for (cuda::GemmCall& call : block_calls) {
        call.scale_rows = 128;
        call.w_scales = {
            copies.scales.view.data, DType::kF32, {m.n / 128, cuda::num_scale_columns(m.k)}};
      }
      const std::vector<cuda::GemmTiming> timings = measure(calls, rows);
      const cuda::GemmTiming fp8 = fastest(timings);
      const KindTimes kinds(timings);
      const cuda::GemmTiming blocks = fastest(measure(block_calls, rows));
      const cuda::GemmTiming bf16 = fastest(measure(bf16_calls, rows));
      const double quantization = bench.time_graph([&] {
        cuda::run_quantize_rows(context, calls.front().x,
                                {quantized.view.data, DType::kF8E4M3, {rows, m.k}},
                                row_scales.view.rows(0, rows));
      });
      const auto num_weights = static_cast<double>(m.n * m.k);
      const double num_operations = 2 * num_weights * static_cast<double>(rows);
      fmt::print(
          "{:12} {:5} {:9.2f} {:7.0f} {:8.1f} {:9.2f} {:7.0f} {:8.1f} {:9.2f} {:9.2f} {:9.2f} "
          "{:9.2f}  {}, {}, {}\n",
          m.name, rows, fp8.microseconds, num_weights / fp8.microseconds / 1e3,
          num_operations / fp8.microseconds / 1e6, blocks.microseconds,
          num_weights / blocks.microseconds / 1e3, num_operations / blocks.microseconds / 1e6,
          bf16.microseconds, quantization, kinds.cublas, kinds.wgmma, choice_name(fp8.choice),
          choice_name(blocks.choice), choice_name(bf16.choice));
    }
  }
}

// The time of a product with FP8 weights by one choice, in a graph, with the quantization of x.
class Fp8Graphs {
 public:
  explicit Fp8Graphs(Bench& bench, cuda::CudaOps& ops)
      : bench_(bench),
        context_{.stream = bench.stream.get(), .overlap_start = true},
        wgmma_(cuda::WgmmaGemm::create(context_).value()),
        cublas_(cuda::CublasLt::open().value()),
        quantized_(ops.allocate({kMaxRows, 28672}, DType::kF8E4M3).value()),
        scales_(ops.allocate({kMaxRows}, DType::kF32).value()) {}

  static constexpr int64_t kMaxRows = 512;

  double quantization_us(std::span<const cuda::GemmCall> calls) {
    return time(calls, [](const cuda::GemmCall& /*call*/) {});
  }
  double product_us(std::span<const cuda::GemmCall> calls, const cuda::GemmChoice& choice) {
    using Kind = cuda::GemmChoice::Kind;
    const auto* const scales = scales_.view.as<const float>();
    const cuda::GemmShape shape = {.n = calls[0].w.shape[0],
                                   .k = calls[0].w.shape[1],
                                   .type = DType::kBF16,
                                   .weights = DType::kF8E4M3,
                                   .out = DType::kBF16};
    switch (choice.kind) {
      case Kind::kWgmma:
        return time(calls, [&](const cuda::GemmCall& call) {
          must(wgmma_->run(call, choice.wgmma, scales));
        });
      case Kind::kCublasLt:
        return time(calls, [&](const cuda::GemmCall& call) {
          must(cublas_->run(*bench_.stream, shape, call, choice.algorithm, scales));
        });
      case Kind::kSkinny:
        return bench_.time_graph([&] {
          for (const cuda::GemmCall& call : calls) {
            cuda::run_empty_kernel(context_);
            cuda::run_skinny_gemm(context_, call, choice.skinny_variant);
          }
        }) / static_cast<double>(calls.size());
      case Kind::kGrouped:
      case Kind::kGeneric:
        return INFINITY;
    }
    return INFINITY;
  }

 private:
  template <typename Run>
  double time(std::span<const cuda::GemmCall> calls, const Run& run) {
    return bench_.time_graph([&] {
      for (cuda::GemmCall call : calls) {
        const TensorView x = call.x;
        call.x = {quantized_.view.data, DType::kF8E4M3, x.shape};
        cuda::run_quantize_rows(context_, x, call.x, scales_.view.rows(0, x.shape[0]));
        run(call);
      }
    }) / static_cast<double>(calls.size());
  }

  Bench& bench_;
  cuda::LaunchContext context_;
  std::unique_ptr<cuda::WgmmaGemm> wgmma_;
  std::unique_ptr<cuda::CublasLt> cublas_;
  Tensor quantized_;
  Tensor scales_;
};

// The sums of the products of a layer, by the fastest kernels with the wgmma kernels (now) and
// without them (before).
struct LayerSums {
  double before = 0;
  double now = 0;

  void add(const KindTimes& kinds) {
    const double fastest = std::min(kinds.others, kinds.cublas);
    before += fastest;
    now += std::min(fastest, kinds.wgmma);
  }
};

// Prints the times of the kernels with FP8 weights and a scale per row, in a graph with the
// quantization of x before each product: the quantization alone, the fastest kernel of each kind,
// and the ten fastest plans of the wgmma kernels with their places in the estimate's order. `limit`
// is the bound by memory and tensor cores. Then prints the sums of a layer's products, in graphs
// and as a start measures them. A graph is timed for kernels near the fastest of their kind at a
// start.
void bench_fp8_batches(Bench& bench) {
  constexpr double kMemoryRate = 4.4e12;
  constexpr double kMultiplyRate = 1300e12;
  constexpr double kNearFastest = 1.25;
  constexpr cuda::GemmSearch kSearch = {.max_algorithms = 8, .max_plans = 200};
  using Kind = cuda::GemmChoice::Kind;
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const auto runner = cuda::GemmRunner::create(context).value();
  must(runner->prepare_fp8());
  Fp8Graphs graphs(bench, *ops);
  const Tensor x = bench.random(*ops, {Fp8Graphs::kMaxRows, 28672});
  const Tensor out = ops->allocate({Fp8Graphs::kMaxRows, 57344}, DType::kBF16).value();
  std::map<std::pair<std::string, int64_t>, std::pair<LayerSums, LayerSums>> layers;
  fmt::print("{:12} {:>4} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6}  plans\n", "matrix", "rows", "limit",
             "quant", "few", "cublas", "wgmma", "share");
  for (const Matrix& m : kFp8Matrices) {
    const Fp8Copies copies = make_fp8_copies(bench, *ops, m);
    for (const int64_t rows : {16, 32, 64, 128, 192, 256, 304, 384, 512}) {
      const std::vector<cuda::GemmCall> calls =
          copies.calls(m, make_calls(m, rows, x, copies.memory, out, {}));
      const auto measured = runner->measure(calls, rows, kSearch).value();
      const KindTimes at_start(measured);
      std::vector<cuda::GemmTiming> timings;
      std::vector<std::pair<double, std::string>> plans;
      int num_plans = 0;
      for (const cuda::GemmTiming& timing : measured) {
        const bool is_wgmma = timing.choice.kind == Kind::kWgmma;
        const int place = is_wgmma ? num_plans++ : 0;
        const double limit =
            (is_wgmma ? kNearFastest : 1.0) * (at_start.*KindTimes::of(timing.choice.kind));
        if (timing.microseconds > limit) continue;
        timings.push_back({timing.choice, graphs.product_us(calls, timing.choice)});
        if (!is_wgmma) continue;
        const double us = timings.back().microseconds;
        plans.emplace_back(us, fmt::format("{} (#{}) {:.2f}",
                                           cuda::wgmma_plan_name(timing.choice.wgmma), place, us));
      }
      const KindTimes kinds(timings);
      auto& [in_graphs, of_start] =
          layers[{std::string(m.name, std::string_view(m.name).find(' ')), rows}];
      in_graphs.add(kinds);
      of_start.add(at_start);
      const auto weights = static_cast<double>(m.n * m.k);
      const double limit = 1e6 * std::max(weights / kMemoryRate,
                                          2 * weights * static_cast<double>(rows) / kMultiplyRate);
      fmt::print("{:12} {:4} {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:6.3f} ", m.name, rows, limit,
                 graphs.quantization_us(calls), kinds.others, kinds.cublas, kinds.wgmma,
                 limit / kinds.fastest());
      std::sort(plans.begin(), plans.end());
      plans.resize(std::min(plans.size(), size_t{10}));
      for (const auto& [us, name] : plans) fmt::print(" {},", name);
      fmt::print("\n");
      std::fflush(stdout);
    }
  }
  for (const auto& [layer, sums] : layers) {
    const auto& [in_graphs, of_start] = sums;
    fmt::print(
        "layer of the {}, {:3} rows: before {:.2f} us, now {:.2f}; at a start {:.2f}, {:.2f}\n",
        layer.first, layer.second, in_graphs.before, in_graphs.now, of_start.before, of_start.now);
  }
}

// Prints the times of the kernels that compute and quantize rows, in turn and as one.
void bench_quantization(Bench& bench) {
  constexpr int64_t kMostRows = 8192;
  constexpr int64_t kMostColumns = 28672;
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const Tensor in = bench.random(*ops, {kMostRows, 2 * kMostColumns});
  const Tensor delta = ops->allocate({kMostRows, kMostColumns}, DType::kBF16).value();
  const Tensor x = ops->allocate({kMostRows, kMostColumns}, DType::kBF16).value();
  const Tensor quantized = ops->allocate({kMostRows, kMostColumns}, DType::kF8E4M3).value();
  const Tensor scales =
      ops->allocate({kMostRows * cuda::num_scale_columns(kMostColumns)}, DType::kF32).value();
  const Tensor weight = ops->allocate({kMostColumns}, DType::kF32).value();
  fmt::print("{:14} {:>6} {:>6} {:>9} {:>9} {:>9} {:>9}   {}\n", "operation", "width", "rows",
             "alone us", "quant us", "both us", "fused us", "the last three with block scales");
  for (const int64_t width : {4096, 8192, 14336, 28672}) {
    const bool is_norm = width <= 8192;
    for (const int64_t rows : {16, 32, 64, 128, 300, 1024, 8192}) {
      const auto part = [&](const Tensor& tensor, int64_t columns) {
        return TensorView{tensor.view.data, tensor.view.dtype, {rows, columns}};
      };
      cuda::RowOperation operation = cuda::GatedMul{Activation::kSilu, part(in, 2 * width)};
      if (is_norm) {
        operation =
            ResidualNorm{part(in, width), part(delta, width), weight.view.as<float>(), 1.0F};
      }
      const auto time = [&](const std::function<void()>& body) {
        constexpr int kRepeats = 20;
        return bench.time_graph([&] {
          for (int i = 0; i < kRepeats; ++i) body();
        }) / kRepeats;
      };
      const auto compute = [&] { cuda::run_row_operation(context, operation, part(x, width)); };
      fmt::print("{:14} {:6} {:6} {:9.2f}", is_norm ? "add_rms_norm" : "gated_mul", width, rows,
                 time(compute));
      for (const bool has_blocks : {false, true}) {
        const auto quantize = [&](const cuda::RowOperation& made_by) {
          TensorView out_scales = {scales.view.data, DType::kF32, {rows}};
          if (!has_blocks) {
            return cuda::run_quantize_rows(context, part(x, width), part(quantized, width),
                                           out_scales, made_by);
          }
          out_scales.shape = {cuda::num_scale_columns(width), rows};
          cuda::run_quantize_blocks(context, part(x, width), part(quantized, width), out_scales,
                                    made_by);
        };
        const double alone = time([&] { quantize({}); });
        const double both = time([&] {
          compute();
          quantize({});
        });
        const double fused = time([&] { quantize(operation); });
        fmt::print(" {:9.2f} {:9.2f} {:9.2f}", alone, both, fused);
      }
      fmt::print("\n");
    }
  }
}

// The sizes of a decoder layer.
struct LayerSizes {
  const char* model;
  int64_t hidden, inner, qkv;
  int num_layers;  // that are measured
};

// The matrices of a layer that follow a norm, and down, in E4M3 of random bits.
struct Fp8Layer {
  std::unique_ptr<Linear> qkv, gate_up, down;
};

std::unique_ptr<Linear> fp8_linear(cuda::CudaOps& ops, int64_t n, int64_t k, ScaleLayout layout,
                                   std::vector<uint8_t>& pool) {
  std::mt19937 random(7);
  while (pool.size() < static_cast<size_t>(n * k)) {
    const auto number = static_cast<uint8_t>(random());
    pool.push_back((number & 0x7F) == 0x7F ? uint8_t{0} : number);  // no NaN
  }
  const WeightScheme scheme = {
      .values = DType::kF8E4M3, .scales = layout, .block_rows = 128, .block_columns = 128};
  const Shape shape = {n, k};
  std::vector<float> scales(static_cast<size_t>(scales_shape(scheme, shape).num_elements()), 1e-4F);
  const WeightView view = {{pool.data(), DType::kF8E4M3, shape},
                           {scales.data(), DType::kF32, scales_shape(scheme, shape)},
                           scheme};
  return ops.weights().make_linear({.numbers = StoredMatrices{{&view, 1}}}).value();
}

// Prints the time of a norm and qkv, and of a norm and the MLP, of one layer after tuning.
void bench_fused_layers(Bench& bench, const LayerSizes& sizes, ScaleLayout layout,
                        std::vector<uint8_t>& pool) {
  constexpr int64_t kMostRows = 8192;
  const auto make_ops = [&] { return cuda::CudaOps::create(*bench.stream, DType::kBF16).value(); };
  const auto maker = make_ops();
  std::vector<Fp8Layer> layers;
  const auto linear = [&](int64_t n, int64_t k) { return fp8_linear(*maker, n, k, layout, pool); };
  for (int i = 0; i < sizes.num_layers; ++i) {
    layers.push_back({linear(sizes.qkv, sizes.hidden), linear(2 * sizes.inner, sizes.hidden),
                      linear(sizes.hidden, sizes.inner)});
  }
  std::vector<float> ones(static_cast<size_t>(sizes.hidden), 1.0F);
  const Tensor weight =
      maker->weights().make_vector({ones.data(), DType::kF32, {sizes.hidden}}).value();
  const Tensor residual = bench.random(*maker, {kMostRows, sizes.hidden});
  const Tensor delta = bench.random(*maker, {kMostRows, sizes.hidden});
  const Tensor normed = maker->allocate({kMostRows, sizes.hidden}, DType::kBF16).value();
  const Tensor qkv = maker->allocate({kMostRows, sizes.qkv}, DType::kBF16).value();
  const Tensor gate_up = maker->allocate({kMostRows, 2 * sizes.inner}, DType::kBF16).value();
  const Tensor product = maker->allocate({kMostRows, sizes.inner}, DType::kBF16).value();
  for (const int rows : {16, 32, 64, 128, 192, 256, 304, 512, 1024, 8192}) {
    const ResidualNorm norm = {.residual = residual.view.rows(0, rows),
                               .delta = delta.view.rows(0, rows),
                               .weight = weight.view.as<float>(),
                               .eps = 1e-5F};
    const auto run_qkv = [&](cuda::CudaOps& ops, bool is_fused) {
      for (const Fp8Layer& layer : layers) {
        const TensorView scratch = normed.view.rows(0, rows);
        const TensorView out = qkv.view.rows(0, rows);
        if (is_fused) {
          ops.norm_linear(norm, *layer.qkv, scratch, out);
        } else {
          ops.Ops::norm_linear(norm, *layer.qkv, scratch, out);
        }
      }
    };
    const auto run_mlp = [&](cuda::CudaOps& ops, bool is_fused) {
      for (const Fp8Layer& layer : layers) {
        GatedMlp mlp;
        mlp.gate_up = layer.gate_up.get();
        mlp.down = layer.down.get();
        mlp.norm = norm;
        mlp.x = normed.view.rows(0, rows);
        mlp.out = delta.view.rows(0, rows);
        mlp.gate_up_out = gate_up.view.rows(0, rows);
        mlp.product = product.view.rows(0, rows);
        if (is_fused) {
          ops.gated_mlp(mlp);
        } else {
          ops.Ops::gated_mlp(mlp);
        }
      }
    };
    fmt::print("{:4} {:7} {:6}", sizes.model, layout == ScaleLayout::kRows ? "rows" : "blocks",
               rows);
    for (const bool is_fused : {false, true}) {
      const auto ops = make_ops();
      (void)fp8_linear(*ops, 16, 16, layout, pool);  // prepares FP8 products
      must(ops->tune_linears({&rows, 1}, [&] {
        run_qkv(*ops, is_fused);
        run_mlp(*ops, is_fused);
        return Status();
      }));
      for (const auto& body : {std::function<void()>([&] { run_qkv(*ops, is_fused); }),
                               std::function<void()>([&] { run_mlp(*ops, is_fused); })}) {
        fmt::print(" {:10.2f}", bench.time_graph(body) / sizes.num_layers);
      }
    }
    fmt::print("\n");
  }
}

void bench_fusion(Bench& bench) {
  bench_quantization(bench);
  std::vector<uint8_t> pool;
  fmt::print("{:4} {:7} {:>6} {:>10} {:>10} {:>10} {:>10}\n", "", "scales", "rows", "qkv us",
             "mlp us", "fused qkv", "fused mlp");
  for (const ScaleLayout layout : {ScaleLayout::kRows, ScaleLayout::kBlocks}) {
    bench_fused_layers(bench, {"8B", kHidden, kInner, kQkv, kLayers}, layout, pool);
    bench_fused_layers(bench, {"70B", 8192, 28672, 10240, 3}, layout, pool);
  }
}

void bench_layers(Bench& bench) {
  struct Layer {
    std::unique_ptr<Linear> qkv, o, gate_up, down;
  };
  const auto ops_for = [&](bool overlap) {
    return cuda::CudaOps::create(*bench.stream, DType::kBF16, {.overlap_kernels = overlap}).value();
  };
  const auto maker = ops_for(true);
  std::vector<Layer> layers;
  for (int i = 0; i < kLayers; ++i) {
    layers.push_back(
        {bench.linear(*maker, kQkv, kHidden, i), bench.linear(*maker, kHidden, kHidden, i),
         bench.linear(*maker, 2 * kInner, kHidden, i), bench.linear(*maker, kHidden, kInner, i)});
  }
  const std::vector<float> ones(kHidden, 1.0F);
  const Tensor norm = maker->weights()
                          .make_vector({const_cast<float*>(ones.data()), DType::kF32, {kHidden}})
                          .value();
  const double bytes = 2.0 * static_cast<double>(kHidden * (kQkv + kHidden + 3 * kInner));
  for (const int64_t rows : {1, 2, 4, 8, 16, 64, 128, 256, 512}) {
    const Tensor residual = bench.random(*maker, {rows, kHidden});
    const Tensor normed = bench.random(*maker, {rows, kHidden});
    const Tensor delta = bench.random(*maker, {rows, kHidden});
    const Tensor qkv = bench.random(*maker, {rows, kQkv});
    const Tensor gate_up = bench.random(*maker, {rows, 2 * kInner});
    const Tensor product = bench.random(*maker, {rows, kInner});
    fmt::print("layer, {} rows:", rows);
    for (const bool overlap : {false, true}) {
      const auto ops = ops_for(overlap);
      const auto body = [&] {
        for (const Layer& layer : layers) {
          const auto* weight = norm.view.as<float>();
          ops->residual_norm(
              {.residual = residual.view, .delta = delta.view, .weight = weight, .eps = 1e-5F},
              normed.view);
          ops->linear(*layer.qkv, normed.view, qkv.view);
          ops->linear(*layer.o, normed.view, delta.view);
          ops->residual_norm(
              {.residual = residual.view, .delta = delta.view, .weight = weight, .eps = 1e-5F},
              normed.view);
          ops->linear_gated_mul(Activation::kSilu, *layer.gate_up, normed.view, gate_up.view,
                                product.view);
          ops->linear(*layer.down, product.view, delta.view);
        }
      };
      const int row_counts[] = {static_cast<int>(rows)};
      must(ops->tune_linears(row_counts, [&] {
        body();
        return Status();
      }));
      const double us = bench.time_graph(body) / kLayers;
      fmt::print("  {} {:.2f} us, {:.3f} of peak", overlap ? "overlapped" : "in turn", us,
                 bytes / us * 1e6 / kPeak);
    }
    fmt::print("\n");
  }
}

void bench_rows(Bench& bench) {
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const std::vector<float> ones(kHidden, 1.0F);
  const Tensor norm =
      ops->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {kHidden}}).value();
  for (const int64_t rows : {1, 32, 256, 2048}) {
    constexpr int kRepeats = 20;
    const Tensor a = bench.random(*ops, {rows, kHidden});
    const Tensor b = bench.random(*ops, {rows, kHidden});
    const Tensor c = bench.random(*ops, {rows, kHidden});
    const Tensor gate_up = bench.random(*ops, {rows, 2 * kInner});
    const Tensor product = bench.random(*ops, {rows, kInner});
    const Tensor qkv = bench.random(*ops, {rows, kQkv});
    const Tensor cos_sin = ops->allocate({rows, 128}, DType::kF32).value();
    const Tensor cache = ops->allocate({(rows + 16) * 2 * 8 * 128}, DType::kBF16).value();
    const Tensor slots = ops->allocate({rows}, DType::kI64).value();
    RopeAndCache rope;
    rope.qkv = qkv.view;
    rope.q_out = {a.view.data, DType::kBF16, {rows, 32, 128}};
    rope.cos_sin = cos_sin.view;
    rope.num_heads = 32;
    rope.num_kv_heads = 8;
    rope.head_dim = 128;
    rope.page_size = 16;
    rope.kv = kv_cache_view({.page_size = 16,
                             .num_kv_heads = 8,
                             .head_dim = 128,
                             .head_dim_v = 128,
                             .dtype = DType::kBF16},
                            cache.view.data);
    rope.kv_slots = slots.view.as<int64_t>();
    const auto time = [&](const char* name, const std::function<void()>& body) {
      const double us = bench.time_graph([&] {
        for (int i = 0; i < kRepeats; ++i) body();
      });
      fmt::print("  {} {:.2f} us", name, us / kRepeats);
    };
    fmt::print("{:5} rows:", rows);
    time("add_rms_norm", [&] {
      ops->residual_norm(
          {.residual = a.view, .delta = b.view, .weight = norm.view.as<float>(), .eps = 1e-5F},
          c.view);
    });
    time("gated_mul", [&] { ops->gated_mul(Activation::kSilu, gate_up.view, product.view); });
    time("rope_and_cache", [&] { ops->rope_and_cache(rope); });
    time("gather_rows", [&] { ops->gather_rows(a.view, slots.view.as<int32_t>(), c.view); });
    fmt::print("\n");
  }
}

void bench_load(Bench& bench) {
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const Tensor host = Tensor::host({int64_t{1} << 15, int64_t{1} << 15}, DType::kBF16).value();
  std::fill_n(host.view.as<uint16_t>(), host.view.shape.num_elements(), uint16_t{0x3C00});
  for (int i = 0; i < 2; ++i) {
    const double seconds = seconds_of([&] {
      const WeightView weight = host.view;
      const auto linear =
          ops->weights().make_linear({.numbers = StoredMatrices{{&weight, 1}}}).value();
      must(bench.stream->synchronize());
    });
    fmt::print("upload: {:.2f} GB/s\n", static_cast<double>(host.view.num_bytes()) / seconds / 1e9);
  }
  std::vector<std::unique_ptr<Linear>> model;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < 32; ++i) {
      model.push_back(bench.linear(*ops, kQkv, kHidden, i));
      model.push_back(bench.linear(*ops, kHidden, kHidden, i));
      model.push_back(bench.linear(*ops, 2 * kInner, kHidden, i));
      model.push_back(bench.linear(*ops, kHidden, kInner, i));
    }
    model.push_back(bench.linear(*ops, kVocab, kHidden, 0));
    model.push_back(bench.linear(*ops, kVocab, kHidden, 1));
    must(bench.stream->synchronize());
  });
  fmt::print("dummy weights of 8B: {:.3f} s\n", seconds);
  const Tensor x = bench.random(*ops, {2048, kInner});
  const Tensor out = ops->allocate({2048, 2 * kInner}, DType::kBF16).value();
  const Tensor logits = ops->allocate({256, kVocab}, DType::kF32).value();
  std::vector<int> row_counts = {1, 2, 4};
  for (int rows = 8; rows <= 256; rows += 8) row_counts.push_back(rows);
  for (int rows = 512; rows <= 2048; rows += 256) row_counts.push_back(rows);
  const double tuning = seconds_of([&] {
    must(ops->tune_linears(row_counts, [&] {
      for (const auto& linear : model) {
        const bool is_head = linear->out_features() == kVocab;
        const int64_t rows = is_head ? 256 : 2048;
        ops->linear(*linear, {x.view.data, DType::kBF16, {rows, linear->in_features()}},
                    {is_head ? logits.view.data : out.view.data,
                     is_head ? DType::kF32 : DType::kBF16,
                     {rows, linear->out_features()}});
      }
      return Status();
    }));
  });
  fmt::print("tuning of 8B at {} numbers of rows: {:.3f} s\n", row_counts.size(), tuning);
}

// Dummy weights of one layer's experts: BF16, or E4M3 with a scale per row.
class DummyExperts : public ExpertsSource {
 public:
  DummyExperts(DummyWeights& weights, const ExpertsShape& shape, bool is_fp8)
      : weights_(weights), shape_(shape), is_fp8_(is_fp8) {
    const int64_t most_rows = std::max(2 * shape.intermediate_size, shape.hidden_size);
    scales_.assign(static_cast<size_t>(most_rows), 0.01F);
    fp8_.assign(static_cast<size_t>(2 * shape.intermediate_size * shape.hidden_size), 0);
    std::mt19937 random(7);
    for (uint8_t& number : fp8_) number = static_cast<uint8_t>(random() % 0x7F);
  }

  const ExpertsShape& shape() const override { return shape_; }
  Result<LinearSource> gate_up(int idx) override {
    return source(fmt::format("gate_up {}", idx),
                  {2 * shape_.intermediate_size, shape_.hidden_size});
  }
  Result<LinearSource> down(int idx) override {
    return source(fmt::format("down {}", idx), {shape_.hidden_size, shape_.intermediate_size});
  }

 private:
  Result<LinearSource> source(const std::string& name, const Shape& shape) {
    if (is_fp8_) {
      view_ = WeightView({fp8_.data(), DType::kF8E4M3, shape},
                         {scales_.data(), DType::kF32, {shape[0], 1}},
                         {.values = DType::kF8E4M3, .scales = ScaleLayout::kRows});
      return LinearSource{.numbers = StoredMatrices{{&view_, 1}}};
    }
    const RepeatedTensor numbers = *weights_.repeated(name).value();
    rows_ = {numbers.pool, numbers.first, shape[1], shape};
    return LinearSource{.numbers = RepeatedMatrices{{&rows_, 1}}};
  }

  DummyWeights& weights_;
  ExpertsShape shape_;
  bool is_fp8_;
  std::vector<float> scales_;
  std::vector<uint8_t> fp8_;
  WeightView view_;
  RepeatedRows rows_;
};

// The experts of each token, which differ from layer to layer, and how many are distinct.
struct ExpertsOfTokens {
  std::vector<int32_t> ids;
  double num_distinct = 0;
};

ExpertsOfTokens random_ids(const ExpertsShape& shape, int64_t num_tokens, uint32_t seed) {
  std::mt19937 random(seed);
  ExpertsOfTokens experts;
  std::vector<int32_t> all(static_cast<size_t>(shape.num_experts));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
  std::vector<bool> used(all.size());
  const int num_chosen = shape.top_k - shape.num_shared;
  for (int64_t t = 0; t < num_tokens; ++t) {
    std::shuffle(all.begin(), all.end() - shape.num_shared, random);
    for (int j = 0; j < shape.top_k; ++j) {
      const int place = j < num_chosen ? j : shape.num_experts - shape.top_k + j;
      const int32_t id = all[static_cast<size_t>(place)];
      experts.ids.push_back(id);
      used[static_cast<size_t>(id)] = true;
    }
  }
  experts.num_distinct = static_cast<double>(std::count(used.begin(), used.end(), true));
  return experts;
}

// One call per layer of experts, each with random experts of its tokens.
struct ExpertsStep {
  std::vector<ExpertsCall> calls;
  std::vector<Tensor> ids;
  double num_distinct = 0;  // experts that a layer's tokens have, on average
};

// x, weights, out: of at least `tokens` rows, in all layers.
ExpertsStep experts_step(Bench& bench, cuda::CudaOps& ops,
                         std::span<const std::unique_ptr<Experts>> layers, int64_t tokens,
                         const Tensor& x, const Tensor& weights, const Tensor& out,
                         const Tensor& workspace) {
  const ExpertsShape& shape = layers.front()->shape();
  ExpertsStep step;
  for (size_t i = 0; i < layers.size(); ++i) {
    const ExpertsOfTokens experts = random_ids(shape, tokens, static_cast<uint32_t>(i));
    step.ids.push_back(ops.allocate({tokens, shape.top_k}, DType::kI32).value());
    const TensorView& on_device = step.ids.back().view;
    bench.stream->copy_to_device(on_device.data, experts.ids.data(), on_device.num_bytes());
    must(bench.stream->synchronize());
    step.num_distinct += experts.num_distinct / static_cast<double>(layers.size());
    step.calls.push_back({layers[i].get(),
                          Activation::kSilu,
                          x.view.rows(0, tokens),
                          on_device,
                          weights.view.rows(0, tokens),
                          out.view.rows(0, tokens),
                          false,
                          {workspace.view.as<std::byte>(), workspace.view.num_bytes()}});
  }
  return step;
}

// GB/s are of the chosen experts' weights, each read once. Tokens choose their experts at random.
void bench_experts(Bench& bench, const char* model, const ExpertsShape& shape, bool is_fp8) {
  const ExpertRouting routing = {.num_experts = shape.num_experts - shape.num_shared,
                                 .top_k = shape.top_k - shape.num_shared,
                                 .renormalize = true,
                                 .num_shared = shape.num_shared};
  constexpr int64_t kMaxTokens = 8192;
  constexpr int kExpertLayers = 4;  // 4.8 GB
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  std::vector<std::unique_ptr<Experts>> layers;
  DummyExperts source(bench.weights, shape, is_fp8);
  for (int i = 0; i < kExpertLayers; ++i)
    layers.push_back(ops->weights().make_experts(source).value());
  const Tensor x = bench.random(*ops, {kMaxTokens, shape.hidden_size});
  const Tensor out = ops->allocate({kMaxTokens, shape.hidden_size}, DType::kBF16).value();
  const Tensor logits = ops->allocate({kMaxTokens, routing.num_experts}, DType::kF32).value();
  const Tensor routed = ops->allocate({kMaxTokens, shape.top_k}, DType::kI32).value();
  const Tensor weights = ops->allocate({kMaxTokens, shape.top_k}, DType::kF32).value();
  const int64_t num_bytes = ops->experts()->workspace_bytes(shape, kMaxTokens);
  const Tensor workspace = ops->allocate({num_bytes}, DType::kF8E4M3).value();
  const Tensor product =
      ops->allocate({kMaxTokens * shape.top_k, shape.intermediate_size}, DType::kBF16).value();
  const double num_weights = static_cast<double>(3 * shape.hidden_size * shape.intermediate_size);
  const double expert_bytes = num_weights * (is_fp8 ? 1 : 2);
  fmt::print("experts of {}, {}\n", model, is_fp8 ? "FP8" : "BF16");
  fmt::print("{:>6} {:>9} {:>10} {:>7} {:>8} {:>10} {:>9}\n", "tokens", "route us", "experts us",
             "GB/s", "TFLOP/s", "few us", "distinct");
  for (const int64_t tokens : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 512, 1024, 2048, 8192}) {
    const ExpertsStep step = experts_step(bench, *ops, layers, tokens, x, weights, out, workspace);
    const double route_us = bench.time_graph([&] {
      for (int i = 0; i < kExpertLayers; ++i) {
        ops->experts()->route(routing, logits.view.rows(0, tokens), nullptr,
                              routed.view.rows(0, tokens), weights.view.rows(0, tokens));
      }
    });
    const double us = bench.time_graph([&] {
      for (const ExpertsCall& call : step.calls) ops->experts()->run_experts(call);
    }) / kExpertLayers;
    double few_us = 0;  // not measured
    if (tokens <= 16) {
      few_us = bench.time_graph([&] {
        for (const ExpertsCall& call : step.calls) {
          const auto& experts = static_cast<const cuda::CudaExperts&>(*call.experts);
          cuda::run_few_experts(context, experts.matrices(), call,
                                product.view.rows(0, tokens * shape.top_k));
        }
      }) / kExpertLayers;
    }
    fmt::print("{:6} {:9.2f} {:10.2f} {:7.0f} {:8.1f} {:10.2f} {:9.1f}\n", tokens,
               route_us / kExpertLayers, us, step.num_distinct * expert_bytes / us / 1e3,
               2 * num_weights * static_cast<double>(tokens * shape.top_k) / us / 1e6, few_us,
               step.num_distinct);
  }
}

void bench_experts(Bench& bench) {
  for (const bool is_fp8 : {false, true}) {
    bench_experts(bench, "Qwen3-30B-A3B", {128, 8, 2048, 768}, is_fp8);
    bench_experts(bench, "DeepSeek-V2-Lite", {66, 8, 2048, 1408, 2}, is_fp8);
  }
}

// A model whose layers bench_router() times.
struct RouterModel {
  const char* name;
  ExpertsShape shape;
  int64_t o_width;  // columns of o
};
constexpr RouterModel kRouterModels[] = {
    {"Qwen3-30B-A3B", {128, 8, 2048, 768}, 4096},
    {"DeepSeek-V2-Lite", {66, 8, 2048, 1408, 2}, 2048},
    {"gpt-oss-20b", {32, 4, 2880, 2880}, 4096},
    {"gpt-oss-120b", {128, 4, 2880, 2880}, 4096},
    {"GLM-4.5-Air", {129, 9, 4096, 1408, 1}, 12288},
};

// Times o, the norm with the residual, the router's product, the routing, and the experts of a
// layer: with three kernels between o and the experts, and with one. Times are per layer; `alone`
// is without the experts.
void bench_router(Bench& bench, const RouterModel& model) {
  constexpr int kExpertLayers = 3;
  constexpr int kRounds = 4;  // of all layers, with different matrices of o and of the router
  constexpr int kNumLayers = kExpertLayers * kRounds;
  const ExpertsShape& shape = model.shape;
  const ExpertRouting routing = {.num_experts = shape.num_experts - shape.num_shared,
                                 .top_k = shape.top_k - shape.num_shared,
                                 .renormalize = true,
                                 .num_shared = shape.num_shared};
  const int64_t hidden = shape.hidden_size;
  constexpr int64_t kMaxTokens = cuda::kMostRouterTokens;
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  std::vector<std::unique_ptr<Experts>> layers;
  DummyExperts source(bench.weights, shape, false);
  for (int i = 0; i < kExpertLayers; ++i) {
    layers.push_back(ops->weights().make_experts(source).value());
  }
  std::vector<std::unique_ptr<Linear>> o;
  std::vector<std::unique_ptr<Linear>> routers;
  for (int i = 0; i < kNumLayers; ++i) {
    o.push_back(bench.linear(*ops, hidden, model.o_width, i));
    routers.push_back(bench.linear(*ops, routing.num_experts, hidden, i));
  }
  const std::vector<float> ones(static_cast<size_t>(hidden), 1.0F);
  const Tensor norm =
      ops->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {hidden}}).value();
  const Tensor attention = bench.random(*ops, {kMaxTokens, model.o_width});
  const Tensor residual = bench.random(*ops, {kMaxTokens, hidden});
  const Tensor delta = ops->allocate({kMaxTokens, hidden}, DType::kBF16).value();
  const Tensor x = ops->allocate({kMaxTokens, hidden}, DType::kBF16).value();
  const Tensor logits = ops->allocate({kMaxTokens, routing.num_experts}, DType::kF32).value();
  const Tensor ids = ops->allocate({kMaxTokens * shape.top_k}, DType::kI32).value();
  const Tensor weights = ops->allocate({kMaxTokens * shape.top_k}, DType::kF32).value();
  const int64_t num_bytes = ops->experts()->workspace_bytes(shape, kMaxTokens);
  const Tensor workspace = ops->allocate({num_bytes}, DType::kF8E4M3).value();
  fmt::print("router of {}, us per layer\n{:>6} {:>16} {:>16}\n", model.name, "tokens",
             "separate, alone", "one, alone");
  for (const int64_t tokens : {1, 2}) {
    const ResidualNorm add = {.residual = residual.view.rows(0, tokens),
                              .delta = delta.view.rows(0, tokens),
                              .weight = norm.view.as<float>(),
                              .eps = 1e-6F};
    const TensorView rows = x.view.rows(0, tokens);
    const Shape chosen = {tokens, shape.top_k};
    const TensorView chosen_ids = {ids.view.data, DType::kI32, chosen};
    const TensorView chosen_weights = {weights.view.data, DType::kF32, chosen};
    const auto separate = [&](const Linear& router) {
      ops->residual_norm(add, rows);
      ops->linear(router, rows, logits.view.rows(0, tokens));
      ops->experts()->route(routing, logits.view.rows(0, tokens), nullptr, chosen_ids,
                            chosen_weights);
    };
    const auto fused = [&](const Linear& router) {
      RouterCall call;
      call.routing = routing;
      call.router = &router;
      call.norm = add;
      call.x = rows;
      call.ids = chosen_ids;
      call.weights = chosen_weights;
      const cuda::CudaLinear& linear = cuda::as_cuda(router);
      cuda::run_router_kernel(context, call, {linear.weights(), linear.bias()});
    };
    const auto time = [&](bool is_fused, bool has_experts) {
      return bench.time_graph([&] {
        for (size_t i = 0; i < kNumLayers; ++i) {
          ops->linear(*o[i], attention.view.rows(0, tokens), delta.view.rows(0, tokens));
          if (is_fused) {
            fused(*routers[i]);
          } else {
            separate(*routers[i]);
          }
          if (!has_experts) continue;
          ops->experts()->run_experts(
              {layers[i % kExpertLayers].get(),
               Activation::kSilu,
               rows,
               chosen_ids,
               chosen_weights,
               delta.view.rows(0, tokens),
               false,
               {workspace.view.as<std::byte>(), workspace.view.num_bytes()}});
        }
      }) / kNumLayers;
    };
    fmt::print("{:6}", tokens);
    for (const bool is_fused : {false, true}) {
      fmt::print(" {:8.2f} {:7.2f}", time(is_fused, true), time(is_fused, false));
    }
    fmt::print("\n");
  }
}

void bench_router(Bench& bench) {
  for (const RouterModel& model : kRouterModels) bench_router(bench, model);
}

// Times each kernel for products of one row, with weights in BF16 and in FP8. A small kernel runs
// between two products, as in a model, and its time is included.
void bench_one_row(Bench& bench) {
  constexpr Matrix kOfExperts[] = {
      {"qwen3 qkv", 5120, 2048},  {"qwen3 o", 2048, 4096},   {"router", 128, 2048},
      {"dsv2 q", 3072, 2048},     {"dsv2 kv_a", 576, 2048},  {"dsv2 o", 2048, 2048},
      {"dsv2 down", 2048, 10944}, {"q3.5 qkv", 12288, 2048}, {"head", 151936, 2048}};
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const Tensor x = bench.random(*ops, {1, kInner});
  const Tensor out = ops->allocate({1, 151936}, DType::kBF16).value();
  fmt::print("{:10} {:>6} {:>6} {:>5} {:>8} {:>7}  skinny kernels (us)\n", "matrix", "n", "k",
             "type", "generic", "GB/s");
  for (const Matrix& m : kOfExperts) {
    const Fp8Copies copies = make_fp8_copies(bench, *ops, m);
    const auto bf16_calls = make_calls(m, 1, x, copies.memory, out, {});
    for (const bool is_fp8 : {false, true}) {
      const auto calls = is_fp8 ? copies.calls(m, bf16_calls) : bf16_calls;
      const auto time = [&](const std::function<void(const cuda::GemmCall&)>& run) {
        const size_t count = std::min(calls.size(), size_t{40});
        return bench.time_graph([&] {
          for (size_t i = 0; i < count; ++i) {
            cuda::run_empty_kernel(context);
            run(calls[i]);
          }
        }) / static_cast<double>(count);
      };
      const double us =
          time([&](const cuda::GemmCall& call) { cuda::run_generic_gemm(context, call); });
      const auto num_bytes = static_cast<double>(m.n * m.k * (is_fp8 ? 1 : 2));
      fmt::print("{:10} {:6} {:6} {:>5} {:8.2f} {:7.0f} ", m.name, m.n, m.k,
                 is_fp8 ? "FP8" : "BF16", us, num_bytes / us / 1e3);
      for (int variant = 0; variant < cuda::num_skinny_variants(); ++variant) {
        fmt::print(" {:.2f}", time([&](const cuda::GemmCall& call) {
                     cuda::run_skinny_gemm(context, call, variant);
                   }));
      }
      fmt::print("\n");
    }
  }
}

// A kind of packed weights: blocks of GGUF, or integers of 4 bits with an F16 scale per 128.
struct PackedKind {
  const char* name;
  uint32_t block_type;  // GGUF's; 0: integers
};
constexpr PackedKind kPackedKinds[] = {{"W4 g128", 0}, {"Q4_K", 12}, {"Q6_K", 14}, {"Q8_0", 8}};

// One matrix of a kind.
struct PackedMatrix {
  BlockMatrix blocks;  // null: integers
  WeightView integers;

  LinearSource source() const {
    if (blocks.type != nullptr) return {.numbers = MatricesInBlocks{{&blocks, 1}}};
    return {.numbers = StoredMatrices{{&integers, 1}}};
  }
};

// Packed weights of random bits. Scales are finite numbers.
PackedMatrix packed_matrix(const PackedKind& kind, int64_t n, int64_t k,
                           std::vector<std::byte>& pool) {
  const auto num_bytes = static_cast<size_t>(n * k + n * k / 32);
  std::mt19937 random(7);
  while (pool.size() < num_bytes) pool.push_back(static_cast<std::byte>(random() & 0x3F));
  if (kind.block_type != 0) {
    PackedMatrix matrix;
    matrix.blocks.type = find_gguf_block_type(kind.block_type);
    matrix.blocks.bytes = pool.data();
    matrix.blocks.shape = {n, k};
    return matrix;
  }
  const WeightScheme scheme = {.values = DType::kI8,
                               .scales = ScaleLayout::kBlocks,
                               .block_rows = 1,
                               .block_columns = 128,
                               .bits = 4};
  return {.blocks = {},
          .integers = {{pool.data(), DType::kI8, {n, k}},
                       {pool.data() + n * k, DType::kF16, {n, k / 128}},
                       scheme}};
}

std::unique_ptr<Linear> packed_linear(cuda::CudaOps& ops, const PackedKind& kind, int64_t n,
                                      int64_t k, std::vector<std::byte>& pool) {
  return ops.weights().make_linear(packed_matrix(kind, n, k, pool).source()).value();
}

// Prints the microseconds of products with packed weights by number of rows, for each method to
// compute them and for numbers of splits of the kernel for tiles; and those with BF16 weights.
void bench_packed_products(Bench& bench, std::vector<std::byte>& pool) {
  constexpr int64_t kRowCounts[] = {1, 4, 8, 16, 32, 64, 128, 256, 512};
  constexpr int64_t kMaxRows = 512;
  constexpr size_t kTotalBytes = size_t{120} << 20;  // of the copies of a matrix
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const auto runner = cuda::GemmRunner::create(context).value();
  const auto packed_gemm = std::make_unique<cuda::PackedGemm>(context, runner->cublas());
  const int num_sms = cuda::open_device(0)->num_sms;
  const Tensor x = bench.random(*ops, {kMaxRows, kInner});
  const Tensor tiles = bench.random(*ops, {kMaxRows, kInner});
  const Tensor out = ops->allocate({kMaxRows, 2 * kInner}, DType::kBF16).value();
  const Tensor product = ops->allocate({kMaxRows, kInner}, DType::kBF16).value();
  for (const Matrix& m : kMatrices) {
    if (m.is_head()) continue;
    fmt::print("\n{:10} {:16}", m.name, "us, rows:");
    for (const int64_t rows : kRowCounts) fmt::print(" {:>7}", rows);
    fmt::print("\n{:10} {:16}", m.name, "BF16");
    const Tensor memory = make_copies(bench, *ops, m);
    for (const int64_t rows : kRowCounts) {
      const auto calls = make_calls(m, rows, x, memory, out, product);
      const auto timings = runner->measure(calls, rows, cuda::gemm_search(rows)).value();
      double best = INFINITY;
      for (const cuda::GemmTiming& timing : timings) best = std::min(best, timing.microseconds);
      fmt::print(" {:7.2f}", best);
    }
    for (const PackedKind& kind : kPackedKinds) {
      std::vector<std::unique_ptr<Linear>> copies;
      copies.push_back(packed_linear(*ops, kind, m.n, m.k, pool));
      while (copies.size() < 2 || copies.size() * copies.front()->num_bytes() < kTotalBytes) {
        copies.push_back(packed_linear(*ops, kind, m.n, m.k, pool));
      }
      must(bench.stream->synchronize());
      const auto matrix = [&](size_t i) {
        return static_cast<const cuda::CudaLinear&>(*copies[i]).packed();
      };
      must(packed_gemm->reserve(*matrix(0)));
      // Per product, with another small kernel between two products.
      const auto time = [&](const std::function<void(size_t)>& multiply) {
        return bench.time_graph([&] {
          for (size_t i = 0; i < copies.size(); ++i) {
            cuda::run_empty_kernel(context);
            multiply(i);
          }
        }) / static_cast<double>(copies.size());
      };
      const auto print = [&](std::string_view name, int64_t least, int64_t most,
                             const std::function<void(size_t, int64_t)>& multiply) {
        fmt::print("\n{:10} {:8}{:8}", m.name, kind.name, name);
        for (const int64_t rows : kRowCounts) {
          if (rows < least || rows > most) {
            fmt::print(" {:>7}", "-");
          } else {
            fmt::print(" {:7.2f}", time([&](size_t i) { multiply(i, rows); }));
          }
        }
        std::fflush(stdout);
      };
      const auto print_method = [&](std::string_view name, cuda::PackedMethod method, int64_t least,
                                    int64_t most) {
        print(name, least, most, [&](size_t i, int64_t rows) {
          cuda::PackedProduct call = {.w = matrix(i),
                                      .x = {x.view.data, DType::kBF16, {rows, m.k}},
                                      .bias = {},
                                      .out = {out.view.data, DType::kBF16, {rows, m.n}}};
          if (m.is_gated) call.gated_out = product.view.rows(0, rows);
          packed_gemm->run(call, method);
        });
      };
      print_method("few", cuda::PackedMethod::kFewRows, 1, cuda::kMaxPackedRows);
      print_method("tiles", cuda::PackedMethod::kTiles, 1, kMaxRows);
      print_method("unpack", cuda::PackedMethod::kUnpacked, 64, kMaxRows);
      if (m.is_gated) continue;
      // The kernel for tiles alone, by splits; x has been tiled.
      for (const int splits : {1, 2, 4}) {
        print(fmt::format("splits {}", splits), 16, kMaxRows, [&](size_t i, int64_t rows) {
          const cuda::PackedRows& w = matrix(i)->parts().front();
          cuda::PackedTilePlan plan = cuda::packed_tile_plan(w, rows, num_sms);
          plan.splits = splits;
          const cuda::PackedGemmCall call = {.w = &w,
                                             .x = {tiles.view.data, DType::kBF16, {rows, m.k}},
                                             .bias = {},
                                             .out = {out.view.data, DType::kBF16, {rows, m.n}}};
          cuda::run_packed_tiles(context, plan, call);
        });
      }
    }
  }
  fmt::print("\n");
}

// Prints the time of a layer without attention, and the fraction of kPeak at which its weights are
// read.
void bench_packed_layers(Bench& bench, std::vector<std::byte>& pool) {
  struct Layer {
    std::unique_ptr<Linear> qkv, o, gate_up, down;
  };
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const std::vector<float> ones(kHidden, 1.0F);
  const Tensor norm =
      ops->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {kHidden}}).value();
  for (const PackedKind& kind : kPackedKinds) {
    std::vector<Layer> layers;
    size_t num_bytes = 0;
    for (int i = 0; i < kLayers; ++i) {
      layers.push_back({packed_linear(*ops, kind, kQkv, kHidden, pool),
                        packed_linear(*ops, kind, kHidden, kHidden, pool),
                        packed_linear(*ops, kind, 2 * kInner, kHidden, pool),
                        packed_linear(*ops, kind, kHidden, kInner, pool)});
    }
    const Layer& first = layers.front();
    for (const auto* linear : {&first.qkv, &first.o, &first.gate_up, &first.down}) {
      num_bytes += (*linear)->num_bytes();
    }
    for (const int64_t rows : {1, 4, 8, 16, 32, 64, 128, 256}) {
      const Tensor residual = bench.random(*ops, {rows, kHidden});
      const Tensor normed = bench.random(*ops, {rows, kHidden});
      const Tensor delta = bench.random(*ops, {rows, kHidden});
      const Tensor qkv = bench.random(*ops, {rows, kQkv});
      const Tensor gate_up = bench.random(*ops, {rows, 2 * kInner});
      const Tensor product = bench.random(*ops, {rows, kInner});
      const double us = bench.time_graph([&] {
        for (const Layer& layer : layers) {
          const auto* weight = norm.view.as<float>();
          ops->residual_norm(
              {.residual = residual.view, .delta = delta.view, .weight = weight, .eps = 1e-5F},
              normed.view);
          ops->linear(*layer.qkv, normed.view, qkv.view);
          ops->linear(*layer.o, normed.view, delta.view);
          ops->residual_norm(
              {.residual = residual.view, .delta = delta.view, .weight = weight, .eps = 1e-5F},
              normed.view);
          ops->linear_gated_mul(Activation::kSilu, *layer.gate_up, normed.view, gate_up.view,
                                product.view);
          ops->linear(*layer.down, product.view, delta.view);
        }
      }) / kLayers;
      fmt::print("layer of {}, {} rows: {:.2f} us, {:.3f} of peak\n", kind.name, rows, us,
                 static_cast<double>(num_bytes) / us * 1e6 / kPeak);
    }
  }
}

struct PackedExpertsCase {
  const char* model;
  ExpertsShape shape;
  bool is_gpt_oss;  // has biases, and their activation
  int num_layers;   // at least 0.8 GB
  PackedKind kinds[2];
};
// Q4_0 has a scale of F16 per 32 columns, where MXFP4 has a byte.
constexpr PackedExpertsCase kPackedExperts[] = {
    {"Qwen3-30B-A3B", {128, 8, 2048, 768}, false, 4, {{"W4 g128", 0}, {"Q4_K", 12}}},
    {"gpt-oss-20b", {32, 4, 2880, 2880}, true, 2, {{"MXFP4", 39}, {"Q4_0", 2}}},
    {"gpt-oss-120b", {128, 4, 2880, 2880}, true, 2, {{"MXFP4", 39}, {"Q4_0", 2}}}};

// Packed experts of random bits; all experts have the same.
class PackedExperts : public ExpertsSource {
 public:
  PackedExperts(const PackedExpertsCase& experts, const PackedKind& kind,
                std::vector<std::byte>& pool)
      : kind_(kind), shape_(experts.shape), has_biases_(experts.is_gpt_oss), pool_(pool) {}

  const ExpertsShape& shape() const override { return shape_; }
  Result<LinearSource> gate_up(int /*idx*/) override {
    return source(2 * shape_.intermediate_size, shape_.hidden_size);
  }
  Result<LinearSource> down(int /*idx*/) override {
    return source(shape_.hidden_size, shape_.intermediate_size);
  }

 private:
  LinearSource source(int64_t n, int64_t k) {
    matrix_ = packed_matrix(kind_, n, k, pool_);
    LinearSource source = matrix_.source();
    bias_ = {pool_.data(), DType::kBF16, {n}};
    if (has_biases_) source.biases = {&bias_, 1};
    return source;
  }

  PackedKind kind_;
  ExpertsShape shape_;
  bool has_biases_;
  std::vector<std::byte>& pool_;
  PackedMatrix matrix_;
  TensorView bias_;
};

// Prints the microseconds of a layer's experts by number of tokens, the fraction of kPeak at which
// the weights of the chosen ones are read, and the time in tiles of each size. Tokens choose their
// experts at random.
void bench_packed_experts(Bench& bench, const PackedExpertsCase& experts,
                          std::vector<std::byte>& pool) {
  const ExpertsShape& shape = experts.shape;
  constexpr int64_t kMaxTokens = 8192;
  constexpr int kTileSizes[] = {8, 16, 32, 64, 128};
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  cuda::ExpertsRunner runner(context);
  const Tensor x = bench.random(*ops, {kMaxTokens, shape.hidden_size});
  const Tensor out = ops->allocate({kMaxTokens, shape.hidden_size}, DType::kBF16).value();
  const Tensor weights = ops->allocate({kMaxTokens, shape.top_k}, DType::kF32).value();
  const int64_t num_bytes =
      std::max(ops->experts()->workspace_bytes(shape, kMaxTokens),
               runner.packed_workspace_bytes(shape, DType::kBF16, cuda::kPackedTokens, 128));
  const Tensor workspace = ops->allocate({num_bytes}, DType::kI8).value();
  for (const PackedKind& kind : experts.kinds) {
    std::vector<std::unique_ptr<Experts>> layers;
    PackedExperts source(experts, kind, pool);
    for (int i = 0; i < experts.num_layers; ++i)
      layers.push_back(ops->weights().make_experts(source).value());
    const double expert_bytes =
        static_cast<double>(layers.front()->num_bytes()) / shape.num_experts;
    fmt::print("packed experts of {}, {}: {:.1f} MB per layer\n", experts.model, kind.name,
               expert_bytes * shape.num_experts / 1e6);
    fmt::print("{:>6} {:>10} {:>8} {:>9}   us in tiles of:", "tokens", "experts us", "of peak",
               "distinct");
    for (const int rows : kTileSizes) fmt::print(" {:>9}", rows);
    fmt::print("\n");
    for (const int64_t tokens : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 512, 1024, 2048, 8192}) {
      ExpertsStep step = experts_step(bench, *ops, layers, tokens, x, weights, out, workspace);
      for (ExpertsCall& call : step.calls) {
        if (experts.is_gpt_oss) call.activation = Activation::kClampedSwiglu;
      }
      const auto time = [&](const std::function<void(const ExpertsCall&)>& run) {
        return bench.time_graph([&] {
          for (const ExpertsCall& call : step.calls) run(call);
        }) / experts.num_layers;
      };
      const double us = time([&](const ExpertsCall& call) { ops->experts()->run_experts(call); });
      fmt::print("{:6} {:10.2f} {:8.3f} {:9.1f}                 ", tokens, us,
                 step.num_distinct * expert_bytes / us * 1e6 / kPeak, step.num_distinct);
      for (const int rows : kTileSizes) {
        if (tokens > cuda::kPackedTokens || tokens * shape.top_k < rows) {
          fmt::print(" {:>9}", "-");
        } else {
          fmt::print(" {:9.2f}",
                     time([&](const ExpertsCall& call) { runner.run_packed(call, rows); }));
        }
      }
      fmt::print("\n");
      std::fflush(stdout);
    }
  }
}

void bench_packed(Bench& bench) {
  std::vector<std::byte> pool;
  bench_packed_products(bench, pool);
  bench_packed_layers(bench, pool);
}

void bench_packed_experts(Bench& bench) {
  std::vector<std::byte> pool;
  for (const PackedExpertsCase& experts : kPackedExperts) {
    bench_packed_experts(bench, experts, pool);
  }
}

// Prints the microseconds of a layer's tail at one row, fused and as separate kernels, with two
// small kernels in place of attention.
void bench_tails(Bench& bench, std::string_view name,
                 const std::function<std::unique_ptr<Linear>(cuda::CudaOps&, int64_t, int64_t,
                                                             int)>& make_linear) {
  struct Layer {
    std::unique_ptr<Linear> qkv, o, gate_up, down;
  };
  const auto ops = cuda::CudaOps::create(*bench.stream, DType::kBF16).value();
  const cuda::LaunchContext context = {.stream = bench.stream.get(), .overlap_start = true};
  const std::vector<float> ones(kHidden, 1.0F);
  const Tensor norm =
      ops->weights().make_vector({const_cast<float*>(ones.data()), DType::kF32, {kHidden}}).value();
  std::vector<Layer> layers;
  size_t num_bytes = 0;
  for (int i = 0; i < kLayers; ++i) {
    layers.push_back({make_linear(*ops, kQkv, kHidden, i), make_linear(*ops, kHidden, kHidden, i),
                      make_linear(*ops, 2 * kInner, kHidden, i),
                      make_linear(*ops, kHidden, kInner, i)});
  }
  const Layer& first = layers.front();
  for (const auto* linear : {&first.qkv, &first.o, &first.gate_up, &first.down}) {
    num_bytes += (*linear)->num_bytes();
  }
  const Tensor attention = bench.random(*ops, {1, kHidden});
  const Tensor other = bench.random(*ops, {1, kHidden});
  const Tensor residual = bench.random(*ops, {1, kHidden});
  const Tensor normed = bench.random(*ops, {1, kHidden});
  const Tensor delta = bench.random(*ops, {1, kHidden});
  const Tensor qkv = bench.random(*ops, {1, kQkv});
  const Tensor gate_up = bench.random(*ops, {1, 2 * kInner});
  const Tensor product = bench.random(*ops, {1, kInner});
  const TensorView row = {qkv.view.data, DType::kBF16, {1, kHidden}};
  const auto tail_of = [&](const Layer& layer) {
    LayerTail tail;
    tail.o = layer.o.get();
    tail.post_attention_norm = norm.view.as<float>();
    tail.gate_up = layer.gate_up.get();
    tail.down = layer.down.get();
    tail.next_norm = norm.view.as<float>();
    tail.next_qkv = layer.qkv.get();
    tail.norm_eps = 1e-5F;
    tail.attention = attention.view;
    tail.residual = residual.view;
    tail.delta = delta.view;
    tail.qkv = qkv.view;
    tail.normed = normed.view;
    tail.gate_up_out = gate_up.view;
    tail.product = product.view;
    return tail;
  };
  const auto time = [&](const std::function<void(const LayerTail&)>& run) {
    return bench.time_graph([&] {
      for (const Layer& layer : layers) {
        for (int i = 0; i < 2; ++i) {
          ops->residual_norm(
              {.residual = other.view, .delta = row, .weight = norm.view.as<float>(), .eps = 1e-5F},
              attention.view);
        }
        run(tail_of(layer));
      }
    }) / kLayers;
  };
  const double between = time([](const LayerTail&) {});
  const auto print = [&](std::string_view what, double us) {
    fmt::print("tail of {}, {}: {:.2f} us, {:.2f} without attention, {:.3f} of peak\n", name, what,
               us, us - between, static_cast<double>(num_bytes) / us * 1e6 / kPeak);
    std::fflush(stdout);
  };
  print("separate", time([&](const LayerTail& tail) { run_layer_tail(*ops, tail); }));
  for (const int most_stages : {2, 3, 4, 5}) {
    const auto kernel = cuda::LayerTailKernel::create(context, 0, 1, most_stages).value();
    if (kernel == nullptr || !kernel->takes(tail_of(layers.front()))) continue;
    print(fmt::format("rings of {}", most_stages),
          time([&](const LayerTail& tail) { kernel->run(tail); }));
  }
}

void bench_tails(Bench& bench) {
  std::vector<std::byte> pool;
  bench_tails(bench, "BF16", [&](cuda::CudaOps& ops, int64_t n, int64_t k, int layer) {
    return bench.linear(ops, n, k, layer);
  });
  bench_tails(bench, "W4", [&](cuda::CudaOps& ops, int64_t n, int64_t k, int /*layer*/) {
    return packed_linear(ops, kPackedKinds[0], n, k, pool);
  });
}

int run(int argc, char** argv) {
  const Status status = cuda::open_device(0).status();
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.message());
    return 1;
  }
  Bench bench;
  const auto wanted = [&](std::string_view name) {
    return argc == 1 || std::any_of(argv + 1, argv + argc, [&](char* arg) { return arg == name; });
  };
  if (wanted("products")) bench_products(bench);
  if (wanted("batches")) bench_batches(bench);
  if (wanted("layers")) bench_layers(bench);
  if (wanted("rows")) bench_rows(bench);
  if (wanted("load")) bench_load(bench);
  if (wanted("fp8")) bench_fp8(bench);
  if (wanted("fp8_batches")) bench_fp8_batches(bench);
  if (wanted("fusion")) bench_fusion(bench);
  if (wanted("experts")) bench_experts(bench);
  if (wanted("router")) bench_router(bench);
  if (wanted("one_row")) bench_one_row(bench);
  if (wanted("packed")) bench_packed(bench);
  if (wanted("packed_experts")) bench_packed_experts(bench);
  if (wanted("tails")) bench_tails(bench);
  return 0;
}

}  // namespace
}  // namespace quire::bench

int main(int argc, char** argv) {
  return quire::bench::run(argc, argv);
}
