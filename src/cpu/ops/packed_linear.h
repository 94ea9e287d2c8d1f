// A weight matrix in the order in which the GEMM kernels stream it. It is the only copy of the
// weights.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/numbers.h"
#include "base/thread_pool.h"
#include "ops/weight_store.h"
#include "tensor/packed_weights.h"

namespace quire::cpu {

inline constexpr int64_t kPanelWidth = 32;  // output features per panel: two AMX tiles
inline constexpr int64_t kKAlign = 32;      // the depth of an AMX tile; padded with zeros

// The order of the elements (k, feature) in a panel. kRows: [K][32]. kPairs: [K/2][32][2], the
// operand order of AMX tiles and of instructions with two BF16 per 32-bit lane.
enum class PanelLayout : uint8_t { kRows, kPairs };

// Matrices are packed in the plain_dtype() of their scheme.
class PackedLinear final : public Linear {
 public:
  // Packs matrices, one below the other, and biases as in LinearSource. Fails with kInvalidArgument
  // if the blocks' shapes or types are inconsistent, and with kResourceExhausted. With `for_amx`,
  // F16 is packed in pairs too, if all values fit (amx/kernel.h). `kept`: as in kept_matrix().
  static Result<std::unique_ptr<PackedLinear>> pack(std::span<const WeightView> matrices,
                                                    std::span<const TensorView> biases,
                                                    bool for_amx, ThreadPool& pool,
                                                    PackedWeights* kept);

  int64_t in_features() const override { return in_features_; }
  int64_t out_features() const override { return out_features_; }
  size_t num_bytes() const override { return weights_.num_bytes() + bias_.size() * sizeof(float); }

  DType dtype() const { return dtype_; }
  PanelLayout layout() const { return layout_; }
  bool has_f16_pairs() const { return dtype_ == DType::kF16 && layout_ == PanelLayout::kPairs; }
  int64_t padded_k() const { return padded_k_; }
  int64_t num_panels() const { return ceil_div(out_features_, kPanelWidth); }
  // [padded_k, 32] elements in layout(); features and k beyond the matrix are zeros.
  const std::byte* panel(int64_t panel_idx) const {
    return static_cast<const std::byte*>(weights_.data()) + panel_idx * panel_bytes_;
  }
  // [num_panels * 32]; null if the source has no bias.
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  // out[r, first_feature + i] = sums[r, i] + bias for the existing features. Rows of out have
  // out_features() elements, and rows of sums num_columns.
  void write_sums(const float* sums, int64_t num_columns, int64_t num_rows, int64_t first_feature,
                  float* out) const;
  // Writes row `feature` of the matrix as F32.
  void unpack_row(int64_t feature, float* out) const;

 private:
  PackedLinear() = default;
  // Returns false if an F16 value does not fit pairs.
  bool pack_panels(std::span<const WeightView> matrices, ThreadPool& pool, std::byte* base) const;

  Buffer weights_;
  std::vector<float> bias_;
  DType dtype_ = DType::kF32;
  PanelLayout layout_ = PanelLayout::kRows;
  int64_t in_features_ = 0;
  int64_t out_features_ = 0;
  int64_t padded_k_ = 0;
  int64_t panel_bytes_ = 0;
};

// Returns the packed matrix of the source from `kept`, or packs it with pack() and keeps it
// (PackedWeights::get). `order` names the order in which pack() writes. Without `kept`, or if the
// numbers are not in the model's files, packs the matrix without keeping it.
Result<PackedWeights::Matrix> kept_matrix(PackedWeights* kept, const LinearSource& source,
                                          std::string_view order, int64_t num_bytes,
                                          const std::function<uint32_t(std::byte*)>& pack);

// Converts F32, F16 or BF16 values, which may be unaligned, to F32.
void convert_to_f32(const void* source, DType dtype, int64_t count, float* out);

}  // namespace quire::cpu
