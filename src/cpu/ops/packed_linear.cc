#include "cpu/ops/packed_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>

#include "cpu/ops/amx/kernel.h"
#include "cpu/ops/gemm_amx.h"
#include "tensor/dtype.h"

namespace quire::cpu {
namespace {

bool has_scales(const WeightView& matrix) {
  return matrix.scheme.scales != ScaleLayout::kNone;
}

Status check_scheme(const WeightView& matrix) {
  if (has_scales(matrix)) {
    if (matrix.scheme.values == DType::kF8E4M3 && matrix.values.dtype == DType::kF8E4M3) return {};
    return unimplemented(
        fmt::format("[ops] unsupported weight scheme; got {}, expected fp8_e4m3 with scales",
                    describe(matrix.scheme)));
  }
  if (is_weight_dtype(matrix.values.dtype)) return {};
  return invalid_argument(
      fmt::format("[ops] unsupported weight type; got {}, expected f32, f16 or bf16",
                  dtype_name(matrix.values.dtype)));
}

Status check_scales(const WeightView& matrix, size_t i) {
  if (!has_scales(matrix)) return {};
  const Shape wanted = scales_shape(matrix.scheme, matrix.values.shape);
  if (is_weight_dtype(matrix.scales.dtype) && matrix.scales.shape == wanted &&
      matrix.scales.data != nullptr) {
    return {};
  }
  return invalid_argument(
      fmt::format("[ops] wrong scales of weight block {}; got {} numbers of {}, expected {} x {} "
                  "of f32, f16 or bf16",
                  i, matrix.scales.shape.num_elements(), dtype_name(matrix.scales.dtype), wanted[0],
                  wanted[1]));
}

Status check_matrices(std::span<const WeightView> matrices, std::span<const TensorView> biases) {
  if (matrices.empty()) return invalid_argument("[ops] a linear needs at least one weight");
  const WeightView& first = matrices[0];
  QUIRE_RETURN_IF_ERROR(check_scheme(first));
  if (!biases.empty() && biases.size() != matrices.size()) {
    return invalid_argument(fmt::format("[ops] wrong number of bias blocks; got {}, expected {}",
                                        biases.size(), matrices.size()));
  }
  for (size_t i = 0; i < matrices.size(); ++i) {
    const TensorView& weight = matrices[i].values;
    if (weight.shape.rank() != 2 || matrices[i].scheme != first.scheme ||
        weight.dtype != first.values.dtype || weight.shape[1] != first.values.shape[1] ||
        weight.shape[0] < 1 || weight.shape[1] < 1) {
      return invalid_argument(
          fmt::format("[ops] weight block {} differs from the first; all need rank 2 and the same "
                      "type, scheme and columns",
                      i));
    }
    QUIRE_RETURN_IF_ERROR(check_scales(matrices[i], i));
    if (biases.empty() || biases[i].data == nullptr) continue;
    const TensorView& bias = biases[i];
    if (!is_weight_dtype(bias.dtype) || bias.shape.num_elements() != weight.shape[0]) {
      return invalid_argument(
          fmt::format("[ops] wrong bias block {}; got {} elements of {}, expected {}", i,
                      bias.shape.num_elements(), dtype_name(bias.dtype), weight.shape[0]));
    }
  }
  return {};
}

// Pointers to the rows of a panel, which may be in different matrices; null beyond the last matrix.
using PanelRows = std::array<const std::byte*, kPanelWidth>;

PanelRows panel_rows(std::span<const WeightView> matrices, int64_t first_row) {
  PanelRows rows = {};
  int64_t block_start = 0;
  for (const WeightView& matrix : matrices) {
    const TensorView& block = matrix.values;
    const int64_t row_bytes = block.shape[1] * static_cast<int64_t>(dtype_bytes(block.dtype));
    for (int64_t r = 0; r < kPanelWidth; ++r) {
      const int64_t row = first_row + r - block_start;
      if (row < 0 || row >= block.shape[0]) continue;
      rows[static_cast<size_t>(r)] = static_cast<const std::byte*>(block.data) + row * row_bytes;
    }
    block_start += block.shape[0];
  }
  return rows;
}

// Transposes 32 rows of units into out[unit][32]. A unit is one element, or a pair of elements
// adjacent in k. The function processes 16 units at a time, so that input and output use only a few
// cache lines.
template <typename Unit>
void transpose_panel(const PanelRows& rows, int64_t num_units, Unit* out) {
  constexpr int64_t kStep = 16;
  for (int64_t first = 0; first < num_units; first += kStep) {
    const int64_t count = std::min(kStep, num_units - first);
    for (int64_t r = 0; r < kPanelWidth; ++r) {
      const std::byte* row = rows[static_cast<size_t>(r)];
      if (row == nullptr) continue;
      std::array<Unit, kStep> units;
      std::memcpy(units.data(), row + first * static_cast<int64_t>(sizeof(Unit)),
                  static_cast<size_t>(count) * sizeof(Unit));
      for (int64_t i = 0; i < count; ++i) {
        out[(first + i) * kPanelWidth + r] = units[static_cast<size_t>(i)];
      }
    }
  }
}

// Packs pairs of 16-bit elements. If the number of elements is odd, the last is paired with a zero,
// which is already in the panel.
void pack_pairs(const PanelRows& rows, int64_t k, std::byte* panel) {
  transpose_panel(rows, k / 2, reinterpret_cast<uint32_t*>(panel));
  if (k % 2 == 0) return;
  auto* out = reinterpret_cast<uint16_t*>(panel) + (k - 1) * kPanelWidth;
  for (int64_t r = 0; r < kPanelWidth; ++r) {
    const std::byte* row = rows[static_cast<size_t>(r)];
    if (row != nullptr) std::memcpy(out + 2 * r, row + (k - 1) * 2, 2);
  }
}

void pack_panel(const PanelRows& rows, DType dtype, PanelLayout layout, int64_t k,
                std::byte* panel) {
  if (layout == PanelLayout::kPairs) {
    pack_pairs(rows, k, panel);
  } else if (dtype == DType::kF32) {
    transpose_panel(rows, k, reinterpret_cast<uint32_t*>(panel));
  } else {
    transpose_panel(rows, k, reinterpret_cast<uint16_t*>(panel));
  }
}

// Returns a panel's rows multiplied by their scales, [kPanelWidth, k] in plain_dtype().
std::vector<std::byte> scaled_rows(std::span<const WeightView> matrices, int64_t first_row,
                                   int64_t k) {
  const DType dtype = plain_dtype(matrices[0].scheme);
  const auto row_bytes = static_cast<size_t>(k) * dtype_bytes(dtype);
  std::vector<std::byte> products(kPanelWidth * row_bytes);
  int64_t block_start = 0;
  for (const WeightView& matrix : matrices) {
    const int64_t num_rows = matrix.values.shape[0];
    for (int64_t r = 0; r < kPanelWidth; ++r) {
      const int64_t row = first_row + r - block_start;
      if (row < 0 || row >= num_rows) continue;
      write_plain_row(matrix, row, products.data() + static_cast<size_t>(r) * row_bytes);
    }
    block_start += num_rows;
  }
  return products;
}

// Replaces the pointers to existing rows by pointers into `products`.
PanelRows rows_in(const std::vector<std::byte>& products, PanelRows rows) {
  const size_t row_bytes = products.size() / kPanelWidth;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r] != nullptr) rows[r] = products.data() + r * row_bytes;
  }
  return rows;
}

