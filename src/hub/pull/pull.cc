#include "hub/pull/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/file.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/text.h"
#include "hub/pull/blob_download.h"
#include "hub/pull/local_files.h"
#include "hub/pull/repository_list.h"
#include "tensor/checkpoint.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

// The folders of one model in the cache.
struct ModelFolders {
  BlobFolders blobs;
  fs::path refs;
  fs::path snapshot;
};

Result<ModelFolders> make_folders(const PullOptions& options, const std::string& commit) {
  const fs::path model = model_folder(options.cache, options.hub.model);
  ModelFolders folders;
  folders.blobs.blobs = model / "blobs";
  folders.blobs.locks = options.cache / ".locks" / model.filename();
  folders.refs = model / "refs";
  folders.snapshot = model / "snapshots" / commit;
  for (const fs::path& path :
       {folders.blobs.blobs, folders.blobs.locks, folders.refs, folders.snapshot}) {
    QUIRE_RETURN_IF_ERROR(make_folder(path, kCacheVariable));
  }
  return folders;
}

// Returns a path beside this one that no other program uses. It is random, because a process on
// another machine with a shared cache may have the same process id.
fs::path fresh_path(const fs::path& path) {
  return fmt::format("{}.{:08x}.tmp", path.string(), std::random_device()());
}

// Writes a temporary file and renames it, so that no reader gets a part of it.
Status write_ref(const fs::path& refs, const ModelName& model, const std::string& commit) {
  if (is_commit(model.revision)) return {};
  const fs::path path = refs / model.revision;
  QUIRE_RETURN_IF_ERROR(make_folder(path.parent_path(), kCacheVariable));
  const fs::path fresh = fresh_path(path);
  std::ofstream file(fresh, std::ios::binary);
  file << commit;
  file.close();
  if (!file || ::rename(fresh.c_str(), path.c_str()) != 0)
    return write_error(path, kCacheVariable, errno);
  return {};
}

// Links the file's name in the snapshot to its blob. The name may contain folders.
Status link_blob(const RepositoryFile& file, const ModelFolders& folders) {
  const fs::path link = folders.snapshot / file.name;
  QUIRE_RETURN_IF_ERROR(make_folder(link.parent_path(), kCacheVariable));
  const fs::path target = (folders.blobs.blobs / file.hash).lexically_relative(link.parent_path());
  std::error_code error;
  if (fs::read_symlink(link, error) == target) return {};
  const fs::path fresh = fresh_path(link);
  if (::symlink(target.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), link.c_str()) != 0) {
    return write_error(link, kCacheVariable, errno);
  }
  return {};
}

int64_t total_bytes(const std::vector<RepositoryFile>& files) {
  int64_t total = 0;
  for (const RepositoryFile& file : files) total += file.size;
  return total;
}

int64_t cached_bytes(const std::vector<RepositoryFile>& files, const BlobFolders& folders) {
  int64_t total = 0;
  for (const RepositoryFile& file : files) total += bytes_in_cache(file, folders);
  return total;
}

