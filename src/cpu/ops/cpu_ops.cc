#include "cpu/ops/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/cpu_topology.h"
#include "base/log.h"
#include "cpu/ops/activation_rows.h"
#include "cpu/ops/cpu_expert_ops.h"
#include "cpu/ops/cpu_latent_ops.h"
#include "cpu/ops/cpu_state_ops.h"
#include "cpu/ops/cpu_weight_store.h"
#include "cpu/ops/products.h"
#include "cpu/ops/rank_group.h"
#include "cpu/ops/rows.h"
#include "ops/collectives.h"

namespace quire {
namespace cpu {
namespace {

class CpuCollectives final : public Collectives {
 public:
  CpuCollectives(RankGroup& ranks, int rank, ThreadPool& pool)
      : ranks_(ranks), rank_(rank), pool_(pool) {}

  int num_ranks() const override { return ranks_.size(); }
  void all_reduce(TensorView x) override { ranks_.all_reduce(rank_, x, pool_); }
  void all_gather_columns(TensorView part, TensorView whole, TensorView /*scratch*/) override {
    ranks_.all_gather_columns(rank_, part, whole, pool_);
  }

 private:
  RankGroup& ranks_;
  int rank_;
  ThreadPool& pool_;
};

class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, const CpuOpsOptions& options)
      : pool_(pool),
        products_(pool, options),
        experts_(std::make_unique<CpuExpertOps>(products_)),
        latents_(std::make_unique<CpuLatentOps>(products_)),
        states_(std::make_unique<CpuStateOps>(pool)),
        weights_(std::make_unique<CpuWeightStore>(products_, *latents_)) {
    if (options.ranks == nullptr) return;
    collectives_ = std::make_unique<CpuCollectives>(*options.ranks, options.rank, pool);
  }

  Stream& stream() override { return stream_; }
  ExpertOps* experts() const override { return experts_.get(); }
  LatentOps* latents() const override { return latents_.get(); }
  StateOps* states() const override { return states_.get(); }
  Collectives* collectives() const override { return collectives_.get(); }

  WeightStore& weights() const override { return *weights_; }
  DType activation_dtype() const override { return DType::kF32; }

  Result<Tensor> allocate(const Shape& shape, DType dtype) override {
    return Tensor::host(shape, dtype);
  }

