#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

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

// Compares schemes without the sizes of FP8 blocks: a border between ranks may have cut those of
// one matrix; unify_blocks() makes them equal.
bool may_stack(WeightScheme a, const WeightScheme& b) {
  if (!is_integer(a)) {
    a.block_rows = b.block_rows;
    a.block_columns = b.block_columns;
  }
  return a == b;
}

bool have_same_order(const WeightView& a, const WeightView& b) {
  if (a.order.data == nullptr || b.order.data == nullptr) return a.order.data == b.order.data;
  return std::memcmp(a.order.data, b.order.data, a.order.num_bytes()) == 0;
}

template <typename T>
void transpose_into(const TensorView& matrix, T* out) {
  const int64_t num_rows = matrix.shape[0];
  const int64_t num_columns = matrix.shape[1];
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t column = 0; column < num_columns; ++column) {
      out[column * num_rows + row] = matrix.as<T>()[row * num_columns + column];
    }
  }
}

// The transpose of an F32, F16 or BF16 matrix.
Result<Tensor> transpose(const TensorView& matrix) {
  QUIRE_ASSIGN_OR_RETURN(Tensor out,
                         Tensor::host({matrix.shape[1], matrix.shape[0]}, matrix.dtype));
  if (matrix.dtype == DType::kF32) {
    transpose_into(matrix, out.view.as<float>());
  } else {
    transpose_into(matrix, out.view.as<uint16_t>());
  }
  return out;
}

std::set<std::string> names_of(const WeightSource& source) {
  const std::vector<std::string> names = source.names();
  return {names.begin(), names.end()};
}

class Loader {
 public:
  // Reads the matrices of experts, one at a time.
  class BoundExperts;

  Loader(WeightSource& source, Ops& ops, const Parallel& parallel)
      : source_(source), ops_(ops), parallel_(parallel), names_(names_of(source)) {}

  Status load(const WeightList& list, const LoadProgress& progress);
  // Called after load: every tensor of the source must have been used or be ignored.
  Status check_nothing_left(const WeightList& list, std::string_view architecture) const;

 private:
  Status load_group(const WeightGroup& group);
  Status load_matrix(const MatrixBinding& binding);
  Status load_experts(const ExpertsBinding& binding);
  bool merges_shared_experts(const ExpertsBinding& binding) const;
  Status load_latent(const LatentBinding& binding);
  Status load_kv_scales(const KvScalesBinding& binding);
  // Loads the scale from the tensors of these names that the checkpoint has; all have one value.
  Status load_kv_scale(const std::string& attention, std::span<const std::string_view> names,
                       Tensor& scale);
  // The numbers of a matrix, valid until release_taken().
  Result<LinearSource> take_source(const MatrixBinding& binding);
  Status load_vector(const VectorBinding& binding);
  // Whether the device may take the matrix as blocks or integers.
  bool may_pack(const MatrixBinding& binding) const;
  bool keeps_blocks(const MatrixBinding& binding) const;
  // Whether make_linear quantizes the matrix.
  bool quantizes_on_device(const MatrixBinding& binding) const;
  // How the numbers of the source are divided. A device that quantizes gets whole rows, whose
  // columns it divides.
  Split split_of_source(const MatrixBinding& binding) const;
  // The error of make_linear or make_experts. If the matrix could not be quantized, names the
  // tensor.
  Status explain(const Status& status, const MatrixBinding& binding);
  // A border between ranks may cut the blocks of one matrix of a stack and not those of another.
  // Gives all of them blocks of one size.
  Status unify_blocks();
  Status take_blocks(const MatrixPart& part, const MatrixBinding& binding);
  Status take_part(const MatrixPart& part, const MatrixBinding& binding);
  // The part of a matrix's rows or columns that this rank has of the binding.
  Slice rows_of(const MatrixPart& part, const MatrixBinding& binding) const;
  Slice columns_of(const MatrixBinding& binding) const;
  bool is_whole(const MatrixBinding& binding) const;
  RepeatedRows repeated_part(const RepeatedTensor& numbers, const MatrixPart& part,
                             const MatrixBinding& binding) const;
  Result<WeightView> matrix_part(const MatrixPart& part, const MatrixBinding& binding);
  Result<WeightView> take_matrix(const std::string& name, const Shape& whole,
                                 const MatrixPart& part, const MatrixBinding& binding);
  Result<WeightView> take_quantized(const std::string& name, const Shape& whole,
                                    const MatrixPart& part, const WeightFormat& format);
  // Integers, or their products if the device does not compute with integers.
  Result<WeightView> take_integers(const std::string& name, const Shape& whole,
                                   const MatrixPart& part, const MatrixBinding& binding);
  // The order of the columns; empty: they are in order.
  Result<std::vector<int32_t>> take_order(const MatrixPart& part, const Shape& whole,
                                          const WeightFormat& format);
  Status check_stored_shape(const MatrixPart& part, const Shape& whole, const WeightFormat& format);
  Status take_unused_bias(const MatrixPart& part, const MatrixBinding& binding);
  Result<TensorView> take_scales(const std::string& name, const Shape& shape,
                                 const WeightScheme& scheme = {});
  ThreadPool& threads();
  Status about_tensor(const std::string& name, std::string_view fault, const Status& status) const;
  Result<TensorView> bias_part(const MatrixPart& part, const MatrixBinding& binding);
  Result<TensorView> take(const std::string& name, const Shape& shape);
  Result<TensorView> take_float(const std::string& name, const Shape& shape);
  // Integers of this type.
  Result<TensorView> take_typed(const std::string& name, const Shape& shape, DType dtype);
  void release_taken();

