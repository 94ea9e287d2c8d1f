#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "model/matrix_reader.h"
#include "model/moe.h"
#include "model/tensor_reader.h"
#include "ops/host_matrices.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace quire {

namespace {

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

// The binding with its shared experts as further experts.
ExpertsBinding merge_shared_experts(ExpertsBinding binding) {
  for (int i = 0; i < binding.num_shared; ++i) {
    MlpBinding& expert = binding.each.emplace_back(binding.shared);
    expert.gate_up.portion = expert.down.portion = {i, binding.num_shared};
    expert.gate_up.linear = expert.down.linear = nullptr;
  }
  binding.shape = with_shared_experts(binding.shape, binding.num_shared);
  return binding;
}

// Reads the matrices of experts, one at a time.
class BoundExperts final : public ExpertsSource {
 public:
  BoundExperts(MatrixReader& matrices, std::vector<MlpBinding> each, const ExpertsShape& shape)
      : matrices_(matrices), each_(std::move(each)), shape_(shape) {}

  const ExpertsShape& shape() const override { return shape_; }
  Result<LinearSource> gate_up(int idx) override { return read(expert(idx).gate_up); }
  Result<LinearSource> down(int idx) override { return read(expert(idx).down); }
  const MatrixBinding* last_read() const { return last_read_; }  // null: none

 private:
  const MlpBinding& expert(int idx) const { return each_[static_cast<size_t>(idx)]; }
  Result<LinearSource> read(const MatrixBinding& matrix) {
    matrices_.release();
    last_read_ = &matrix;
    return matrices_.read(matrix);
  }

  MatrixReader& matrices_;
  std::vector<MlpBinding> each_;
  ExpertsShape shape_;
  const MatrixBinding* last_read_ = nullptr;
};

class Loader {
 public:
  Loader(WeightSource& source, Ops& ops, const Parallel& parallel)
      : ops_(ops),
        store_(ops.weights()),
        parallel_(parallel),
        tensors_(source),
        matrices_(tensors_, store_, parallel) {}

  Status load(const WeightList& list, const LoadOptions& options);
  // Called after load: every tensor of the source must have been used or be ignored.
  Status check_nothing_left(const WeightList& list, std::string_view architecture) const {
    return tensors_.check_nothing_left(list.ignored_prefixes, architecture);
  }

 private:
  void warn_of_expanded(const WeightList& list) const;
  Status load_group(const WeightGroup& group);
  Status load_matrix(const MatrixBinding& binding);
  Status load_experts(const ExpertsBinding& binding);
  bool can_merge_shared_experts(const ExpertsBinding& binding) const;
  Status load_latent(const LatentBinding& binding);
  Status load_vector(const VectorBinding& binding);
  Status load_kv_scales(const KvScalesBinding& binding);
  // Loads the scale from the checkpoint's tensors of these names. Fails if their values differ.
  Status load_kv_scale(const std::string& attention, std::span<const std::string_view> names,
                       Tensor& scale);