// Downloads files with several threads. During that time, the calling thread reports notes and
// progress.
class Download {
 public:
  Download(const PullOptions& options, const PullHooks& hooks) : options_(options), hooks_(hooks) {
    state_.was_answered = true;  // the list has arrived
    state_.interrupted = [this] { return has_failed_ || hooks_.interrupted(); };
    state_.note = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      notes_.push_back(line);
      changed_.notify_one();
    };
  }

  Status run(const std::vector<RepositoryFile>& files, const std::string& commit,
             const ModelFolders& folders) {
    const int64_t total = total_bytes(files);
    num_bytes_ = cached_bytes(files, folders.blobs);
    QUIRE_RETURN_IF_ERROR(check_disk(total - num_bytes_, folders.blobs.blobs, kCacheVariable));
    next_ = 0;
    const size_t num_workers = std::min(files.size(), static_cast<size_t>(options_.max_workers));
    num_running_ = num_workers;
    std::vector<std::jthread> workers;
    try {
      for (size_t i = 0; i < num_workers; ++i) {
        workers.emplace_back([&] { work(files, commit, folders); });
      }
    } catch (const std::system_error&) {  // the threads that exist download all files
      if (workers.empty()) throw;
      const std::lock_guard lock(mutex_);
      num_running_ -= num_workers - workers.size();
    }
    report_until_done(total);
    workers.clear();
    if (hooks_.interrupted()) return cancelled("[hub] interrupted");
    return first_failure_;
  }

 private:
  void work(const std::vector<RepositoryFile>& files, const std::string& commit,
            const ModelFolders& folders) noexcept {
    const Status status = [&]() noexcept {
      try {
        return download_some(files, commit, folders);
      } catch (...) {
        return make_exception_status([](const char* text) {
          return internal_error(fmt::format("[hub] the download failed: {}", text));
        });
      }
    }();
    const std::lock_guard lock(mutex_);
    if (!status.ok() && !has_failed_.exchange(true)) first_failure_ = status;
    --num_running_;
    changed_.notify_one();
  }

  // Downloads one file after the other until none is left.
  Status download_some(const std::vector<RepositoryFile>& files, const std::string& commit,
                       const ModelFolders& folders) {
    QUIRE_ASSIGN_OR_RETURN(HubClient client, HubClient::create(options_.hub, state_));
    for (size_t i = next_++; i < files.size(); i = next_++) {
      QUIRE_RETURN_IF_ERROR(download_blob(client, commit, files[i], folders.blobs, num_bytes_));
      QUIRE_RETURN_IF_ERROR(link_blob(files[i], folders));
    }
    return {};
  }

  void report_until_done(int64_t total) {
    constexpr std::chrono::milliseconds kTick{100};
    std::unique_lock lock(mutex_);
    while (num_running_ > 0) {
      changed_.wait_for(lock, kTick);
      report_notes(lock);
      lock.unlock();
      hooks_.progress(num_bytes_, total);
      lock.lock();
    }
    report_notes(lock);
  }

  void report_notes(std::unique_lock<std::mutex>& lock) {
    const std::vector<std::string> notes = std::exchange(notes_, {});
    lock.unlock();
    for (const std::string& line : notes) hooks_.note(line);
    lock.lock();
  }

  const PullOptions& options_;
  const PullHooks& hooks_;
  PullState state_;
  std::atomic<bool> has_failed_ = false;
  std::atomic<int64_t> num_bytes_ = 0;
  std::atomic<size_t> next_ = 0;  // the next file that no worker has taken

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::string> notes_;
  size_t num_running_ = 0;
  Status first_failure_;
};

Result<RepositoryList> get_list(const PullOptions& options, const PullHooks& hooks) {
  PullState state{hooks.interrupted, hooks.note};
  QUIRE_ASSIGN_OR_RETURN(HubClient client, HubClient::create(options.hub, state));
  TextReceiver receiver;
  QUIRE_RETURN_IF_ERROR(client.get_list(receiver));
  QUIRE_ASSIGN_OR_RETURN(RepositoryList list, parse_repository_list(receiver.text()));
  const std::string& revision = options.hub.model.revision;
  if (is_commit(revision) && revision != list.commit) {
    return unavailable(fmt::format(
        "[hub] the hub answered with commit {}; expected {}, which was asked for; check "
        "HF_ENDPOINT",
        list.commit, revision));
  }
  return list;
}

std::string describe(const PullOptions& options, const RepositoryList& list,
                     const FileChoice& choice, const ModelFolders& folders) {
  constexpr size_t kShortCommit = 12;
  const int64_t cached = cached_bytes(choice.weights, folders.blobs);
  const size_t num_files = choice.small.size() + choice.weights.size();
  return fmt::format(
      "{} at {}: {}, {}{}", options.hub.model.text(), list.commit.substr(0, kShortCommit),
      num_files == 1 ? clipped(choice.weights.front().name) : fmt::format("{} files", num_files),
      bytes_text(total_bytes(choice.small) + total_bytes(choice.weights)),
      cached == 0 ? "" : fmt::format(", {} of them in the cache already", bytes_text(cached)));
}

Result<std::string> read_token() {
  constexpr size_t kMaxTokenBytes = 4096;
  std::string token = variable("HF_TOKEN");
  std::string source = "HF_TOKEN";
  if (token.empty()) {
    fs::path path = variable("HF_TOKEN_PATH");
    if (path.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const fs::path home, hub_home());
      path = home / "token";
    }
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(path));
    if (!exists) return token;
    QUIRE_ASSIGN_OR_RETURN(token, read_file(path, kMaxTokenBytes));
    source = path.string();
  }
  token = trimmed(token);
  // A line end would add a header to the request. The message must not contain the token.
  if (std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; })) return token;
  return invalid_argument(fmt::format(
      "[hub] the token of {} has a blank or a control character; expected letters and digits",
      source));
}

Result<std::string> read_endpoint() {
  std::string endpoint = variable("HF_ENDPOINT");
  if (endpoint.empty()) return std::string("https://huggingface.co");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool has_scheme = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  const bool is_plain = std::ranges::all_of(endpoint, [](char c) { return c > ' ' && c < 0x7f; }) &&
                        endpoint.find_first_of("@?#") == std::string::npos;
  if (has_scheme && is_plain) return endpoint;
  return invalid_argument(
      "[hub] HF_ENDPOINT is not the address of a hub; expected https://HOST[:PORT][/PATH], without "
      "a user or password");
}