  WeightSource& source_;
  Ops& ops_;
  Parallel parallel_;
  const std::set<std::string> names_;  // of the source; empty if its weights are random
  std::unordered_set<std::string> used_;
  std::set<int> mixed_experts_;  // ExpandedMatrices::experts
  int num_experts_ = 0;          // ExpertsBindings that were loaded or are being loaded
  bool are_mixed_ = false;       // the last of them
  // The parts of the Linear or vector being assembled.
  std::vector<std::string> taken_;
  std::vector<WeightView> weights_;
  std::vector<TensorView> biases_;
  std::vector<RepeatedRows> repeated_;  // used instead of weights_
  std::vector<BlockMatrix> blocks_;     // used instead of weights_
  std::vector<Tensor> copies_;          // slices and quantized matrices, until the Linear is made
  std::optional<ThreadPool> threads_;   // that convert matrices; made when they are needed
};

Status Loader::load(const WeightList& list, const LoadProgress& progress) {
  const auto num_layers =
      static_cast<int>(std::ranges::count_if(list.groups, &WeightGroup::is_layer));
  const std::vector<TensorSpec> tensors = list_tensors(list);
  const ExpandedMatrices expanded = find_expanded(tensors, source_, ops_, parallel_);
  mixed_experts_ = expanded.experts;
  if (!mixed_experts_.empty()) {
    log_warning(
        "[model] the experts of {} layers are expanded to 16 bits, which takes more memory; got "
        "matrices in different formats, or in one that the device does not keep; expected one "
        "format per layer; quantize the experts of a layer alike",
        mixed_experts_.size());
  }
  if (!expanded.stacks.empty()) {
    const auto first = std::ranges::find(tensors, *expanded.stacks.begin(), &TensorSpec::stack);
    log_warning(
        "[model] {} stacks of matrices are expanded to 16 bits, which takes more memory, the first "
        "with {}; got quantized blocks beside a format that the device does not keep in blocks; "
        "expected blocks in all matrices of a stack; quantize queries, keys and values alike, and "
        "gate and up",
        expanded.stacks.size(), quote_name(first->name));
  }
  int num_loaded = 0;
  for (const WeightGroup& group : list.groups) {
    QUIRE_RETURN_IF_ERROR(load_group(group));
    if (group.is_layer && progress) progress(++num_loaded, num_layers);
  }
  return {};
}

