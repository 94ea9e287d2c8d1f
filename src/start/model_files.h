// Opens and checks the files of a model: a directory, a GGUF file, or the embedded model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/model_text.h"
#include "hub/cache/model_cache.h"
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
  std::string_view file_format = "safetensors";  // or "gguf", also for the embedded model
  std::string gguf_mixture;                      // gguf_mixture_name()
  ModelConfig config;
  Status tokenizer_error;                     // set only by inspect_model_files()
  std::optional<EmbeddingModules> embedding;  // absent: the model generates text
  std::unique_ptr<WeightSource> weights;
};

// Returns the GGUF file that `model` names by its path, or by a name in the model folder or the
// hub's cache. The path is empty if `model` names no GGUF file.
hub::FoundModel find_gguf_file(const std::string& model);

// Opens engine.model: a directory (for dummy weights, a config.json suffices), a GGUF file, the
// name of a model in the model folder or the hub's cache, or the embedded model.
Result<ModelFiles> open_model_files(const EngineConfig& engine);
// Does the same for a report. If the tokenizer cannot be read, sets tokenizer_error instead of
// failing.
Result<ModelFiles> inspect_model_files(const EngineConfig& engine);

inline constexpr size_t kMaxConfigBytes = size_t{16} << 20;  // of each JSON file of a model

// A model's config.json, and the model's name.
struct ConfigFile {
  std::filesystem::path path;
  std::string model_name;
};

// Whether the path is a regular file that begins like a GGUF file.
bool is_gguf_file(const std::filesystem::path& path);
// Finds the configuration of `model`: a directory, the name of a model in the hub's cache or, if
// `engine` has dummy weights, a config.json of any name.
Result<ConfigFile> find_config(const std::string& model, const EngineConfig& engine);
// Reads a model's config.json, and the hf_quant_config.json beside it if there is one.
Result<ModelConfig> read_model_config(const std::filesystem::path& path);
// Whether any tensor is stored in quantized blocks.
bool has_blocks(const WeightSource& weights);
// Opens the weights in a model's directory. If `engine` has dummy weights, makes them instead: in
// packed integers of `format` if there is one, otherwise in the type of `engine`, of config.json,
// or BF16.
Result<std::unique_ptr<WeightSource>> open_weights(const EngineConfig& engine,
                                                   const std::filesystem::path& directory,
                                                   std::optional<DType> dtype_of_config,
                                                   const std::optional<WeightFormat>& format);

// Returns the embedded model's weights in the type of its config.json. The conversion is exact: the
// file's blocks are 8-bit integers times a power of two, which BF16 can represent.
Result<std::unique_ptr<WeightSource>> embedded_weights(const ModelConfig& config);

}  // namespace quire