  Ops& ops_;
  WeightStore& store_;
  Parallel parallel_;
  TensorReader tensors_;
  MatrixReader matrices_;
  ExpandedMatrices expanded_;
  int num_experts_ = 0;  // ExpertsBindings that were loaded
};

Status Loader::load(const WeightList& list, const LoadOptions& options) {
  expanded_ = options.expanded != nullptr
                  ? *options.expanded
                  : find_expanded(list_tensors(list), tensors_.source(), store_, parallel_);
  warn_of_expanded(list);
  const auto num_layers =
      static_cast<int>(std::ranges::count_if(list.groups, &WeightGroup::is_layer));
  int num_loaded = 0;
  for (const WeightGroup& group : list.groups) {
    QUIRE_RETURN_IF_ERROR(load_group(group));
    if (group.is_layer && options.progress) options.progress(++num_loaded, num_layers);
  }
  return {};
}

void Loader::warn_of_expanded(const WeightList& list) const {
  if (!expanded_.experts.empty()) {
    log_warning(
        "[model] the experts of {} layers are expanded to 16 bits, which takes more memory; got "
        "matrices in different formats, or in one that the device does not keep; expected one "
        "format per layer; quantize the experts of a layer alike",
        expanded_.experts.size());
  }
  if (!expanded_.stacks.empty()) {
    const std::vector<TensorSpec> tensors = list_tensors(list);
    const auto first = std::ranges::find_if(tensors, [this](const TensorSpec& tensor) {
      return tensor.matrix() != nullptr && tensor.matrix()->stack == *expanded_.stacks.begin();
    });
    log_warning(
        "[model] {} stacks of matrices are expanded to 16 bits, which takes more memory, the first "
        "with {}; got quantized blocks beside a format that the device does not keep in blocks; "
        "expected blocks in all matrices of a stack; quantize queries, keys and values alike, and "
        "gate and up",
        expanded_.stacks.size(), quote_name(first->name));
  }
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
  QUIRE_ASSIGN_OR_RETURN(const LinearSource source, matrices_.read(binding));
  Result<std::unique_ptr<Linear>> linear = store_.make_linear(source);
  if (!linear.ok()) return matrices_.explain(linear.status(), binding);
  *binding.linear = std::move(linear).value();
  if (binding.split == Split::kVocabulary && parallel_.size > 1) {
    (*binding.linear)->set_first_token_id(matrices_.rows_of(binding.parts.front(), binding).first);
  }
  matrices_.release();
  return {};
}

Status Loader::load_experts(const ExpertsBinding& binding) {
  QUIRE_RETURN_IF_ERROR(expert_ops_of(ops_).status());
  const bool are_mixed = expanded_.experts.contains(num_experts_++);
  const bool merges_shared =
      binding.num_shared > 0 && !are_mixed && can_merge_shared_experts(binding);
  if (binding.num_shared > 0 && !merges_shared) {
    QUIRE_RETURN_IF_ERROR(load_matrix(binding.shared.gate_up));
    QUIRE_RETURN_IF_ERROR(load_matrix(binding.shared.down));
  }
  ExpertsBinding all = merges_shared ? merge_shared_experts(binding) : binding;
  for (MlpBinding& expert : all.each) expert.gate_up.expands = expert.down.expands = are_mixed;
  all.shape.intermediate_size =
      shard_inner(all.shape.intermediate_size, binding.each.front().down.format, store_, parallel_)
          .slice.count;
  BoundExperts source(matrices_, std::move(all.each), all.shape);
  Result<std::unique_ptr<Experts>> experts = store_.make_experts(source);
  if (!experts.ok()) {
    const MatrixBinding* const matrix = source.last_read();
    return matrix == nullptr ? experts.status() : matrices_.explain(experts.status(), *matrix);
  }
  *binding.experts = std::move(experts).value();
  matrices_.release();
  return {};
}

// Whether the shared experts can be loaded as further experts beside the chosen ones, which have
// one format.
bool Loader::can_merge_shared_experts(const ExpertsBinding& binding) const {
  const auto are_alike = [this](const MatrixBinding& a, const MatrixBinding& b) {
    const WeightSource& source = tensors_.source();
    return std::ranges::equal(
        a.parts, b.parts, {},
        [&](const MatrixPart& part) { return stored_type(part.name, a.format, source); },
        [&](const MatrixPart& part) { return stored_type(part.name, b.format, source); });
  };
  const MlpBinding& first = binding.each.front();
  // A part of a matrix cannot always be kept in the quantized form of the other experts.
  const auto is_kept = [this](const MatrixBinding& matrix) {
    const bool has_integers = matrix.format && is_integer(matrix.format->scheme);
    return has_integers || matrices_.keeps_blocks(matrix);
  };
  if (binding.num_shared > 1 && (is_kept(first.gate_up) || is_kept(first.down))) return false;
  // If the ranks' parts are unequal, the blocks that a rank has of several separate experts differ
  // from its blocks of their one MLP, which the plan counts.
  const int64_t inner = binding.shape.intermediate_size;
  const int64_t kept = shard_inner(inner, first.down.format, store_, parallel_).slice.count;
  if (binding.num_shared > 1 && kept * parallel_.size != inner) return false;
  return are_alike(binding.shared.gate_up, first.gate_up) &&
         are_alike(binding.shared.down, first.down) &&
         store_.merges_shared_experts(with_shared_experts(binding.shape, binding.num_shared));
}

Status Loader::load_latent(const LatentBinding& binding) {
  if (ops_.latents() == nullptr) {
    return unimplemented(
        "[model] the device does not compute multi-head latent attention; got a model that has it, "
        "expected another model, or `device` cpu");
  }
  QUIRE_ASSIGN_OR_RETURN(const Tensor plain, matrices_.read_plain(binding.matrix));
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
  QUIRE_ASSIGN_OR_RETURN(*binding.k_up, store_.make_per_head_linear(keys));
  QUIRE_ASSIGN_OR_RETURN(*binding.v_up, store_.make_per_head_linear(values));
  matrices_.release();
  return {};
}

namespace {

// This rank's rows of each section of a vector.
std::vector<float> sections_of(const VectorBinding& binding, const TensorView& whole,
                               const Parallel& parallel) {
  int64_t num_rows = 0;
  for (const VectorSection& section : binding.sections) num_rows += section.num_rows;
  const int64_t width = binding.size / num_rows;
  std::vector<float> elements;
  int64_t first_row = 0;
  for (const VectorSection& section : binding.sections) {
    const Slice part = shard_heads(section.num_rows, section.num_heads, parallel);
    const int64_t first = (first_row + part.first) * width;
    for (int64_t i = 0; i < part.count * width; ++i) {
      elements.push_back(element_as_f32(whole, first + i));
    }
    first_row += section.num_rows;
  }
  return elements;
}

std::vector<float> transposed(const TensorView& rows, int64_t num_columns) {
  const int64_t num_rows = rows.shape.num_elements() / num_columns;
  std::vector<float> elements;
  for (int64_t i = 0; i < num_columns; ++i) {
    for (int64_t row = 0; row < num_rows; ++row) {
      elements.push_back(element_as_f32(rows, row * num_columns + i));
    }
  }
  return elements;
}

}  // namespace

Status Loader::load_vector(const VectorBinding& binding) {
  if (binding.name.empty()) {
    std::vector<float> constant(static_cast<size_t>(binding.size), binding.addend);
    QUIRE_ASSIGN_OR_RETURN(*binding.vector,
                           store_.make_vector({constant.data(), DType::kF32, {binding.size}}));
    return {};
  }
  QUIRE_ASSIGN_OR_RETURN(
      TensorView view,
      tensors_.take_float(binding.name, binding.shape.value_or(Shape{binding.size})));
  const Status finite = check_finite(view);
  if (!finite.ok()) return tensors_.about_tensor(binding.name, "is damaged", finite);
  view.shape = {binding.size};
  if (binding.num_heads > 0) {
    const Slice part = shard_heads(binding.size, binding.num_heads, parallel_);
    view = view.rows(part.first, part.count);
  }
  std::vector<float> changed;
  if (!binding.sections.empty()) {
    changed = sections_of(binding, view, parallel_);
    view = {changed.data(), DType::kF32, {std::ssize(changed)}};
  }
  if (binding.transposed_columns > 0) {
    changed = transposed(view, binding.transposed_columns);
    view = {changed.data(), DType::kF32, {std::ssize(changed)}};
  }
  if (binding.addend != 0.0F || binding.factor != 1.0F) {
    std::vector<float> scaled;
    for (int64_t i = 0; i < view.shape.num_elements(); ++i) {
      scaled.push_back((element_as_f32(view, i) + binding.addend) * binding.factor);
    }
    changed = std::move(scaled);
    view = {changed.data(), DType::kF32, {std::ssize(changed)}};
  }
  QUIRE_ASSIGN_OR_RETURN(*binding.vector, store_.make_vector(view));
  tensors_.release_taken();
  return {};
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
    if (!tensors_.stores(full)) continue;
    QUIRE_ASSIGN_OR_RETURN(const TensorView view, tensors_.take_scales(full, {1}));
    const float value = element_as_f32(view, 0);
    if (first && *first != value) {
      return tensors_.about_tensor(
          full, "contradicts another scale of the same cache",
          invalid_argument(
              fmt::format("got {}, expected {}; download the checkpoint again, or remove one "
                          "of the scales",
                          value, *first)));
    }
    if (!first) {
      QUIRE_ASSIGN_OR_RETURN(scale, store_.make_vector(view));
    }
    first = value;
    tensors_.release_taken();
  }
  return {};
}

}  // namespace

Result<KvScales> make_kv_scales(const KvScaleValues& values, WeightStore& store) {
  float k = values.k;
  float v = values.v;
  KvScales scales;
  QUIRE_ASSIGN_OR_RETURN(scales.k, store.make_vector({&k, DType::kF32, {1}}));
  QUIRE_ASSIGN_OR_RETURN(scales.v, store.make_vector({&v, DType::kF32, {1}}));
  return scales;
}

Status load_weights(const WeightList& list, std::string_view architecture, WeightSource& source,
                    Ops& ops, const Parallel& parallel, const LoadOptions& options) {
  Loader loader(source, ops, parallel);
  QUIRE_RETURN_IF_ERROR(loader.load(list, options));
  return loader.check_nothing_left(list, architecture);
}

}  // namespace quire
