#include "model/tensor_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "base/thread_pool.h"
#include "model/mxfp4_weights.h"
#include "model/quantization.h"
#include "model/weights.h"
#include "tensor/dtype.h"
#include "tensor/forwarding_source.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

struct Replacement {
  std::string_view from;
  std::string_view to;
  bool is_used = false;
};

// Whether `fragment` is whole components of the name from `at` on, where a component begins.
bool has_components(std::string_view name, size_t at, std::string_view fragment) {
  const std::string_view rest = name.substr(at);
  return !fragment.empty() && rest.starts_with(fragment) &&
         (rest.size() == fragment.size() || rest[fragment.size()] == '.');
}

// Replaces components from left to right, each at most once.
std::string replace(std::string_view name, std::span<Replacement> replacements) {
  std::string out;
  const auto append = [&out](std::string_view components) {
    if (!out.empty()) out += '.';
    out += components;
  };
  for (size_t at = 0; at < name.size();) {
    const auto found = std::ranges::find_if(replacements, [&](const Replacement& replacement) {
      return has_components(name, at, replacement.from);
    });
    if (found == replacements.end()) {
      const std::string_view component = name.substr(at, name.find('.', at) - at);
      append(component);
      at += component.size() + 1;
      continue;
    }
    found->is_used = true;
    if (!found->to.empty()) append(found->to);
    at += found->from.size() + 1;
  }
  for (Replacement& replacement : replacements) {
    if (!replacement.from.empty() || has_components(out, 0, replacement.to)) continue;
    replacement.is_used = true;
    out.insert(0, fmt::format("{}.", replacement.to));
  }
  return out;
}

// The renames from the file's names to the decoder's. The layout must outlive them.
std::vector<Replacement> replacements_of(const TensorLayout& layout) {
  std::vector<Replacement> replacements;
  for (const Rename& rename : layout.renames) {
    replacements.push_back({rename.stored, rename.decoder});
  }
  return replacements;
}

// The place of a fused matrix in the name of one of its tensors.
struct FusedName {
  std::string_view before;  // ends with a dot, or is empty
  std::string_view suffix;  // as it is stored: ".weight", "_bias", or empty
};

std::optional<FusedName> find_fused(std::string_view name, std::string_view matrix) {
  for (size_t at = 0; at < name.size(); at = name.find('.', at) + 1) {
    const std::string_view rest = name.substr(at);
    if (rest.starts_with(matrix)) {
      const std::string_view suffix = rest.substr(matrix.size());
      if (suffix.empty() || suffix.starts_with('.') || suffix.starts_with('_')) {
        return FusedName{name.substr(0, at), suffix};
      }
    }
    if (rest.find('.') == std::string_view::npos) break;
  }
  return std::nullopt;
}

// The suffix after the name of a matrix that is stored alone.
std::string decoder_suffix(std::string_view stored) {
  if (stored.starts_with('.')) return std::string(stored);
  return stored == "_bias" ? ".bias" : fmt::format(".weight{}", stored);
}

bool is_of_experts(const FusedMatrix& fused) {
  return fused.parts.front().find('*') != std::string::npos;
}

// Finds the fused matrix's tensor that has the part's tensor `name`; nullopt: none has.
std::optional<FusedName> find_part(std::string_view name, std::string_view part) {
  const size_t star = part.find('*');
  if (star == std::string_view::npos) return find_fused(name, part);
  const std::optional<FusedName> expert = find_fused(name, part.substr(0, star - 1));
  if (!expert) return std::nullopt;
  const size_t end = expert->suffix.find('.', 1);  // of the number
  if (end == std::string_view::npos) return std::nullopt;
  const std::optional<FusedName> found =
      find_fused(expert->suffix.substr(end + 1), part.substr(star + 2));
  return found && found->before.empty() ? std::optional(FusedName{expert->before, found->suffix})
                                        : std::nullopt;
}

std::string name_of_part(std::string_view before, const std::string& part, int64_t expert) {
  const size_t star = part.find('*');
  if (star == std::string::npos) return fmt::format("{}{}", before, part);
  return fmt::format("{}{}{}{}", before, part.substr(0, star), expert, part.substr(star + 1));
}

