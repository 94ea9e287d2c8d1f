#include "cpu/attention/reference.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/thread_pool.h"
#include "cpu/attention/support.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

double load_element(const void* data, DType dtype, int64_t idx) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(data)[idx];
    case DType::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(data)[idx]);
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(data)[idx]);
    case DType::kF8E4M3:
      return e4m3_to_f32(static_cast<const uint8_t*>(data)[idx]);
    case DType::kI8:
      return static_cast<const int8_t*>(data)[idx];
    default:
      break;
  }
  QUIRE_CHECK(false, "[attention] the cache has a type that supports() refuses");
}

// One query head of one token.
struct Row {
  const float* q;
  float* out;
  int req;
  int head;
  cpu::VisibleRange visible;
};

class RowAttention {
 public:
  RowAttention(const AttentionShape& shape, const AttentionBatch& batch, const AttentionCall& call)
      : call_(call), shape_(shape), batch_(batch) {
    if (call.kv.dtype != DType::kF8E4M3) return;
    if (call.kv.k_scale != nullptr) k_scale_ = *call.kv.k_scale;
    if (call.kv.v_scale != nullptr) v_scale_ = *call.kv.v_scale;
  }

  void compute(const Row& row) {
    std::fill_n(row.out, shape_.head_dim_v, 0.0F);
    if (row.visible.first >= row.visible.end) return;
    logits_.clear();
    for (int pos = row.visible.first; pos < row.visible.end; ++pos) {
      logits_.push_back(logit(row, pos));
    }
    double max = *std::max_element(logits_.begin(), logits_.end());
    if (shape_.sinks) max = std::max(max, double{call_.sinks[row.head]});
    double sum = shape_.sinks ? std::exp(call_.sinks[row.head] - max) : 0.0;
    for (double& x : logits_) sum += x = std::exp(x - max);
    write_out(row, sum);
  }

 private:
  int kv_head(const Row& row) const { return row.head / (shape_.num_heads / shape_.num_kv_heads); }
  int64_t page_of(const Row& row, int pos) const {
    return batch_.block_table[row.req * batch_.max_pages + pos / shape_.page_size];
  }

  // Returns the scale of element d of the vector at position `pos` in an int8 cache, and 1 for
  // other caches. `scales`: the offset of the scales of the vector's head and page.
  double stored_scale(const void* data, int64_t scales, int pos, int d) const {
    if (call_.kv.dtype != DType::kI8) return 1.0;
    const bool second_part = shape_.is_latent && d >= shape_.head_dim_v;
    const int idx = pos % shape_.page_size + (second_part ? shape_.page_size : 0);
    return reinterpret_cast<const float*>(static_cast<const int8_t*>(data) + scales)[idx];
  }

  double logit(const Row& row, int pos) const {
    const KvCacheView& kv = call_.kv;
    const int64_t head = page_of(row, pos) * kv.page_stride_k + kv_head(row) * kv.head_stride_k;
    const int64_t key = head + pos % shape_.page_size * kv.token_stride_k;
    double dot = 0.0;
    for (int d = 0; d < shape_.head_dim; ++d) {
      dot += double{row.q[d]} * load_element(kv.k, kv.dtype, key + d) *
             stored_scale(kv.k, head + kv.scale_offset_k, pos, d);
    }
    const double scaled = dot * k_scale_ * shape_.scale;
    return shape_.softcap > 0.0F ? shape_.softcap * std::tanh(scaled / shape_.softcap) : scaled;
  }

  void write_out(const Row& row, double sum) {
    const KvCacheView& kv = call_.kv;
    acc_.assign(static_cast<size_t>(shape_.head_dim_v), 0.0);
    for (int pos = row.visible.first; pos < row.visible.end; ++pos) {
      const int64_t head = page_of(row, pos) * kv.page_stride_v + kv_head(row) * kv.head_stride_v;
      const int64_t value = head + pos % shape_.page_size * kv.token_stride_v;
      const double weight = logits_[static_cast<size_t>(pos - row.visible.first)] / sum *
                            stored_scale(kv.v, head + kv.scale_offset_v, pos, 0);
      for (size_t d = 0; d < acc_.size(); ++d) {
        acc_[d] += weight * load_element(kv.v, kv.dtype, value + static_cast<int64_t>(d));
      }
    }
    for (size_t d = 0; d < acc_.size(); ++d) row.out[d] = static_cast<float>(acc_[d] * v_scale_);
  }

  const AttentionCall& call_;
  const AttentionShape& shape_;
  const AttentionBatch& batch_;
  double k_scale_ = 1.0;
  double v_scale_ = 1.0;
  std::vector<double> logits_;
  std::vector<double> acc_;
};

class ReferencePlan final : public AttentionPlan {
 public:
  ReferencePlan(const AttentionShape& shape, Phase phase, ThreadPool* pool)
      : shape_(shape), phase_(phase), pool_(pool) {}

  size_t workspace_bytes() const override { return 0; }

  Status update(const AttentionBatch& batch, Stream& /*stream*/) override {
    batch_ = batch;
    return {};
  }

  Status run(const AttentionCall& call, Stream& /*stream*/) override {
    const PhaseRange& range = batch_.range(phase_);
    std::vector<Row> rows;
    for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
      const int first_token = batch_.query_start.host[req];
      const int q_len = batch_.query_start.host[req + 1] - first_token;
      for (int row_idx = 0; row_idx < q_len * shape_.num_heads; ++row_idx) {
        const int query = row_idx / shape_.num_heads;
        const int64_t row = int64_t{first_token} * shape_.num_heads + row_idx;
        rows.push_back({.q = call.q.as<const float>() + row * shape_.head_dim,
                        .out = call.out.as<float>() + row * shape_.head_dim_v,
                        .req = req,
                        .head = row_idx % shape_.num_heads,
                        .visible = cpu::visible_range(shape_, batch_.seq_lens[req], q_len, query)});
      }
    }
    if (pool_ == nullptr) {
      RowAttention attention(shape_, batch_, call);
      for (const Row& row : rows) attention.compute(row);
    } else {
      pool_->parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t i) {
        RowAttention(shape_, batch_, call).compute(rows[static_cast<size_t>(i)]);
      });
    }
    return {};
  }

 private:
  const AttentionShape shape_;
  const Phase phase_;
  ThreadPool* const pool_;  // may be null
  AttentionBatch batch_;    // from the last update()
};

class ReferenceAttention final : public AttentionBackend {
 public:
  explicit ReferenceAttention(ThreadPool* pool) : pool_(pool) {}

  std::string_view name() const override { return "reference"; }

  Support supports(const AttentionShape& shape, const AttentionUse& /*use*/,
                   const Device& device) const override {
    return cpu::attention_support(shape, device);
  }

  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    return std::unique_ptr<AttentionPlan>(
        std::make_unique<ReferencePlan>(shape, limits.use.phase, pool_));
  }

 private:
  ThreadPool* const pool_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_reference_attention(ThreadPool* pool) {
  return std::make_unique<ReferenceAttention>(pool);
}

}  // namespace quire
