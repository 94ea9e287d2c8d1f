// The models that a supervisor serves: sections of an INI file, or the entries of a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::supervisor {

struct ModelEntry {
  std::string name;
  std::vector<std::string> aliases = {};  // further names in requests
  bool is_default = false;                // serves requests that name no model
  bool loads_at_start = false;
  std::vector<std::string> arguments = {};  // of `quire serve`: the model and its flags
  std::filesystem::path files = {};         // a file or a folder; empty: unknown, or embedded
  bool is_embedded = false;                 // a part of the program
};

// Identifies the contents of the model's files, and of files and folders that its arguments name:
// two equal results mean that none of them has changed. Reads no file, only sizes and times.
// nullopt: the files are not known, or too many.
std::optional<std::string> stamp_of_files(const ModelEntry& model);

struct IniValue {
  std::string key;
  std::string value;
  int line = 0;
};

struct IniSection {
  std::string name;  // "*": its values hold for all sections
  int line = 0;
  std::vector<IniValue> values = {};
};

inline constexpr std::string_view kEverySection = "*";
inline constexpr size_t kMaxIniBytes = size_t{1} << 20;

// Parses sections with `key = value` lines. A line that begins with ';' or '#' is a comment, and a
// value extends to the end of its line, without single or double quotes around it. Fails for a
// comment after a value, and for repeated sections and keys. `version = 1` may
// stand before the first section, as llama-server's presets have it. `source` names the file.
Result<std::vector<IniSection>> parse_ini(std::string_view text, std::string_view source);

// Returns the models in a folder, by name: each sub-folder with a config.json or a *.gguf file, and
// each *.gguf file. A file of a multimodal projector (mmproj*.gguf) is no model. The arguments are
// the path. Fails without any model.
Result<std::vector<ModelEntry>> list_models_directory(const std::filesystem::path& directory);

// Fails for a name or an alias that is empty or appears twice, and for two defaults.
Status check_models(const std::vector<ModelEntry>& models);

}  // namespace quire::supervisor
