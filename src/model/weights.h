// Describes a family's weights as one list that maps the checkpoint's tensors to the model's
// members. Loading, the parameter count and the memory plan all use the list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/numbers.h"
#include "model/model.h"
#include "model/quantization.h"
#include "ops/weight_store.h"
#include "quire/config.h"
#include "tensor/weight_source.h"

namespace quire {

// The way in which a matrix is divided among ranks.
enum class Split {
  kNone,
  kRows,
  kColumns,
  kInnerRows,  // the rows or columns are an MLP's inner size (shard_inner)
  kInnerColumns,
  kVocabulary,  // rows, each of one token; the last ranks may have fewer
};

constexpr bool splits_rows(Split split) {
  return split == Split::kRows || split == Split::kInnerRows || split == Split::kVocabulary;
}
constexpr bool splits_columns(Split split) {
  return split == Split::kColumns || split == Split::kInnerColumns;
}

// A matrix of the checkpoint, [num_rows, MatrixBinding::num_columns].
struct MatrixPart {
  std::string name;  // without ".weight" and ".bias"
  int64_t num_rows = 0;
  // The number of heads to which the rows belong, if the heads are divided among ranks. With more
  // ranks than heads, adjacent ranks have the same rows. 0: the rows have no heads.
  int num_heads = 0;
};

// One of `count` equal parts of each matrix, of its rows or columns as `split` says.
struct Portion {
  int idx = 0;
  int count = 1;
};

// Matrices stacked into one Linear.
struct MatrixBinding {
  std::unique_ptr<Linear>* linear = nullptr;  // null: the matrix is part of another structure
  std::vector<MatrixPart> parts;
  int64_t num_columns = 0;
  Split split = Split::kNone;
  bool has_bias = false;
  std::optional<WeightFormat> format = {};  // of its quantized parts; absent: none
  Portion portion = {};
  bool expands = false;  // expand blocks and integers, even if the device could keep them
};

// The matrices of a gated MLP: of an expert, for example.
struct MlpBinding {
  MatrixBinding gate_up;
  MatrixBinding down;
};

// All experts of one layer, made into one Experts.
struct ExpertsBinding {
  std::unique_ptr<Experts>* experts = nullptr;
  ExpertsShape shape;            // of all ranks together, without shared experts
  std::vector<MlpBinding> each;  // their `linear` is null
  // The MLP of the shared experts, whose inner dimension has one expert after the other. A device
  // that merges shared experts loads it as num_shared further experts, if its matrices are stored
  // in the form of the other experts; otherwise it becomes two Linears. Several shared experts also
  // become two Linears if the ranks' parts of an expert are unequal, or if the device keeps the
  // experts' blocks or integers packed.
  int num_shared = 0;
  MlpBinding shared = {};
};

// The shape of `chosen` and shared experts together.
constexpr ExpertsShape with_shared_experts(ExpertsShape chosen, int num_shared) {
  chosen.num_experts += num_shared;
  chosen.top_k += num_shared;
  chosen.num_shared = num_shared;
  return chosen;
}

// The matrix that expands latent vectors: by head, the rows of keys and then the rows of values. It
// is kept in plain_dtype(), because scales per row or block no longer apply once the rows of keys
// are transposed.
struct LatentBinding {
  std::unique_ptr<PerHeadLinear>* k_up;  // by head: [num_columns, key_rows], the transposed rows
  std::unique_ptr<PerHeadLinear>* v_up;  // by head: [value_rows, num_columns]
  MatrixBinding matrix;                  // `linear` is null
  int64_t key_rows = 0;                  // of each head
  int64_t value_rows = 0;
};

// The scales of a layer's keys and values in an FP8 KV cache, [1] each. A checkpoint has both or
// neither; without them, both are empty.
struct KvScales {
  Tensor k;
  Tensor v;
};

Result<KvScales> make_kv_scales(const KvScaleValues& values, WeightStore& store);

struct KvScalesBinding {
  KvScales* scales = nullptr;
  std::string attention;  // the name of the layer's attention, with a dot at its end
};

// Rows of a vector that are divided among ranks on their own.
struct VectorSection {
  int64_t num_rows = 0;
  int num_heads = 0;  // MatrixPart::num_heads
};

struct VectorBinding {
  Tensor* vector = nullptr;
  std::string name;  // empty: the checkpoint has none, and every element is `addend`
  int64_t size = 0;
  float addend = 0.0F;              // added to every element; 1 for norms that multiply by 1 + w
  int num_heads = 0;                // MatrixPart::num_heads; 0: every rank has the whole vector
  float factor = 1.0F;              // multiplies every element, after the addition
  std::optional<Shape> shape = {};  // of the checkpoint's tensor; absent: [size]
  // The sections of the tensor's rows, one after the other. Empty: all rows are of num_heads.
  std::vector<VectorSection> sections = {};
  int64_t transposed_columns = 0;  // of a rank's rows, which become columns; 0: they stay rows
};

// Bindings that are loaded together: one layer, or the weights before or after the layers.
struct WeightGroup {
  bool is_layer = false;
  std::vector<MatrixBinding> matrices = {};
  std::vector<ExpertsBinding> experts = {};
  std::vector<LatentBinding> latents = {};
  std::vector<VectorBinding> vectors = {};
  std::vector<KvScalesBinding> kv_scales = {};
};

// The bindings point into the family's weights, which must outlive the list.
struct WeightList {
  std::vector<WeightGroup> groups;
  // Tensors with these name prefixes may be in the checkpoint but are not loaded.
  std::vector<std::string> ignored_prefixes;
};

// The place of a matrix in an ExpertsBinding.
struct ExpertMatrix {
  int binding = 0;               // the number of the ExpertsBinding in the list
  std::optional<int> part = {};  // which matrix of a chosen expert it is; absent: of a shared one
};

// The values of a matrix.
struct MatrixSpec {
  std::string matrix = {};  // MatrixPart::name
  Split split = Split::kNone;
  int num_heads = 0;                        // MatrixPart::num_heads
  std::optional<WeightFormat> format = {};  // MatrixBinding::format
  int stack = 0;                            // the number of its MatrixBinding in the list
  bool is_stacked = false;                  // not the first matrix of its MatrixBinding
  bool is_plain = false;                    // multiplied by its scales at load, into plain_dtype()
  std::optional<ExpertMatrix> expert = {};  // absent: it is not of an expert

