#include "model/matrix_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/machine.h"
#include "model/quantization.h"
#include "ops/host_matrices.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

// A copy in plain_dtype().
Result<Tensor> plain_copy(const WeightView& matrix, ThreadPool& threads) {
  const Shape& shape = matrix.values.shape;
  QUIRE_ASSIGN_OR_RETURN(Tensor plain, Tensor::host(shape, plain_dtype(matrix.scheme)));
  threads.parallel_for(shape[0], [&](int64_t row) {
    write_plain_row(matrix, row, plain.view.rows(row, 1).as<std::byte>());
  });
  return plain;
}

// Compares schemes without the sizes of FP8 blocks: a border between ranks may have cut the blocks
// of one matrix; unify_blocks() makes them equal.
bool may_stack(WeightScheme a, const WeightScheme& b) {
  if (!is_integer(a)) {
    a.block_rows = b.block_rows;
    a.block_columns = b.block_columns;
  }
  return a == b;
}

bool is_quantized_at_load(const MatrixBinding& binding) {
  return binding.format && binding.format->at_load;
}

bool have_same_order(const WeightView& a, const WeightView& b) {
  if (a.order.data == nullptr || b.order.data == nullptr) return a.order.data == b.order.data;
  return std::memcmp(a.order.data, b.order.data, a.order.num_bytes()) == 0;
}

}  // namespace

Result<LinearSource> MatrixReader::read(const MatrixBinding& binding) {
  const bool in_blocks = keeps_blocks(binding);
  for (const MatrixPart& part : binding.parts) {
    if (in_blocks) {
      QUIRE_RETURN_IF_ERROR(add_blocks(part, binding));
    } else {
      QUIRE_RETURN_IF_ERROR(add_part(part, binding));
    }
    if (!binding.has_bias) continue;
    QUIRE_ASSIGN_OR_RETURN(const TensorView bias, bias_part(part, binding));
    biases_.push_back(bias);
  }
  QUIRE_RETURN_IF_ERROR(unify_blocks());
  LinearSource source = {.numbers = {}, .biases = biases_};
  if (in_blocks) {
    source.numbers = MatricesInBlocks{blocks_};
  } else if (is_quantized_at_load(binding)) {
    MatricesToQuantize matrices;
    if (repeated_.empty()) {
      matrices.from = StoredMatrices{weights_};
    } else {
      matrices.from = RepeatedMatrices{repeated_};
    }
    matrices.scheme = binding.format->scheme;
    matrices.columns =
        splits_columns(binding.split) ? columns_of(binding) : Slice{0, binding.num_columns};
    source.numbers = matrices;
  } else if (!repeated_.empty()) {
    source.numbers = RepeatedMatrices{repeated_};
  } else {
    source.numbers = StoredMatrices{weights_};
  }
  return source;
}

Result<Tensor> MatrixReader::read_plain(const MatrixBinding& binding) {
  QUIRE_CHECK(binding.parts.size() == 1, "[model] a stack is read as one matrix");
  QUIRE_ASSIGN_OR_RETURN(const WeightView matrix, matrix_part(binding.parts.front(), binding));
  return plain_copy(matrix, threads());
}

void MatrixReader::release() {
  tensors_.release_taken();
  weights_.clear();
  biases_.clear();
  repeated_.clear();
  blocks_.clear();
  copies_.clear();
}

Status MatrixReader::explain(const Status& status, const MatrixBinding& binding) {
  if (status.code() != StatusCode::kInvalidArgument || !is_quantized_at_load(binding)) {
    return status;
  }
  for (const MatrixPart& part : binding.parts) {
    const std::string name = part.name + ".weight";
    QUIRE_ASSIGN_OR_RETURN(const TensorView matrix,
                           tensors_.take_float(name, {part.num_rows, binding.num_columns}));
    const Status finite = check_finite(matrix);
    if (!finite.ok()) return tensors_.about_tensor(name, "cannot be quantized", finite);
  }
  return status;
}

bool MatrixReader::keeps_blocks(const MatrixBinding& binding) const {
  if (binding.expands) return false;
  const int num_parts = parallel_.size * binding.portion.count;
  return std::ranges::all_of(binding.parts, [&](const MatrixPart& part) {
    const GgufBlockType* const type = tensors_.source().block_type(part.name + ".weight");
    return type != nullptr &&
           store_.quantized_bytes({{part.num_rows, binding.num_columns}, type}) > 0 &&
           divides_blocks(binding.split, {part.num_rows, binding.num_columns}, type->block_elements,
                          num_parts);
  });
}