Status Loader::load_group(const WeightGroup& group) {
  for (const MatrixBinding& binding : group.matrices) QUIRE_RETURN_IF_ERROR(load_matrix(binding));
  for (const ExpertsBinding& binding : group.experts) QUIRE_RETURN_IF_ERROR(load_experts(binding));
  for (const LatentBinding& binding : group.latents) QUIRE_RETURN_IF_ERROR(load_latent(binding));
  for (const VectorBinding& binding : group.vectors) QUIRE_RETURN_IF_ERROR(load_vector(binding));
  for (const KvScalesBinding& binding : group.kv_scales) {
    QUIRE_RETURN_IF_ERROR(load_kv_scales(binding));
  }
  return {};
}

Status Loader::load_matrix(const MatrixBinding& binding) {
  QUIRE_ASSIGN_OR_RETURN(const LinearSource source, take_source(binding));
  Result<std::unique_ptr<Linear>> linear = ops_.make_linear(source);
  if (!linear.ok()) return explain(linear.status(), binding);
  *binding.linear = std::move(linear).value();
  if (binding.split == Split::kVocabulary && parallel_.size > 1) {
    (*binding.linear)->set_first_token_id(rows_of(binding.parts.front(), binding).first);
  }
  release_taken();
  return {};
}

class Loader::BoundExperts final : public ExpertsSource {
 public:
  BoundExperts(Loader& loader, const ExpertsBinding& binding)
      : loader_(loader), each_(binding.each), shape_(binding.shape) {
    shape_.intermediate_size = shard(binding.shape.intermediate_size, loader.parallel_).count;
    if (!loader.merges_shared_experts(binding)) return;
    for (int i = 0; i < binding.num_shared; ++i) {
      MlpBinding& expert = each_.emplace_back(binding.shared);
      expert.gate_up.portion = expert.down.portion = {i, binding.num_shared};
      expert.gate_up.linear = expert.down.linear = nullptr;
    }
    shape_ = with_shared_experts(shape_, binding.num_shared);
  }

  const ExpertsShape& shape() const override { return shape_; }
  Result<LinearSource> gate_up(int idx) override { return take(expert(idx).gate_up); }
  Result<LinearSource> down(int idx) override { return take(expert(idx).down); }
  const MatrixBinding* last_taken() const { return last_taken_; }  // null: none

 private:
  const MlpBinding& expert(int idx) const { return each_[static_cast<size_t>(idx)]; }
  Result<LinearSource> take(const MatrixBinding& matrix) {
    loader_.release_taken();
    last_taken_ = &matrix;
    return loader_.take_source(matrix);
  }

  Loader& loader_;
  std::vector<MlpBinding> each_;
  ExpertsShape shape_;
  const MatrixBinding* last_taken_ = nullptr;
};

bool Loader::merges_shared_experts(const ExpertsBinding& binding) const {
  if (binding.num_shared == 0 || are_mixed_) return false;
  const auto are_alike = [this](const MatrixBinding& a, const MatrixBinding& b) {
    return std::ranges::equal(
        a.parts, b.parts, {},
        [&](const MatrixPart& part) { return stored_type(part.name, a.format, source_); },
        [&](const MatrixPart& part) { return stored_type(part.name, b.format, source_); });
  };
  const MlpBinding& first = binding.each.front();
  // A part of a quantized matrix cannot always be kept as the other experts are.
  const auto is_kept = [this](const MatrixBinding& matrix) {
    const bool has_integers = matrix.format && is_integer(matrix.format->scheme);
    return keeps_blocks(matrix) || (has_integers && ops_.packs_experts());
  };
  if (binding.num_shared > 1 && (is_kept(first.gate_up) || is_kept(first.down))) return false;
  return are_alike(binding.shared.gate_up, first.gate_up) &&
         are_alike(binding.shared.down, first.down) &&
         ops_.merges_shared_experts(with_shared_experts(binding.shape, binding.num_shared));
}

Status Loader::load_experts(const ExpertsBinding& binding) {
  are_mixed_ = mixed_experts_.contains(num_experts_++);
  if (binding.num_shared > 0 && !merges_shared_experts(binding)) {
    QUIRE_RETURN_IF_ERROR(load_matrix(binding.shared.gate_up));
    QUIRE_RETURN_IF_ERROR(load_matrix(binding.shared.down));
  }
  BoundExperts source(*this, binding);
  Result<std::unique_ptr<Experts>> experts = ops_.make_experts(source);
  if (!experts.ok()) {
    const MatrixBinding* const matrix = source.last_taken();
    return matrix == nullptr ? experts.status() : explain(experts.status(), *matrix);
  }
  *binding.experts = std::move(experts).value();
  release_taken();
  return {};
}

