#include "start/embedding_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kModuleLimits = {.max_bytes = size_t{1} << 20, .max_depth = 16};
constexpr std::string_view kPoolingFlagPrefix = "pooling_mode_";
constexpr std::string_view kLastTokenFlag = "pooling_mode_lasttoken";
constexpr std::string_view kLastToken = "lasttoken";

// One entry of modules.json. Its texts are views into the document.
struct Module {
  std::string_view kind;  // the class without its package, for example "Pooling"
  std::string_view path;  // its folder in the checkpoint
};

Result<Module> read_module(simdjson::dom::element entry, std::string_view source) {
  Module module;
  if (entry["type"].get(module.kind)) {
    return invalid_argument(
        fmt::format("[config] {}: got a module without a type, expected a class", source));
  }
  module.kind.remove_prefix(module.kind.rfind('.') + 1);
  if (entry["path"].get(module.path)) module.path = {};
  const fs::path path = module.path;
  const bool leaves_checkpoint = std::ranges::find(path, "..") != path.end();
  if (path.is_absolute() || leaves_checkpoint) {
    return invalid_argument(fmt::format(
        "[config] {}: the path of a module; got '{}', expected a folder in the checkpoint", source,
        clipped(module.path)));
  }
  return module;
}

Status refuse_pooling(std::string_view source, std::string_view got) {
  return unimplemented(
      fmt::format("[config] {}: this kind of pooling is not supported; got {}, expected "
                  "pooling_mode_lasttoken true, or pooling_mode \"lasttoken\", and no other kind",
                  source, got));
}

// Returns the kind of pooling that a field of the configuration selects; empty: none. The field
// pooling_mode names the kind. Older versions of sentence-transformers write one boolean field
// pooling_mode_KIND per kind instead. For a value of another type, returns the field's own name,
// which is not a supported kind.
std::string_view pooling_kind(std::string_view key, simdjson::dom::element value) {
  std::string_view kind;
  bool is_on = false;
  if (key == "pooling_mode") return value.get(kind) ? key : kind;
  if (!key.starts_with(kPoolingFlagPrefix)) return {};
  if (value.get(is_on)) return key;
  if (!is_on) return {};
  return key == kLastTokenFlag ? kLastToken : key;
}

}  // namespace

Result<std::optional<ModuleList>> parse_modules(std::string_view text, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(text, source, kModuleLimits));
  simdjson::dom::array entries;
  if (document.root().get(entries)) {
    return invalid_argument(fmt::format("[config] {}: not a JSON array", source));
  }
  ModuleList list;
  bool has_pooling = false;
  std::string_view unknown;
  for (const simdjson::dom::element entry : entries) {
    QUIRE_ASSIGN_OR_RETURN(const Module module, read_module(entry, source));
    if (module.kind == "Pooling") {
      if (has_pooling) {
        return unimplemented(
            fmt::format("[config] {}: got several Pooling modules, expected one", source));
      }
      list.pooling = module.path;
      has_pooling = true;
    } else if (module.kind == "Normalize") {
      list.modules.normalizes = true;
    } else if (module.kind != "Transformer") {
      unknown = module.kind;
    }
  }
  if (!has_pooling) return std::optional<ModuleList>();
  if (!unknown.empty()) {
    return unimplemented(fmt::format(
        "[config] {}: a module is not supported; got {}, expected Transformer, Pooling, Normalize",
        source, clipped(unknown)));
  }
  return std::optional(std::move(list));
}

Status check_pooling(std::string_view text, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(text, source, kModuleLimits));
  simdjson::dom::object fields;
  if (document.root().get(fields)) {
    return invalid_argument(fmt::format("[config] {}: not a JSON object", source));
  }
  bool takes_last = false;
  for (const auto [key, value] : fields) {
    const std::string_view kind = pooling_kind(key, value);
    if (kind.empty()) continue;
    if (kind != kLastToken) return refuse_pooling(source, clipped(kind));
    takes_last = true;
  }
  return takes_last ? Status() : refuse_pooling(source, "none");
}

Result<std::optional<EmbeddingModules>> read_embedding_modules(const fs::path& directory) {
  const fs::path file = directory / kModulesFile;
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(file));
  if (!exists) return std::optional<EmbeddingModules>();
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(file, kModuleLimits.max_bytes));
  QUIRE_ASSIGN_OR_RETURN(const auto list, parse_modules(text, file.string()));
  if (!list) return std::optional<EmbeddingModules>();
  const fs::path pooling = directory / list->pooling / "config.json";
  QUIRE_ASSIGN_OR_RETURN(const std::string pooling_text,
                         read_file(pooling, kModuleLimits.max_bytes));
  QUIRE_RETURN_IF_ERROR(check_pooling(pooling_text, pooling.string()));
  return std::optional(list->modules);
}

}  // namespace quire