// Describes the part of a tensor in the file that is one tensor of the decoder.
struct Part {
  // The axis of the decoder's tensor along which it is cut; absent: it is all of the tensor.
  std::optional<int> axis;
  int64_t first = 0;  // element along the axis of the whole tensor
  int64_t count = 0;
  int64_t total = 0;        // elements of the whole tensor along the axis
  int64_t expert = 0;       // index along the axis of experts, which is the first
  int64_t num_experts = 0;  // 0: no such axis
  bool is_transposed = false;
  int64_t num_groups = 1;  // FusedMatrix::num_groups; `first` is of the first group
  // Set if the tensor's values are the shape of the whole matrix, which has `total` rows: the shape
  // of the part's matrix.
  std::optional<Shape> matrix;

  Shape stored_shape(const Shape& shape) const;
  // The inverse of stored_shape(). Absent: the tensor may also be stored in another shape. If
  // `stored` is not the shape of such a tensor, the result is not the part's shape.
  std::optional<Shape> shape_in(const Shape& stored) const;
};

Shape Part::stored_shape(const Shape& shape) const {
  std::vector<int64_t> extents;
  for (int i = 0; i < shape.rank(); ++i) extents.push_back(shape[i]);
  if (axis) extents[static_cast<size_t>(*axis)] = total;
  if (is_transposed) std::ranges::reverse(extents);
  if (num_experts > 0) extents.insert(extents.begin(), num_experts);
  return Shape(extents);
}

std::optional<Shape> Part::shape_in(const Shape& stored) const {
  if (is_transposed || matrix) return std::nullopt;
  std::vector<int64_t> extents;
  for (int i = 0; i < stored.rank(); ++i) extents.push_back(stored[i]);
  if (num_experts > 0) {
    if (extents.empty() || extents.front() != num_experts) return stored;
    extents.erase(extents.begin());
  }
  if (axis && *axis < std::ssize(extents)) {
    int64_t& extent = extents[static_cast<size_t>(*axis)];
    if (extent == total) extent = count;
  }
  return Shape(extents);
}

// The distance in memory, in elements, to the next row and to the next column of a matrix.
struct Strides {
  int64_t row = 0;
  int64_t column = 0;
};

// Copies rows [first, last) of a matrix into a contiguous one.
template <typename T>
void copy_rows(const T* from, const Strides& strides, const Shape& shape, int64_t first,
               int64_t last, T* out) {
  // A tile of a transposed matrix stays in the cache while its lines are read.
  constexpr int64_t kTileColumns = 64;
  if (strides.column == 1) {
    for (int64_t row = first; row < last; ++row) {
      std::copy_n(from + row * strides.row, shape[1], out + row * shape[1]);
    }
    return;
  }
  for (int64_t tile = 0; tile < shape[1]; tile += kTileColumns) {
    const int64_t end = std::min(shape[1], tile + kTileColumns);
    for (int64_t row = first; row < last; ++row) {
      for (int64_t column = tile; column < end; ++column) {
        out[row * shape[1] + column] = from[row * strides.row + column * strides.column];
      }
    }
  }
}

// Makes `threads` on first use.
template <typename T>
void copy_matrix(const TensorView& from, int64_t first, const Strides& strides,
                 const TensorView& out, const Shape& shape, std::optional<ThreadPool>& threads) {
  constexpr int64_t kTaskRows = 64;
  constexpr int64_t kSmall = 1 << 16;  // elements that are not worth threads
  const T* const begin = from.as<T>() + first;
  const auto copy = [&](int64_t row, int64_t last) {
    copy_rows(begin, strides, shape, row, last, out.as<T>());
  };
  if (shape.num_elements() <= kSmall) return copy(0, shape[0]);
  const int64_t num_tasks = ceil_div(shape[0], kTaskRows);
  if (!threads) threads.emplace(num_usable_cpus());
  threads->parallel_for(num_tasks, [&](int64_t task) {
    copy(task * kTaskRows, std::min(shape[0], (task + 1) * kTaskRows));
  });
}

