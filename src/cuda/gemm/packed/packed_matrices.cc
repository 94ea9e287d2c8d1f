#include "cuda/gemm/packed/packed_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/log.h"
#include "base/numbers.h"
#include "cuda/gemm/dense/dense_choice.h"

namespace quire::cuda {
namespace {

constexpr int64_t kGroupColumns = 32;
constexpr int64_t kColumnStep = 8;
// Bytes of unpacked rows. Fewer would divide a product into parts that do not fill all SMs, and
// more would not fit kLibraryBytes, of which CUDA's libraries take 73 MiB.
constexpr int64_t kPackedWorkspaceBytes = int64_t{64} << 20;
constexpr int64_t kUnpackedStep = 256;  // rows, so that few of the products' tiles are incomplete
static_assert(kUnpackedStep <= kMaxTiledRows, "the workspace holds that many rows");
constexpr size_t kCublasAlignment = 16;  // of addresses

void add_bits(std::byte* words, int64_t idx, uint32_t bits) {
  uint32_t word = 0;
  std::memcpy(&word, words + 4 * idx, 4);
  word |= bits;
  std::memcpy(words + 4 * idx, &word, 4);
}

// Writes 4 values, all with `shift` added, to a slice of zeros.
void pack_quad(const uint8_t* values, int bits, uint8_t shift, int row, int column,
               std::byte* slice) {
  std::array<uint32_t, 4> v = {};
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<uint8_t>(values[i] + shift);
  const PackedQuad quad = packed_quad(bits, row, column);
  if (bits == 8) {
    add_bits(slice, quad.word, (v[0] | v[1] << 16) << quad.shift);
    add_bits(slice, quad.word + 1, (v[2] | v[3] << 16) << quad.shift);
    return;
  }
  std::array<uint32_t, 4> low = {};
  for (size_t i = 0; i < v.size(); ++i) low[i] = v[i] & 0xF;
  add_bits(slice, quad.word, (low[0] | low[2] << 8 | low[1] << 16 | low[3] << 24) << quad.shift);
  if (bits == 4) return;
  add_bits(slice, quad.high_word,
           (v[0] >> 4 | v[2] >> 4 << 4 | v[1] >> 4 << 16 | v[3] >> 4 << 20) << quad.high_shift);
}

// Packs one panel: rows from `first_row` of the matrix on. `to` is all zeros.
void pack_panel(const QuantizedMatrix& matrix, const PackedRows& rows, int64_t first_row,
                std::byte* to) {
  const PackedLayout& layout = rows.layout;
  const int bits = layout.format.value_bits;
  const auto shift = static_cast<uint8_t>(layout.value_shift());
  const int64_t block_columns = layout.block_columns();
  const int64_t num_columns = matrix.num_columns();
  const int64_t count = std::min(kPanelRows, matrix.num_rows() - first_row);
  for (int64_t first = 0; first < num_columns; first += kQuantizedColumns) {
    const int64_t left = std::min(kQuantizedColumns, num_columns - first);
    for (int64_t row = 0; row < count; ++row) {
      const QuantizedRow from =
          matrix.read(first_row + row, first / kQuantizedColumns, ceil_div(left, kGroupColumns));
      for (int64_t in_row = 0; in_row < left; in_row += block_columns) {
        std::byte* const block = to + (first + in_row) / block_columns * layout.block_bytes();
        // A scale for more columns than a block has is in each of the row's blocks.
        const bool is_shared = matrix.format().group_k > block_columns;
        write_quantized_header(from, is_shared ? 0 : in_row, row, layout.format,
                               block_columns / kGroupColumns, block);
        std::byte* const values = block + layout.header.num_bytes;
        const int64_t end = std::min(block_columns, left - in_row);
        for (int64_t column = 0; column < end; column += 4) {
          pack_quad(&from.values[static_cast<size_t>(in_row + column)], bits, shift,
                    static_cast<int>(row), static_cast<int>(column % kSliceColumns),
                    values + column / kSliceColumns * layout.slice_bytes());
        }
      }
    }
  }
}

PackedProduct part_of(PackedProduct product, int64_t first, int64_t count) {
  product.x = product.x.rows(first, count);
  product.out = product.out.rows(first, count);
  if (product.gated_out.data != nullptr) product.gated_out = product.gated_out.rows(first, count);
  return product;
}

bool has_gates(const PackedMatrices& w) {
  return w.parts().size() == 1 && packed_gemm_gates(w.parts().front());
}

// A part whose outputs begin at an address that cuBLASLt does not take; null: there is none.
const PackedRows* misaligned_part(const PackedMatrices& w, DType out) {
  for (const PackedRows& part : w.parts()) {
    const auto offset = static_cast<size_t>(part.first_row) * dtype_bytes(out);
    if (offset % kCublasAlignment != 0) return &part;
  }
  return nullptr;
}

}  // namespace

bool can_pack(const QuantizedFormat& format, int64_t num_columns) {
  const bool has_group = format.value_bits != 8 || format.group_k >= kGroupColumns;
  return has_group && num_columns % kColumnStep == 0;
}

int64_t packed_block_bytes(const GgufBlockType& type) {
  const PackedLayout layout = packed_layout(quantized_format(type));
  return ceil_div(layout.block_bytes() * type.block_elements, layout.block_columns() * kPanelRows);
}

int64_t packed_bytes(const WeightScheme& scheme, DType scales, const Shape& matrix) {
  const std::optional<QuantizedFormat> format = quantized_format(scheme, scales, matrix);
  if (!format || !can_pack(*format, matrix[1])) return 0;
  const PackedRows rows = {
      .layout = packed_layout(*format), .num_rows = matrix[0], .num_columns = matrix[1]};
  return rows.num_panels() * rows.panel_bytes();
}

namespace {

// The parts of a matrix that is these matrices, one below the other.
Result<std::vector<PackedRows>> parts_of(const std::vector<QuantizedMatrix>& matrices) {
  std::vector<PackedRows> parts;
  int64_t num_rows = 0;
  for (const QuantizedMatrix& matrix : matrices) {
    if (!can_pack(matrix.format(), matrix.num_columns())) {
      return unimplemented(fmt::format(
          "[ops] a matrix of integers cannot stay packed on a GPU; got {} columns and {} bits with "
          "groups of {}, expected a multiple of {} columns, and groups of at least {} with 8 bits",
          matrix.num_columns(), matrix.format().value_bits, matrix.format().group_k, kColumnStep,
          kGroupColumns));
    }
    const PackedLayout layout = packed_layout(matrix.format());
    const bool continues = !parts.empty() && parts.back().layout.format == layout.format &&
                           parts.back().num_rows % kPanelRows == 0;
    if (!continues) parts.push_back({layout, nullptr, num_rows, 0, matrix.num_columns()});
    parts.back().num_rows += matrix.num_rows();
    num_rows += matrix.num_rows();
  }
  return parts;
}

bool have_one_layout(const PackedRows& a, const PackedRows& b) {
  return a.layout.format == b.layout.format && a.first_row == b.first_row &&
         a.num_rows == b.num_rows && a.num_columns == b.num_columns;
}

}  // namespace

Result<PackedMatrices> PackedMatrices::allocate(const LinearSource& source, int64_t count) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<QuantizedMatrix> matrices, quantized_matrices(source));
  PackedMatrices packed;
  QUIRE_ASSIGN_OR_RETURN(packed.parts_, parts_of(matrices));
  packed.count_ = count;
  for (const PackedRows& part : packed.parts_) {
    packed.matrix_bytes_ += part.num_panels() * part.panel_bytes();
  }
  QUIRE_ASSIGN_OR_RETURN(packed.panels_,
                         device_memory(static_cast<size_t>(count * packed.matrix_bytes_)));
  auto* at = static_cast<std::byte*>(packed.panels_.data());
  for (PackedRows& part : packed.parts_) {
    part.panels = at;
    at += part.num_panels() * part.panel_bytes();
  }
  return packed;
}

