#include "model/packed_integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "base/thread_pool.h"

namespace quire {
namespace {

constexpr int kWordBits = 32;
constexpr int64_t kStripeRows = 32;  // rows that a thread unpacks at a time

// The place at which AWQ stores integer i of the 8 of a word.
constexpr std::array<int, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

int64_t per_word(const WeightScheme& scheme) {
  return kWordBits / scheme.bits;
}

bool is_gptq(Packing packing) {
  return packing == Packing::kGptq || packing == Packing::kGptqV2;
}

// Reads the signed integers of words.
struct Words {
  Words(const TensorView& view, const WeightScheme& scheme)
      : words(view.as<uint32_t>()),
        columns(view.shape[1]),
        bits(scheme.bits),
        mask((1U << scheme.bits) - 1),
        offset(1 << (scheme.bits - 1)) {}

  uint32_t word(int64_t row, int64_t column) const { return words[row * columns + column]; }
  uint32_t stored(uint32_t word, int64_t place) const { return word >> (bits * place) & mask; }
  int8_t integer(uint32_t word, int64_t place) const {
    return static_cast<int8_t>(static_cast<int>(stored(word, place)) - offset);
  }

  const uint32_t* words;
  int64_t columns;
  int bits;
  uint32_t mask;
  int offset;
};

// Writes rows [first, first + count) of a matrix of integers.
class ValueReader {
 public:
  ValueReader(Packing packing, const TensorView& values, const WeightScheme& scheme,
              const Shape& shape)
      : packing_(packing), words_(values, scheme), per_word_(per_word(scheme)), shape_(shape) {}

  void read(int64_t first, int64_t count, int8_t* out) const {
    switch (packing_) {
      case Packing::kAwq:
        return read_awq(first, count, out);
      case Packing::kGptq:
      case Packing::kGptqV2:
        return read_gptq(first, count, out);
      case Packing::kCompressed:
        return read_compressed(first, count, out);
      case Packing::kNone:
        break;
    }
    QUIRE_CHECK(false, "[model] integers that are not packed are unpacked");
  }

 private:
  void read_awq(int64_t first, int64_t count, int8_t* out) const {
    for (int64_t column = 0; column < shape_[1]; ++column) {
      for (int64_t row = 0; row < count; row += per_word_) {
        const uint32_t word = words_.word(column, (first + row) / per_word_);
        for (int64_t i = 0; i < std::min(per_word_, count - row); ++i) {
          out[(row + i) * shape_[1] + column] =
              words_.integer(word, kAwqPlaces[static_cast<size_t>(i)]);
        }
      }
    }
  }
  void read_gptq(int64_t first, int64_t count, int8_t* out) const {
    for (int64_t column = 0; column < shape_[1]; column += per_word_) {
      for (int64_t row = 0; row < count; ++row) {
        read_word(words_.word(column / per_word_, first + row), column, out + row * shape_[1]);
      }
    }
  }
  void read_compressed(int64_t first, int64_t count, int8_t* out) const {
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t column = 0; column < shape_[1]; column += per_word_) {
        read_word(words_.word(first + row, column / per_word_), column, out + row * shape_[1]);
      }
    }
  }
  // A word with the integers of a row from `column` on.
  void read_word(uint32_t word, int64_t column, int8_t* row) const {
    const int64_t count = std::min(per_word_, shape_[1] - column);
    for (int64_t i = 0; i < count; ++i) row[column + i] = words_.integer(word, i);
  }

  Packing packing_;
  Words words_;
  int64_t per_word_;
  Shape shape_;
};

// Puts the columns of rows into an order.
void reorder(std::span<const int32_t> order, int64_t num_rows, int8_t* rows) {
  std::vector<int8_t> copy(order.size());
  for (int64_t row = 0; row < num_rows; ++row) {
    int8_t* const values = rows + row * std::ssize(order);
    std::copy_n(values, order.size(), copy.data());
    for (size_t i = 0; i < order.size(); ++i) values[i] = copy[static_cast<size_t>(order[i])];
  }
}

