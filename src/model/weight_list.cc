// The tensors of a model's list of weights, and the memory that they take.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "model/weights.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

// Adds the tensors of one part, without its bias: values, and scales and zero points if stored.
void add_part(const MatrixPart& part, const MatrixBinding& binding, MatrixSpec matrix,
              std::vector<TensorSpec>& tensors) {
  const Shape whole = {part.num_rows, binding.num_columns};
  const std::optional<WeightFormat>& format = binding.format;
  const Packing packing = format ? format->packing : Packing::kNone;
  const PackedNames names = packed_names(packing);
  matrix.matrix = part.name;
  matrix.split = binding.split;
  matrix.num_heads = part.num_heads;
  matrix.format = format;
  tensors.push_back({part.name + std::string(names.values), whole, std::move(matrix)});
  if (!format || format->at_load) return;
  const Shape scales = scales_shape(format->scheme, whole);
  tensors.push_back({part.name + format->scales_suffix, scales, ScalesSpec()});
  if (format->scheme.has_zeros) {
    tensors.push_back({part.name + std::string(names.zeros), scales, ScalesSpec()});
  }
  if (format->input_scale_suffix.empty()) return;
  tensors.push_back({part.name + format->input_scale_suffix, {1}, ScalesSpec()});
}

// Adds the tensors of the binding. `matrix` has its number, and what all its matrices share.
void add_stack(const MatrixBinding& binding, MatrixSpec matrix, std::vector<TensorSpec>& tensors) {
  for (const MatrixPart& part : binding.parts) {
    matrix.is_stacked = &part != &binding.parts.front();
    add_part(part, binding, matrix, tensors);
    if (binding.has_bias) {
      tensors.push_back({part.name + ".bias", {part.num_rows}, VectorSpec()});
    }
  }
}

// Adds the tensors of an expert, or of the shared ones. `binding` is the ExpertsBinding's number.
void add_expert(const MlpBinding& expert, int binding, bool is_shared, int& num_stacks,
                std::vector<TensorSpec>& tensors) {
  const size_t first = tensors.size();
  for (const MatrixBinding* stack : {&expert.gate_up, &expert.down}) {
    add_stack(*stack, {.stack = num_stacks++, .expert = ExpertMatrix{binding}}, tensors);
  }
  if (is_shared) return;
  int part = 0;
  for (TensorSpec& tensor : std::span(tensors).subspan(first)) {
    if (auto* matrix = std::get_if<MatrixSpec>(&tensor.role)) matrix->expert->part = part++;
  }
}

// The part of a matrix that this rank has.
struct KeptPart {
  Slice rows;
  Slice columns;

  Shape shape() const { return {rows.count, columns.count}; }
};

KeptPart kept_part(const Shape& whole, const MatrixSpec& matrix, const WeightStore& store,
                   const Parallel& parallel) {
  KeptPart part = {{0, whole[0]}, {0, whole[1]}};
  const auto divide = [&](Slice& axis) {
    axis = shard_axis(axis.count, matrix.split, matrix.num_heads, matrix.format, store, parallel);
  };
  if (splits_rows(matrix.split)) divide(part.rows);
  if (splits_columns(matrix.split)) divide(part.columns);
  return part;
}

// The scheme of this part, with smaller blocks if its borders cut blocks.
WeightScheme kept_scheme(const Shape& whole, WeightScheme scheme, const KeptPart& part) {
  scheme.block_rows = cut_block(scheme.block_rows, part.rows, whole[0]);
  scheme.block_columns = cut_block(scheme.block_columns, part.columns, whole[1]);
  return scheme;
}

// The number of scales of this part. A stack has more if a border cuts smaller blocks in another of
// its matrices, or if the heights of its matrices are not multiples of a block.
int64_t num_kept_scales(const Shape& whole, const WeightScheme& scheme, const KeptPart& part) {
  if (scheme.scales != ScaleLayout::kBlocks) return part.rows.count;
  return scales_shape(kept_scheme(whole, scheme, part), part.shape()).num_elements();
}