Slice MatrixReader::rows_of(const MatrixPart& part, const MatrixBinding& binding) const {
  const int64_t size = part.num_rows / binding.portion.count;
  Slice slice = shard_axis(size, binding.split, part.num_heads, binding.format, store_, parallel_);
  slice.first += binding.portion.idx * size;
  return slice;
}

Slice MatrixReader::columns_of(const MatrixBinding& binding) const {
  const int64_t size = binding.num_columns / binding.portion.count;
  Slice slice = shard_axis(size, binding.split, 0, binding.format, store_, parallel_);
  slice.first += binding.portion.idx * size;
  return slice;
}

bool MatrixReader::has_zero_columns(const MatrixBinding& binding) const {
  const int64_t size = binding.num_columns / binding.portion.count;
  return binding.split == Split::kInnerColumns &&
         shard_inner(size, binding.format, store_, parallel_).is_zero;
}

bool MatrixReader::is_whole(const MatrixBinding& binding) const {
  return binding.split == Split::kNone || (parallel_.size == 1 && binding.portion.count == 1);
}

Split MatrixReader::split_of_source(const MatrixBinding& binding) {
  const bool gets_whole_rows = splits_columns(binding.split) && is_quantized_at_load(binding);
  return gets_whole_rows ? Split::kNone : binding.split;
}

Status MatrixReader::add_blocks(const MatrixPart& part, const MatrixBinding& binding) {
  const Shape whole = {part.num_rows, binding.num_columns};
  const std::string name = part.name + ".weight";
  QUIRE_ASSIGN_OR_RETURN(BlockMatrix matrix, tensors_.take_blocks(name, whole));
  if (!is_whole(binding) && splits_rows(binding.split)) {
    matrix = slice_rows(matrix, rows_of(part, binding));
  } else if (!is_whole(binding)) {
    QUIRE_ASSIGN_OR_RETURN(matrix, slice_columns(matrix, columns_of(binding), copies_));
  }
  QUIRE_RETURN_IF_ERROR(check_exponents(name, matrix));
  blocks_.push_back(matrix);
  return {};
}

Status MatrixReader::check_exponents(const std::string& name, const BlockMatrix& matrix) {
  if (!matrix.type->is_mxfp4) return {};
  constexpr std::byte kNan{255};
  std::atomic<bool> has_nan = false;
  threads().parallel_for(matrix.shape[0], [&](int64_t row) {
    const std::byte* const blocks = matrix.row(row);
    for (int64_t i = 0; i < matrix.blocks_per_row(); ++i) {
      if (blocks[i * matrix.type->block_bytes] == kNan) has_nan = true;
    }
  });
  if (!has_nan) return {};
  return tensors_.about_tensor(
      name, "has a scale that is not a number",
      invalid_argument("got an exponent of 255, expected at most 254; download the checkpoint "
                       "again, or another one"));
}