Status Loader::load_latent(const LatentBinding& binding) {
  const MatrixBinding& matrix = binding.matrix;
  QUIRE_ASSIGN_OR_RETURN(const WeightView weights, matrix_part(matrix.parts.front(), matrix));
  QUIRE_ASSIGN_OR_RETURN(const Tensor plain, plain_copy(weights, threads()));
  const int64_t head_rows = binding.key_rows + binding.value_rows;
  QUIRE_CHECK(plain.view.shape[0] % head_rows == 0, "[model] a rank's rows are not whole heads");
  std::vector<Tensor> key_copies;
  std::vector<TensorView> keys;
  std::vector<TensorView> values;
  for (int64_t row = 0; row < plain.view.shape[0]; row += head_rows) {
    QUIRE_ASSIGN_OR_RETURN(Tensor key, transpose(plain.view.rows(row, binding.key_rows)));
    keys.push_back(key.view);
    key_copies.push_back(std::move(key));
    values.push_back(plain.view.rows(row + binding.key_rows, binding.value_rows));
  }
  QUIRE_ASSIGN_OR_RETURN(*binding.k_up, ops_.make_per_head_linear(keys));
  QUIRE_ASSIGN_OR_RETURN(*binding.v_up, ops_.make_per_head_linear(values));
  release_taken();
  return {};
}

Result<LinearSource> Loader::take_source(const MatrixBinding& binding) {
  const bool in_blocks = keeps_blocks(binding);
  for (const MatrixPart& part : binding.parts) {
    if (in_blocks) {
      QUIRE_RETURN_IF_ERROR(take_blocks(part, binding));
    } else {
      QUIRE_RETURN_IF_ERROR(take_part(part, binding));
    }
    if (!binding.has_bias) continue;
    QUIRE_ASSIGN_OR_RETURN(const TensorView bias, bias_part(part, binding));
    biases_.push_back(bias);
  }
  QUIRE_RETURN_IF_ERROR(unify_blocks());
  LinearSource source = {weights_, biases_, repeated_, blocks_};
  if (quantizes_on_device(binding)) {
    source.quantized_columns =
        binding.split == Split::kColumns ? columns_of(binding) : Slice{0, binding.num_columns};
  }
  return source;
}

