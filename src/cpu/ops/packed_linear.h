// A weight matrix in the order in which the GEMM kernels stream it; the only copy of the weights.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "ops/ops.h"

namespace quire::cpu {

inline constexpr int64_t kPanelWidth = 32;  // output features of a panel: two AMX tiles
inline constexpr int64_t kKAlign = 32;      // the depth of an AMX tile; zeros fill it up

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

// Where element (k, feature) of a panel lies. kRows: [K][32]. kPairs: [K/2][32][2], which is the
// operand order of AMX tiles and of two BF16 in one 32-bit lane.
enum class PanelLayout : uint8_t { kRows, kPairs };

class PackedLinear final : public Linear {
 public:
  // Errors: kInvalidArgument where the blocks' shapes or types do not fit together,
  // kResourceExhausted.
  // `for_amx`: F16 goes into pairs too, if all of it fits f16_pairs.h.
  static Result<std::unique_ptr<PackedLinear>> pack(const LinearSource& source, bool for_amx,
                                                    ThreadPool& pool);

  int64_t in_features() const override { return in_features_; }
  int64_t out_features() const override { return out_features_; }
  size_t num_bytes() const override { return weights_.num_bytes() + bias_.size() * sizeof(float); }

  DType dtype() const { return dtype_; }
  PanelLayout layout() const { return layout_; }
  bool has_f16_pairs() const { return dtype_ == DType::kF16 && layout_ == PanelLayout::kPairs; }
  int64_t padded_k() const { return padded_k_; }
  int64_t num_panels() const { return ceil_div(out_features_, kPanelWidth); }
  // [padded_k, 32] elements in layout(); features and k past the matrix are zeros.
  const std::byte* panel(int64_t panel_idx) const {
    return static_cast<const std::byte*>(weights_.data()) + panel_idx * panel_bytes_;
  }
  // [num_panels * 32]; null where the source has none.
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  // The matrix' row `feature` as F32.
  void unpack_row(int64_t feature, float* out) const;

 private:
  PackedLinear() = default;
  // False where an F16 does not fit pairs.
  bool pack_panels(const LinearSource& source, ThreadPool& pool);

  Buffer weights_;
  std::vector<float> bias_;
  DType dtype_ = DType::kF32;
  PanelLayout layout_ = PanelLayout::kRows;
  int64_t in_features_ = 0;
  int64_t out_features_ = 0;
  int64_t padded_k_ = 0;
  int64_t panel_bytes_ = 0;
};

// Any of F32, F16 and BF16, unaligned, as F32.
void convert_to_f32(const void* source, DType dtype, int64_t count, float* out);

}  // namespace quire::cpu