// The bytes of the order of the columns. A stack has one order. Random weights have no order, but
// are counted like a checkpoint's.
int64_t order_bytes(const Shape& whole, const MatrixSpec& matrix) {
  if (!matrix.format || !matrix.format->has_column_groups || matrix.is_stacked) return 0;
  return whole[1] * int64_t{sizeof(int32_t)};
}

// Bytes of a rank's part of a matrix in blocks that the store keeps; 0: the matrix is not in
// blocks, or the store does not keep them.
int64_t bytes_of_blocks(const Shape& whole, const MatrixSpec& matrix, const WeightSource& source,
                        const WeightStore& store, const Parallel& parallel) {
  if (matrix.is_plain) return 0;
  const GgufBlockType* const blocks = stored_type(matrix.matrix, matrix.format, source).blocks;
  if (blocks == nullptr ||
      !divides_blocks(matrix.split, whole, blocks->block_elements, parallel.size)) {
    return 0;
  }
  return store.quantized_bytes({kept_part(whole, matrix, store, parallel).shape(), blocks});
}

// Bytes of a rank's part of a matrix in blocks or integers, without the order of the columns.
int64_t quantized_bytes(const Shape& whole, const MatrixSpec& matrix, const WeightSource& source,
                        const WeightStore& store, const Parallel& parallel) {
  if (matrix.is_plain) return 0;
  const int64_t in_blocks = bytes_of_blocks(whole, matrix, source, store, parallel);
  if (in_blocks > 0) return in_blocks;
  const Shape kept = kept_part(whole, matrix, store, parallel).shape();
  const StoredType stored = stored_type(matrix.matrix, matrix.format, source);
  const WeightScheme scheme = scheme_of(matrix.format, stored.values.value_or(DType::kF32));
  // A tensor of another type than the format's has no scales; the load refuses it.
  if (!is_integer(scheme) || scheme.scales == ScaleLayout::kNone) return 0;
  return store.quantized_bytes({kept, IntegerForm{scheme, stored.scales.value_or(DType::kF32)}});
}

// A tensor in one rank's memory.
struct KeptTensor {
  int64_t num_bytes = 0;
  bool is_quantized = false;  // in the checkpoint, or at load
  bool is_expanded = false;   // multiplied by its scales at load
};

// Finds ExpandedMatrices::experts.
std::set<int> find_mixed_experts(std::span<const TensorSpec> tensors, const WeightSource& source,
                                 const WeightStore& store, const Parallel& parallel) {
  if (store.mixes_experts()) return {};
  std::map<int, std::vector<StoredType>> types;  // of the first expert's matrices
  std::set<int> quantized, mixed;
  for (const TensorSpec& tensor : tensors) {
    const MatrixSpec* const matrix = tensor.matrix();
    if (matrix == nullptr || !matrix->is_chosen_expert()) continue;
    const bool is_kept = quantized_bytes(tensor.shape, *matrix, source, store, parallel) > 0;
    const StoredType type =
        is_kept ? stored_type(matrix->matrix, matrix->format, source) : StoredType{};
    const int binding = matrix->expert->binding;
    std::vector<StoredType>& first = types[binding];
    const auto part = static_cast<size_t>(*matrix->expert->part);
    if (part == first.size()) first.push_back(type);
    if (is_kept) quantized.insert(binding);
    if (!is_kept || type != first[part]) mixed.insert(binding);
  }
  std::erase_if(mixed, [&](int experts) { return !quantized.contains(experts); });
  return mixed;
}

// Whether the matrix is one of the experts `mixed`.
bool is_in(const std::set<int>& mixed, const MatrixSpec& matrix) {
  return matrix.is_chosen_expert() && mixed.contains(matrix.expert->binding);
}

