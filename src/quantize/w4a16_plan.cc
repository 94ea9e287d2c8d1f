#include "quantize/w4a16_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/numbers.h"
#include "quantize/int4_groups.h"
#include "quantize/quantize.h"

namespace quire {
namespace {

constexpr int kValuesPerWord = 8;  // of 4 bits, the first in the lowest
static_assert(kGroupSizeStep % kValuesPerWord == 0, "a group is whole words");

constexpr std::string_view kWeight = ".weight";

std::string_view safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI64:
      return "I64";
    default:
      return "I32";
  }
}

// A tensor of the source, and how its rows are converted.
struct SourceTensor {
  TensorView view;
  std::string name;
  size_t group_size = 0;
  const TensorScales* scales = nullptr;  // null: none

  int64_t columns() const { return view.shape[view.shape.rank() - 1]; }
  // Row `i` of the scaled matrix, or the scaled vector.
  Result<std::vector<float>> row(int64_t i) const {
    std::vector<float> numbers(static_cast<size_t>(columns()));
    QUIRE_RETURN_IF_ERROR(read_row(view, i, name, {}, numbers.data()));
    if (scales == nullptr) return numbers;
    if (view.shape.rank() == 1) {
      scales->scale_vector(numbers);
    } else {
      scales->scale_row(i, numbers);
    }
    return numbers;
  }
};

// Writes and returns the scale of the row's group that begins at column `first`.
float write_scale(const SourceTensor& matrix, std::span<const float> row, size_t first,
                  std::byte* out) {
  std::span<const float> importance;
  if (matrix.scales != nullptr && !matrix.scales->importance.empty()) {
    importance = std::span(matrix.scales->importance).subspan(first, matrix.group_size);
  }
  return best_int4_scale(row.subspan(first, matrix.group_size), importance, matrix.view.dtype, out);
}

Status write_scales(const SourceTensor& matrix, int64_t row, std::byte* out) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<float> numbers, matrix.row(row));
  for (size_t first = 0; first < numbers.size(); first += matrix.group_size) {
    write_scale(matrix, numbers, first, out);
    out += dtype_bytes(matrix.view.dtype);
  }
  return {};
}

Status write_packed(const SourceTensor& matrix, int64_t row, std::byte* out) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<float> numbers, matrix.row(row));
  std::array<std::byte, sizeof(float)> unused;
  for (size_t first = 0; first < numbers.size(); first += matrix.group_size) {
    const float scale = write_scale(matrix, numbers, first, unused.data());
    const auto group = std::span(numbers).subspan(first, matrix.group_size);
    round_to_int4(group, scale, group.data());
  }
  for (size_t first = 0; first < numbers.size(); first += kValuesPerWord) {
    uint32_t word = 0;
    for (size_t i = 0; i < kValuesPerWord; ++i) {
      word |= static_cast<uint32_t>(numbers[first + i] - kInt4Least) << (4 * i);
    }
    std::memcpy(out, &word, sizeof(word));
    out += sizeof(word);
  }
  return {};
}

// Copies a row. A tensor without scales keeps its bits.
Status copy_row(const SourceTensor& tensor, int64_t row, std::byte* out) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<float> numbers, tensor.row(row));
  const size_t number_bytes = dtype_bytes(tensor.view.dtype);
  if (tensor.scales == nullptr) {
    const size_t bytes = numbers.size() * number_bytes;
    std::memcpy(out, tensor.view.as<std::byte>() + static_cast<size_t>(row) * bytes, bytes);
    return {};
  }
  for (const float number : numbers) {
    store_number(number, tensor.view.dtype, out);
    out += number_bytes;
  }
  return {};
}

using RowFunction = Status (*)(const SourceTensor& tensor, int64_t row, std::byte* out);

class W4a16Planner {
 public:
  W4a16Planner(QuantizeSource& source, int group_size, const ChannelScales& scales)
      : source_(source), group_size_(group_size), scales_(scales) {}

  Result<OutputPlan> plan();

 private:
  Status add(const TensorSpec& tensor);
  // The error for a tensor whose rows are not whole groups.
  Status refuse_group_size(const TensorSpec& tensor) const;
  Status add_quantized(const TensorSpec& tensor, DType dtype);
  void add_shape(const std::string& stem, const Shape& shape);
  void add_rows(std::string name, const TensorSpec& tensor, DType dtype, const Shape& shape,
                RowFunction write);