// The zero points [rows, groups].
Result<Tensor> read_zeros(Packing packing, const TensorView& packed, const WeightScheme& scheme,
                          const Shape& shape) {
  QUIRE_ASSIGN_OR_RETURN(Tensor zeros, Tensor::host(shape, DType::kI8));
  const Words words(packed, scheme);
  const int64_t in_word = per_word(scheme);
  auto* out = zeros.view.as<int8_t>();
  for (int64_t row = 0; row < shape[0]; ++row) {
    const int64_t place = row % in_word;
    for (int64_t group = 0; group < shape[1]; ++group, ++out) {
      if (packing == Packing::kCompressed) {
        *out = words.integer(words.word(row / in_word, group), place);
        continue;
      }
      const uint32_t word = words.word(group, row / in_word);
      const bool is_awq = packing == Packing::kAwq;
      const uint32_t stored =
          words.stored(word, is_awq ? kAwqPlaces[static_cast<size_t>(place)] : place);
      // kGptq stores a zero point minus one, which wraps around.
      const uint32_t zero = packing == Packing::kGptq ? (stored + 1) & words.mask : stored;
      *out = static_cast<int8_t>(static_cast<int>(zero) - words.offset);
    }
  }
  return zeros;
}

// Transposes scales [groups, rows] to [rows, groups].
Result<Tensor> transpose_scales(const TensorView& scales) {
  const int64_t num_groups = scales.shape[0];
  const int64_t num_rows = scales.shape[1];
  const size_t num_bytes = dtype_bytes(scales.dtype);
  QUIRE_ASSIGN_OR_RETURN(Tensor out, Tensor::host({num_rows, num_groups}, scales.dtype));
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t group = 0; group < num_groups; ++group) {
      std::memcpy(
          out.view.as<std::byte>() + static_cast<size_t>(row * num_groups + group) * num_bytes,
          scales.as<std::byte>() + static_cast<size_t>(group * num_rows + row) * num_bytes,
          num_bytes);
    }
  }
  return out;
}

Status not_whole(std::string_view what, int64_t got, std::string_view unit, int64_t expected) {
  return invalid_argument(
      fmt::format("got {} {}, expected a multiple of the {} {}", got, what, expected, unit));
}

}  // namespace

PackedNames packed_names(Packing packing) {
  switch (packing) {
    case Packing::kNone:
      break;
    case Packing::kAwq:
      return {.values = ".qweight", .scales = ".scales", .zeros = ".qzeros"};
    case Packing::kGptq:
    case Packing::kGptqV2:
      return {.values = ".qweight", .scales = ".scales", .zeros = ".qzeros", .groups = ".g_idx"};
    case Packing::kCompressed:
      return {.values = ".weight_packed",
              .scales = ".weight_scale",
              .zeros = ".weight_zero_point",
              .groups = ".weight_g_idx",
              .shape = ".weight_shape"};
  }
  return {.values = ".weight", .scales = ".weight_scale", .zeros = ".weight_zero_point"};
}

PackedRows packed_rows(Packing packing, const WeightScheme& scheme) {
  const int64_t in_word = per_word(scheme);
  switch (packing) {
    case Packing::kNone:
      break;
    case Packing::kAwq:
      return {.axis = 1, .per_value = in_word, .per_zero_point = in_word};
    case Packing::kGptq:
    case Packing::kGptqV2:
      return {.axis = 1, .per_value = 1, .per_zero_point = in_word};
    case Packing::kCompressed:
      return {.axis = 0, .per_value = 1, .per_zero_point = in_word};
  }
  return {};
}