  bool is_chosen_expert() const { return expert && expert->part; }
};
// The scales or zero points of a matrix.
struct ScalesSpec {};
struct VectorSpec {
  float addend = 0.0F;  // VectorBinding::addend
};

// One tensor of the checkpoint.
struct TensorSpec {
  std::string name;
  Shape shape;
  std::variant<MatrixSpec, ScalesSpec, VectorSpec> role;

  const MatrixSpec* matrix() const { return std::get_if<MatrixSpec>(&role); }  // null: another role
  bool has_scales() const { return std::holds_alternative<ScalesSpec>(role); }
};

// The name of the spec's tensor in `source`, which may have left a matrix unquantized.
std::string stored_name(const TensorSpec& tensor, const WeightSource& source);

// All tensors that the checkpoint must have for this list, if all its matrices with a format are
// quantized.
std::vector<TensorSpec> list_tensors(const WeightList& list);

// How the checkpoint stores a matrix.
struct StoredType {
  const GgufBlockType* blocks = nullptr;
  std::optional<DType> values;
  std::optional<DType> scales;

  friend bool operator==(const StoredType&, const StoredType&) = default;
};

StoredType stored_type(const std::string& matrix, const std::optional<WeightFormat>& format,
                       const WeightSource& source);

// The names of the types of a source's quantized blocks, such as "Q4_1, Q8_0"; empty: it has none.
std::string block_type_names(const WeightSource& source, std::string_view separator = ", ");

// Quantized matrices that the store could keep, but that are expanded to 16 bits at load, because
// other matrices of their stack or layer cannot be kept in the same form.
struct ExpandedMatrices {
  // By ExpertMatrix::binding: their formats differ, and the store does not mix formats.
  std::set<int> experts;
  // By MatrixSpec::stack: not every part of the stack is in blocks that the store keeps.
  std::set<int> stacks;
};

ExpandedMatrices find_expanded(std::span<const TensorSpec> tensors, const WeightSource& source,
                               const WeightStore& store, const Parallel& parallel);

// The matrices that the checkpoint has quantized, or that are quantized at load.
struct QuantizedMatrices {
  int64_t num_all = 0;
  int64_t num_expanded = 0;  // multiplied by their scales at load, for any reason
};

// One rank's weights as the store keeps them, from the headers of the checkpoint.
struct WeightPlan {
  int64_t num_bytes = 0;    // without the padding of the device's layout
  int64_t max_columns = 0;  // the most columns of this rank's part of a matrix
  QuantizedMatrices quantized;
  ExpandedMatrices expanded;
};

// Fails, naming the scheme, if the device does not compute with one of the tensors.
Result<WeightPlan> plan_weights(std::span<const TensorSpec> tensors, const WeightSource& source,
                                const WeightStore& store, const Parallel& parallel);

// Fails if the source lacks a tensor of the list, or has one in another shape; the error names the
// first. Shapes are checked only if the source knows them without reading. A matrix may be stored
// without its format, and then without scales.
Status check_stored_tensors(std::span<const TensorSpec> tensors, const WeightSource& source,
                            std::string_view architecture);

// Detects early, without minutes of loading, the matrices that cannot be divided among the ranks:
// by check_column_slice, or because the device needs whole blocks. Reads no tensors except group
// indices (g_idx).
Status check_slices(std::span<const TensorSpec> tensors, WeightSource& source,
                    const WeightStore& store, const Parallel& parallel);

struct LoadOptions {
  LoadProgress progress = {};
  // WeightPlan::expanded of the same tensors, source, store and rank; null: the load finds them.
  const ExpandedMatrices* expanded = nullptr;
};

// Reads every tensor of the list from `source` and makes it for `ops`. A tensor's memory in the
// source is released once it is packed. Fails, naming the tensor and the architecture, if a tensor
// is missing, has another shape or type, or is left over.
Status load_weights(const WeightList& list, std::string_view architecture, WeightSource& source,
                    Ops& ops, const Parallel& parallel, const LoadOptions& options);

// This rank's part of `total`. The parts are equal if the number of ranks divides it; otherwise the
// last ranks have less. Heads are stored one after another, so a part of the rows is a part of the
// heads if the number of ranks also divides the number of heads.
constexpr Slice shard(int64_t total, const Parallel& parallel) {
  const int64_t most = ceil_div(total, parallel.size);
  const int64_t first = std::min(most * parallel.rank, total);
  return {first, std::min(most, total - first)};
}

// This rank's part of the rows of `num_heads` heads: its equal part of the heads or, if there are
// more ranks than heads, the head that it shares with adjacent ranks.
constexpr Slice shard_heads(int64_t num_rows, int num_heads, const Parallel& parallel) {
  if (parallel.size <= num_heads) return shard(num_rows, parallel);
  const int ranks_per_head = parallel.size / num_heads;
  return shard(num_rows, {parallel.rank / ranks_per_head, num_heads});
}

// One rank's part of an MLP's inner size.
struct InnerPart {
  Slice slice;
  // There are more ranks than blocks, and the slice is another rank's: this rank's columns of down
  // are zeros, so that its product adds nothing.
  bool is_zero = false;
};

// This rank's part of an inner size whose blocks of `block` elements have one scale. The parts are
// equal if they cut no block, or if there is only one block. Otherwise every rank has whole blocks,
// and the first ranks have one block more than the last if the number of ranks does not divide the
// number of blocks.
constexpr InnerPart shard_blocks(int64_t total, int64_t block, const Parallel& parallel) {
  if (block >= total || total % (block * parallel.size) == 0) return {shard(total, parallel)};
  const int64_t num_blocks = ceil_div(total, block);
  const int64_t least = num_blocks / parallel.size;
  const int64_t num_larger = num_blocks % parallel.size;
  const int64_t place = std::min<int64_t>(parallel.rank, num_blocks - 1);
  const int64_t first = (place * least + std::min(place, num_larger)) * block;
  const int64_t most = (least + (place < num_larger ? 1 : 0)) * block;
  return {{first, std::min(most, total - first)}, parallel.rank >= num_blocks};
}

// This rank's part of the inner size of an MLP whose matrices have this format: in whole blocks if
// the device needs them (WeightStore::needs_whole_blocks). For example, 1,536 elements in blocks of
// 128 are 12 blocks: of 8 ranks, four have 256 elements and four have 128. Heads are not divided in
// this way, so check_slices() refuses a model in which a border between ranks' heads cuts such a
// block.
InnerPart shard_inner(int64_t total, const std::optional<WeightFormat>& format,
                      const WeightStore& store, const Parallel& parallel);

// This rank's part of an axis with `size` elements, of `num_heads` heads (MatrixPart::num_heads),
// of a matrix that is divided along this axis.
Slice shard_axis(int64_t size, Split split, int num_heads,
                 const std::optional<WeightFormat>& format, const WeightStore& store,
                 const Parallel& parallel);

// Whether blocks of `block_elements` along the rows remain whole if the matrix is divided.
constexpr bool divides_blocks(Split split, const Shape& matrix, int64_t block_elements,
                              int num_parts) {
  return !splits_columns(split) || num_parts == 1 || matrix[1] % (num_parts * block_elements) == 0;
}

// The number of elements along an axis that share one scale in a slice of a matrix: `block`, as in
// the matrix, unless the slice's border cuts a block.
constexpr int64_t cut_block(int64_t block, const Slice& slice, int64_t total) {
  const int64_t end = slice.first + slice.count;
  const bool is_whole = slice.first % block == 0 && (end % block == 0 || end == total);
  if (block >= total || is_whole) return block;
  return std::gcd(block, std::gcd(slice.first, slice.count));
}

// Fails if the columns have an order, or if the slice cuts a group of integers with one scale;
// `name` names the matrix in the error.
Status check_column_slice(const WeightScheme& scheme, const Shape& matrix, bool has_order,
                          const Slice& slice, std::string_view name);
// Slices a matrix together with its scales. If a border cuts a block with one scale, all blocks are
// cut to a size that divides both sides. Slices of rows are views of the same memory, except for
// the scales of blocks that are cut. Everything else is copied into `copies`, to which the result
// refers. Slices of columns are checked by check_column_slice().
Result<WeightView> slice_rows(const WeightView& matrix, const Slice& slice,
                              std::vector<Tensor>& copies);
Result<WeightView> slice_columns(const WeightView& matrix, const Slice& slice,
                                 std::string_view name, std::vector<Tensor>& copies);
// The matrix with a scale per block of this size, which divides the size of its present blocks.
Result<WeightView> cut_blocks(const WeightView& matrix, int64_t block_rows, int64_t block_columns,
                              std::vector<Tensor>& copies);
// Slices a matrix of blocks, none of which the slice's border cuts.
BlockMatrix slice_rows(const BlockMatrix& matrix, const Slice& slice);
Result<BlockMatrix> slice_columns(const BlockMatrix& matrix, const Slice& slice,
                                  std::vector<Tensor>& copies);

}  // namespace quire