// Finds ExpandedMatrices::stacks, without the stacks of the experts `mixed`.
std::set<int> find_mixed_stacks(std::span<const TensorSpec> tensors, const std::set<int>& mixed,
                                const WeightSource& source, const WeightStore& store,
                                const Parallel& parallel) {
  std::set<int> in_blocks, others;
  for (const TensorSpec& tensor : tensors) {
    const MatrixSpec* const matrix = tensor.matrix();
    if (matrix == nullptr || matrix->is_plain || is_in(mixed, *matrix)) continue;
    const bool is_kept = bytes_of_blocks(tensor.shape, *matrix, source, store, parallel) > 0;
    (is_kept ? in_blocks : others).insert(matrix->stack);
  }
  std::set<int> expanded;
  std::ranges::set_intersection(in_blocks, others, std::inserter(expanded, expanded.end()));
  return expanded;
}

Result<KeptTensor> kept_matrix(const TensorSpec& tensor, const MatrixSpec& matrix,
                               const ExpandedMatrices& expanded, const WeightSource& source,
                               const WeightStore& store, const Parallel& parallel) {
  const Shape& whole = tensor.shape;
  if (!expanded.stacks.contains(matrix.stack) && !is_in(expanded.experts, matrix)) {
    const int64_t bytes = quantized_bytes(whole, matrix, source, store, parallel);
    if (bytes > 0) return KeptTensor{bytes + order_bytes(whole, matrix), true, false};
  }
  const KeptPart kept = kept_part(whole, matrix, store, parallel);
  const DType stored = source.dtype_of(stored_name(tensor, source)).value_or(DType::kF32);
  const WeightScheme stored_scheme = scheme_of(matrix.format, stored);
  // The load refuses such a tensor, and names it.
  const bool is_quantized = stored_scheme.scales != ScaleLayout::kNone;
  if (!is_quantized && !is_weight_dtype(stored)) return KeptTensor();
  const bool is_expanded = matrix.is_plain || is_integer(stored_scheme);
  const WeightScheme scheme = is_expanded ? plain_scheme(stored_scheme) : stored_scheme;
  QUIRE_ASSIGN_OR_RETURN(const DType dtype, store.linear_dtype(scheme));
  const int64_t values = kept.shape().num_elements() * static_cast<int64_t>(dtype_bytes(dtype));
  if (dtype != DType::kF8E4M3) return KeptTensor{values, is_quantized, is_quantized};
  // A device that keeps FP8 also keeps F32 scales: of blocks, or one per row.
  const int64_t num_scales = num_kept_scales(whole, scheme, kept);
  return KeptTensor{values + num_scales * int64_t{sizeof(float)}, true, false};
}

Result<KeptTensor> kept_tensor(const TensorSpec& tensor, const ExpandedMatrices& expanded,
                               const WeightSource& source, const WeightStore& store,
                               const Parallel& parallel) {
  if (tensor.has_scales()) return KeptTensor();  // counted with the matrix
  if (const MatrixSpec* const matrix = tensor.matrix()) {
    return kept_matrix(tensor, *matrix, expanded, source, store, parallel);
  }
  return KeptTensor{tensor.shape.num_elements() * static_cast<int64_t>(dtype_bytes(DType::kF32))};
}

// Fails if the rank's part cuts a block of FP8 values and the device needs whole ones.
Status check_whole_blocks(const TensorSpec& tensor, const MatrixSpec& matrix,
                          const WeightSource& source, const WeightStore& store,
                          const Parallel& parallel) {
  const StoredType stored = stored_type(matrix.matrix, matrix.format, source);
  const WeightScheme scheme = scheme_of(matrix.format, stored.values.value_or(DType::kF32));
  if (!store.needs_whole_blocks() || !has_fp8_blocks(scheme)) return {};
  const KeptPart part = kept_part(tensor.shape, matrix, store, parallel);
  if (kept_scheme(tensor.shape, scheme, part) == scheme) return {};
  return unimplemented(fmt::format(
      "[model] tensor {}: a rank's part cuts a block of FP8 values with one scale, and the device "
      "needs whole ones; got {} of its {}, expected multiples of {} x {}; choose a smaller "
      "`tensor_parallel_size`, or set `device` to cpu",
      quote_name(source.name_in_file(stored_name(tensor, source))), shape_text(part.shape()),
      shape_text(tensor.shape), scheme.block_rows, scheme.block_columns));
}