Status MatrixReader::add_part(const MatrixPart& part, const MatrixBinding& binding) {
  QUIRE_CHECK(!binding.has_bias || binding.portion.count == 1,
              "[model] a part of a matrix has a bias");
  const std::string name = stored_values_name(part.name, binding.format, tensors_.source());
  const bool quantizes = is_quantized_at_load(binding);
  if ((!binding.format || quantizes) && !has_zero_columns(binding)) {
    QUIRE_ASSIGN_OR_RETURN(const auto numbers, tensors_.take_repeated(name));
    if (numbers.has_value()) {
      repeated_.push_back(repeated_part(*numbers, part, binding));
      return {};
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const WeightView weight, matrix_part(part, binding));
  if (!quantizes && !weights_.empty() && !may_stack(weight.scheme, weights_.front().scheme)) {
    return invalid_argument(
        fmt::format("[model] tensor {} is stored in another type than the matrices that it is "
                    "stacked with; got {}, expected {}: take a checkpoint with one type per layer",
                    quote_name(tensors_.source().name_in_file(name)), values_name(weight.scheme),
                    values_name(weights_.front().scheme)));
  }
  if (!weights_.empty() && !have_same_order(weight, weights_.front())) {
    return invalid_argument(fmt::format(
        "[model] {} and {} are stacked and have their columns in different orders; got another "
        "order of groups than in the first, expected the same; quantize the model without "
        "act-order (desc_act)",
        quote_name(binding.parts.front().name), quote_name(part.name)));
  }
  weights_.push_back(weight);
  return {};
}

RepeatedRows MatrixReader::repeated_part(const RepeatedTensor& numbers, const MatrixPart& part,
                                         const MatrixBinding& binding) const {
  const Split split = split_of_source(binding);
  const Shape whole = {part.num_rows, binding.num_columns};
  RepeatedRows rows = {numbers.pool, numbers.first, whole[1], whole};
  if (splits_rows(split)) {
    const Slice slice = rows_of(part, binding);
    rows.first += slice.first * whole[1];
    rows.shape = {slice.count, whole[1]};
  }
  if (splits_columns(split)) {
    const Slice slice = columns_of(binding);
    rows.first += slice.first;
    rows.shape = {whole[0], slice.count};
  }
  return rows;
}

Result<TensorView> MatrixReader::bias_part(const MatrixPart& part, const MatrixBinding& binding) {
  QUIRE_ASSIGN_OR_RETURN(TensorView view,
                         tensors_.take_float(part.name + ".bias", {part.num_rows}));
  if (parallel_.size == 1 || binding.split == Split::kNone) return view;
  if (splits_rows(binding.split)) {
    const Slice slice = rows_of(part, binding);
    return view.rows(slice.first, slice.count);
  }
  // The ranks' products are summed, so only rank 0 adds the bias.
  if (parallel_.rank != 0) view.data = nullptr;
  return view;
}

Status MatrixReader::unify_blocks() {
  int64_t rows = 0;
  int64_t columns = 0;
  for (const WeightView& weight : weights_) {
    rows = std::gcd(rows, weight.scheme.block_rows);
    columns = std::gcd(columns, weight.scheme.block_columns);
  }
  for (WeightView& weight : weights_) {
    if (weight.scheme.block_rows == rows && weight.scheme.block_columns == columns) continue;
    QUIRE_ASSIGN_OR_RETURN(weight, cut_blocks(weight, rows, columns, copies_));
  }
  return {};
}

Result<WeightView> MatrixReader::matrix_part(const MatrixPart& part, const MatrixBinding& binding) {
  const Shape whole = {part.num_rows, binding.num_columns};
  const std::string name = stored_values_name(part.name, binding.format, tensors_.source());
  QUIRE_ASSIGN_OR_RETURN(const WeightView matrix, take_matrix(name, whole, part, binding));
  const Split split = split_of_source(binding);
  if (is_whole(binding) || split == Split::kNone) return matrix;
  if (splits_rows(split)) return slice_rows(matrix, rows_of(part, binding), copies_);
  QUIRE_ASSIGN_OR_RETURN(
      const WeightView columns,
      slice_columns(matrix, columns_of(binding), tensors_.source().name_in_file(name), copies_));
  if (has_zero_columns(binding)) std::memset(columns.values.data, 0, columns.values.num_bytes());
  return columns;
}

Result<WeightView> MatrixReader::take_matrix(const std::string& name, const Shape& whole,
                                             const MatrixPart& part, const MatrixBinding& binding) {
  const DType stored = tensors_.source().dtype_of(name).value_or(DType::kF32);
  const WeightScheme scheme = scheme_of(binding.format, stored);
  const bool is_quantized = scheme.scales != ScaleLayout::kNone;
  // Packed integers are recognized by their name alone. take_integers() checks their type.
  const bool has_packed_name = name != part.name + ".weight";
  if (has_packed_name || (is_quantized && is_integer(scheme)))
    return take_integers(name, whole, part, binding);
  if (is_quantized && !is_quantized_at_load(binding)) {
    return take_quantized(name, whole, part, *binding.format);
  }
  const GgufBlockType* const type = tensors_.source().block_type(name);
  if (type != nullptr && type->is_mxfp4) {
    QUIRE_ASSIGN_OR_RETURN(const BlockMatrix blocks, tensors_.take_blocks(name, whole));
    QUIRE_RETURN_IF_ERROR(check_exponents(name, blocks));
  }
  QUIRE_ASSIGN_OR_RETURN(const TensorView values, tensors_.take_float(name, whole));
  return WeightView(values);
}

Result<WeightView> MatrixReader::take_quantized(const std::string& name, const Shape& whole,
                                                const MatrixPart& part,
                                                const WeightFormat& format) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView values, tensors_.take(name, whole));
  QUIRE_ASSIGN_OR_RETURN(
      const TensorView scales,
      tensors_.take_scales(part.name + format.scales_suffix, scales_shape(format.scheme, whole)));
  if (!format.input_scale_suffix.empty()) {
    // Checked but not used: a device that rounds activations to FP8 scales each token row by its
    // own largest magnitude.
    QUIRE_RETURN_IF_ERROR(
        tensors_.take_scales(part.name + format.input_scale_suffix, {1}).status());
  }
  return WeightView(values, scales, format.scheme);
}