std::vector<float> pack_bias(std::span<const WeightView> matrices,
                             std::span<const TensorView> biases, int64_t num_panels) {
  if (biases.empty()) return {};
  std::vector<float> bias(static_cast<size_t>(num_panels * kPanelWidth));
  int64_t start = 0;
  for (size_t i = 0; i < biases.size(); ++i) {
    const TensorView& block = biases[i];
    const int64_t rows = matrices[i].values.shape[0];
    if (block.data != nullptr) convert_to_f32(block.data, block.dtype, rows, bias.data() + start);
    start += rows;
  }
  return bias;
}

}  // namespace

Result<std::unique_ptr<PackedLinear>> PackedLinear::pack(std::span<const WeightView> matrices,
                                                         std::span<const TensorView> biases,
                                                         bool for_amx, ThreadPool& pool,
                                                         PackedWeights* kept) {
  QUIRE_RETURN_IF_ERROR(check_matrices(matrices, biases));
  std::unique_ptr<PackedLinear> packed(new PackedLinear);
  PackedLinear& p = *packed;
  const WeightView& first = matrices[0];
  p.dtype_ = plain_dtype(first.scheme);
  p.in_features_ = first.values.shape[1];
  for (const WeightView& matrix : matrices) p.out_features_ += matrix.values.shape[0];
  p.padded_k_ = round_up(p.in_features_, kKAlign);
  p.panel_bytes_ = p.padded_k_ * kPanelWidth * static_cast<int64_t>(dtype_bytes(p.dtype_));
  p.bias_ = pack_bias(matrices, biases, p.num_panels());
  const bool pairs = p.dtype_ == DType::kBF16 || (p.dtype_ == DType::kF16 && for_amx);
  const int64_t num_bytes = p.num_panels() * p.panel_bytes_;
  const auto pack_all = [&](std::byte* panels) {
    p.layout_ = pairs ? PanelLayout::kPairs : PanelLayout::kRows;
    if (!p.pack_panels(matrices, pool, panels)) {
      // The second attempt uses the same memory, so the pages stay on the nodes on which the first
      // attempt placed them.
      p.layout_ = PanelLayout::kRows;
      std::memset(panels, 0, static_cast<size_t>(num_bytes));
      p.pack_panels(matrices, pool, panels);
    }
    return static_cast<uint32_t>(p.layout_);
  };
  QUIRE_ASSIGN_OR_RETURN(
      PackedWeights::Matrix kept_panels,
      kept_matrix(kept, {.numbers = StoredMatrices{matrices}},
                  pairs ? "panels of pairs" : "panels of rows", num_bytes, pack_all));
  p.weights_ = std::move(kept_panels.bytes);
  const auto rows = static_cast<uint32_t>(PanelLayout::kRows);
  p.layout_ = kept_panels.form == rows ? PanelLayout::kRows : PanelLayout::kPairs;
  return packed;
}