Status Loader::unify_blocks() {
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

bool Loader::quantizes_on_device(const MatrixBinding& binding) const {
  return binding.format && binding.format->at_load && ops_.quantizes_rows();
}

Split Loader::split_of_source(const MatrixBinding& binding) const {
  const bool gets_whole_rows = binding.split == Split::kColumns && quantizes_on_device(binding);
  return gets_whole_rows ? Split::kNone : binding.split;
}

Status Loader::explain(const Status& status, const MatrixBinding& binding) {
  if (status.code() != StatusCode::kInvalidArgument || !quantizes_on_device(binding)) return status;
  for (const MatrixPart& part : binding.parts) {
    const std::string name = part.name + ".weight";
    QUIRE_ASSIGN_OR_RETURN(const TensorView matrix,
                           take_float(name, {part.num_rows, binding.num_columns}));
    const Status finite = check_finite(matrix);
    if (!finite.ok()) return about_tensor(name, "cannot be quantized", finite);
  }
  return status;
}

Status Loader::load_vector(const VectorBinding& binding) {
  QUIRE_ASSIGN_OR_RETURN(TensorView view, take_float(binding.name, {binding.size}));
  std::vector<float> sums;
  if (binding.addend != 0.0F) {
    for (int64_t i = 0; i < binding.size; ++i) {
      sums.push_back(binding.addend + element_as_f32(view, i));
    }
    view = {sums.data(), DType::kF32, {binding.size}};
  }
  QUIRE_ASSIGN_OR_RETURN(*binding.vector, ops_.make_vector(view));
  release_taken();
  return {};
}

bool Loader::may_pack(const MatrixBinding& binding) const {
  return binding.linear != nullptr || (ops_.packs_experts() && !are_mixed_);
}

// Blocks of quantized numbers are kept as they are if the device computes with those of every part
// and no border between ranks cuts one. Otherwise the source expands them.
bool Loader::keeps_blocks(const MatrixBinding& binding) const {
  if (!may_pack(binding)) return false;
  const int num_parts = parallel_.size * binding.portion.count;
  return std::ranges::all_of(binding.parts, [&](const MatrixPart& part) {
    const GgufBlockType* const type = source_.block_type(part.name + ".weight");
    return type != nullptr && ops_.block_bytes(*type) > 0 &&
           divides_blocks(binding.split, {part.num_rows, binding.num_columns}, type->block_elements,
                          num_parts);
  });
}

Status Loader::take_blocks(const MatrixPart& part, const MatrixBinding& binding) {
  const std::string name = part.name + ".weight";
  used_.insert(name);
  taken_.push_back(name);
  QUIRE_ASSIGN_OR_RETURN(BlockMatrix matrix,
                         source_.blocks(name, {part.num_rows, binding.num_columns}));
  if (!is_whole(binding) && splits_rows(binding.split)) {
    matrix = slice_rows(matrix, rows_of(part, binding));
  } else if (!is_whole(binding)) {
    QUIRE_ASSIGN_OR_RETURN(matrix, slice_columns(matrix, columns_of(binding), copies_));
  }
  blocks_.push_back(matrix);
  return {};
}

Status Loader::take_part(const MatrixPart& part, const MatrixBinding& binding) {
  QUIRE_CHECK(!binding.has_bias || binding.portion.count == 1,
              "[model] a part of a matrix has a bias");
  const std::string name = stored_values_name(part.name, binding.format, source_);
  const bool quantizes = quantizes_on_device(binding);
  if (ops_.fills_repeated() && (!binding.format || quantizes)) {
    QUIRE_ASSIGN_OR_RETURN(const auto numbers, source_.repeated(name));
    if (numbers.has_value()) {
      used_.insert(name);
      repeated_.push_back(repeated_part(*numbers, part, binding));
      return {};
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const WeightView weight, matrix_part(part, binding));
  if (!quantizes && !weights_.empty() && !may_stack(weight.scheme, weights_.front().scheme)) {
    return invalid_argument(fmt::format(
        "[model] tensor {} is stored in another type than the matrices that it is "
        "stacked with; got {}, expected {}: take a checkpoint with one type per layer",
        quote_name(name), values_name(weight.scheme), values_name(weights_.front().scheme)));
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

Slice Loader::rows_of(const MatrixPart& part, const MatrixBinding& binding) const {
  const int64_t size = part.num_rows / binding.portion.count;
  Slice slice =
      part.num_heads > 0 ? shard_heads(size, part.num_heads, parallel_) : shard(size, parallel_);
  slice.first += binding.portion.idx * size;
  return slice;
}

Slice Loader::columns_of(const MatrixBinding& binding) const {
  const int64_t size = binding.num_columns / binding.portion.count;
  Slice slice = shard(size, parallel_);
  slice.first += binding.portion.idx * size;
  return slice;
}

bool Loader::is_whole(const MatrixBinding& binding) const {
  return binding.split == Split::kNone || (parallel_.size == 1 && binding.portion.count == 1);
}

RepeatedRows Loader::repeated_part(const RepeatedTensor& numbers, const MatrixPart& part,
                                   const MatrixBinding& binding) const {
  const Split split = split_of_source(binding);
  const Shape whole = {part.num_rows, binding.num_columns};
  RepeatedRows rows = {numbers.pool, numbers.first, whole[1], whole};
  if (splits_rows(split)) {
    const Slice slice = rows_of(part, binding);
    rows.first += slice.first * whole[1];
    rows.shape = {slice.count, whole[1]};
  }
  if (split == Split::kColumns) {
    const Slice slice = columns_of(binding);
    rows.first += slice.first;
    rows.shape = {whole[0], slice.count};
  }
  return rows;
}

Result<WeightView> Loader::matrix_part(const MatrixPart& part, const MatrixBinding& binding) {
  const Shape whole = {part.num_rows, binding.num_columns};
  const std::string name = stored_values_name(part.name, binding.format, source_);
  QUIRE_ASSIGN_OR_RETURN(const WeightView matrix, take_matrix(name, whole, part, binding));
  const Split split = split_of_source(binding);
  if (is_whole(binding) || split == Split::kNone) return matrix;
  if (split == Split::kColumns) return slice_columns(matrix, columns_of(binding), name, copies_);
  return slice_rows(matrix, rows_of(part, binding), copies_);
}

Result<WeightView> Loader::take_matrix(const std::string& name, const Shape& whole,
                                       const MatrixPart& part, const MatrixBinding& binding) {
  const DType stored = source_.dtype_of(name).value_or(DType::kF32);
  const WeightScheme scheme = scheme_of(binding.format, stored);
  const bool is_quantized = scheme.scales != ScaleLayout::kNone;
  // The name of packed integers alone says that they are integers; their type is checked.
  const bool has_packed_name = name != part.name + ".weight";
  if (has_packed_name || (is_quantized && is_integer(scheme)))
    return take_integers(name, whole, part, binding);
  if (is_quantized && !quantizes_on_device(binding)) {
    return take_quantized(name, whole, part, *binding.format);
  }
  QUIRE_ASSIGN_OR_RETURN(const TensorView values, take_float(name, whole));
  return WeightView(values);
}

Result<WeightView> Loader::take_quantized(const std::string& name, const Shape& whole,
                                          const MatrixPart& part, const WeightFormat& format) {
  if (format.at_load) {
    QUIRE_ASSIGN_OR_RETURN(const TensorView values, take_float(name, whole));
    Result<WeightView> quantized = quantize_rows(values, format.scheme, copies_, threads());
    if (!quantized.ok()) return about_tensor(name, "cannot be quantized", quantized.status());
    return quantized;
  }
  QUIRE_ASSIGN_OR_RETURN(const TensorView values, take(name, whole));
  QUIRE_ASSIGN_OR_RETURN(const TensorView scales, take_scales(part.name + format.scales_suffix,
                                                              scales_shape(format.scheme, whole)));
  if (!format.input_scale_suffix.empty()) {
    // Checked but not used: a device that rounds activations to FP8 scales each token row by its
    // own largest magnitude.
    QUIRE_RETURN_IF_ERROR(take_scales(part.name + format.input_scale_suffix, {1}).status());
  }
  return WeightView(values, scales, format.scheme);
}

Result<WeightView> Loader::take_integers(const std::string& name, const Shape& whole,
                                         const MatrixPart& part, const MatrixBinding& binding) {
  const WeightFormat& format = *binding.format;
  const WeightScheme& scheme = format.scheme;
  const PackedNames names = packed_names(format.packing);
  const bool is_packed = format.packing != Packing::kNone;
  const Result<PackedShapes> shapes = packed_shapes(format.packing, scheme, whole);
  if (!shapes.ok()) return about_tensor(name, "cannot be packed", shapes.status());
  StoredIntegers packed;
  const DType stored = is_packed ? DType::kI32 : DType::kI8;
  QUIRE_ASSIGN_OR_RETURN(packed.values, take_typed(name, shapes->values, stored));
  QUIRE_ASSIGN_OR_RETURN(
      packed.scales, take_scales(part.name + std::string(names.scales), shapes->scales, scheme));
  if (scheme.has_zeros) {
    QUIRE_ASSIGN_OR_RETURN(packed.zeros,
                           take_typed(part.name + std::string(names.zeros), shapes->zeros, stored));
  }
  if (!format.input_scale_suffix.empty()) {
    QUIRE_RETURN_IF_ERROR(take_scales(part.name + format.input_scale_suffix, {1}).status());
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
      may_pack(binding) && ops_.integer_bytes(scheme, packed.scales.dtype, whole) > 0;
  if (is_kept) return matrix;
  QUIRE_ASSIGN_OR_RETURN(Tensor plain, plain_copy(matrix, threads()));
  copies_.push_back(std::move(plain));
  return WeightView(copies_.back().view);
}

Result<TensorView> Loader::take_typed(const std::string& name, const Shape& shape, DType dtype) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, take(name, shape));
  if (view.dtype == dtype) return view;
  return about_tensor(name, "has an unsupported type",
                      unimplemented(fmt::format("got {}, expected {}; convert the checkpoint",
                                                dtype_name(view.dtype), dtype_name(dtype))));
}

Result<std::vector<int32_t>> Loader::take_order(const MatrixPart& part, const Shape& whole,
                                                const WeightFormat& format) {
  const std::string name = part.name + std::string(packed_names(format.packing).groups);
  // Random weights have no groups of columns, so their columns are in order.
  const bool needs_groups = format.has_column_groups && !names_.empty();
  if (name == part.name || (!needs_groups && !source_.has(name))) return std::vector<int32_t>();
  used_.insert(name);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> groups, source_.integers(name, whole[1]));
  const int64_t group_size = scale_block(format.scheme, whole)[1];
  Result<std::vector<int32_t>> order = column_order(groups, group_size);
  if (!order.ok()) return about_tensor(name, "does not divide the columns", order.status());
  return order;
}

Status Loader::check_stored_shape(const MatrixPart& part, const Shape& whole,
                                  const WeightFormat& format) {
  const std::string name = part.name + std::string(packed_names(format.packing).shape);
  if (name == part.name || !source_.has(name)) return {};
  used_.insert(name);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> stored, source_.integers(name, 2));
  const Shape shape = {stored[0], stored[1]};
  if (shape == whole) return {};
  return about_tensor(
      name, "has another shape than config.json says",
      invalid_argument(fmt::format("got {}, expected {}", shape_text(shape), shape_text(whole))));
}

// Old versions of AutoGPTQ store biases of zeros for all matrices.
Status Loader::take_unused_bias(const MatrixPart& part, const MatrixBinding& binding) {
  const std::string name = part.name + ".bias";
  if (binding.has_bias || binding.format->packing != Packing::kGptq || !names_.contains(name)) {
    return {};
  }
  QUIRE_ASSIGN_OR_RETURN(const TensorView bias, take_float(name, {part.num_rows}));
  for (int64_t i = 0; i < part.num_rows; ++i) {
    const float number = element_as_f32(bias, i);
    if (number == 0.0F) continue;
    return about_tensor(name, "is a bias that the architecture does not have",
                        invalid_argument(fmt::format("got {} as number {}, expected zeros or no "
                                                     "such tensor",
                                                     number, i)));
  }
  return {};
}

Result<TensorView> Loader::take_scales(const std::string& name, const Shape& shape,
                                       const WeightScheme& scheme) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView scales, take_float(name, shape));
  const Status status = check_scales(scales, scheme);
  if (!status.ok()) return about_tensor(name, "has a wrong scale", status);
  return scales;
}

