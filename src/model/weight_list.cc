// The tensors that a model's list of weights has, and the memory that they take.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "model/weights.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

// The tensors of one part besides its bias: values, and scales and zero points if they are stored.
void add_part(const MatrixPart& part, const MatrixBinding& binding, TensorSpec::Kind kind,
              std::vector<TensorSpec>& tensors) {
  using Kind = TensorSpec::Kind;
  const Shape whole = {part.num_rows, binding.num_columns};
  const std::optional<WeightFormat>& format = binding.format;
  const Packing packing = format ? format->packing : Packing::kNone;
  const PackedNames names = packed_names(packing);
  tensors.push_back({part.name + std::string(names.values), whole, kind, binding.split,
                     part.num_heads, format, part.name});
  if (!format || format->at_load) return;
  const Shape scales = scales_shape(format->scheme, whole);
  tensors.push_back({part.name + format->scales_suffix, scales, Kind::kScales, binding.split});
  if (format->scheme.has_zeros) {
    tensors.push_back({part.name + std::string(names.zeros), scales, Kind::kScales, binding.split});
  }
  if (format->input_scale_suffix.empty()) return;
  tensors.push_back({part.name + format->input_scale_suffix, {1}, Kind::kScales, Split::kNone});
}

// The tensors of the MatrixBinding with this number.
void add_stack(const MatrixBinding& binding, int stack, TensorSpec::Kind kind,
               std::vector<TensorSpec>& tensors) {
  for (const MatrixPart& part : binding.parts) {
    const size_t first = tensors.size();
    add_part(part, binding, kind, tensors);
    tensors[first].is_stacked = &part != &binding.parts.front();
    for (TensorSpec& tensor : std::span(tensors).subspan(first)) tensor.stack = stack;
    if (binding.has_bias) {
      tensors.push_back(
          {part.name + ".bias", {part.num_rows}, TensorSpec::Kind::kVector, Split::kNone});
    }
  }
}

// The tensors of an expert, or of the shared ones, of the ExpertsBinding with this number.
void add_expert(const MlpBinding& expert, int experts, bool is_shared, int& num_stacks,
                std::vector<TensorSpec>& tensors) {
  const size_t first = tensors.size();
  add_stack(expert.gate_up, num_stacks++, TensorSpec::Kind::kMatrix, tensors);
  add_stack(expert.down, num_stacks++, TensorSpec::Kind::kMatrix, tensors);
  int part = 0;
  for (TensorSpec& tensor : std::span(tensors).subspan(first)) {
    tensor.experts = experts;
    if (!is_shared && tensor.kind == TensorSpec::Kind::kMatrix) tensor.expert_part = part++;
  }
}

// The part of a matrix that this rank has.
struct KeptPart {
  Slice rows;
  Slice columns;

  Shape shape() const { return {rows.count, columns.count}; }
};

KeptPart kept_part(const TensorSpec& tensor, const WeightStore& store, const Parallel& parallel) {
  KeptPart part = {{0, tensor.shape[0]}, {0, tensor.shape[1]}};
  const auto divide = [&](Slice& axis) {
    axis = shard_axis(axis.count, tensor.split, tensor.num_heads, tensor.format, store, parallel);
  };
  if (splits_rows(tensor.split)) divide(part.rows);
  if (splits_columns(tensor.split)) divide(part.columns);
  return part;
}

// The scheme of this part, with smaller blocks if its borders cut blocks.
WeightScheme kept_scheme(const TensorSpec& tensor, WeightScheme scheme, const KeptPart& part) {
  scheme.block_rows = cut_block(scheme.block_rows, part.rows, tensor.shape[0]);
  scheme.block_columns = cut_block(scheme.block_columns, part.columns, tensor.shape[1]);
  return scheme;
}

