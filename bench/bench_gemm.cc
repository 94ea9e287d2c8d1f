// Times Ops::linear over all weights of a model's shape, and compares it with the machine's rates:
//   bench_gemm [--shape 1b|stories15m] [--dtype f16|bf16|f32|i4|i8|q8_0|q4_0|q4_k|q5_k|q6_k]
//              [--threads N] [--rounds N] [--layers N] [--no-amx] [--no-avx512-bf16]
//              [--activations f32|bf16|int8] [--quantized-kernel NAME] [--rows N,N,...]
//              [--prefill N]
// Each round alternates a plain read of all weights with steps of 1, 8 and 32 rows (GEMM M), or of
// those that --rows lists. The results are medians.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <random>

#include "bench_gemm_probes.h"
#include "cli/command.h"
#include "cpu/ops/cpu_ops.h"
#include "cpu/ops/isa.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/quantized_linear.h"
#include "tensor/dtype.h"

namespace quire::bench {
namespace {

struct LinearShape {
  std::string name;
  int64_t n;
  int64_t k;
};

std::vector<LinearShape> layer_shapes(const std::string& model) {
  if (model == "stories15m") {
    return {{"qkv", 864, 288}, {"o", 288, 288}, {"gate_up", 1536, 288}, {"down", 288, 768}};
  }
  return {{"qkv", 3072, 2048}, {"o", 2048, 2048}, {"gate_up", 16384, 2048}, {"down", 2048, 8192}};
}

LinearShape head_shape(const std::string& model) {
  return model == "stories15m" ? LinearShape{"lm_head", 32000, 288}
                               : LinearShape{"lm_head", 128256, 2048};
}

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Random weights in a checkpoint's format, enough for the largest matrix.
std::vector<std::byte> random_source(DType dtype, int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * dtype_bytes(dtype));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> values(1 << 16);
  for (float& value : values) value = normal(generator);
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[static_cast<size_t>(i * 7919 + (i >> 16)) % values.size()];
    const auto at = static_cast<size_t>(i);
    if (dtype == DType::kF16) reinterpret_cast<uint16_t*>(bytes.data())[at] = f32_to_f16(value);
    if (dtype == DType::kBF16) reinterpret_cast<uint16_t*>(bytes.data())[at] = f32_to_bf16(value);
    if (dtype == DType::kF32) reinterpret_cast<float*>(bytes.data())[at] = value;
  }
  return bytes;
}

// Quantized blocks of one small number, whose scales are ordinary numbers in every type.
std::vector<std::byte> quantized_source(const GgufBlockType& type, int64_t count) {
  constexpr auto kByte = static_cast<std::byte>(0x11);  // 0x1111 is a small F16 number
  return std::vector<std::byte>(static_cast<size_t>(count / type.block_elements * type.block_bytes),
                                kByte);
}

// A type of weights: plain, of quantized blocks, or integers with a scale and a zero point per
// group of 128.
struct WeightType {
  DType dtype = DType::kF32;
  const GgufBlockType* blocks = nullptr;
  int integer_bits = 0;
};

WeightScheme integer_scheme(int bits) {
  WeightScheme scheme = {DType::kI8, ScaleLayout::kBlocks, 1, 128};
  scheme.bits = bits;
  scheme.has_zeros = true;
  return scheme;
}

// Integers, zero points and scales, all of one small number.
std::vector<std::byte> integer_source(int64_t count) {
  return std::vector<std::byte>(static_cast<size_t>(count), std::byte{1});
}

WeightType parse_weight_type(std::string name) {
  if (name == "i4" || name == "i8") return {.integer_bits = name == "i4" ? 4 : 8};
  if (const auto dtype = parse_dtype(name)) return {.dtype = *dtype};
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' ? c - 32 : c; });
  for (const GgufBlockType& type : gguf_block_types()) {
    if (name == type.name) return {.blocks = &type};
  }
  return {};
}

struct Weight {
  LinearShape shape;
  std::unique_ptr<Linear> linear;
};

class Bench {
 public:
  Bench(const std::string& model, const WeightType& type, int layers, int threads,
        const CpuOpsOptions& options)
      : pool_(threads), ops_(make_cpu_ops(pool_, options)) {
    std::vector<LinearShape> shapes;
    for (int i = 0; i < layers; ++i) {
      for (const LinearShape& shape : layer_shapes(model)) shapes.push_back(shape);
    }
    shapes.push_back(head_shape(model));
    int64_t largest = 0;
    for (const LinearShape& s : shapes) largest = std::max(largest, s.n * s.k);
    std::vector<std::byte> source = type.integer_bits > 0 ? integer_source(largest)
                                    : type.blocks == nullptr
                                        ? random_source(type.dtype, largest)
                                        : quantized_source(*type.blocks, largest);
    const double packing = seconds([&] {
      for (const LinearShape& shape : shapes) {
        weights_.push_back({shape, make_linear(type, source, shape)});
      }
    });
    for (const Weight& w : weights_) weight_bytes_ += static_cast<double>(w.linear->num_bytes());
    for (const Weight& w : weights_) parameters_ += static_cast<double>(w.shape.n * w.shape.k);
    fmt::print("packed {:.3f} GB in {:.2f} s: {:.2f} GB/s\n", weight_bytes_ / 1e9, packing,
               weight_bytes_ / 1e9 / packing);
    x_.resize(static_cast<size_t>(kMaxRows * 8192));
    out_.resize(static_cast<size_t>(kMaxRows * 16384 + kMaxLogitRows * 128256));
    std::mt19937 generator(2);
    std::normal_distribution<float> normal;
    for (float& x : x_) x = normal(generator);
  }

