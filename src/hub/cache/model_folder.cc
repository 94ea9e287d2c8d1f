#include "hub/cache/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/model_name.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/named_models.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSourceBytes = size_t{64} << 10;

}  // namespace

Result<fs::path> models_directory() {
  if (const std::string models = variable("QUIRE_MODELS"); !models.empty()) return expanded(models);
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) {
    return expanded(data) / "quire" / "models";
  }
  const std::string home = variable("HOME");
  if (!home.empty()) return fs::path(home) / ".local" / "share" / "quire" / "models";
  return not_found(
      "[hub] neither QUIRE_MODELS, XDG_DATA_HOME nor HOME is set; expected one of them, to find "
      "the "
      "folder of models");
}

Status check_models_folder(const fs::path& models) {
  std::error_code error;
  const fs::directory_iterator entries(models, error);
  if (!error || error == std::errc::no_such_file_or_directory) return {};
  return invalid_argument(
      fmt::format("[hub] the model folder {} cannot be read: {}; expected a folder ({} names it)",
                  models.string(), error.message(), kModelsVariable));
}

bool can_name_local_model(std::string_view name) {
  const bool is_plain = name.find_first_of("/@") == std::string_view::npos;
  return is_plain && name != kEmbeddedModel && parse_model_name(name).has_value();
}

std::string_view local_model_name(std::string_view given) {
  if (const NamedModel* const model = find_named_model(given)) return model->name;
  return given.find('/') == std::string_view::npos ? without_latest(given) : given;
}

ModelSource read_source(const fs::path& path) {
  ModelSource source;
  const Result<std::string> text = read_file(path, kMaxSourceBytes);
  if (!text.ok()) return source;
  const Result<JsonDocument> document = JsonDocument::parse(*text, path.string());
  if (!document.ok()) return source;
  const auto take = [&](std::string_view key, std::string& target) {
    std::string_view value;
    if (!document->root()[key].get_string().get(value)) target = value;
  };
  take("origin", source.origin);
  take("version", source.version);
  take("file", source.file);
  take("sha256", source.sha256);
  take("wheel_sha256", source.wheel_sha256);
  take("sampling_sha256", source.sampling_sha256);
  take("fetched_at", source.fetched_at);
  if (document->root()["size"].get_int64().get(source.size)) source.size = 0;
  return source;
}

std::string source_json(const ModelSource& source) {
  JsonWriter json;
  json.begin_object();
  json.field("origin", source.origin);
  json.field("version", source.version);
  json.field("file", source.file);
  json.field("sha256", source.sha256);
  json.field("size", source.size);
  json.field("wheel_sha256", source.wheel_sha256);
  if (!source.sampling_sha256.empty()) {
    json.field("sampling_sha256", source.sampling_sha256);
  }
  json.field("fetched_at", source.fetched_at);
  json.end_object();
  return json.text() + "\n";
}

std::vector<LocalModel> list_local_models(const fs::path& models) {
  std::vector<LocalModel> found;
  std::error_code error;
  for (fs::directory_iterator it(models, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    // A link without a target is listed, so that the user can find and remove it.
    const bool is_broken = it->is_symlink(ignored) && !it->exists(ignored);
    if (!can_name_local_model(name) || (!is_broken && !it->is_directory(ignored))) continue;
    found.push_back({name, it->path(), read_source(it->path() / "source.json"), is_broken});
  }
  std::ranges::sort(found, {}, &LocalModel::name);
  return found;
}

fs::path local_model_file(const fs::path& models, std::string_view given) {
  const std::string_view name = local_model_name(given);
  if (!can_name_local_model(name)) return {};
  const fs::path file = models / name / (std::string(name) + ".gguf");
  std::error_code error;
  return fs::is_regular_file(file, error) ? file : fs::path();
}

fs::path local_model_file(std::string_view given) {
  const Result<fs::path> models = models_directory();
  return models.ok() ? local_model_file(*models, given) : fs::path();
}

int64_t tree_bytes(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(path, error)) return 0;
  const auto size_of = [](const fs::path& file) {
    std::error_code failed;
    const auto size = fs::file_size(file, failed);
    return failed ? int64_t{0} : static_cast<int64_t>(size);
  };
  if (fs::is_regular_file(path, error)) return size_of(path);
  int64_t total = 0;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_symlink(ignored) && it->is_regular_file(ignored)) total += size_of(it->path());
  }
  return total;
}

Result<int64_t> remove_tree(const fs::path& path) {
  const int64_t num_bytes = tree_bytes(path);
  std::error_code error;
  fs::remove_all(path, error);  // removes a link, not its target
  if (error) {
    return unavailable(fmt::format(
        "[hub] cannot remove {}: {}; {} bytes of it remain; make it writable, and run the same "
        "command again",
        path.string(), error.message(), tree_bytes(path)));
  }
  return num_bytes;
}

}  // namespace quire::hub