// The number of scales of this part. A stack has more if a border cuts smaller blocks in another of
// its matrices, or if the heights of its matrices are not multiples of a block.
int64_t num_kept_scales(const TensorSpec& tensor, const WeightScheme& scheme,
                        const KeptPart& part) {
  if (scheme.scales != ScaleLayout::kBlocks) return part.rows.count;
  return scales_shape(kept_scheme(tensor, scheme, part), part.shape()).num_elements();
}

// The bytes of the order of the columns, of which a stack has one. Random weights have none, but
// count like the checkpoint's.
int64_t order_bytes(const TensorSpec& tensor) {
  if (!tensor.format || !tensor.format->has_column_groups || tensor.is_stacked) return 0;
  return tensor.shape[1] * int64_t{sizeof(int32_t)};
}

// Bytes of a rank's part of a matrix in blocks that the store keeps; 0: the matrix is not in
// blocks, or the store does not keep them.
int64_t bytes_of_blocks(const TensorSpec& tensor, const WeightSource& source,
                        const WeightStore& store, const Parallel& parallel) {
  if (tensor.kind != TensorSpec::Kind::kMatrix) return 0;
  const GgufBlockType* const blocks = stored_type(tensor.matrix, tensor.format, source).blocks;
  if (blocks == nullptr ||
      !divides_blocks(tensor.split, tensor.shape, blocks->block_elements, parallel.size)) {
    return 0;
  }
  return store.quantized_bytes({kept_part(tensor, store, parallel).shape(), blocks});
}

// Bytes of a rank's part of a matrix in blocks or integers, without the order of the columns.
int64_t quantized_bytes(const TensorSpec& tensor, const WeightSource& source,
                        const WeightStore& store, const Parallel& parallel) {
  if (tensor.kind != TensorSpec::Kind::kMatrix) return 0;
  const int64_t in_blocks = bytes_of_blocks(tensor, source, store, parallel);
  if (in_blocks > 0) return in_blocks;
  const Shape kept = kept_part(tensor, store, parallel).shape();
  const StoredType stored = stored_type(tensor.matrix, tensor.format, source);
  const WeightScheme scheme = scheme_of(tensor.format, stored.values.value_or(DType::kF32));
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

// The experts of ExpandedMatrices.
std::set<int> find_mixed_experts(std::span<const TensorSpec> tensors, const WeightSource& source,
                                 const WeightStore& store, const Parallel& parallel) {
  if (store.mixes_experts()) return {};
  std::map<int, std::vector<StoredType>> types;  // of the first expert's matrices
  std::set<int> quantized, mixed;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.expert_part < 0) continue;
    const bool is_kept = quantized_bytes(tensor, source, store, parallel) > 0;
    const StoredType type =
        is_kept ? stored_type(tensor.matrix, tensor.format, source) : StoredType{};
    std::vector<StoredType>& first = types[tensor.experts];
    const auto part = static_cast<size_t>(tensor.expert_part);
    if (part == first.size()) first.push_back(type);
    if (is_kept) quantized.insert(tensor.experts);
    if (!is_kept || type != first[part]) mixed.insert(tensor.experts);
  }
  std::erase_if(mixed, [&](int experts) { return !quantized.contains(experts); });
  return mixed;
}

// The stacks of ExpandedMatrices, without the stacks of the experts `mixed`.
std::set<int> find_mixed_stacks(std::span<const TensorSpec> tensors, const std::set<int>& mixed,
                                const WeightSource& source, const WeightStore& store,
                                const Parallel& parallel) {
  std::set<int> in_blocks, others;
  for (const TensorSpec& tensor : tensors) {
    const bool is_matrix = tensor.kind == TensorSpec::Kind::kMatrix;
    const bool is_mixed = tensor.expert_part >= 0 && mixed.contains(tensor.experts);
    if (!is_matrix || is_mixed) continue;
    const bool is_kept = bytes_of_blocks(tensor, source, store, parallel) > 0;
    (is_kept ? in_blocks : others).insert(tensor.stack);
  }
  std::set<int> expanded;
  std::ranges::set_intersection(in_blocks, others, std::inserter(expanded, expanded.end()));
  return expanded;
}