  void run_model(int64_t rows) {
    for (const Weight& w : weights_)
      run_one(w, w.shape.name == "lm_head" ? logit_rows(rows) : rows);
  }

  void print_model(int rounds, const std::vector<int64_t>& row_counts, int64_t prefill) {
    std::map<int64_t, std::vector<double>> times;
    std::vector<double> reads;
    std::vector<double> peaks;
    std::vector<double> bf16_peaks;
    const auto measure_peak = [&](double (*multiply)(ThreadPool&), std::vector<double>& rates) {
      double operations = 0.0;
      const double time = seconds([&] { operations = multiply(pool_); });
      rates.push_back(operations / time);
    };
    for (int round = 0; round < rounds; ++round) {
      for (const int64_t rows : row_counts) {
        reads.push_back(seconds([&] { read_weights(); }));
        times[rows].push_back(seconds([&] { run_model(rows); }));
      }
      measure_peak(multiply_add_all, peaks);
      measure_peak(multiply_add_bf16_all, bf16_peaks);
    }
    for (int round = 0; round < std::min(rounds, 3); ++round) {
      times[prefill].push_back(seconds([&] { run_model(prefill); }));
    }
    read_rate_ = weight_bytes_ / median(reads);
    peak_ = median(peaks);
    fmt::print("plain read {:.2f} GB/s, F32 FMA peak {:.1f} GFLOP/s, BF16 pairs {:.1f} GFLOP/s\n",
               read_rate_ / 1e9, peak_ / 1e9, median(bf16_peaks) / 1e9);
    for (const auto& [rows, samples] : times) {
      const double time = median(samples);
      fmt::print(
          "model, {:3d} rows: {:9.3f} ms {:8.1f} rows/s {:8.1f} GFLOP/s ({:4.0f}% of FMA peak) "
          "{:6.2f} GB/s ({:5.1f}% of plain read)\n",
          rows, time * 1e3, static_cast<double>(rows) / time, flops(rows) / time / 1e9,
          100.0 * flops(rows) / time / peak_, weight_bytes_ / time / 1e9,
          100.0 * weight_bytes_ / time / read_rate_);
    }
  }

  // Times each kind of matrix over all layers, so that none stays in a cache.
  void print_shapes(int rounds, std::vector<int64_t> row_counts, int64_t prefill) {
    row_counts.push_back(prefill);
    for (const int64_t rows : row_counts) {
      std::map<std::string, std::vector<double>> times;
      for (int round = 0; round < (rows > 32 ? 1 : rounds); ++round) {
        for (const Weight& w : weights_) {
          const int64_t used = w.shape.name == "lm_head" ? logit_rows(rows) : rows;
          times[w.shape.name].push_back(seconds([&] { run_one(w, used); }));
        }
      }
      for (const auto& [name, samples] : times) print_shape(name, rows, median(samples));
    }
  }

 private:
  std::unique_ptr<Linear> make_linear(const WeightType& type, std::vector<std::byte>& source,
                                      const LinearShape& shape) {
    WeightView view = TensorView{source.data(), type.dtype, {shape.n, shape.k}};
    if (type.integer_bits > 0) {
      view.scheme = integer_scheme(type.integer_bits);
      view.values.dtype = DType::kI8;
      const Shape num_scales = scales_shape(view.scheme, view.values.shape);
      view.scales = {source.data(), DType::kF16, num_scales};
      view.zeros = {source.data(), DType::kI8, num_scales};
    }
    BlockMatrix blocks;
    blocks.type = type.blocks;
    blocks.bytes = source.data();
    blocks.shape = {shape.n, shape.k};
    LinearSource from = {.numbers = StoredMatrices{{&view, 1}}};
    if (type.blocks != nullptr) from = {.numbers = MatricesInBlocks{{&blocks, 1}}};
    return std::move(ops_->weights().make_linear(from)).value();
  }

  static constexpr int64_t kMaxRows = 2048;
  static constexpr int64_t kMaxLogitRows = 32;

  // A prefill computes the logits of its last token only.
  static int64_t logit_rows(int64_t rows) { return rows > kMaxLogitRows ? 1 : rows; }

  double flops(int64_t rows) const {
    double sum = 0.0;
    for (const Weight& w : weights_) {
      const int64_t used = w.shape.name == "lm_head" ? logit_rows(rows) : rows;
      sum += 2.0 * static_cast<double>(used * w.shape.n * w.shape.k);
    }
    return sum;
  }

