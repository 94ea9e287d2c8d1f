#include "cpu/ops/cpu_ops.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"
#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/gemm_bf16.h"
#include "cpu/ops/gemm_fma.h"
#include "cpu/ops/gemm_quantized.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/rows.h"

namespace quire {
namespace cpu {
namespace {

// Below this number of elements, fork and join cost more than they save.
constexpr int64_t kParallelElements = 16384;

// The fastest kernel if `name` is empty or not among those of this processor.
const quantized::Kernel& choose_kernel(std::string_view name) {
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    if (kernel.name == name) return *kernel.kernel;
  }
  return *quantized_kernels().front().kernel;
}

class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, FmaScratch scratch, const CpuOpsOptions& options)
      : pool_(pool),
        fma_scratch_(std::move(scratch)),
        use_amx_(options.use_amx && amx_usable()),
        use_bf16_(!use_amx_ && options.use_avx512_bf16 && avx512_bf16_usable()),
        quantized_kernel_(choose_kernel(options.quantized_kernel)),
        rounding_(options.rounding) {}

  DType activation_dtype() const override { return DType::kF32; }
  DType linear_dtype(const WeightScheme& scheme) const override { return packed_dtype(scheme); }

  int64_t block_bytes(const GgufBlockType& type) const override {
    if (type.plain) return 0;
    return quantized::block_bytes(quantized_format(type),
                                  type.block_elements / quantized::kGroupK) /
           quantized::kFeatures;
  }

  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override {
    if (!source.blocks.empty()) {
      QUIRE_ASSIGN_OR_RETURN(auto quantized, QuantizedLinear::pack(source, pool_));
      QUIRE_RETURN_IF_ERROR(quantized_scratch_.reserve(quantized->in_features()));
      return std::unique_ptr<Linear>(std::move(quantized));
    }
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<PackedLinear> packed,
                           PackedLinear::pack(source, use_amx_, pool_));
    if (use_amx_ && packed->layout() == PanelLayout::kPairs) {
      QUIRE_RETURN_IF_ERROR(amx_scratch_.reserve(packed->padded_k(), pool_.num_threads()));
    }
    if (multiplies_bf16(*packed)) {
      QUIRE_RETURN_IF_ERROR(bf16_scratch_.reserve(packed->padded_k()));
    }
    return std::unique_ptr<Linear>(std::move(packed));
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

  void embed(const Linear& table, const int32_t* ids, float scale, TensorView out,
             Stream& /*stream*/) override {
    const auto* const quantized = dynamic_cast<const QuantizedLinear*>(&table);
    check_rows(out, table.in_features());
    for_rows(out, [&](int64_t t) {
      QUIRE_CHECK(ids[t] >= 0 && ids[t] < table.out_features(),
                  "[ops] embed: a token id is not in the table");
      if (quantized != nullptr) {
        quantized->unpack_row(ids[t], row(out, t));
      } else {
        static_cast<const PackedLinear&>(table).unpack_row(ids[t], row(out, t));
      }
      if (scale == 1.0F) return;
      for (int64_t i = 0; i < out.shape[1]; ++i) row(out, t)[i] *= scale;
    });
  }

  void rms_norm(TensorView x, const float* weight, float eps, TensorView out,
                Stream& /*stream*/) override {
    check_same(x, out);
    for_rows(x, [&](int64_t t) { rms_norm_row(row(x, t), weight, eps, x.shape[1], row(out, t)); });
  }

  void add_rms_norm(TensorView residual, TensorView delta, const float* weight, float eps,
                    TensorView out, Stream& /*stream*/) override {
    check_same(residual, delta);
    check_same(residual, out);
    for_rows(residual, [&](int64_t t) {
      add_rms_norm_row(row(residual, t), row(delta, t), weight, eps, out.shape[1], row(out, t));
    });
  }