ThreadPool& Loader::threads() {
  if (!threads_) threads_.emplace(num_usable_cores());
  return *threads_;
}

// The error of a tensor's numbers, with its file.
Status Loader::about_tensor(const std::string& name, std::string_view fault,
                            const Status& status) const {
  const std::string file = source_.file_of(name);
  return Status(status.code(),
                fmt::format("[model] {}{}tensor {} {}; {}", file, file.empty() ? "" : ": ",
                            quote_name(name), fault, status.message()));
}

Status Loader::load_kv_scales(const KvScalesBinding& binding) {
  KvScales& scales = *binding.scales;
  QUIRE_RETURN_IF_ERROR(load_kv_scale(binding.attention, key_scale_names(), scales.k));
  QUIRE_RETURN_IF_ERROR(load_kv_scale(binding.attention, value_scale_names(), scales.v));
  const bool has_keys = scales.k.view.data != nullptr;
  const bool has_values = scales.v.view.data != nullptr;
  if (has_keys == has_values) return {};
  return invalid_argument(fmt::format(
      "[model] {} has a scale of {} for an FP8 KV cache and none of {}; expected both or neither; "
      "download the checkpoint again, or remove the scale",
      quote_name(binding.attention.substr(0, binding.attention.size() - 1)),
      has_keys ? "keys" : "values", has_keys ? "values" : "keys"));
}

