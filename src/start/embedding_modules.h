// The modules of an embedding model, which make an embedding from the last token's hidden state.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "quire/status.h"

namespace quire {

// The modules of an embedding model in sentence-transformers' layout: the language model, a pooling
// of the last token, and optionally a normalization.
struct EmbeddingModules {
  bool normalizes = false;  // scales the embedding to length 1
};

// The file that lists the modules of an embedding model.
inline constexpr std::string_view kModulesFile = "modules.json";

// Reads modules.json and the configuration of its Pooling module in `directory`. Returns nullopt if
// there is no such module: the model generates text. Fails for modules and kinds of pooling that
// are not supported, and names them.
Result<std::optional<EmbeddingModules>> read_embedding_modules(
    const std::filesystem::path& directory);

// The parsers of modules.json and of the Pooling module's configuration. `source` names the file in
// errors.
struct ModuleList {
  EmbeddingModules modules;
  std::filesystem::path pooling;  // the folder of the Pooling module, within the checkpoint
};
Result<std::optional<ModuleList>> parse_modules(std::string_view text, std::string_view source);
Status check_pooling(std::string_view text, std::string_view source);

}  // namespace quire