// Copies a part whose elements are not contiguous. `whole` has no axis of experts.
Result<Tensor> copy_part(const TensorView& whole, const Part& part, const Shape& shape,
                         std::optional<ThreadPool>& threads) {
  QUIRE_ASSIGN_OR_RETURN(Tensor copy, Tensor::host(shape, whole.dtype));
  const Shape matrix = {shape[0], shape.num_elements() / shape[0]};
  const int64_t axis = part.axis.value_or(0);
  const int64_t row_elements = axis == 0 ? matrix[1] : part.total;
  Strides strides = {row_elements, 1};
  if (part.is_transposed) strides = {1, part.axis ? part.total : matrix[0]};
  const int64_t step = axis == 0 ? strides.row : strides.column;  // along the axis
  int64_t num_groups = part.num_groups;
  if (num_groups == matrix[0]) {  // of one row each
    strides.row *= part.total / num_groups;
    num_groups = 1;
  }
  const int64_t group_rows = matrix[0] / num_groups;
  for (int64_t group = 0; group < num_groups; ++group) {
    const int64_t first = (part.first + group * (part.total / num_groups)) * step;
    const TensorView out = copy.view.rows(group * group_rows, group_rows);
    const Shape rows = {group_rows, matrix[1]};
    switch (dtype_bytes(whole.dtype)) {
      case 1:
        copy_matrix<uint8_t>(whole, first, strides, out, rows, threads);
        break;
      case 2:
        copy_matrix<uint16_t>(whole, first, strides, out, rows, threads);
        break;
      case 4:
        copy_matrix<uint32_t>(whole, first, strides, out, rows, threads);
        break;
      default:
        copy_matrix<uint64_t>(whole, first, strides, out, rows, threads);
        break;
    }
  }
  return copy;
}

class LayoutSource final : public ForwardingSource {
 public:
  LayoutSource(std::unique_ptr<WeightSource> source, TensorLayout layout)
      : ForwardingSource(std::move(source)), layout_(std::move(layout)) {}

  // Finds the decoder's tensors among the file's. Called once, before the others.
  Status find_tensors(std::span<const TensorSpec> tensors);

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  bool has(std::string_view name) const override { return entries_.contains(std::string(name)); }
  std::optional<DType> dtype_of(std::string_view name) const override;
  std::optional<Shape> shape_of(std::string_view name) const override;
  std::string file_of(std::string_view name) const override;
  std::string name_in_file(std::string_view name) const override;
  Result<std::vector<int64_t>> integers(std::string_view name, int64_t count) override;
  void release(std::string_view name) override;
  std::vector<std::string> names() const override;

 private:
  struct Entry {
    std::string stored;
    std::optional<Part> part;  // absent: the whole tensor under another name
  };
  // A tensor in the file whose parts are several tensors of the decoder.
  struct Whole {
    TensorView view;  // data null: not requested
    int64_t num_parts = 0;
    std::unordered_set<std::string> released;  // since the last release of the whole
  };
  using Matrices = std::unordered_map<std::string_view, const TensorSpec*>;  // by name

  const Entry* find(std::string_view name) const;
  Status add_entry(const std::string& name, Entry entry);
  // Adds the tensors that are parts of a tensor of a fused matrix. Returns false if the decoder has
  // no such matrices, or if no tensor of a matrix has this suffix.
  Result<bool> add_parts(const std::string& stored, const FusedName& name, size_t fused_idx,
                         const Matrices& matrices);
  // Adds the tensors of one expert, or of a matrix without experts, for which `parts` are the
  // decoder's matrices.
  Status add_matrices(const std::string& stored, const FusedMatrix& fused, const RowAxis& rows,
                      std::string_view suffix, std::span<const TensorSpec* const> parts,
                      const Part& expert);
  Status check_values(const std::string& stored, const FusedMatrix& fused,
                      std::string_view suffix) const;
  Status about(std::string_view stored, std::string_view fault) const;
  // Takes a tensor that the decoder has under another name. A vector may be stored as a matrix of
  // one row.
  Result<TensorView> take_tensor(const std::string& stored, const Shape& expected);
  Result<TensorView> take_whole(const Entry& entry, std::string_view name, const Shape& shape);

  TensorLayout layout_;
  std::vector<Replacement> from_decoder_;  // from the decoder's names to the file's
  // Per fused matrix: from the decoder's suffixes that occur in the file to the stored suffixes.
  std::vector<std::map<std::string, std::string>> suffixes_;
  std::unordered_map<std::string, Entry> entries_;  // by the decoder's name
  std::unordered_map<std::string, Whole> wholes_;   // by the stored name
  std::unordered_map<std::string, Tensor> copies_;  // by the decoder's name
  std::optional<ThreadPool> threads_;               // that copy parts; made when they are needed
};