bool PackedLinear::pack_panels(std::span<const WeightView> matrices, ThreadPool& pool,
                               std::byte* base) const {
  std::atomic<bool> fits = true;
  pool.parallel_for_by_node(num_panels(), [&](int64_t i) {
    std::byte* panel = base + i * panel_bytes_;
    std::vector<std::byte> products;
    PanelRows rows = panel_rows(matrices, i * kPanelWidth);
    if (has_scales(matrices[0])) {
      products = scaled_rows(matrices, i * kPanelWidth, in_features_);
      rows = rows_in(products, rows);
    }
    pack_panel(rows, dtype_, layout_, in_features_, panel);
    if (!has_f16_pairs()) return;
    if (!amx_encode_f16(reinterpret_cast<uint16_t*>(panel), panel_bytes_ / 2)) fits = false;
  });
  return fits;
}

void PackedLinear::write_sums(const float* sums, int64_t num_columns, int64_t num_rows,
                              int64_t first_feature, float* out) const {
  const int64_t count = std::min(num_columns, out_features_ - first_feature);
  for (int64_t r = 0; r < num_rows; ++r) {
    float* row = out + r * out_features_ + first_feature;
    std::copy_n(sums + r * num_columns, count, row);
    if (bias() == nullptr) continue;
    for (int64_t i = 0; i < count; ++i) row[i] += bias()[first_feature + i];
  }
}