  void run_one(const Weight& w, int64_t rows) {
    ops_->linear(*w.linear, {x_.data(), DType::kF32, {rows, w.shape.k}},
                 {out_.data(), DType::kF32, {rows, w.shape.n}});
  }

  void read_weights() {
    for (const Weight& w : weights_) {
      const auto* const quantized = dynamic_cast<const cpu::QuantizedLinear*>(w.linear.get());
      const std::byte* const bytes =
          quantized != nullptr ? quantized->data(quantized->panels().front())
                               : static_cast<const cpu::PackedLinear&>(*w.linear).panel(0);
      read_all(bytes, w.linear->num_bytes(), pool_);
    }
  }

  void print_shape(const std::string& name, int64_t rows, double time) {
    const auto found = std::find_if(weights_.begin(), weights_.end(),
                                    [&](const Weight& w) { return w.shape.name == name; });
    const int64_t used = name == "lm_head" ? logit_rows(rows) : rows;
    const auto elements = static_cast<double>(found->shape.n * found->shape.k);
    const double rate = 2.0 * static_cast<double>(used) * elements / time;
    const double bytes = static_cast<double>(found->linear->num_bytes()) / time;
    fmt::print(
        "{:8} {:6d} x {:5d}, {:3d} rows: {:10.1f} us {:8.1f} GFLOP/s ({:4.0f}% of FMA peak) "
        "{:6.2f} "
        "GB/s ({:5.1f}% of plain read)\n",
        name, found->shape.n, found->shape.k, used, time * 1e6, rate / 1e9, 100.0 * rate / peak_,
        bytes / 1e9, 100.0 * bytes / read_rate_);
  }

  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  std::vector<Weight> weights_;
  std::vector<float> x_;
  std::vector<float> out_;
  double weight_bytes_ = 0.0;
  double parameters_ = 0.0;
  double read_rate_ = 1.0;
  double peak_ = 1.0;
};

}  // namespace
}  // namespace quire::bench

int main(int argc, char** argv) {
  std::string shape = "1b";
  std::string dtype = "f16";
  int threads = 2;
  int rounds = 7;
  int layers = 0;
  int prefill = 512;
  std::vector<int32_t> rows = {1, 8, 32};
  bool no_amx = false;
  bool no_avx512_bf16 = false;
  std::string activations = "f32";
  std::string kernel;
  quire::cli::Command command;
  command.name = "bench_gemm";
  command.summary = "Times the CPU's linear operation.";
  quire::cli::FlagSet& flags = command.flags;
  flags.choice("--shape", {"1b", "stories15m"}, &shape, "Model whose layers are timed");
  flags.choice("--dtype",
               {"f32", "f16", "bf16", "i4", "i8", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"}, &dtype,
               "Type of the weights");
  flags.number("--threads", &threads, {.min = 1, .max = 1024}, "Threads");
  flags.number("--rounds", &rounds, {.min = 1, .max = 1000}, "Rounds, of which the median counts");
  flags.number("--layers", &layers, {.min = 0, .max = 1000}, "Layers; 0: as many as the model has");
  flags.value("--rows", "N,N", &rows, "1,8,32", "Rows of steps that decode", quire::cli::parse_ids);
  flags.number("--prefill", &prefill, {.min = 33, .max = 2048}, "Rows of a step with a prompt");
  flags.toggle("--no-amx", &no_amx, "Do without AMX");
  flags.toggle("--no-avx512-bf16", &no_avx512_bf16, "Do without AVX-512 BF16");
  flags.choice("--activations", {"f32", "bf16", "int8"}, &activations, "Inputs of the products");
  flags.text("--quantized-kernel", "NAME", &kernel,
             "amx_int8, avx512_vnni, avx_vnni, avx2 or plain");
  command.check = [&](quire::cli::Complaints& complaints) {
    for (const int32_t row : rows) {
      if (row < 1 || row > 2048) complaints.add("--rows: expected integers in [1, 2048]");
    }
  };
  command.run = [&]() -> quire::Result<int> {
    QUIRE_RETURN_IF_ERROR(quire::cpu::apply_max_isa());
    if (layers == 0) layers = shape == "1b" ? 16 : 6;
    fmt::print("{} {} layers, {}, {} threads{}\n", shape, layers, dtype, threads,
               no_amx ? ", without AMX" : "");
    quire::CpuOpsOptions options;
    if (activations == "bf16") options.rounding = quire::InputRounding::kBf16;
    if (activations == "int8") options.rounding = quire::InputRounding::kInt8;
    options.quantized_kernel = kernel;
    options.use_amx = !no_amx;
    options.use_avx512_bf16 = !no_avx512_bf16;
    quire::bench::Bench bench(shape, quire::bench::parse_weight_type(dtype), layers, threads,
                              options);
    const std::vector<int64_t> decode_rows(rows.begin(), rows.end());
    bench.print_model(rounds, decode_rows, prefill);
    bench.print_shapes(rounds, decode_rows, prefill);
    return quire::cli::kExitOk;
  };
  return quire::cli::run_program(command, argc, argv);
}