Status LayoutSource::find_tensors(std::span<const TensorSpec> tensors) {
  Matrices matrices;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.matrix() != nullptr) matrices.emplace(tensor.matrix()->matrix, &tensor);
  }
  std::vector<Replacement> to_decoder = replacements_of(layout_);
  suffixes_.resize(layout_.fused.size());
  int num_ignored = 0;
  std::set<std::string> ignored_prefixes;
  for (const std::string& stored : ForwardingSource::names()) {
    const auto ignored =
        std::ranges::find_if(layout_.ignored_prefixes,
                             [&](const std::string& prefix) { return stored.starts_with(prefix); });
    if (ignored != layout_.ignored_prefixes.end()) {
      ++num_ignored;
      ignored_prefixes.insert(*ignored);
      continue;
    }
    const std::string name = replace(stored, to_decoder);
    bool is_fused = false;
    for (size_t i = 0; i < layout_.fused.size() && !is_fused; ++i) {
      const std::optional<FusedName> found = find_fused(name, layout_.fused[i].stored);
      if (!found) continue;
      QUIRE_ASSIGN_OR_RETURN(is_fused, add_parts(stored, *found, i, matrices));
    }
    if (!is_fused) QUIRE_RETURN_IF_ERROR(add_entry(name, {stored, {}}));
  }
  for (const Replacement& rename : to_decoder) {
    if (rename.is_used) from_decoder_.push_back({rename.to, rename.from});
  }
  if (num_ignored > 0) {
    log_info(
        "[model] {} tensors of the checkpoint are not the model's and are skipped: their names "
        "begin with {}",
        num_ignored, fmt::join(ignored_prefixes, ", "));
  }
  return {};
}

Status LayoutSource::about(std::string_view stored, std::string_view fault) const {
  const std::string file = ForwardingSource::file_of(stored);
  return invalid_argument(fmt::format("[model] {}{}tensor {} {}", file, file.empty() ? "" : ": ",
                                      quote_name(stored), fault));
}

Status LayoutSource::add_entry(const std::string& name, Entry entry) {
  if (entry.part) ++wholes_[entry.stored].num_parts;
  const auto [found, is_new] = entries_.try_emplace(name, std::move(entry));
  if (is_new) return {};
  return about(entry.stored,
               fmt::format("and tensor {} are both {} for the decoder; expected one of them: "
                           "download the checkpoint again",
                           quote_name(found->second.stored), quote_name(name)));
}

Result<bool> LayoutSource::add_parts(const std::string& stored, const FusedName& name,
                                     size_t fused_idx, const Matrices& matrices) {
  const FusedMatrix& fused = layout_.fused[fused_idx];
  // The decoder's matrices of an expert; empty: none.
  const auto parts_of = [&](int64_t expert) {
    std::vector<const TensorSpec*> parts;
    for (const std::string& part : fused.parts) {
      const auto found = matrices.find(name_of_part(name.before, part, expert));
      if (found == matrices.end()) return std::vector<const TensorSpec*>();
      parts.push_back(found->second);
    }
    return parts;
  };
  std::vector<std::vector<const TensorSpec*>> experts;
  for (std::vector<const TensorSpec*> parts = parts_of(0); !parts.empty();) {
    experts.push_back(std::move(parts));
    parts.clear();
    if (is_of_experts(fused)) parts = parts_of(std::ssize(experts));
  }
  if (experts.empty()) return false;
  const std::string suffix = decoder_suffix(name.suffix);
  const std::optional<RowAxis> rows = row_axis(suffix, experts[0][0]->matrix()->format);
  if (!rows || (rows->has_matrix_shape && is_of_experts(fused))) return false;
  QUIRE_RETURN_IF_ERROR(check_values(stored, fused, suffix));
  suffixes_[fused_idx].emplace(suffix, name.suffix);
  Part expert;
  if (is_of_experts(fused)) expert.num_experts = std::ssize(experts);
  for (const std::vector<const TensorSpec*>& parts : experts) {
    QUIRE_RETURN_IF_ERROR(add_matrices(stored, fused, *rows, suffix, parts, expert));
    ++expert.expert;
  }
  return true;
}

Status LayoutSource::check_values(const std::string& stored, const FusedMatrix& fused,
                                  std::string_view suffix) const {
  if (!fused.is_transposed || suffix == ".bias" || is_mxfp4_suffix(suffix)) return {};
  const DType dtype = ForwardingSource::dtype_of(stored).value_or(DType::kF32);
  if (suffix == ".weight" && is_weight_dtype(dtype)) return {};
  return about(stored, fmt::format("is quantized and has its rows as columns; got {}, expected "
                                   "f32, f16 or bf16: use the checkpoint that it was made from",
                                   dtype_name(dtype)));
}