Result<PackedShapes> packed_shapes(Packing packing, const WeightScheme& scheme,
                                   const Shape& matrix) {
  const Shape scales = scales_shape(scheme, matrix);
  const int64_t group_size = scale_block(scheme, matrix)[1];
  if (group_size < matrix[1] && matrix[1] % group_size != 0) {
    return not_whole("columns", matrix[1], "columns of a group", group_size);
  }
  const int64_t in_word = per_word(scheme);
  if (packing == Packing::kNone) return PackedShapes{matrix, scales, scales};
  if (packing == Packing::kCompressed) {
    return PackedShapes{{matrix[0], ceil_div(matrix[1], in_word)},
                        scales,
                        {ceil_div(scales[0], in_word), scales[1]}};
  }
  if (matrix[0] % in_word != 0) return not_whole("rows", matrix[0], "rows of a word", in_word);
  const Shape by_group = {scales[1], scales[0]};
  const Shape zeros = {scales[1], scales[0] / in_word};
  if (packing == Packing::kAwq) {
    return PackedShapes{{matrix[1], matrix[0] / in_word}, by_group, zeros};
  }
  if (matrix[1] % in_word != 0) {
    return not_whole("columns", matrix[1], "columns of a word", in_word);
  }
  return PackedShapes{{matrix[1] / in_word, matrix[0]}, by_group, zeros};
}

Result<std::vector<int32_t>> column_order(std::span<const int64_t> groups, int64_t group_size) {
  const int64_t num_groups = ceil_div(std::ssize(groups), group_size);
  std::vector<int64_t> counts(static_cast<size_t>(num_groups));
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] < 0 || groups[i] >= num_groups) {
      return invalid_argument(
          fmt::format("got group {} of column {}, expected 0 to {}", groups[i], i, num_groups - 1));
    }
    ++counts[static_cast<size_t>(groups[i])];
  }
  for (size_t group = 0; group < counts.size(); ++group) {
    const int64_t expected = std::min(group_size, std::ssize(groups));
    if (counts[group] == expected) continue;
    return invalid_argument(
        fmt::format("got {} columns of group {}, expected {}", counts[group], group, expected));
  }
  if (std::ranges::is_sorted(groups)) return std::vector<int32_t>();
  std::vector<int32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](int32_t column) { return groups[static_cast<size_t>(column)]; });
  return order;
}

Result<WeightView> unpack_integers(Packing packing, const StoredIntegers& packed,
                                   const WeightScheme& scheme, const Shape& shape,
                                   std::span<const int32_t> order, std::vector<Tensor>& copies,
                                   ThreadPool& threads) {
  QUIRE_ASSIGN_OR_RETURN(Tensor values, Tensor::host(shape, DType::kI8));
  const ValueReader reader(packing, packed.values, scheme, shape);
  threads.parallel_for(ceil_div(shape[0], kStripeRows), [&](int64_t stripe) {
    const int64_t first = stripe * kStripeRows;
    const int64_t count = std::min(kStripeRows, shape[0] - first);
    int8_t* const rows = values.view.as<int8_t>() + first * shape[1];
    reader.read(first, count, rows);
    if (!order.empty()) reorder(order, count, rows);
  });
  WeightView matrix(values.view, packed.scales, scheme);
  copies.push_back(std::move(values));
  if (packing == Packing::kAwq || is_gptq(packing)) {
    QUIRE_ASSIGN_OR_RETURN(Tensor scales, transpose_scales(packed.scales));
    matrix.scales = scales.view;
    copies.push_back(std::move(scales));
  }
  if (scheme.has_zeros) {
    QUIRE_ASSIGN_OR_RETURN(Tensor zeros,
                           read_zeros(packing, packed.zeros, scheme, scales_shape(scheme, shape)));
    matrix.zeros = zeros.view;
    copies.push_back(std::move(zeros));
  }
  if (!order.empty()) {
    QUIRE_ASSIGN_OR_RETURN(Tensor kept, Tensor::host({std::ssize(order)}, DType::kI32));
    std::ranges::copy(order, kept.view.as<int32_t>());
    matrix.order = kept.view;
    copies.push_back(std::move(kept));
  }
  return matrix;
}

}  // namespace quire