  // Interleaves the cache over the nodes. With first-touch placement, the keys of decoded tokens
  // would be on the node of the thread that writes the step's few rows.
  Result<Tensor> allocate_cache(const Shape& shape, DType dtype) override {
    QUIRE_ASSIGN_OR_RETURN(Tensor cache, Tensor::host(shape, dtype));
    if (pool_.nodes().size() == 1) return cache;
    const Status status =
        interleave_pages(cache.buffer.data(), cache.buffer.num_bytes(), pool_.nodes());
    if (!status.ok() && !std::exchange(cache_is_refused_, true)) {
      log_warning("{}; each page of the KV cache is on the node that writes it first",
                  status.message());
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

  void residual_norm(const ResidualNorm& norm, TensorView out) override {
    const TensorView& x = norm.residual;
    const TensorView& delta = norm.delta;
    const int64_t width = x.shape[1];
    const bool adds = delta.data != nullptr;
    check_same(x, out);
    if (adds) check_same(x, delta);
    if (adds && norm.sums_ranks && collectives_ != nullptr) collectives_->all_reduce(delta);
    for_rows(x, [&](int64_t t) {
      if (adds) add_row(row(x, t), row(delta, t), width);
      if (norm.scale != nullptr) {
        for (int64_t i = 0; i < width; ++i) row(x, t)[i] *= *norm.scale;
      }
      if (norm.weight != nullptr) {
        rms_norm_row(row(x, t), norm.weight, norm.eps, width, row(out, t));
      } else if (out.data != x.data) {
        std::copy_n(row(x, t), width, row(out, t));
      }
    });
  }

  void linear(const Linear& w, TensorView x, TensorView out) override {
    check_rows(x, w.in_features());
    check_rows(out, w.out_features());
    QUIRE_CHECK(x.shape[0] == out.shape[0], "[ops] linear: x and out differ in rows");
    products_.multiply(w, x.as<float>(), x.shape[0], out.as<float>());
  }

  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin) override {
    check_rows(cos_sin, cos_sin.shape[1]);
    for_rows(cos_sin, [&](int64_t t) {
      rope_angles_row(inv_freq, attention_factor, positions[t], cos_sin.shape[1] / 2,
                      row(cos_sin, t));
    });
  }

  void position_scales(const PositionScale& scale, const int32_t* positions,
                       TensorView out) override {
    QUIRE_CHECK(out.dtype == DType::kF32 && out.shape.rank() == 1,
                "[ops] position_scales: the scales are not one F32 per token");
    for (int64_t t = 0; t < out.shape[0]; ++t) {
      out.as<float>()[t] = position_scale(scale, positions[t]);
    }
  }

  void wide_norm(const WideNorm& norm) override {
    check_rows(norm.qkv, norm.qkv.shape[1]);
    check_rows(norm.sums, 2);
    QUIRE_CHECK(norm.qkv.shape[0] == norm.sums.shape[0] && norm.q_width > 0 && norm.k_width > 0 &&
                    norm.q_width + norm.k_width <= norm.qkv.shape[1],
                "[ops] wide_norm: the widths do not fit the rows, or there is no sum per row");
    for_rows(norm.qkv, [&](int64_t t) {
      const float* q = row(norm.qkv, t);
      row(norm.sums, t)[0] = sum_of_squares_row(q, norm.q_width);
      row(norm.sums, t)[1] = sum_of_squares_row(q + norm.q_width, norm.k_width);
    });
    if (collectives_ != nullptr) collectives_->all_reduce(norm.sums);
    const int64_t num_ranks = collectives_ == nullptr ? 1 : collectives_->num_ranks();
    const auto normalize = [&](float* x, float sum, const float* weight, int64_t width) {
      const float mean = sum / static_cast<float>(num_ranks * width);
      scale_row(x, 1.0F / std::sqrt(mean + norm.eps), weight, width, x);
    };
    for_rows(norm.qkv, [&](int64_t t) {
      float* const q = row(norm.qkv, t);
      normalize(q, row(norm.sums, t)[0], norm.q_norm, norm.q_width);
      normalize(q + norm.q_width, row(norm.sums, t)[1], norm.k_norm, norm.k_width);
    });
  }

  void rope_and_cache(const RopeAndCache& args) override {
    check_rows(args.qkv, args.row_width());
    check_rows(args.cos_sin, args.cos_sin.shape[1]);
    QUIRE_CHECK(args.head_dim <= kMaxHeadDim && args.value_dim() <= kMaxHeadDim &&
                    args.cos_sin.shape[1] <= args.head_dim && args.cos_sin.shape[1] % 2 == 0,
                "[ops] rope_and_cache: head_dim or rope_dim out of range");
    QUIRE_CHECK(
        args.q_out.dtype == DType::kF32 && args.cos_sin.shape[0] == args.qkv.shape[0] &&
            args.q_out.shape.num_elements() == args.qkv.shape[0] * args.num_heads * args.head_dim,
        "[ops] rope_and_cache: shapes differ in tokens");
    for_rows(args.qkv, [&](int64_t t) { rope_and_cache_row(args, t); });
  }

  void gated_mul(Activation activation, TensorView gate_up, TensorView out) override {
    const int64_t n = out.shape[1];
    check_rows(gate_up, 2 * n);
    check_rows(out, n);
    for_rows(gate_up, [&](int64_t t) {
      gated_mul_row(activation, row(gate_up, t), row(gate_up, t) + n, n, row(out, t));
    });
  }

  void gated_mul_columns(Activation activation, TensorView gate, TensorView up,
                         int64_t first_column, TensorView out) override {
    const int64_t n = out.shape[1];
    check_rows(gate, n);
    check_rows(up, up.shape[1]);
    check_rows(out, n);
    QUIRE_CHECK(gate.shape[0] == out.shape[0] && up.shape[0] == out.shape[0] && first_column >= 0 &&
                    first_column + n <= up.shape[1],
                "[ops] gated_mul_columns: the tensors differ in rows, or up has too few columns");
    for_rows(gate, [&](int64_t t) {
      gated_mul_row(activation, row(gate, t), row(up, t) + first_column, n, row(out, t));
    });
  }

  void gate(const Gating& gating) override {
    const TensorView& gates = gating.gates;
    check_rows(gating.x, gating.x.shape[1]);
    check_rows(gates, gates.shape[1]);
    QUIRE_CHECK(gates.shape[0] == gating.x.shape[0] && gating.x.shape[1] % gates.shape[1] == 0,
                "[ops] gate: the gates do not divide the rows");
    for_rows(gating.x, [&](int64_t t) {
      gate_row(gating.function, row(gates, t), gates.shape[1], gating.x.shape[1], row(gating.x, t));
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

 private:
  template <class Body>
  void for_rows(const TensorView& x, const Body& body) {
    cpu::for_rows(pool_, x, body);
  }

  Stream stream_;
  ThreadPool& pool_;
  Products products_;
  std::unique_ptr<CpuExpertOps> experts_;
  std::unique_ptr<CpuLatentOps> latents_;
  std::unique_ptr<CpuStateOps> states_;
  std::unique_ptr<CpuWeightStore> weights_;
  std::unique_ptr<CpuCollectives> collectives_;  // null: one rank
  // The kernel has refused to interleave the cache, which was logged.
  bool cache_is_refused_ = false;
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