Status PackedMatrices::load(int64_t idx, const LinearSource& source, WeightUpload& upload) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<QuantizedMatrix> matrices, quantized_matrices(source));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<PackedRows> parts, parts_of(matrices));
  if (!std::ranges::equal(parts, parts_, have_one_layout)) {
    return unimplemented(
        "[ops] the experts of a layer are quantized in different formats; expected one; use "
        "--device cpu");
  }
  auto* at = static_cast<std::byte*>(panels_.data()) + idx * matrix_bytes_;
  auto matrix = matrices.begin();
  for (const PackedRows& part : parts) {
    const int64_t panel_bytes = part.panel_bytes();
    for (int64_t row = 0; row < part.num_rows; row += matrix->num_rows(), ++matrix) {
      const int64_t num_panels = ceil_div(matrix->num_rows(), kPanelRows);
      QUIRE_RETURN_IF_ERROR(
          upload.make(num_panels, panel_bytes, at, [&](int64_t panel, std::byte* to) {
            pack_panel(*matrix, part, panel * kPanelRows, to);
          }));
      at += num_panels * panel_bytes;
    }
  }
  return load_order(idx, source, upload);
}

// Some matrices may have an order of columns, and others none.
Status PackedMatrices::load_order(int64_t idx, const LinearSource& source, WeightUpload& upload) {
  const std::span<const int32_t> order = column_order_of(source);
  if (order.empty()) return {};
  const Shape shape = {num_columns()};
  const auto upload_row = [&](int64_t row, const int32_t* numbers) {
    const TensorView to = {order_.view.as<int32_t>() + row * num_columns(), DType::kI32, shape};
    return upload.upload({const_cast<int32_t*>(numbers), DType::kI32, shape}, to);
  };
  if (order_.view.data == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(order_, device_tensor({count_, num_columns()}, DType::kI32));
    std::vector<int32_t> in_order(order.size());
    std::iota(in_order.begin(), in_order.end(), 0);
    for (int64_t i = 0; i < count_; ++i) {
      if (i != idx) QUIRE_RETURN_IF_ERROR(upload_row(i, in_order.data()));
    }
  }
  return upload_row(idx, order.data());
}

