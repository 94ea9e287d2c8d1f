// Opens and checks all files of a model's directory, or of the embedded model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/model_text.h"
#include "model/config.h"
#include "quire/config.h"
#include "quire/status.h"
#include "start/embedded.h"
#include "start/embedding_modules.h"
#include "tensor/weight_source.h"
#include "tokenizer/tokenizer.h"

namespace quire {

struct ModelFiles : ModelText {
  std::string name;
  std::string_view file_format = "safetensors";  // or "gguf"
  ModelConfig config;
  Status tokenizer_error;                     // set only by inspect_model_files()
  std::optional<EmbeddingModules> embedding;  // absent: the model generates text
  std::unique_ptr<WeightSource> weights;
};

// The GGUF file that `model` means: a path, or the name of a model in the model folder. Empty: it
// means no GGUF file.
std::filesystem::path find_gguf_file(const std::string& model);

// Opens engine.model: a directory (for dummy weights, a config.json suffices), a GGUF file, the
// name of a model in the model folder or the hub's cache, or the embedded model.
Result<ModelFiles> open_model_files(const EngineConfig& engine);
// open_model_files() for a report: if the tokenizer cannot be read, sets tokenizer_error.
Result<ModelFiles> inspect_model_files(const EngineConfig& engine);

inline constexpr size_t kMaxConfigBytes = size_t{16} << 20;

// A model's config.json, and the model's name.
struct ConfigFile {
  std::filesystem::path path;
  std::string model_name;
};

// Whether the path is a file with the first bytes of a GGUF file.
bool is_gguf_file(const std::filesystem::path& path);
// Finds the configuration of `model`: a directory, the name of a model in the hub's cache, or, if
// `engine` has dummy weights, a config.json.
Result<ConfigFile> find_config(const std::string& model, const EngineConfig& engine);
// Reads a model's config.json, and the hf_quant_config.json beside it if there is one.
Result<ModelConfig> read_model_config(const std::filesystem::path& path);
// Whether matrices are stored in quantized blocks.
bool has_blocks(const WeightSource& weights);
// Opens the weights in a model's directory. With dummy weights, makes them in packed integers if
// there is a `format`, otherwise in the type of `engine` or of config.json.
Result<std::unique_ptr<WeightSource>> open_weights(const EngineConfig& engine,
                                                   const std::filesystem::path& directory,
                                                   std::optional<DType> dtype_of_config,
                                                   const std::optional<WeightFormat>& format);

// The weights in the type of config.json. The conversion is exact: the file's blocks are 8-bit
// integers times a power of two, which BF16 can represent.
Result<std::unique_ptr<WeightSource>> embedded_weights(const ModelConfig& config);

}  // namespace quire
