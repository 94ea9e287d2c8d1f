#include "quantize/gguf_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/numbers.h"
#include "quantize/gguf_metadata.h"
#include "quantize/gguf_storage.h"

namespace quire {
namespace {

constexpr float kLargestF16 = 65504;
constexpr uint32_t kF32Type = 0;
constexpr uint32_t kQuantizationVersion = 2;

// How one tensor is converted.
struct Conversion {
  TensorView source;
  std::string name;  // in the checkpoint
  GgufStorage storage;
  const GgufBlockType* type = nullptr;

  bool is_vector() const { return source.shape.rank() == 1; }
  NumberRange range() const {
    if (type->plain == DType::kF32 || type->plain == DType::kBF16) return {};
    return {kLargestF16, type->name};
  }
};

Status convert_row(const Conversion& conversion, int64_t row, std::byte* out) {
  const Shape& shape = conversion.source.shape;
  std::vector<float> numbers(static_cast<size_t>(shape[shape.rank() - 1]));
  const int64_t from = conversion.is_vector() ? row : conversion.storage.source_row(row);
  QUIRE_RETURN_IF_ERROR(
      read_row(conversion.source, from, conversion.name, conversion.range(), numbers.data()));
  if (conversion.is_vector() && conversion.storage.changes.paired_rows > 0) {
    const std::vector<float> in_order = numbers;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t element = conversion.storage.source_row(static_cast<int64_t>(i));
      numbers[i] = in_order[static_cast<size_t>(element)];
    }
  }
  for (float& number : numbers) number += conversion.storage.changes.addend;
  const GgufBlockType& type = *conversion.type;
  for (int64_t i = 0; i * type.block_elements < static_cast<int64_t>(numbers.size()); ++i) {
    quantize(type, numbers.data() + i * type.block_elements, out + i * type.block_bytes);
  }
  return {};
}

class GgufPlanner {
 public:
  GgufPlanner(QuantizeSource& source, GgufTarget target, std::string_view architecture)
      : source_(source), target_(target), architecture_(architecture) {
    const DecoderConfig& decoder = source.decoder();
    shape_ = {architecture, source.files.config.num_layers, decoder.num_heads, decoder.num_kv_heads,
              !decoder.tie_word_embeddings};
  }

  Result<OutputPlan> plan();

 private:
  Status add(const TensorSpec& tensor);
  void log_unfit() const;

  QuantizeSource& source_;
  GgufTarget target_;
  std::string_view architecture_;
  GgufModelShape shape_;
  GgufWriter writer_;
  OutputPlan plan_;
  uint64_t next_ = 0;  // the offset of the next tensor, from the header's end
  std::map<std::string, std::vector<std::string>> unfit_;  // "Q5_0 instead of Q4_K": names
};

Status GgufPlanner::add(const TensorSpec& tensor) {
  Conversion conversion;
  conversion.name = tensor.name;
  QUIRE_ASSIGN_OR_RETURN(conversion.storage,
                         gguf_storage(tensor.name, architecture_, source_.decoder()));
  const int64_t columns = tensor.shape[tensor.shape.rank() - 1];
  conversion.type = find_gguf_block_type(kF32Type);
  if (tensor.shape.rank() > 1) {
    const GgufChoice choice = choose_gguf_type(conversion.storage.name, columns, target_, shape_);
    conversion.type = choice.type;
    if (choice.unfit != nullptr) {
      unfit_[fmt::format("{} instead of {}", choice.type->name, choice.unfit->name)].push_back(
          conversion.storage.name);
    }
  }
  PlannedTensor planned;
  planned.name = conversion.storage.name;
  planned.source = tensor.name;
  planned.num_rows = tensor.shape.num_elements() / columns;
  planned.row_bytes = columns / conversion.type->block_elements * conversion.type->block_bytes;
  planned.begin = next_;
  planned.open = [&weights = *source_.files.weights, shape = tensor.shape,
                  conversion]() mutable -> Result<RowWriter> {
    QUIRE_ASSIGN_OR_RETURN(conversion.source, weights.tensor(conversion.name, shape));
    return RowWriter(
        [conversion](int64_t row, std::byte* out) { return convert_row(conversion, row, out); });
  };
  std::vector<int64_t> extents;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) extents.push_back(tensor.shape[axis]);
  writer_.tensor_at(planned.name, extents, conversion.type->id, next_);
  next_ = round_up(planned.end(), GgufWriter::kAlignment);
  plan_.tensors.push_back(std::move(planned));
  return {};
}

void GgufPlanner::log_unfit() const {
  for (const auto& [change, names] : unfit_) {
    const std::string others =
        names.size() == 1 ? "" : fmt::format(" and {} others", names.size() - 1);
    log_info("[quantize] {} for matrices whose rows are no multiple of its blocks: {}{}", change,
             names.front(), others);
    log_debug("[quantize] all of them: {}", fmt::join(names, ", "));
  }
}

Result<OutputPlan> GgufPlanner::plan() {
  writer_.text("general.architecture", architecture_);
  writer_.text("general.name", source_.files.name);
  writer_.number("general.file_type", gguf_file_type(target_));
  writer_.number("general.quantization_version", kQuantizationVersion);
  QUIRE_RETURN_IF_ERROR(write_gguf_config(source_.files.config, writer_));
  QUIRE_RETURN_IF_ERROR(write_gguf_tokenizer(source_, writer_));
  const std::string kept(writer_.data());
  next_ = kept.size();
  for (const TensorSpec& tensor : source_.tensors) QUIRE_RETURN_IF_ERROR(add(tensor));
  log_unfit();
  plan_.header = writer_.header() + kept;
  for (PlannedTensor& tensor : plan_.tensors) tensor.begin += plan_.header.size() - kept.size();
  plan_.file_bytes = plan_.header.size() - kept.size() + next_;
  return std::move(plan_);
}

}  // namespace

Result<OutputPlan> plan_gguf(QuantizeSource& source, GgufTarget target) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view architecture,
                         gguf_architecture_of(source.files.config));
  return GgufPlanner(source, target, architecture).plan();
}

}  // namespace quire