// check_slices() for one tensor. A matrix that is expanded at load can be cut anywhere.
Status check_slice(const TensorSpec& tensor, const std::set<int>& mixed, WeightSource& source,
                   const WeightStore& store, const Parallel& parallel) {
  const MatrixSpec* const matrix = tensor.matrix();
  if (matrix == nullptr || matrix->is_plain) return {};
  QUIRE_RETURN_IF_ERROR(check_whole_blocks(tensor, *matrix, source, store, parallel));
  if (!splits_columns(matrix->split) || is_in(mixed, *matrix)) return {};
  const StoredType stored = stored_type(matrix->matrix, matrix->format, source);
  const WeightScheme scheme = scheme_of(matrix->format, stored.values.value_or(DType::kF32));
  const IntegerForm integers = {scheme, stored.scales.value_or(DType::kF32)};
  if (!is_integer(scheme) || store.quantized_bytes({tensor.shape, integers}) == 0) return {};
  const std::string groups =
      matrix->matrix + std::string(packed_names(matrix->format->packing).groups);
  std::vector<int64_t> group_of;
  if (groups != matrix->matrix && source.has(groups)) {
    QUIRE_ASSIGN_OR_RETURN(group_of, source.integers(groups, tensor.shape[1]));
  }
  return check_column_slice(scheme, tensor.shape, !std::ranges::is_sorted(group_of),
                            kept_part(tensor.shape, *matrix, store, parallel).columns,
                            source.name_in_file(stored_name(tensor, source)));
}

// Whether a tensor that is expected in one shape may be stored in another: a single number or a
// vector may have further axes of 1.
bool may_be_stored(const Shape& expected, const Shape& stored) {
  const bool is_vector = expected.rank() <= 1 || expected.num_elements() == 1;
  return stored == expected || (is_vector && stored.num_elements() == expected.num_elements());
}

// Whether the checkpoint has the matrix in its format, with scales in further tensors.
bool has_stored_scales(const MatrixSpec& matrix, const WeightSource& source) {
  if (!matrix.format || matrix.format->at_load) return false;
  const StoredType stored = stored_type(matrix.matrix, matrix.format, source);
  return scheme_of(matrix.format, stored.values.value_or(DType::kF32)).scales != ScaleLayout::kNone;
}

}  // namespace

std::vector<TensorSpec> list_tensors(const WeightList& list) {
  std::vector<TensorSpec> tensors;
  int num_experts = 0;
  int num_stacks = 0;
  for (const WeightGroup& group : list.groups) {
    for (const MatrixBinding& binding : group.matrices) {
      add_stack(binding, {.stack = num_stacks++}, tensors);
    }
    for (const ExpertsBinding& binding : group.experts) {
      const int experts = num_experts++;
      for (const MlpBinding& expert : binding.each) {
        add_expert(expert, experts, false, num_stacks, tensors);
      }
      if (binding.num_shared > 0) add_expert(binding.shared, experts, true, num_stacks, tensors);
    }
    for (const LatentBinding& binding : group.latents) {
      add_stack(binding.matrix, {.stack = num_stacks++, .is_plain = true}, tensors);
    }
    for (const VectorBinding& binding : group.vectors) {
      if (binding.name.empty()) continue;
      tensors.push_back(
          {binding.name, binding.shape.value_or(Shape{binding.size}), VectorSpec{binding.addend}});
    }
  }
  return tensors;
}

std::string stored_name(const TensorSpec& tensor, const WeightSource& source) {
  const MatrixSpec* const matrix = tensor.matrix();
  if (matrix == nullptr) return tensor.name;
  return stored_values_name(matrix->matrix, matrix->format, source);
}