Status LayoutSource::add_matrices(const std::string& stored, const FusedMatrix& fused,
                                  const RowAxis& rows, std::string_view suffix,
                                  std::span<const TensorSpec* const> parts, const Part& expert) {
  int64_t num_rows = 0;
  for (const TensorSpec* part : parts) {
    QUIRE_CHECK(part->shape[1] == parts[0]->shape[1],
                "[model] the parts of a fused matrix have different widths");
    num_rows += part->shape[0];
  }
  const int64_t unit = rows.rows_per_element;
  int64_t first_row = 0;  // in the first group
  for (const TensorSpec* const matrix : parts) {
    const TensorSpec& spec = *matrix;
    const int64_t group_rows = spec.shape[0] / fused.num_groups;
    const bool is_divided = fused.num_groups == 1 || (rows.axis == 0 && group_rows % unit == 0);
    if (rows.axis && (first_row % unit != 0 || !is_divided)) {
      return about(stored, fmt::format("cannot be divided; got {} from row {}, expected a multiple "
                                       "of the {} rows of an element: use the checkpoint that it "
                                       "was made from",
                                       quote_name(spec.matrix()->matrix), first_row, unit));
    }
    Part part = expert;
    part.axis = rows.axis;
    part.count = ceil_div(spec.shape[0], unit);
    part.total = ceil_div(num_rows, unit);
    part.first = first_row / unit;
    part.is_transposed = fused.is_transposed && suffix == ".weight";
    part.num_groups = fused.num_groups;
    if (rows.has_matrix_shape) part.matrix = spec.shape;
    first_row += group_rows;
    QUIRE_RETURN_IF_ERROR(
        add_entry(fmt::format("{}{}", spec.matrix()->matrix, suffix), {stored, part}));
  }
  return {};
}

const LayoutSource::Entry* LayoutSource::find(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  return found == entries_.end() ? nullptr : &found->second;
}

Result<TensorView> LayoutSource::take_tensor(const std::string& stored, const Shape& expected) {
  Result<TensorView> tensor = ForwardingSource::tensor(stored, expected);
  if (tensor.ok() || expected.rank() != 1) return tensor;
  Result<TensorView> row = ForwardingSource::tensor(stored, {1, expected[0]});
  if (!row.ok()) return tensor;
  row->shape = expected;
  return row;
}

Result<TensorView> LayoutSource::take_whole(const Entry& entry, std::string_view name,
                                            const Shape& shape) {
  Whole& whole = wholes_[entry.stored];
  if (whole.view.data == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(whole.view, ForwardingSource::tensor(entry.stored, shape));
  }
  QUIRE_CHECK(whole.view.shape == shape, "[model] parts of a tensor are of different shapes");
  whole.released.erase(std::string(name));
  return whole.view;
}

Result<TensorView> LayoutSource::tensor(std::string_view name, const Shape& expected) {
  const Entry* const entry = find(name);
  if (entry == nullptr) {
    return not_found(fmt::format(
        "[model] tensor {} of shape {} is missing; expected every tensor of the model that "
        "config.json describes: download the checkpoint again",
        quote_name(name_in_file(name)), shape_text(expected)));
  }
  if (!entry->part) return take_tensor(entry->stored, expected);
  Part part = *entry->part;
  QUIRE_CHECK(!part.axis || expected[*part.axis] == part.count,
              "[model] a part of a tensor is requested in another shape");
  if (part.is_transposed) {
    Part upright = part;
    upright.is_transposed = false;
    const TensorView& taken = wholes_[entry->stored].view;
    const auto has_shape_of = [&](const Part& form) {
      const Shape shape = form.stored_shape(expected);
      if (taken.data != nullptr) return taken.shape == shape;
      return ForwardingSource::tensor(entry->stored, shape).ok();
    };
    if (!has_shape_of(part) && has_shape_of(upright)) part = upright;
  }
  QUIRE_ASSIGN_OR_RETURN(TensorView view, take_whole(*entry, name, part.stored_shape(expected)));
  if (part.num_experts > 0) {
    const size_t expert_bytes = view.num_bytes() / static_cast<size_t>(part.num_experts);
    view.data = view.as<std::byte>() + static_cast<size_t>(part.expert) * expert_bytes;
  }
  const bool is_contiguous =
      !part.is_transposed && (!part.axis || (*part.axis == 0 && part.num_groups == 1));
  if (is_contiguous) {
    view.shape = expected;
    if (part.axis) {
      const auto bytes = view.num_bytes() / static_cast<size_t>(part.count);
      view.data = view.as<std::byte>() + static_cast<size_t>(part.first) * bytes;
    }
    return view;
  }
  QUIRE_ASSIGN_OR_RETURN(Tensor copy, copy_part(view, part, expected, threads_));
  const TensorView copied = copy.view;
  copies_.insert_or_assign(std::string(name), std::move(copy));
  return copied;
}

