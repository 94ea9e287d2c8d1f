#include "start/model_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "model/model_loader.h"
#include "model/weights.h"
#include "start/model_files.h"
#include "start/setting_values.h"

namespace quire {
namespace {

std::string short_digest(std::string_view text) {
  const Sha256Digest digest = sha256_of(text);
  return to_hexadecimal(std::span(digest).first(8));
}

// Digests the size of a file, and all bytes or samples of them.
std::string digest_of_file(const MappedFile& mapped) {
  constexpr size_t kSmall = size_t{16} << 20;
  constexpr size_t kFirst = size_t{1} << 20;
  constexpr size_t kSample = size_t{16} << 10;
  constexpr size_t kNumSamples = 32;
  const void* const bytes = mapped.bytes().data();
  const std::string_view file(static_cast<const char*>(bytes), mapped.bytes().size());
  std::string text = fmt::format("{} bytes\n", file.size());
  if (file.size() <= kSmall) {
    text += file;
  } else {
    text += file.substr(0, kFirst);
    for (size_t i = 1; i <= kNumSamples; ++i) {
      text += file.substr((file.size() - kSample) * i / kNumSamples, kSample);
    }
  }
  return short_digest(text);
}

// The type of the weights; for a GGUF file, the types of its quantized matrices.
std::string weights_key(const EngineConfig& config, const ModelFiles& files) {
  std::string block_types = block_type_names(*files.weights, "+");
  if (!block_types.empty()) return block_types;
  if (files.config.format) return std::string(values_name(files.config.format->scheme));
  return std::string(dtype_name(weight_dtype(config, files.config.dtype)));
}

}  // namespace

std::string model_key(const EngineConfig& config, const ModelFiles& files) {
  const ModelConfig& model = files.config;
  return fmt::format("{} {}x{} {} {} {}", model.architecture, model.num_layers, model.hidden_size,
                     num_parameters(model), weights_key(config, files), config.cpu_activations);
}

std::string digest_of(const WeightSource& weights) {
  std::vector<std::string> names = weights.names();
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  for (const MappedFile* file : weights.files()) text += digest_of_file(*file);
  return short_digest(text);
}

Result<std::string> digest_of_config_file(const EngineConfig& config) {
  if (is_embedded(config.model) || !find_gguf_file(config.model).directory.empty()) {
    return std::string("none");
  }
  QUIRE_ASSIGN_OR_RETURN(const ConfigFile found, find_config(config.model, config));
  QUIRE_ASSIGN_OR_RETURN(std::string text, read_file(found.path, kMaxConfigBytes));
  const std::filesystem::path quantization = found.path.parent_path() / kQuantConfigFile;
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(quantization));
  if (exists) {
    QUIRE_ASSIGN_OR_RETURN(const std::string more, read_file(quantization, kMaxConfigBytes));
    text += more;
  }
  return short_digest(text);
}

}  // namespace quire