StoredType stored_type(const std::string& matrix, const std::optional<WeightFormat>& format,
                       const WeightSource& source) {
  const std::string name = stored_values_name(matrix, format, source);
  StoredType type = {
      .blocks = source.block_type(name), .values = source.dtype_of(name), .scales = {}};
  if (format) type.scales = source.dtype_of(matrix + format->scales_suffix);
  return type;
}

std::string block_type_names(const WeightSource& source, std::string_view separator) {
  std::vector<std::string_view> names;
  for (const GgufBlockType* const type : source.block_types()) names.emplace_back(type->name);
  return fmt::format("{}", fmt::join(names, separator));
}

ExpandedMatrices find_expanded(std::span<const TensorSpec> tensors, const WeightSource& source,
                               const WeightStore& store, const Parallel& parallel) {
  ExpandedMatrices expanded;
  expanded.experts = find_mixed_experts(tensors, source, store, parallel);
  expanded.stacks = find_mixed_stacks(tensors, expanded.experts, source, store, parallel);
  return expanded;
}

Status check_stored_tensors(std::span<const TensorSpec> tensors, const WeightSource& source,
                            std::string_view architecture) {
  int num_missing = 0;
  std::string first;
  bool is_packed = false;    // the last matrix is packed: its tensors have other shapes
  bool needs_scales = true;  // the last matrix needs scales
  for (const TensorSpec& tensor : tensors) {
    const std::string name = stored_name(tensor, source);
    if (const MatrixSpec* const matrix = tensor.matrix()) {
      is_packed = name != matrix->matrix + ".weight";
      needs_scales = has_stored_scales(*matrix, source);
    }
    if (tensor.has_scales() && !needs_scales) continue;
    if (!source.has(name)) {
      if (++num_missing == 1) first = tensor.name;
      continue;
    }
    const bool may_differ = is_packed && (tensor.matrix() != nullptr || tensor.has_scales());
    const std::optional<Shape> shape = may_differ ? std::nullopt : source.shape_of(name);
    if (!shape || may_be_stored(tensor.shape, *shape)) continue;
    return invalid_argument(fmt::format(
        "[model] tensor {} has another shape than the configuration says; got {}, expected {}; "
        "download the checkpoint again",
        quote_name(source.name_in_file(name)), shape_text(*shape), shape_text(tensor.shape)));
  }
  if (num_missing == 0) return {};
  return invalid_argument(fmt::format(
      "[model] the checkpoint lacks {} tensors of {}, the first of which is {}; download it again",
      num_missing, architecture, quote_name(source.name_in_file(first))));
}

Status check_slices(std::span<const TensorSpec> tensors, WeightSource& source,
                    const WeightStore& store, const Parallel& parallel) {
  if (parallel.size == 1) return {};
  const std::set<int> mixed = find_mixed_experts(tensors, source, store, parallel);
  for (const TensorSpec& tensor : tensors) {
    QUIRE_RETURN_IF_ERROR(check_slice(tensor, mixed, source, store, parallel));
  }
  return {};
}

Result<WeightPlan> plan_weights(std::span<const TensorSpec> tensors, const WeightSource& source,
                                const WeightStore& store, const Parallel& parallel) {
  WeightPlan plan;
  plan.expanded = find_expanded(tensors, source, store, parallel);
  for (const TensorSpec& tensor : tensors) {
    QUIRE_ASSIGN_OR_RETURN(const KeptTensor kept,
                           kept_tensor(tensor, plan.expanded, source, store, parallel));
    plan.num_bytes += kept.num_bytes;
    if (kept.is_quantized) ++plan.quantized.num_all;
    if (kept.is_expanded) ++plan.quantized.num_expanded;
    const MatrixSpec* const matrix = tensor.matrix();
    if (matrix == nullptr) continue;
    const KeptPart part = kept_part(tensor.shape, *matrix, store, parallel);
    plan.max_columns = std::max(plan.max_columns, part.columns.count);
  }
  return plan;
}

}  // namespace quire