std::optional<DType> LayoutSource::dtype_of(std::string_view name) const {
  const Entry* const entry = find(name);
  return entry == nullptr ? std::nullopt : ForwardingSource::dtype_of(entry->stored);
}

std::optional<Shape> LayoutSource::shape_of(std::string_view name) const {
  const Entry* const entry = find(name);
  if (entry == nullptr) return std::nullopt;
  const std::optional<Shape> shape = ForwardingSource::shape_of(entry->stored);
  return shape && entry->part ? entry->part->shape_in(*shape) : shape;
}

std::string LayoutSource::file_of(std::string_view name) const {
  const Entry* const entry = find(name);
  return entry == nullptr ? std::string() : ForwardingSource::file_of(entry->stored);
}

std::string LayoutSource::name_in_file(std::string_view name) const {
  if (const Entry* const entry = find(name)) return entry->stored;
  std::string fused_name(name);
  for (size_t i = 0; i < layout_.fused.size(); ++i) {
    if (suffixes_[i].empty()) continue;
    for (const std::string& part : layout_.fused[i].parts) {
      const std::optional<FusedName> found = find_part(name, part);
      if (!found) continue;
      const auto suffix = suffixes_[i].find(std::string(found->suffix));
      fused_name = fmt::format("{}{}{}", found->before, layout_.fused[i].stored,
                               suffix == suffixes_[i].end() ? found->suffix : suffix->second);
    }
  }
  std::vector<Replacement> renames = from_decoder_;
  return replace(fused_name, renames);
}

Result<std::vector<int64_t>> LayoutSource::integers(std::string_view name, int64_t count) {
  const Entry* const entry = find(name);
  if (entry == nullptr || !entry->part || !entry->part->matrix) {
    return WeightSource::integers(name, count);
  }
  QUIRE_ASSIGN_OR_RETURN(std::vector<int64_t> extents,
                         ForwardingSource::integers(entry->stored, count));
  const Shape& matrix = *entry->part->matrix;
  if (count == 2 && extents[0] == entry->part->total && extents[1] == matrix[1]) {
    return std::vector<int64_t>{matrix[0], matrix[1]};
  }
  return about(entry->stored,
               fmt::format("has another shape than config.json says; got [{}], expected [{}, {}]",
                           fmt::join(extents, ", "), entry->part->total, matrix[1]));
}

void LayoutSource::release(std::string_view name) {
  const Entry* const entry = find(name);
  if (entry == nullptr) return;
  if (!entry->part) return ForwardingSource::release(entry->stored);
  copies_.erase(std::string(name));
  Whole& whole = wholes_[entry->stored];
  if (whole.view.data == nullptr) return;
  whole.released.emplace(name);
  if (std::ssize(whole.released) < whole.num_parts) return;
  ForwardingSource::release(entry->stored);
  whole.view = {};
  whole.released.clear();
}

std::vector<std::string> LayoutSource::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  std::ranges::sort(all);
  return all;
}

}  // namespace

bool stores(const WeightSource& checkpoint, const TensorLayout& layout, std::string_view name) {
  if (checkpoint.has(name)) return true;  // random weights have every tensor, and list none
  std::vector<Replacement> to_decoder = replacements_of(layout);
  return std::ranges::any_of(checkpoint.names(), [&](const std::string& stored) {
    return replace(stored, to_decoder) == name;
  });
}

Result<std::unique_ptr<WeightSource>> apply_layout(std::unique_ptr<WeightSource> source,
                                                   const TensorLayout& layout,
                                                   std::span<const TensorSpec> tensors) {
  if (layout.is_plain() || source->names().empty()) return present_mxfp4(std::move(source), layout);
  auto arranged = std::make_unique<LayoutSource>(std::move(source), layout);
  QUIRE_RETURN_IF_ERROR(arranged->find_tensors(tensors));
  return present_mxfp4(std::move(arranged), layout);
}

}  // namespace quire
