#include "cpu/ops/cpu_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/cpu_topology.h"
#include "base/log.h"
#include "cpu/ops/experts.h"
#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/gemm_bf16.h"
#include "cpu/ops/gemm_fma.h"
#include "cpu/ops/gemm_quantized.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/per_head_linear.h"
#include "cpu/ops/rank_group.h"
#include "cpu/ops/routing.h"
#include "cpu/ops/rows.h"

namespace quire {
namespace cpu {
namespace {

// Below this number of elements, fork and join cost more than they save.
constexpr int64_t kParallelElements = 16384;

// The kernel that the options name; all kernels of this processor if the name is empty or unknown.
std::span<const QuantizedKernel> choose_kernels(const CpuOpsOptions& options) {
  const std::span<const QuantizedKernel> kernels = quantized_kernels();
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].name == options.quantized_kernel) return kernels.subspan(i, 1);
  }
  const bool skips_amx = !options.use_amx && kernels.front().name == kAmxInt8Name;
  return kernels.subspan(skips_amx ? 1 : 0);
}

const amx::Kernel* choose_amx(const CpuOpsOptions& options) {
  if (!options.use_amx) return nullptr;
  return options.amx_kernel != nullptr ? options.amx_kernel : amx_kernel();
}

class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, const CpuOpsOptions& options)
      : pool_(pool),
        amx_kernel_(choose_amx(options)),
        use_bf16_(amx_kernel_ == nullptr && options.use_avx512_bf16 && avx512_bf16_usable()),
        quantized_kernels_(choose_kernels(options)),
        rounding_(options.rounding),
        ranks_(options.ranks),
        rank_(options.rank),
        kept_(options.kept) {}

  Stream& stream() override { return stream_; }
  DType activation_dtype() const override { return DType::kF32; }
  Result<DType> linear_dtype(const WeightScheme& scheme) const override {
    return plain_dtype(scheme);
  }

  int64_t block_bytes(const GgufBlockType& type) const override {
    if (type.plain) return 0;
    return quantized::block_bytes(quantized_format(type),
                                  type.block_elements / quantized::kGroupK) /
           quantized::kFeatures;
  }

  int64_t integer_bytes(const WeightScheme& scheme, DType scales,
                        const Shape& matrix) const override {
    const auto format = quantized_format(scheme, scales, matrix);
    if (!format) return 0;
    const int64_t num_groups = ceil_div(matrix[1], quantized::kGroupK);
    return quantized::row_bytes(*format, num_groups) * matrix[0] / quantized::kFeatures;
  }

  // The caller takes part in packing. With several nodes it is bound to the CPUs of thread 0
  // meanwhile.
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override {
    if (pool_.nodes().size() == 1) return pack_linear(source);
    const BoundThread bound = pool_.bind_caller();
    return pack_linear(source);
  }

  Result<Tensor> make_vector(const TensorView& source) override {
    if (!is_weight_dtype(source.dtype)) {
      return invalid_argument(
          fmt::format("[ops] unsupported type of a vector; got {}, expected f32, f16 or bf16",
                      dtype_name(source.dtype)));
    }
    const int64_t count = source.shape.num_elements();
    QUIRE_ASSIGN_OR_RETURN(Tensor vector, Tensor::host({count}, DType::kF32));
    convert_to_f32(source.data, source.dtype, count, vector.view.as<float>());
    return vector;
  }

  Result<Tensor> allocate(const Shape& shape, DType dtype) override {
    return Tensor::host(shape, dtype);
  }

  // Interleaves the cache over the nodes: with first touch, the keys of decoded tokens would lie on
  // the node of the thread that writes the step's few rows.
  Result<Tensor> allocate_cache(const Shape& shape, DType dtype) override {
    QUIRE_ASSIGN_OR_RETURN(Tensor cache, Tensor::host(shape, dtype));
    if (pool_.nodes().size() == 1) return cache;
    const Status status =
        interleave_pages(cache.buffer.data(), cache.buffer.num_bytes(), pool_.nodes());
    if (!status.ok() && !std::exchange(cache_is_refused_, true)) {
      log_warning("{}; the KV cache lies on the nodes that write it first", status.message());
    }
    return cache;
  }

  void embed(const Linear& table, const int32_t* ids, float scale, TensorView out) override {
    const auto* const quantized = dynamic_cast<const QuantizedLinear*>(&table);
    check_rows(out, table.in_features());
    const bool is_part = table.first_token_id().has_value();
    for_rows(out, [&](int64_t t) {
      const int64_t table_row = ids[t] - table.first_token_id().value_or(0);
      const bool is_here = table_row >= 0 && table_row < table.out_features();
      QUIRE_CHECK(is_here || is_part, "[ops] embed: a token id is not in the table");
      if (!is_here) {
        std::fill_n(row(out, t), out.shape[1], 0.0F);
        return;
      }
      if (quantized != nullptr) {
        quantized->unpack_row(table_row, row(out, t));
      } else {
        static_cast<const PackedLinear&>(table).unpack_row(table_row, row(out, t));
      }
      if (scale == 1.0F) return;
      for (int64_t i = 0; i < out.shape[1]; ++i) row(out, t)[i] *= scale;
    });
  }

  void rms_norm(TensorView x, const float* weight, float eps, TensorView out) override {
    check_same(x, out);
    for_rows(x, [&](int64_t t) { rms_norm_row(row(x, t), weight, eps, x.shape[1], row(out, t)); });
  }

  void add_rms_norm(TensorView residual, TensorView delta, const float* weight, float eps,
                    TensorView out) override {
    check_same(residual, delta);
    check_same(residual, out);
    for_rows(residual, [&](int64_t t) {
      add_rms_norm_row(row(residual, t), row(delta, t), weight, eps, out.shape[1], row(out, t));
    });
  }

  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) override {
    QUIRE_ASSIGN_OR_RETURN(auto linear, CpuPerHeadLinear::make(matrices, *this));
    QUIRE_RETURN_IF_ERROR(
        grow(cpu_head_scratch_bytes(linear->in_features() + linear->out_features()), head_rows_));
    return std::unique_ptr<PerHeadLinear>(std::move(linear));
  }

  void per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) override {
    check_heads(x, w.num_heads(), w.in_features());
    check_heads(out, w.num_heads(), w.out_features());
    QUIRE_CHECK(x.shape[0] == out.shape[0], "[ops] per_head_linear: x and out differ in tokens");
    for_head_blocks(w.num_heads(), x.shape[0], [&](const HeadBlock& block) {
      run_head_block(block, static_cast<const CpuPerHeadLinear&>(w), x, out);
    });
  }

  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override {
    QUIRE_ASSIGN_OR_RETURN(auto experts, CpuExperts::make(source, *this));
    return std::unique_ptr<Experts>(std::move(experts));
  }

  Result<int64_t> experts_workspace_bytes(const ExpertsShape& shape,
                                          int64_t max_num_tokens) const override {
    return ExpertsWorkspace::num_bytes(shape, max_num_tokens);
  }

  void linear(const Linear& w, TensorView x, TensorView out) override {
    check_rows(x, w.in_features());
    check_rows(out, w.out_features());
    QUIRE_CHECK(x.shape[0] == out.shape[0], "[ops] linear: x and out differ in rows");
    multiply(w, x.as<float>(), x.shape[0], out.as<float>());
  }

  void route(const ExpertRouting& routing, TensorView logits, const float* bias, TensorView ids,
             TensorView weights) override {
    check_rows(logits, routing.num_experts);
    check_choice(ids, weights, logits.shape[0], routing.num_per_token());
    QUIRE_CHECK(is_valid(routing), "[ops] route: the routing is not valid");
    // The choice of each expert reads the row again.
    const int64_t num_reads = logits.shape.num_elements() * (1 + routing.top_k);
    for_each(logits.shape[0], num_reads, [&](int64_t t) {
      route_row(routing, row(logits, t), bias, ids.as<int32_t>() + t * routing.num_per_token(),
                row(weights, t));
    });
  }

  void experts(const ExpertsCall& call) override {
    const auto& experts = static_cast<const CpuExperts&>(*call.experts);
    const ExpertsShape& shape = experts.shape();
    check_rows(call.x, shape.hidden_size);
    check_same(call.x, call.out);
    check_choice(call.ids, call.weights, call.x.shape[0], shape.top_k);
    const ExpertsWorkspace workspace(shape, call.x.shape[0], call.workspace);
    if (!call.adds) {
      for_rows(call.out,
               [&](int64_t t) { std::fill_n(row(call.out, t), shape.hidden_size, 0.0F); });
    }
    sort_pairs(call.ids.as<int32_t>(), call.ids.shape.num_elements(), shape.num_experts, workspace);
    ExpertsBlocks blocks(workspace, shape.num_experts);
    for (ExpertsBlock block = blocks.next(); block.num_rows > 0; block = blocks.next()) {
      run_block(block, experts, call, workspace);
    }
  }

  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin) override {
    check_rows(cos_sin, cos_sin.shape[1]);
    for_rows(cos_sin, [&](int64_t t) {
      rope_angles_row(inv_freq, attention_factor, positions[t], cos_sin.shape[1] / 2,
                      row(cos_sin, t));
    });
  }

  void rope_and_cache(const RopeAndCache& args) override {
    check_rows(args.qkv, int64_t{args.num_heads + 2 * args.num_kv_heads} * args.head_dim);
    check_rows(args.cos_sin, args.cos_sin.shape[1]);
    QUIRE_CHECK(args.head_dim <= kMaxHeadDim && args.cos_sin.shape[1] <= args.head_dim &&
                    args.cos_sin.shape[1] % 2 == 0,
                "[ops] rope_and_cache: head_dim or rope_dim out of range");
    QUIRE_CHECK(
        args.q_out.dtype == DType::kF32 && args.cos_sin.shape[0] == args.qkv.shape[0] &&
            args.q_out.shape.num_elements() == args.qkv.shape[0] * args.num_heads * args.head_dim,
        "[ops] rope_and_cache: shapes differ in tokens");
    for_rows(args.qkv, [&](int64_t t) { rope_and_cache_row(args, t); });
  }

  void latent_rope_and_cache(const LatentRopeAndCache& args) override {
    const int64_t rope_dim = args.cos_sin.shape[1];
    check_rows(args.cos_sin, rope_dim);
    check_rows(args.latent, args.latent.shape[1]);
    check_heads(args.q, args.q.shape[1], rope_dim);
    check_heads(args.q_out, args.q.shape[1], rope_dim);
    const int64_t latent_dim = args.latent.shape[1] - rope_dim;
    QUIRE_CHECK(rope_dim % 2 == 0 && rope_dim <= kMaxLatentDim && latent_dim > 0 &&
                    latent_dim <= kMaxLatentDim,
                "[ops] latent_rope_and_cache: latent_dim or rope_dim out of range");
    QUIRE_CHECK(args.cos_sin.shape[0] == args.latent.shape[0] &&
                    args.q.shape[0] == args.latent.shape[0] &&
                    args.q_out.shape[0] == args.latent.shape[0],
                "[ops] latent_rope_and_cache: shapes differ in tokens");
    for_rows(args.latent, [&](int64_t t) { latent_rope_and_cache_row(args, t); });
  }

  void gated_mul(Activation activation, TensorView gate_up, TensorView out) override {
    const int64_t n = out.shape[1];
    check_rows(gate_up, 2 * n);
    check_rows(out, n);
    for_rows(gate_up, [&](int64_t t) {
      gated_mul_row(activation, row(gate_up, t), row(gate_up, t) + n, n, row(out, t));
    });
  }

  void soft_cap(float cap, TensorView x) override {
    check_rows(x, x.shape[1]);
    for_rows(x, [&](int64_t t) { soft_cap_row(cap, row(x, t), x.shape[1]); });
  }

  void gather_rows(TensorView x, const int32_t* rows, TensorView out) override {
    check_rows(x, out.shape[1]);
    check_rows(out, out.shape[1]);
    for_rows(out, [&](int64_t t) {
      std::memcpy(row(out, t), row(x, rows[t]), static_cast<size_t>(out.shape[1]) * sizeof(float));
    });
  }

  void write_columns(TensorView x, TensorView out, int64_t first_column) override {
    check_rows(x, x.shape[1]);
    check_rows(out, out.shape[1]);
    QUIRE_CHECK(x.shape[0] == out.shape[0] && first_column >= 0 &&
                    first_column + x.shape[1] <= out.shape[1],
                "[ops] write_columns: x does not fit the columns of out");
    for_rows(x, [&](int64_t t) {
      std::memcpy(row(out, t) + first_column, row(x, t),
                  static_cast<size_t>(x.shape[1]) * sizeof(float));
    });
  }

  void all_reduce(TensorView x) override {
    if (ranks_ != nullptr) ranks_->all_reduce(rank_, x, pool_);
  }

  void all_gather_columns(TensorView part, TensorView whole, TensorView /*scratch*/) override {
    QUIRE_CHECK(ranks_ != nullptr, "[ops] all_gather_columns: there is one rank");
    ranks_->all_gather_columns(rank_, part, whole, pool_);
  }

 private:
  Result<std::unique_ptr<Linear>> pack_linear(const LinearSource& source) {
    if (is_quantized(source)) {
      QUIRE_ASSIGN_OR_RETURN(auto quantized, QuantizedLinear::pack(source, pool_, kept_));
      QUIRE_RETURN_IF_ERROR(quantized_scratch_.reserve(*quantized));
      return std::unique_ptr<Linear>(std::move(quantized));
    }
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<PackedLinear> packed,
                           PackedLinear::pack(source, amx_kernel_ != nullptr, pool_, kept_));
    switch (kernel_of(*packed)) {
      case Kernel::kAmx:
        QUIRE_RETURN_IF_ERROR(amx_scratch_.reserve(packed->padded_k(), pool_.num_threads()));
        break;
      case Kernel::kBf16:
        QUIRE_RETURN_IF_ERROR(bf16_scratch_.reserve(packed->padded_k(), pool_.num_threads()));
        break;
      default:
        QUIRE_RETURN_IF_ERROR(fma_scratch_.reserve(packed->in_features(), pool_.num_threads()));
    }
    return std::unique_ptr<Linear>(std::move(packed));
  }

  struct Rows {
    int64_t first_row = 0;
    int64_t num_rows = 0;
  };

  // The kernels of matrix products. A matrix has one kernel, whatever the rows.
  enum class Kernel { kFma, kAmx, kBf16, kQuantized };

  Kernel kernel_of(const Linear& w) const {
    if (dynamic_cast<const QuantizedLinear*>(&w) != nullptr) return Kernel::kQuantized;
    const auto& packed = static_cast<const PackedLinear&>(w);
    if (amx_kernel_ != nullptr && packed.layout() == PanelLayout::kPairs) return Kernel::kAmx;
    return multiplies_bf16(packed) ? Kernel::kBf16 : Kernel::kFma;
  }

  // out[r, :] = x[r, :] · Wᵀ + bias for all rows.
  void multiply(const Linear& w, const float* x, int64_t num_rows, float* out) {
    const auto matrix_of = [&w](const Rows&) -> const Linear& { return w; };
    for (int64_t row = 0; row < num_rows; row += kMaxGroupedRows) {
      const Rows part = {0, std::min(kMaxGroupedRows, num_rows - row)};
      multiply_parts(std::span(&part, 1), matrix_of, x + row * w.in_features(),
                     out + row * w.out_features());
    }
  }

  void multiply_packed(Kernel kernel, std::span<const RowGroup> groups, const float* x,
                       float* out) {
    const int num_terms = rounding_ == InputRounding::kBf16 ? 1 : 2;
    if (kernel == Kernel::kAmx) {
      return linear_amx(groups, *amx_kernel_, x, num_terms, out, pool_, amx_scratch_);
    }
    if (kernel == Kernel::kBf16) {
      return linear_bf16(groups, x, num_terms, out, pool_, bf16_scratch_);
    }
    linear_fma(groups, x, out, pool_, fma_scratch_);
  }

  void multiply_quantized(std::span<const QuantizedRowGroup> groups, const float* x, float* out) {
    const int num_terms = rounding_ == InputRounding::kInt8 ? 1 : 2;
    linear_quantized(groups, quantized_kernels_, x, num_terms, out, pool_, quantized_scratch_);
  }

  // Multiplies each part's rows of x by its matrix. Adjacent parts with the same kernel share a
  // parallel region; F16 matrices of one layer may have different kernels. A part has a first_row,
  // which is a multiple of kGroupAlign, and num_rows.
  template <class Parts, class MatrixOf>
  void multiply_parts(const Parts& parts, const MatrixOf& matrix_of, const float* x, float* out) {
    std::array<RowGroup, kMaxGroups> packed;
    std::array<QuantizedRowGroup, kMaxGroups> quantized;
    size_t num_groups = 0;
    Kernel kernel = Kernel::kFma;
    const auto flush = [&] {
      if (num_groups == 0) return;
      if (kernel == Kernel::kQuantized) {
        multiply_quantized(std::span(quantized).first(num_groups), x, out);
      } else {
        multiply_packed(kernel, std::span(packed).first(num_groups), x, out);
      }
      num_groups = 0;
    };
    for (const auto& part : parts) {
      const Linear& w = matrix_of(part);
      const Kernel next = kernel_of(w);
      if (next != kernel) flush();
      kernel = next;
      if (kernel == Kernel::kQuantized) {
        quantized[num_groups++] = {static_cast<const QuantizedLinear*>(&w), part.first_row,
                                   part.num_rows};
      } else {
        packed[num_groups++] = {static_cast<const PackedLinear*>(&w), part.first_row,
                                part.num_rows};
      }
    }
    flush();
  }

  void run_block(const ExpertsBlock& block, const CpuExperts& experts, const ExpertsCall& call,
                 const ExpertsWorkspace& workspace) {
    const int64_t hidden = experts.shape().hidden_size;
    const int64_t inner = experts.shape().intermediate_size;
    using Part = ExpertsBlock::Part;
    const auto gate_up_of = [&](const Part& part) -> const Linear& {
      return experts.gate_up(part.expert);
    };
    const auto down_of = [&](const Part& part) -> const Linear& {
      return experts.down(part.expert);
    };
    for_block_rows(block, hidden, [&](const ExpertsBlock::Row& at) {
      std::copy_n(row(call.x, at.pair / experts.shape().top_k), hidden,
                  workspace.x + at.row * hidden);
    });
    multiply_parts(block.parts(), gate_up_of, workspace.x, workspace.gate_up);
    for_block_rows(block, 2 * inner, [&](const ExpertsBlock::Row& at) {
      const float* gate = workspace.gate_up + at.row * 2 * inner;
      gated_mul_row(call.activation, gate, gate + inner, inner, workspace.product + at.row * inner);
    });
    multiply_parts(block.parts(), down_of, workspace.product, workspace.y);
    // Two rows of a block may belong to one token, so threads divide the elements, not the rows.
    constexpr int64_t kElements = 256;
    const auto add = [&](int64_t i) {
      add_weighted(block, call, workspace.y, i * kElements, std::min((i + 1) * kElements, hidden));
    };
    for_each(ceil_div(hidden, kElements), static_cast<int64_t>(block.num_rows) * hidden, add);
  }

  void run_head_block(const HeadBlock& block, const CpuPerHeadLinear& w, const TensorView& x,
                      const TensorView& out) {
    const int64_t num_in = w.in_features();
    const int64_t num_out = w.out_features();
    auto* const x_rows = static_cast<float*>(head_rows_.data());
    float* const out_rows = x_rows + kMaxGroupedRows * num_in;
    // Calls body(row, head) for the block's heads of `all` and their gathered rows.
    const auto for_heads = [&](const TensorView& all, int64_t width, const auto& body) {
      for_each(block.num_rows(), block.num_rows() * width, [&](int64_t i) {
        const int64_t h = i / block.num_tokens;
        const int64_t t = i % block.num_tokens;
        const int64_t head = (block.first_token + t) * all.shape[1] + block.first_head + h;
        body(h * block.row_stride() + t, all.as<float>() + head * all.shape[2]);
      });
    };
    for_heads(x, num_in, [&](int64_t row, const float* head) {
      std::copy_n(head, num_in, x_rows + row * num_in);
    });
    std::array<Rows, kMaxGroups> parts;
    for (int64_t h = 0; h < block.num_heads; ++h) {
      parts[static_cast<size_t>(h)] = {h * block.row_stride(), block.num_tokens};
    }
    const auto matrix_of = [&](const Rows& part) -> const Linear& {
      return w.head(block.first_head + part.first_row / block.row_stride());
    };
    multiply_parts(std::span(parts).first(static_cast<size_t>(block.num_heads)), matrix_of, x_rows,
                   out_rows);
    for_heads(out, num_out, [&](int64_t row, float* head) {
      std::copy_n(out_rows + row * num_out, num_out, head);
    });
  }

  template <class Body>
  void for_block_rows(const ExpertsBlock& block, int64_t width, const Body& body) {
    const auto num_rows = static_cast<int64_t>(block.num_rows);
    for_each(num_rows, num_rows * width,
             [&](int64_t i) { body(block.rows()[static_cast<size_t>(i)]); });
  }

  static void check_choice(const TensorView& ids, const TensorView& weights, int64_t num_tokens,
                           int64_t top_k) {
    check_rows(weights, top_k);
    QUIRE_CHECK(
        ids.dtype == DType::kI32 && ids.shape == weights.shape && ids.shape[0] == num_tokens,
        "[ops] the ids or weights of experts are not [num_tokens, top_k]");
  }

  bool multiplies_bf16(const PackedLinear& w) const {
    return use_bf16_ && w.dtype() == DType::kBF16;
  }

  static float* row(const TensorView& x, int64_t t) { return x.as<float>() + t * x.shape[1]; }

  static void check_rows(const TensorView& x, int64_t columns) {
    QUIRE_CHECK(x.dtype == DType::kF32 && x.shape.rank() == 2 && x.shape[1] == columns,
                "[ops] activations are not F32 rows of the operation's width");
  }
  // [tokens, num_heads, at least `width`]
  static void check_heads(const TensorView& x, int64_t num_heads, int64_t width) {
    QUIRE_CHECK(x.dtype == DType::kF32 && x.shape.rank() == 3 && x.shape[1] == num_heads &&
                    x.shape[2] >= width,
                "[ops] activations are not F32 heads of the operation's width");
  }
  static void check_same(const TensorView& a, const TensorView& b) {
    check_rows(a, a.shape[1]);
    check_rows(b, a.shape[1]);
    QUIRE_CHECK(a.shape[0] == b.shape[0], "[ops] operands differ in rows");
  }

  // Calls body(t) for each row, in parallel if there are enough elements.
  template <class Body>
  void for_rows(const TensorView& x, const Body& body) {
    for_each(x.shape[0], x.shape[0] * x.shape[1], body);
  }

  // Calls body(i) for each i of [0, count), in parallel if num_elements is at least
  // kParallelElements.
  template <class Body>
  void for_each(int64_t count, int64_t num_elements, const Body& body) {
    if (num_elements < kParallelElements) {
      for (int64_t i = 0; i < count; ++i) body(i);
      return;
    }
    pool_.parallel_for(count, body);
  }

  Stream stream_;
  ThreadPool& pool_;
  FmaScratch fma_scratch_;
  AmxScratch amx_scratch_;
  Bf16Scratch bf16_scratch_;
  QuantizedScratch quantized_scratch_;
  Buffer head_rows_;               // F32, the gathered rows of x and of out of one HeadBlock
  bool cache_is_refused_ = false;  // the kernel refused to interleave, and the log says so
  const amx::Kernel* amx_kernel_;  // null: AMX is not used
  bool use_bf16_;
  std::span<const QuantizedKernel> quantized_kernels_;
  InputRounding rounding_;
  RankGroup* ranks_;  // null: one rank
  int rank_;
  PackedWeights* kept_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, CpuOpsOptions options) {
  return std::make_unique<cpu::CpuOps>(pool, options);
}

int64_t cpu_scratch_bytes(int64_t num_columns, int num_threads) {
  const int64_t padded = round_up(num_columns, cpu::kKAlign);
  int64_t total = cpu::FmaScratch::num_bytes(num_columns, num_threads) +
                  cpu::QuantizedScratch::num_bytes(num_columns);
  if (cpu::amx_usable()) {
    total += cpu::AmxScratch::num_bytes(padded, num_threads);
  } else if (cpu::avx512_bf16_usable()) {
    total += cpu::Bf16Scratch::num_bytes(padded, num_threads);
  }
  return total;
}

int64_t cpu_head_scratch_bytes(int64_t width) {
  return cpu::kMaxGroupedRows * width * int64_t{sizeof(float)};
}

}  // namespace quire