Status PackedGemm::reserve(const PackedMatrices& matrix) {
  const PackedRows* const misaligned = misaligned_part(matrix, DType::kF16);
  if (misaligned != nullptr && !has_warned_) {
    has_warned_ = true;
    log_warning(
        "[ops] quantized matrices of several formats are one product, and one of them begins at "
        "row {}; cuBLASLt expects a multiple of 8. In steps of more than {} tokens another kernel "
        "multiplies such matrices, which is slower",
        misaligned->first_row, kMaxTiledRows);
  }
  const auto row_bytes = static_cast<size_t>(round_up(matrix.num_columns(), kChunkColumns)) * 2;
  const size_t num_bytes = std::max(static_cast<size_t>(kPackedWorkspaceBytes),
                                    static_cast<size_t>(kMaxTiledRows) * row_bytes);
  if (workspace_.num_bytes() >= num_bytes) return {};
  QUIRE_ASSIGN_OR_RETURN(workspace_, device_memory(num_bytes));
  return {};
}

void PackedGemm::run(const PackedProduct& product) {
  run(product, packed_way(product.x.shape[0], can_unpack(product)));
}

void PackedGemm::run(const PackedProduct& product, PackedWay way) {
  const int64_t num_rows = product.x.shape[0];
  if (way == PackedWay::kUnpacked) {
    Status status = run_unpacked(product);
    if (!status.ok()) context_.stream->record_error(std::move(status));
  } else {
    const bool has_tiles = way == PackedWay::kTiles;
    const int64_t step = has_tiles ? kMaxTiledRows : kMaxPackedRows;
    for (int64_t first = 0; first < num_rows; first += step) {
      const PackedProduct part = part_of(product, first, std::min(step, num_rows - first));
      has_tiles ? run_tiles(part) : run_few_rows(part);
    }
    if (has_gates(*product.w)) return;
  }
  if (product.gated_out.data == nullptr || num_rows == 0) return;
  run_gated_mul(context_, Activation::kSilu, product.out, product.gated_out);
}

void PackedGemm::run_few_rows(const PackedProduct& product) {
  TensorView x = product.x;
  const bool is_readable = is_aligned({x.data}, 8);  // the kernel reads 4 numbers at a time
  if (product.w->order() != nullptr || !is_readable) {
    x.data = workspace_.data();
    run_permute_columns(context_, product.x, product.w->order(), x);
  }
  for (const PackedRows& part : product.w->parts()) {
    PackedGemmCall call = {&part, x, product.bias, product.out};
    if (has_gates(*product.w)) call.gated_out = product.gated_out;
    run_packed_gemm(context_, context_.stream->limits().num_sms, call);
  }
}

void PackedGemm::run_tiles(const PackedProduct& product) {
  TensorView x = product.x;
  x.data = workspace_.data();
  const int tokens = packed_tile_tokens(x.shape[0]);
  run_tile_columns(context_, product.x, product.w->order(), tokens, x.data);
  for (const PackedRows& part : product.w->parts()) {
    PackedGemmCall call = {&part, x, product.bias, product.out};
    if (has_gates(*product.w)) call.gated_out = product.gated_out;
    run_packed_tiles(context_,
                     packed_tile_plan(part, x.shape[0], context_.stream->limits().num_sms), call);
  }
}

bool PackedGemm::can_unpack(const PackedProduct& product) const {
  return misaligned_part(*product.w, product.out.dtype) == nullptr &&
         is_aligned({product.x.data, product.out.data}, kCublasAlignment);
}

Status PackedGemm::run_unpacked(const PackedProduct& product) {
  const int64_t width = product.w->num_columns();
  const int64_t fitting = static_cast<int64_t>(workspace_.num_bytes()) / (width * 2);
  const int64_t step = fitting / kUnpackedStep * kUnpackedStep;
  for (const PackedRows& part : product.w->parts()) {
    for (int64_t first = 0; first < part.num_rows; first += step) {
      const int64_t count = std::min(step, part.num_rows - first);
      const TensorView w = {workspace_.data(), product.x.dtype, {count, width}};
      run_unpack_rows(context_, part, first, product.w->order(), w);
      QUIRE_RETURN_IF_ERROR(multiply(product.x, w, product.out, part.first_row + first));
    }
  }
  if (product.bias.data != nullptr) run_add_bias(context_, product.bias, product.out);
  return {};
}

// Columns [first_row, first_row + rows of w) of out = x * w.
Status PackedGemm::multiply(const TensorView& x, const TensorView& w, const TensorView& out,
                            int64_t first_row) {
  GemmShape shape;
  shape.n = w.shape[0];
  shape.k = w.shape[1];
  shape.type = shape.weights = x.dtype;
  shape.out = out.dtype;
  shape.out_width = out.shape[1];
  GemmCall call = {.x = x, .w = w, .bias = {}, .out = out};
  call.out.data = out.as<std::byte>() + first_row * static_cast<int64_t>(dtype_bytes(out.dtype));
  return unpacked_.run(*context_.stream, shape, call);
}

}  // namespace quire::cuda