  struct Entry {
    PlannedTensor tensor;
    DType dtype;
    Shape shape;
  };

  QuantizeSource& source_;
  int group_size_;
  const ChannelScales& scales_;
  std::vector<Entry> entries_;
};

void W4a16Planner::add_shape(const std::string& stem, const Shape& shape) {
  const std::array<int64_t, 2> extents = {shape[0], shape[1]};
  Entry entry;
  entry.dtype = DType::kI64;
  entry.shape = {2};
  entry.tensor.name = stem + "weight_shape";
  entry.tensor.row_bytes = sizeof(extents);
  entry.tensor.open = [extents]() -> Result<RowWriter> {
    return RowWriter([extents](int64_t, std::byte* out) {
      std::memcpy(out, extents.data(), sizeof(extents));
      return Status();
    });
  };
  entries_.push_back(std::move(entry));
}

void W4a16Planner::add_rows(std::string name, const TensorSpec& tensor, DType dtype,
                            const Shape& shape, RowFunction write) {
  Entry entry;
  entry.dtype = dtype;
  entry.shape = shape;
  const int64_t columns = shape[shape.rank() - 1];
  entry.tensor.name = std::move(name);
  entry.tensor.source = tensor.name;
  entry.tensor.num_rows = shape.num_elements() / columns;
  entry.tensor.row_bytes = columns * static_cast<int64_t>(dtype_bytes(dtype));
  entry.tensor.open = [&weights = *source_.files.weights, &scales = scales_, tensor, write,
                       group_size = group_size_]() -> Result<RowWriter> {
    SourceTensor from;
    QUIRE_ASSIGN_OR_RETURN(from.view, weights.tensor(tensor.name, tensor.shape));
    from.name = tensor.name;
    from.group_size = static_cast<size_t>(group_size);
    from.scales = find_scales(scales, tensor.name);
    return RowWriter([from, write](int64_t row, std::byte* out) { return write(from, row, out); });
  };
  entries_.push_back(std::move(entry));
}

Status W4a16Planner::refuse_group_size(const TensorSpec& tensor) const {
  int64_t common = 0;  // divisor of all quantized rows
  const auto is_divisible = [](const TensorSpec& matrix) {
    return matrix.shape[1] % kGroupSizeStep == 0;
  };
  const TensorSpec* indivisible = is_divisible(tensor) ? nullptr : &tensor;
  for (const TensorSpec& other : source_.tensors) {
    if (!is_layer_matrix(other)) continue;
    common = std::gcd(common, other.shape[1]);
    if (indivisible == nullptr && !is_divisible(other)) indivisible = &other;
  }
  if (indivisible != nullptr) {
    return invalid_argument(fmt::format(
        "[quantize] group_size: got {}, expected a divisor of {}, the row of tensor {}: no "
        "multiple of {} divides {}; choose a GGUF target, such as --to q8_0",
        group_size_, indivisible->shape[1], quote_name(indivisible->name), kGroupSizeStep,
        indivisible->shape[1]));
  }
  int64_t best = W4A16Target().group_size;
  while (common % best != 0) best /= 2;
  return invalid_argument(fmt::format(
      "[quantize] group_size: got {}, expected a divisor of {}, the row of tensor {}, such as {}",
      group_size_, tensor.shape[1], quote_name(tensor.name), best));
}

Status W4a16Planner::add_quantized(const TensorSpec& tensor, DType dtype) {
  const int64_t rows = tensor.shape[0];
  const int64_t columns = tensor.shape[1];
  if (columns % group_size_ != 0) return refuse_group_size(tensor);
  const std::string stem = tensor.name.substr(0, tensor.name.size() - kWeight.size() + 1);
  add_shape(stem, tensor.shape);
  add_rows(stem + "weight_packed", tensor, DType::kI32, {rows, columns / kValuesPerWord},
           write_packed);
  add_rows(stem + "weight_scale", tensor, dtype, {rows, columns / group_size_}, write_scales);
  return {};
}

Status W4a16Planner::add(const TensorSpec& tensor) {
  const DType dtype = source_.files.weights->dtype_of(tensor.name).value_or(DType::kF32);
  if (is_layer_matrix(tensor)) return add_quantized(tensor, dtype);
  add_rows(tensor.name, tensor, dtype, tensor.shape, copy_row);
  return {};
}