Status Loader::load_kv_scale(const std::string& attention, std::span<const std::string_view> names,
                             Tensor& scale) {
  std::optional<float> first;
  for (const std::string_view name : names) {
    const std::string full = attention + std::string(name);
    if (!names_.contains(full)) continue;
    QUIRE_ASSIGN_OR_RETURN(const TensorView view, take_scales(full, {1}));
    const float value = element_as_f32(view, 0);
    if (first && *first != value) {
      return about_tensor(full, "contradicts another scale of the same cache",
                          invalid_argument(fmt::format(
                              "got {}, expected {}; download the checkpoint again, or remove one "
                              "of the scales",
                              value, *first)));
    }
    if (!first) {
      QUIRE_ASSIGN_OR_RETURN(scale, ops_.make_vector(view));
    }
    first = value;
    release_taken();
  }
  return {};
}

Result<TensorView> Loader::bias_part(const MatrixPart& part, const MatrixBinding& binding) {
  QUIRE_ASSIGN_OR_RETURN(TensorView view, take_float(part.name + ".bias", {part.num_rows}));
  if (parallel_.size == 1 || binding.split == Split::kNone) return view;
  if (splits_rows(binding.split)) {
    const Slice slice = rows_of(part, binding);
    return view.rows(slice.first, slice.count);
  }
  // The ranks' products are summed, so only rank 0 adds the bias.
  if (parallel_.rank != 0) view.data = nullptr;
  return view;
}