Result<WeightView> MatrixReader::take_integers(const std::string& name, const Shape& whole,
                                               const MatrixPart& part,
                                               const MatrixBinding& binding) {
  const WeightFormat& format = *binding.format;
  const WeightScheme& scheme = format.scheme;
  const PackedNames names = packed_names(format.packing);
  const bool is_packed = format.packing != Packing::kNone;
  const Result<PackedShapes> shapes = packed_shapes(format.packing, scheme, whole);
  if (!shapes.ok()) return tensors_.about_tensor(name, "cannot be packed", shapes.status());
  StoredIntegers packed;
  const DType stored = is_packed ? DType::kI32 : DType::kI8;
  QUIRE_ASSIGN_OR_RETURN(packed.values, tensors_.take_typed(name, shapes->values, stored));
  QUIRE_ASSIGN_OR_RETURN(packed.scales, tensors_.take_scales(part.name + std::string(names.scales),
                                                             shapes->scales, scheme));
  if (scheme.has_zeros) {
    QUIRE_ASSIGN_OR_RETURN(packed.zeros, tensors_.take_typed(part.name + std::string(names.zeros),
                                                             shapes->zeros, stored));
  }
  if (!format.input_scale_suffix.empty()) {
    QUIRE_RETURN_IF_ERROR(
        tensors_.take_scales(part.name + format.input_scale_suffix, {1}).status());
  }
  QUIRE_RETURN_IF_ERROR(check_stored_shape(part, whole, format));
  QUIRE_RETURN_IF_ERROR(take_unused_bias(part, binding));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> order, take_order(part, whole, format));
  WeightView matrix(packed.values, packed.scales, scheme);
  matrix.zeros = packed.zeros;
  if (is_packed) {
    QUIRE_ASSIGN_OR_RETURN(
        matrix, unpack_integers(format.packing, packed, scheme, whole, order, copies_, threads()));
  }
  const bool is_kept =
      !binding.expands &&
      store_.quantized_bytes({whole, IntegerForm{scheme, packed.scales.dtype}}) > 0;
  if (is_kept) return matrix;
  QUIRE_ASSIGN_OR_RETURN(Tensor plain, plain_copy(matrix, threads()));
  copies_.push_back(std::move(plain));
  return WeightView(copies_.back().view);
}

Status MatrixReader::check_stored_shape(const MatrixPart& part, const Shape& whole,
                                        const WeightFormat& format) {
  const std::string name = part.name + std::string(packed_names(format.packing).shape);
  if (name == part.name || !tensors_.source().has(name)) return {};
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> stored, tensors_.take_numbers(name, 2));
  const Shape shape = {stored[0], stored[1]};
  if (shape == whole) return {};
  return tensors_.about_tensor(
      name, "has another shape than config.json says",
      invalid_argument(fmt::format("got {}, expected {}", shape_text(shape), shape_text(whole))));
}

// Old versions of AutoGPTQ store biases of zeros for all matrices.
Status MatrixReader::take_unused_bias(const MatrixPart& part, const MatrixBinding& binding) {
  const std::string name = part.name + ".bias";
  if (binding.has_bias || binding.format->packing != Packing::kGptq || !tensors_.stores(name)) {
    return {};
  }
  QUIRE_ASSIGN_OR_RETURN(const TensorView bias, tensors_.take_float(name, {part.num_rows}));
  for (int64_t i = 0; i < part.num_rows; ++i) {
    const float number = element_as_f32(bias, i);
    if (number == 0.0F) continue;
    return tensors_.about_tensor(
        name, "is a bias that the architecture does not have",
        invalid_argument(fmt::format("got {} as number {}, expected zeros or no "
                                     "such tensor",
                                     number, i)));
  }
  return {};
}

Result<std::vector<int32_t>> MatrixReader::take_order(const MatrixPart& part, const Shape& whole,
                                                      const WeightFormat& format) {
  const std::string name = part.name + std::string(packed_names(format.packing).groups);
  // Random weights have no groups of columns, so their columns are in order.
  const bool needs_groups = format.has_column_groups && !tensors_.is_random();
  if (name == part.name || (!needs_groups && !tensors_.source().has(name)))
    return std::vector<int32_t>();
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> groups, tensors_.take_numbers(name, whole[1]));
  const int64_t group_size = scale_block(format.scheme, whole)[1];
  Result<std::vector<int32_t>> order = column_order(groups, group_size);
  if (!order.ok())
    return tensors_.about_tensor(name, "does not divide the columns", order.status());
  return order;
}

ThreadPool& MatrixReader::threads() {
  if (!threads_) threads_.emplace(num_usable_cpus());
  return *threads_;
}

}  // namespace quire