  void linear(const Linear& w, TensorView x, TensorView out, Stream& /*stream*/) override {
    check_rows(x, w.in_features());
    check_rows(out, w.out_features());
    QUIRE_CHECK(x.shape[0] == out.shape[0], "[ops] linear: x and out differ in rows");
    if (x.shape[0] == 0) return;
    if (const auto* const quantized = dynamic_cast<const QuantizedLinear*>(&w)) {
      const int num_terms = rounding_ == InputRounding::kInt8 ? 1 : 2;
      return linear_quantized(*quantized, quantized_kernel_, x.as<float>(), x.shape[0], num_terms,
                              out.as<float>(), pool_, quantized_scratch_);
    }
    const auto& packed = static_cast<const PackedLinear&>(w);
    if (use_amx_ && packed.layout() == PanelLayout::kPairs) {
      return linear_amx(packed, x.as<float>(), x.shape[0], out.as<float>(), pool_, amx_scratch_);
    }
    if (multiplies_bf16(packed)) {
      const int num_terms = rounding_ == InputRounding::kBf16 ? 1 : 2;
      return linear_bf16(packed, x.as<float>(), x.shape[0], num_terms, out.as<float>(), pool_,
                         bf16_scratch_);
    }
    linear_fma(packed, x.as<float>(), x.shape[0], out.as<float>(), pool_, fma_scratch_);
  }

  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin, Stream& /*stream*/) override {
    check_rows(cos_sin, cos_sin.shape[1]);
    for_rows(cos_sin, [&](int64_t t) {
      rope_angles_row(inv_freq, attention_factor, positions[t], cos_sin.shape[1] / 2,
                      row(cos_sin, t));
    });
  }

  void rope_and_cache(const RopeAndCache& args, Stream& /*stream*/) override {
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

  void gated_mul(Activation activation, TensorView gate_up, TensorView out,
                 Stream& /*stream*/) override {
    const int64_t n = out.shape[1];
    check_rows(gate_up, 2 * n);
    check_rows(out, n);
    for_rows(gate_up, [&](int64_t t) {
      gated_mul_row(activation, row(gate_up, t), row(gate_up, t) + n, n, row(out, t));
    });
  }

  void soft_cap(float cap, TensorView x, Stream& /*stream*/) override {
    check_rows(x, x.shape[1]);
    for_rows(x, [&](int64_t t) { soft_cap_row(cap, row(x, t), x.shape[1]); });
  }

  void gather_rows(TensorView x, const int32_t* rows, TensorView out, Stream& /*stream*/) override {
    check_rows(x, out.shape[1]);
    check_rows(out, out.shape[1]);
    for_rows(out, [&](int64_t t) {
      std::memcpy(row(out, t), row(x, rows[t]), static_cast<size_t>(out.shape[1]) * sizeof(float));
    });
  }

  void write_columns(TensorView x, TensorView out, int64_t first_column,
                     Stream& /*stream*/) override {
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

 private:
  bool multiplies_bf16(const PackedLinear& w) const {
    return use_bf16_ && w.dtype() == DType::kBF16;
  }

  static float* row(const TensorView& x, int64_t t) { return x.as<float>() + t * x.shape[1]; }

  static void check_rows(const TensorView& x, int64_t columns) {
    QUIRE_CHECK(x.dtype == DType::kF32 && x.shape.rank() == 2 && x.shape[1] == columns,
                "[ops] activations are not F32 rows of the operation's width");
  }
  static void check_same(const TensorView& a, const TensorView& b) {
    check_rows(a, a.shape[1]);
    check_rows(b, a.shape[1]);
    QUIRE_CHECK(a.shape[0] == b.shape[0], "[ops] operands differ in rows");
  }

  // Calls body(t) for each row, in parallel if there are enough elements.
  template <class Body>
  void for_rows(const TensorView& x, const Body& body) {
    const int64_t num_rows = x.shape[0];
    if (num_rows * x.shape[1] < kParallelElements) {
      for (int64_t t = 0; t < num_rows; ++t) body(t);
      return;
    }
    pool_.parallel_for(num_rows, body);
  }

  ThreadPool& pool_;
  FmaScratch fma_scratch_;
  AmxScratch amx_scratch_;
  Bf16Scratch bf16_scratch_;
  QuantizedScratch quantized_scratch_;
  bool use_amx_;
  bool use_bf16_;
  const quantized::Kernel& quantized_kernel_;
  InputRounding rounding_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, CpuOpsOptions options) {
  Result<cpu::FmaScratch> scratch = cpu::FmaScratch::make(pool.num_threads());
  return std::make_unique<cpu::CpuOps>(pool, std::move(scratch).value(), options);
}

}  // namespace quire