Result<KeptTensor> kept_tensor(const TensorSpec& tensor, const ExpandedMatrices& expanded,
                               const WeightSource& source, const WeightStore& store,
                               const Parallel& parallel) {
  if (tensor.kind == TensorSpec::Kind::kScales) return KeptTensor();  // counted with the matrix
  if (tensor.kind == TensorSpec::Kind::kVector) {
    return KeptTensor{tensor.shape.num_elements() * static_cast<int64_t>(dtype_bytes(DType::kF32))};
  }
  const bool is_expanded_for_others =
      expanded.stacks.contains(tensor.stack) ||
      (tensor.expert_part >= 0 && expanded.experts.contains(tensor.experts));
  if (!is_expanded_for_others) {
    const int64_t bytes = quantized_bytes(tensor, source, store, parallel);
    if (bytes > 0) return KeptTensor{bytes + order_bytes(tensor), true, false};
  }
  const KeptPart kept = kept_part(tensor, store, parallel);
  const DType stored = source.dtype_of(stored_name(tensor, source)).value_or(DType::kF32);
  const WeightScheme stored_scheme = scheme_of(tensor.format, stored);
  // The load refuses such a tensor by its name.
  const bool is_quantized = stored_scheme.scales != ScaleLayout::kNone;
  if (!is_quantized && !is_weight_dtype(stored)) return KeptTensor();
  const bool is_expanded = tensor.kind == TensorSpec::Kind::kPlain || is_integer(stored_scheme);
  const WeightScheme scheme = is_expanded ? plain_scheme(stored_scheme) : stored_scheme;
  QUIRE_ASSIGN_OR_RETURN(const DType dtype, store.linear_dtype(scheme));
  const int64_t values = kept.shape().num_elements() * static_cast<int64_t>(dtype_bytes(dtype));
  if (dtype != DType::kF8E4M3) return KeptTensor{values, is_quantized, is_quantized};
  // A device that keeps FP8 also keeps F32 scales: of blocks, or one per row.
  const int64_t num_scales = num_kept_scales(tensor, scheme, kept);
  return KeptTensor{values + num_scales * int64_t{sizeof(float)}, true, false};
}

// Fails if the rank's part cuts a block of FP8 values and the device needs whole ones.
Status check_whole_blocks(const TensorSpec& tensor, const WeightSource& source,
                          const WeightStore& store, const Parallel& parallel) {
  const StoredType stored = stored_type(tensor.matrix, tensor.format, source);
  const WeightScheme scheme = scheme_of(tensor.format, stored.values.value_or(DType::kF32));
  if (!store.needs_whole_blocks() || !has_fp8_blocks(scheme)) return {};
  const KeptPart part = kept_part(tensor, store, parallel);
  if (kept_scheme(tensor, scheme, part) == scheme) return {};
  return unimplemented(fmt::format(
      "[model] tensor {}: a rank's part cuts a block of FP8 values with one scale, and the device "
      "needs whole ones; got {} of its {}, expected multiples of {} x {}; choose a smaller "
      "`tensor_parallel_size`, or set `device` to cpu",
      quote_name(stored_name(tensor, source)), shape_text(part.shape()), shape_text(tensor.shape),
      scheme.block_rows, scheme.block_columns));
}