Result<OutputPlan> W4a16Planner::plan() {
  for (const TensorSpec& tensor : source_.tensors) QUIRE_RETURN_IF_ERROR(add(tensor));
  // Larger elements first: without gaps, every tensor is then aligned to its type.
  std::ranges::stable_sort(entries_, std::ranges::greater(),
                           [](const Entry& entry) { return dtype_bytes(entry.dtype); });
  JsonWriter json;
  json.begin_object();
  json.key("__metadata__");
  json.raw(R"({"format":"pt"})");
  uint64_t next = 0;
  for (Entry& entry : entries_) {
    entry.tensor.begin = next;
    next = entry.tensor.end();
    json.key(entry.tensor.name);
    json.begin_object();
    json.field("dtype", safetensors_name(entry.dtype));
    json.key("shape");
    json.begin_array();
    for (int axis = 0; axis < entry.shape.rank(); ++axis) json.value(entry.shape[axis]);
    json.end_array();
    json.key("data_offsets");
    json.begin_array();
    json.value(static_cast<int64_t>(entry.tensor.begin));
    json.value(static_cast<int64_t>(entry.tensor.end()));
    json.end_array();
    json.end_object();
  }
  json.end_object();
  std::string text = json.take();
  text.resize(round_up(text.size(), sizeof(uint64_t)), ' ');
  const uint64_t size = text.size();
  OutputPlan plan;
  plan.header = std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text;
  for (Entry& entry : entries_) {
    entry.tensor.begin += plan.header.size();
    plan.tensors.push_back(std::move(entry.tensor));
  }
  plan.file_bytes = plan.header.size() + next;
  return plan;
}

}  // namespace

Result<OutputPlan> plan_w4a16(QuantizeSource& source, int group_size, const ChannelScales& scales) {
  if (group_size <= 0 || group_size % kGroupSizeStep != 0) {
    return invalid_argument(fmt::format(
        "[quantize] group_size: got {}, expected a positive multiple of {}, such as 128",
        group_size, kGroupSizeStep));
  }
  // The copy has the source's config.json, with which readers expect the source's tensors.
  for (const TensorSpec& tensor : source.tensors) {
    const std::string stored = source.files.weights->name_in_file(tensor.name);
    if (stored == tensor.name) continue;
    return unimplemented(fmt::format(
        "[quantize] model: {} ({}) stores {} as, or in, {}; expected a text model with the names "
        "of Llama, because a w4a16 copy would lose the others: write a GGUF file, such as "
        "--to q8_0",
        source.place, source.files.config.architecture, tensor.name, stored));
  }
  return W4a16Planner(source, group_size, scales).plan();
}

namespace {

// Returns the text of an object without this field. The field is absent or null: checkpoints with
// the name of a scheme in it have been refused.
std::string without_field(const std::string& text, std::string_view name) {
  const Result<JsonDocument> json = JsonDocument::parse(text, "config.json");
  simdjson::dom::object fields;
  if (!json.ok() || json->root().get(fields) != simdjson::SUCCESS) return text;
  if (fields.at_key(name).error() != simdjson::SUCCESS) return text;
  JsonWriter writer;
  writer.begin_object();
  for (const auto& [key, value] : fields) {
    if (key == name) continue;
    writer.key(key);
    writer.raw(simdjson::minify(value));
  }
  writer.end_object();
  return writer.take();
}

}  // namespace

std::string w4a16_config_json(const QuantizeSource& source, int group_size) {
  constexpr std::string_view kFormat =
      R"({{
    "config_groups": {{
      "group_0": {{
        "targets": ["Linear"],
        "weights": {{
          "num_bits": 4,
          "type": "int",
          "symmetric": true,
          "strategy": "group",
          "group_size": {},
          "dynamic": false
        }},
        "input_activations": null,
        "output_activations": null
      }}
    }},
    "format": "pack-quantized",
    "ignore": ["lm_head"],
    "kv_cache_scheme": null,
    "quant_method": "compressed-tensors",
    "quantization_status": "compressed"
  }})";
  // The text is a valid object with fields, so that its last brace ends it.
  std::string config = without_field(source.config_json, "quantization_config");
  config.erase(config.rfind('}'));
  config.erase(config.find_last_not_of(" \t\r\n") + 1);
  return fmt::format("{},\n  \"quantization_config\": {}\n}}\n", config,
                     fmt::format(kFormat, group_size));
}

}  // namespace quire
