#include "model/tensor_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "model/quantization.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

std::set<std::string> names_of(const WeightSource& source) {
  const std::vector<std::string> names = source.names();
  return {names.begin(), names.end()};
}

}  // namespace

TensorReader::TensorReader(WeightSource& source) : source_(source), names_(names_of(source)) {}

Result<TensorView> TensorReader::take(const std::string& name, const Shape& shape) {
  used_.insert(name);
  taken_.push_back(name);
  return source_.tensor(name, shape);
}

Result<TensorView> TensorReader::take_float(const std::string& name, const Shape& shape) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, take(name, shape));
  if (is_weight_dtype(view.dtype)) return view;
  return unimplemented(
      fmt::format("[model] tensor {} has an unsupported type; got {}, expected f32, f16 or bf16 "
                  "(fp8_e4m3 only in the matrices of layers, if quantization_config in config.json "
                  "describes it); convert the checkpoint",
                  quote_name(source_.name_in_file(name)), dtype_name(view.dtype)));
}

Result<TensorView> TensorReader::take_typed(const std::string& name, const Shape& shape,
                                            DType dtype) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, take(name, shape));
  if (view.dtype == dtype) return view;
  return about_tensor(name, "has an unsupported type",
                      unimplemented(fmt::format("got {}, expected {}; convert the checkpoint",
                                                dtype_name(view.dtype), dtype_name(dtype))));
}

Result<TensorView> TensorReader::take_scales(const std::string& name, const Shape& shape,
                                             const WeightScheme& scheme) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView scales, take_float(name, shape));
  const Status status = check_scales(scales, scheme);
  if (!status.ok()) return about_tensor(name, "has a wrong scale", status);
  return scales;
}

Result<BlockMatrix> TensorReader::take_blocks(const std::string& name, const Shape& shape) {
  used_.insert(name);
  taken_.push_back(name);
  return source_.blocks(name, shape);
}

void TensorReader::release_taken() {
  for (const std::string& name : taken_) source_.release(name);
  taken_.clear();
}

Result<std::vector<int64_t>> TensorReader::take_numbers(const std::string& name, int64_t count) {
  used_.insert(name);
  return source_.integers(name, count);
}

Result<std::optional<RepeatedTensor>> TensorReader::take_repeated(const std::string& name) {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<RepeatedTensor> numbers, source_.repeated(name));
  if (numbers) used_.insert(name);
  return numbers;
}

Status TensorReader::about_tensor(const std::string& name, std::string_view fault,
                                  const Status& status) const {
  const std::string file = source_.file_of(name);
  return Status(status.code(),
                fmt::format("[model] {}{}tensor {} {}; {}", file, file.empty() ? "" : ": ",
                            quote_name(source_.name_in_file(name)), fault, status.message()));
}

Status TensorReader::check_nothing_left(std::span<const std::string> ignored_prefixes,
                                        std::string_view architecture) const {
  constexpr size_t kMaxNamed = 3;
  std::set<std::string> left;  // in the file, where one tensor may be several of the decoder's
  for (const std::string& name : names_) {
    const bool is_ignored =
        used_.contains(name) || name.ends_with("rotary_emb.inv_freq") ||
        std::ranges::any_of(ignored_prefixes, [&name](const std::string& prefix) {
          return name.starts_with(prefix);
        });
    if (!is_ignored) left.insert(source_.name_in_file(name));
  }
  if (left.empty()) return {};
  std::vector<std::string> named;
  for (const std::string& name : left) {
    if (named.size() < kMaxNamed) named.push_back(quote_name(name));
  }
  return invalid_argument(fmt::format(
      "[model] the checkpoint has {} tensors that its architecture, {}, does not use: "
      "{}{}; the weights and the configuration do not belong together",
      left.size(), architecture, fmt::join(named, ", "), left.size() > kMaxNamed ? ", …" : ""));
}

}  // namespace quire