// check_slices() of one tensor. A matrix that is expanded at load can be cut anywhere.
Status check_slice(const TensorSpec& tensor, const std::set<int>& mixed, WeightSource& source,
                   const WeightStore& store, const Parallel& parallel) {
  if (tensor.kind != TensorSpec::Kind::kMatrix) return {};
  QUIRE_RETURN_IF_ERROR(check_whole_blocks(tensor, source, store, parallel));
  if (!splits_columns(tensor.split)) return {};
  const bool is_mixed = tensor.expert_part >= 0 && mixed.contains(tensor.experts);
  if (is_mixed) return {};
  const StoredType stored = stored_type(tensor.matrix, tensor.format, source);
  const WeightScheme scheme = scheme_of(tensor.format, stored.values.value_or(DType::kF32));
  const IntegerForm integers = {scheme, stored.scales.value_or(DType::kF32)};
  if (!is_integer(scheme) || store.quantized_bytes({tensor.shape, integers}) == 0) return {};
  const std::string groups =
      tensor.matrix + std::string(packed_names(tensor.format->packing).groups);
  std::vector<int64_t> group_of;
  if (groups != tensor.matrix && source.has(groups)) {
    QUIRE_ASSIGN_OR_RETURN(group_of, source.integers(groups, tensor.shape[1]));
  }
  return check_column_slice(scheme, tensor.shape, !std::ranges::is_sorted(group_of),
                            kept_part(tensor, store, parallel).columns,
                            stored_name(tensor, source));
}

}  // namespace

std::vector<TensorSpec> list_tensors(const WeightList& list) {
  std::vector<TensorSpec> tensors;
  int num_experts = 0;
  int num_stacks = 0;
  for (const WeightGroup& group : list.groups) {
    for (const MatrixBinding& binding : group.matrices) {
      add_stack(binding, num_stacks++, TensorSpec::Kind::kMatrix, tensors);
    }
    for (const ExpertsBinding& binding : group.experts) {
      const int experts = num_experts++;
      for (const MlpBinding& expert : binding.each) {
        add_expert(expert, experts, false, num_stacks, tensors);
      }
      if (binding.num_shared > 0) add_expert(binding.shared, experts, true, num_stacks, tensors);
    }
    for (const LatentBinding& binding : group.latents) {
      add_stack(binding.matrix, num_stacks++, TensorSpec::Kind::kPlain, tensors);
    }
    for (const VectorBinding& binding : group.vectors) {
      TensorSpec& vector = tensors.emplace_back();
      vector.name = binding.name;
      vector.shape = {binding.size};
      vector.kind = TensorSpec::Kind::kVector;
      vector.addend = binding.addend;
    }
  }
  return tensors;
}

std::string stored_name(const TensorSpec& tensor, const WeightSource& source) {
  if (tensor.matrix.empty()) return tensor.name;
  return stored_values_name(tensor.matrix, tensor.format, source);
}

StoredType stored_type(const std::string& matrix, const std::optional<WeightFormat>& format,
                       const WeightSource& source) {
  const std::string name = stored_values_name(matrix, format, source);
  StoredType type = {
      .blocks = source.block_type(name), .values = source.dtype_of(name), .scales = {}};
  if (format) type.scales = source.dtype_of(matrix + format->scales_suffix);
  return type;
}

std::set<std::string_view> block_type_names(const WeightSource& source) {
  std::set<std::string_view> types;
  for (const std::string& name : source.names()) {
    const GgufBlockType* const type = source.block_type(name);
    if (type != nullptr) types.insert(type->name);
  }
  return types;
}

ExpandedMatrices find_expanded(std::span<const TensorSpec> tensors, const WeightSource& source,
                               const WeightStore& store, const Parallel& parallel) {
  ExpandedMatrices expanded;
  expanded.experts = find_mixed_experts(tensors, source, store, parallel);
  expanded.stacks = find_mixed_stacks(tensors, expanded.experts, source, store, parallel);
  return expanded;
}

int num_kv_scales(const WeightSource& source) {
  std::set<std::string> layers;
  for (const std::string& name : source.names()) {
    for (const std::string_view scale : key_scale_names()) {
      const std::string end = ".self_attn." + std::string(scale);
      if (name.ends_with(end)) layers.insert(name.substr(0, name.size() - end.size()));
    }
  }
  return static_cast<int>(layers.size());
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
    if (tensor.matrix.empty()) continue;
    plan.max_columns = std::max(plan.max_columns, kept_part(tensor, store, parallel).columns.count);
  }
  return plan;
}

}  // namespace quire