Result<TensorView> Loader::take(const std::string& name, const Shape& shape) {
  used_.insert(name);
  taken_.push_back(name);
  return source_.tensor(name, shape);
}

Result<TensorView> Loader::take_float(const std::string& name, const Shape& shape) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, take(name, shape));
  if (is_weight_dtype(view.dtype)) return view;
  return unimplemented(
      fmt::format("[model] tensor {} has an unsupported type; got {}, expected f32, f16 or bf16 "
                  "(fp8_e4m3 only in the matrices of layers, if quantization_config in config.json "
                  "describes it); convert the checkpoint",
                  quote_name(name), dtype_name(view.dtype)));
}

void Loader::release_taken() {
  for (const std::string& name : taken_) source_.release(name);
  taken_.clear();
  weights_.clear();
  biases_.clear();
  repeated_.clear();
  blocks_.clear();
  copies_.clear();
}

Status Loader::check_nothing_left(const WeightList& list, std::string_view architecture) const {
  constexpr size_t kMaxNamed = 3;
  std::string named;
  size_t num_left = 0;
  for (const std::string& name : names_) {
    const bool is_ignored =
        used_.contains(name) || name.ends_with("rotary_emb.inv_freq") ||
        std::ranges::any_of(list.ignored_prefixes, [&name](const std::string& prefix) {
          return name.starts_with(prefix);
        });
    if (is_ignored) continue;
    if (++num_left <= kMaxNamed) named += (num_left > 1 ? ", " : "") + quote_name(name);
  }
  if (num_left == 0) return {};
  return invalid_argument(
      fmt::format("[model] the checkpoint has {} tensors that its architecture, {}, does not use: "
                  "{}{}; the weights and the configuration do not belong together",
                  num_left, architecture, named, num_left > kMaxNamed ? ", …" : ""));
}

}  // namespace

Result<KvScales> make_kv_scales(const KvScaleValues& values, Ops& ops) {
  float k = values.k;
  float v = values.v;
  KvScales scales;
  QUIRE_ASSIGN_OR_RETURN(scales.k, ops.make_vector({&k, DType::kF32, {1}}));
  QUIRE_ASSIGN_OR_RETURN(scales.v, ops.make_vector({&v, DType::kF32, {1}}));
  return scales;
}

Status load_weights(const WeightList& list, std::string_view architecture, WeightSource& source,
                    Ops& ops, const Parallel& parallel, const LoadProgress& progress) {
  Loader loader(source, ops, parallel);
  QUIRE_RETURN_IF_ERROR(loader.load(list, progress));
  return loader.check_nothing_left(list, architecture);
}

}  // namespace quire