bool is_loopback(std::string_view endpoint) {
  constexpr std::array<std::string_view, 3> kHosts = {"http://127.", "http://localhost",
                                                      "http://[::1]"};
  return std::ranges::any_of(kHosts,
                             [&](std::string_view host) { return endpoint.starts_with(host); });
}

// Links the GGUF files of other tags that an earlier pull of another commit has downloaded.
Status link_cached_gguf(const RepositoryList& list, const ModelFolders& folders) {
  for (const RepositoryFile& file : list.files) {
    const bool is_candidate = file.name.ends_with(".gguf") && check_file(file).ok();
    if (!is_candidate || !has_blob(file, folders.blobs)) continue;
    QUIRE_RETURN_IF_ERROR(link_blob(file, folders));
  }
  return {};
}

}  // namespace

Result<fs::path> pull(const PullOptions& options, const PullHooks& hooks) {
  QUIRE_ASSIGN_OR_RETURN(const RepositoryList list, get_list(options, hooks));
  QUIRE_ASSIGN_OR_RETURN(FileChoice choice, choose_files(list, options.hub.model.gguf_tag));
  // A mirror need not state the architecture, and a projector in the repository may have another.
  if (choice.is_gguf && choice.others.empty() && !list.gguf_architecture.empty()) {
    QUIRE_RETURN_IF_ERROR(hooks.check_gguf_architecture(list.gguf_architecture));
  }
  QUIRE_ASSIGN_OR_RETURN(const ModelFolders folders, make_folders(options, list.commit));
  // A new revision is written at once, so that a partial download is reported as such. An existing
  // revision keeps its older commit until the new one is complete.
  std::error_code error;
  const bool has_ref = fs::exists(folders.refs / options.hub.model.revision, error);
  if (!has_ref) QUIRE_RETURN_IF_ERROR(write_ref(folders.refs, options.hub.model, list.commit));

  Download download(options, hooks);
  // All small files come before the weights, so that a snapshot with its weights is complete.
  QUIRE_RETURN_IF_ERROR(download.run(choice.small, list.commit, folders));
  if (choice.has_index) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> shards,
                           read_shard_names(folders.snapshot / kWeightsIndexFile));
    QUIRE_RETURN_IF_ERROR(choose_shards(shards, choice));
  }
  if (!choice.is_gguf) {
    QUIRE_RETURN_IF_ERROR(hooks.check_config(folders.snapshot / "config.json"));
  }
  hooks.note(describe(options, list, choice, folders));
  if (!choice.others.empty()) hooks.note("skipping " + describe_skipped(choice.others));
  QUIRE_RETURN_IF_ERROR(download.run(choice.weights, list.commit, folders));
  if (choice.is_gguf) QUIRE_RETURN_IF_ERROR(link_cached_gguf(list, folders));
  if (has_ref) QUIRE_RETURN_IF_ERROR(write_ref(folders.refs, options.hub.model, list.commit));
  if (!choice.is_gguf) return folders.snapshot;
  const fs::path file = folders.snapshot / choice.weights.front().name;
  const Status status = hooks.check_config(file);
  if (status.ok()) return file;
  return Status(status.code(), fmt::format("{}; `quire rm {}` removes the download",
                                           status.message(), options.hub.model.text()));
}

Result<PullOptions> pull_options(const ModelName& model, std::string user_agent) {
  PullOptions options;
  options.hub.model = model;
  options.hub.user_agent = std::move(user_agent);
  QUIRE_ASSIGN_OR_RETURN(options.hub.endpoint, read_endpoint());
  QUIRE_ASSIGN_OR_RETURN(options.hub.token, read_token());
  QUIRE_ASSIGN_OR_RETURN(options.cache, cache_directory());
  if (!options.hub.token.empty() && options.hub.endpoint.starts_with("http://") &&
      !is_loopback(options.hub.endpoint)) {
    log_warning(
        "[hub] HF_ENDPOINT is not encrypted (http), so others may read the token; expected https");
  }
  return options;
}

bool is_offline() {
  const std::string value = variable("HF_HUB_OFFLINE");
  constexpr std::array<std::string_view, 4> kTrue = {"1", "on", "yes", "true"};
  return std::ranges::any_of(
      kTrue, [&](std::string_view word) { return equals_ignoring_case(value, word); });
}

}  // namespace quire::hub