void PackedLinear::unpack_row(int64_t feature, float* out) const {
  const std::byte* base = panel(feature / kPanelWidth);
  const int64_t lane = feature % kPanelWidth;
  if (dtype_ == DType::kF32) {
    const auto* w = reinterpret_cast<const float*>(base) + lane;
    for (int64_t k = 0; k < in_features_; ++k) out[k] = w[k * kPanelWidth];
    return;
  }
  const auto* w = reinterpret_cast<const uint16_t*>(base);
  const auto to_f32 = dtype_ == DType::kBF16 ? bf16_to_f32
                      : has_f16_pairs()      ? f16_pair_to_f32
                                             : f16_to_f32;
  for (int64_t k = 0; k < in_features_; ++k) {
    const int64_t idx = layout_ == PanelLayout::kPairs
                            ? (k / 2) * 2 * kPanelWidth + 2 * lane + k % 2
                            : k * kPanelWidth + lane;
    out[k] = to_f32(w[idx]);
  }
}

namespace {

// Identifies the source's weights; absent if some of them are not in the model's files.
std::optional<std::string> key_of(const PackedWeights& kept, const LinearSource& source,
                                  std::string_view order) {
  std::string key(order);
  bool is_in_files = true;
  const auto add = [&](std::string_view name, const void* data, size_t num_bytes) {
    if (data == nullptr || !is_in_files) return;
    const std::optional<std::string> place = kept.place_of(data, num_bytes);
    is_in_files = place.has_value();
    key += fmt::format("; {} {}", name, place.value_or(""));
  };
  const auto add_blocks = [&](const BlockMatrix& matrix) {
    const int64_t num_blocks = matrix.shape[0] * matrix.blocks_per_row();
    key += fmt::format("; {} {}, {} paired rows", matrix.type->name, shape_text(matrix.shape),
                       matrix.paired_rows);
    add("blocks", matrix.bytes, static_cast<size_t>(num_blocks * matrix.type->block_bytes));
  };
  const auto add_values = [&](const WeightView& matrix) {
    key += fmt::format("; {} as {} {}", describe(matrix.scheme), dtype_name(matrix.values.dtype),
                       shape_text(matrix.values.shape));
    key += fmt::format(" to {}, scales in {}", dtype_name(plain_dtype(matrix.scheme)),
                       dtype_name(matrix.scales.dtype));
    add("values", matrix.values.data, matrix.values.num_bytes());
    add("scales", matrix.scales.data, matrix.scales.num_bytes());
    add("zeros", matrix.zeros.data, matrix.zeros.num_bytes());
    add("order", matrix.order.data, matrix.order.num_bytes());
  };
  if (const auto* blocks = std::get_if<MatricesInBlocks>(&source.numbers)) {
    std::ranges::for_each(blocks->each, add_blocks);
  } else {
    std::ranges::for_each(std::get<StoredMatrices>(source.numbers).each, add_values);
  }
  return is_in_files ? std::optional(key) : std::nullopt;
}

}  // namespace

Result<PackedWeights::Matrix> kept_matrix(PackedWeights* kept, const LinearSource& source,
                                          std::string_view order, int64_t num_bytes,
                                          const std::function<uint32_t(std::byte*)>& pack) {
  const auto key = kept == nullptr ? std::nullopt : key_of(*kept, source, order);
  if (key) return kept->get(*key, static_cast<size_t>(num_bytes), pack);
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, Buffer::host(static_cast<size_t>(num_bytes)));
  const uint32_t form = pack(static_cast<std::byte*>(buffer.data()));
  return PackedWeights::Matrix{std::move(buffer), form};
}

void convert_to_f32(const void* source, DType dtype, int64_t count, float* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(source) + 2 * i, 2);
    out[i] = dtype == DType::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
  }
}

}  // namespace quire::cpu
