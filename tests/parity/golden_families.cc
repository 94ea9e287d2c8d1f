#include "parity/golden_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/json.h"
#include "support/shared_data.h"
#include "tensor/dtype.h"

namespace quire::testing {

namespace {

namespace dom = simdjson::dom;

std::vector<int32_t> read_ids(const dom::element& list) {
  std::vector<int32_t> ids;
  for (const dom::element id : list.get_array()) {
    ids.push_back(static_cast<int32_t>(id.get_int64().value()));
  }
  return ids;
}

GoldenTensor read_tensor(const dom::array& row) {
  std::vector<int64_t> sizes;
  for (const dom::element size : row.at(1).get_array()) sizes.push_back(size.get_int64().value());
  return {sizes, row.at(2).get_double().value(), row.at(3).get_double().value()};
}

GoldenPrompt read_prompt(const dom::element& entry) {
  GoldenPrompt prompt = {read_ids(entry["ids"]), read_ids(entry["following"]), {}};
  for (const dom::key_value_pair position : entry["logits"].get_object()) {
    std::vector<float>& logits = prompt.logits[std::stoi(std::string(position.key))];
    for (const dom::element logit : position.value.get_array()) {
      logits.push_back(static_cast<float>(logit.get_double().value()));
    }
  }
  return prompt;
}

// FNV-1a with 64 bits.
uint64_t hash_text(std::string_view text) {
  uint64_t value = 0xCBF29CE484222325;
  for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return value;
}

// SplitMix64.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint64_t random_bits(uint64_t key, size_t i) {
  return mix(key + (i + 1) * 0x9E3779B97F4A7C15);
}

// The bytes of matrices in MXFP4: blocks, or exponents.
bool is_mxfp4(std::string_view name) {
  return name.ends_with("_blocks") || name.ends_with("_scales");
}

void fill_bytes(std::string_view name, uint64_t seed, std::span<uint8_t> out) {
  const uint64_t key = hash_text(fmt::format("{}:{}", seed, name));
  const bool is_exponent = name.ends_with("_scales");
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t bits = random_bits(key, i);
    out[i] = static_cast<uint8_t>(is_exponent ? 122 + bits % 4 : bits % 256);
  }
}

// The sum of the four 16-bit parts of a mixed counter has mean 131,070 and deviation 37,837. All
// steps are exact or rounded once, so these are the bits that the script has.
void fill(std::string_view name, uint64_t seed, const GoldenTensor& tensor, std::span<float> out) {
  const uint64_t key = hash_text(fmt::format("{}:{}", seed, name));
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t bits = random_bits(key, i);
    uint64_t sum = 0;
    for (int shift = 0; shift < 64; shift += 16) sum += (bits >> shift) & 0xFFFF;
    const double normal = (static_cast<double>(sum) - 131070.0) / 37837.0;
    const double number = tensor.mean + tensor.deviation * normal;
    out[i] = bf16_to_f32(f32_to_bf16(static_cast<float>(number)));
  }
}

}  // namespace

GoldenFamily read_golden_family(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::load(path).value();
  const dom::object object = document.root().get_object().value();
  GoldenFamily family;
  family.name = path.stem().string();
  family.seed = object["seed"].get_uint64().value();
  family.max_model_len = static_cast<int>(object["max_model_len"].get_int64().value());
  for (const dom::key_value_pair config : object["configs"].get_object()) {
    family.configs[std::string(config.key)] = simdjson::minify(config.value);
  }
  for (const dom::element entry : object["tensors"].get_array()) {
    const dom::array row = entry.get_array().value();
    family.tensors[std::string(row.at(0).get_string().value())] = read_tensor(row);
  }
  for (const dom::element entry : object["prompts"].get_array()) {
    family.prompts.push_back(read_prompt(entry));
  }
  return family;
}

std::vector<GoldenFamily> read_golden_families() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_path("tests/golden/families"))) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<GoldenFamily> families;
  for (const std::filesystem::path& path : paths) families.push_back(read_golden_family(path));
  return families;
}

Result<TensorView> GeneratedWeights::tensor(std::string_view name, const Shape& expected) {
  const auto found = family_.tensors.find(name);
  if (found == family_.tensors.end()) {
    return not_found(fmt::format("{} has no tensor {}", family_.name, name));
  }
  const GoldenTensor& golden = found->second;
  if (golden.shape.size() > kMaxRank || Shape(golden.shape) != expected) {
    return invalid_argument(fmt::format("the shape of {} in {}: got [{}], expected {}", name,
                                        family_.name, fmt::join(golden.shape, ", "),
                                        shape_text(expected)));
  }
  auto made = made_.find(std::string(name));
  if (made == made_.end()) {
    QUIRE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::host(expected, *dtype_of(name)));
    const auto count = static_cast<size_t>(expected.num_elements());
    if (is_mxfp4(name)) {
      fill_bytes(name, family_.seed, {tensor.view.as<uint8_t>(), count});
    } else {
      fill(name, family_.seed, golden, {tensor.view.as<float>(), count});
    }
    made = made_.emplace(name, std::move(tensor)).first;
  }
  return made->second.view;
}

std::optional<DType> GeneratedWeights::dtype_of(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return is_mxfp4(name) ? DType::kU8 : DType::kF32;
}

std::vector<std::string> GeneratedWeights::names() const {
  std::vector<std::string> names;
  for (const auto& entry : family_.tensors) names.push_back(entry.first);
  return names;
}

}  // namespace quire::testing
