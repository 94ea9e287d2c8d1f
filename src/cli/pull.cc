// Downloads a model from the hub. The only command that uses the hub, and the only one that loads
// libcurl.
#include "hub/pull/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "engine/model_files.h"
#include "hub/cache/model_cache.h"
#include "hub/pull/repository_list.h"

namespace quire::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  hub::ModelName model;
  int max_workers = hub::PullOptions().max_workers;
};

// Reports the download: a bar on a terminal, otherwise a line every 30 s.
class PullProgress {
 public:
  explicit PullProgress(const std::string& name) : bar_(name), name_(name) {}

  void update(int64_t num_done, int64_t num_total) {
    constexpr int64_t kMegabyte = 1'000'000;
    done_ = num_done;
    total_ = num_total;
    if (!first_) first_ = num_done;
    if (!is_terminal_) return print_now_and_then();
    bar_.update(static_cast<size_t>(num_done / kMegabyte),
                static_cast<size_t>((num_total + kMegabyte - 1) / kMegabyte),
                [&] { return "MB, " + rate(); });
  }

  // Prints a line above the bar.
  void note(const std::string& line) {
    print_stderr("{}{}\n", is_terminal_ ? "\r\033[K" : "", one_line(line));
  }

  std::string kept() const {
    return fmt::format("{} of {}", hub::bytes_text(done_), hub::bytes_text(total_));
  }

 private:
  void print_now_and_then() {
    constexpr std::chrono::seconds kPause{30};
    if (Clock::now() - last_line_ < kPause) return;
    last_line_ = Clock::now();
    print_stderr("{}: {}, {}\n", name_, kept(), rate());
  }

  // For example "85.3 MB/s, 12 s left".
  std::string rate() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const double rate = static_cast<double>(done_ - *first_) / std::max(seconds, 1e-3);
    if (rate < 1) return "waiting";
    return fmt::format("{}/s, {:.0f} s left", hub::bytes_text(static_cast<int64_t>(rate)),
                       static_cast<double>(total_ - done_) / rate);
  }

  Progress bar_;
  std::string name_;
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_line_ = start_;
  std::optional<int64_t> first_;  // bytes in the cache at the start
  int64_t done_ = 0;
  int64_t total_ = 0;
};

// Refuses a model that Quire could not run, before its weights are downloaded.
Status check_config(const std::filesystem::path& path) {
  const Status status = read_model_config(path).status();
  if (status.ok()) return {};
  return {status.code(), status.message() + "; its weights were not downloaded"};
}

Status set_model(std::string_view word, Options& options) {
  const std::optional<hub::ModelName> name = hub::parse_model_name(word);
  if (!name || name->repository.find('/') == std::string::npos) {
    return unexpected(word, "ORG/NAME or ORG/NAME@REVISION of the hub, such as Qwen/Qwen3-0.6B");
  }
  options.model = *name;
  return {};
}

Result<std::filesystem::path> download(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(hub::PullOptions pull_options,
                         hub::pull_options(options.model, fmt::format("quire/{}", version())));
  pull_options.max_workers = options.max_workers;
  const CancelScope scope;
  PullProgress progress(options.model.text());
  Result<std::filesystem::path> snapshot = hub::pull(
      pull_options, {.interrupted = CancelScope::interrupted,
                     .note = [&](const std::string& line) { progress.note(line); },
                     .progress = [&](int64_t done, int64_t total) { progress.update(done, total); },
                     .check_config = check_config});
  if (snapshot.status().code() != StatusCode::kCancelled) return snapshot;
  return cancelled(
      fmt::format("interrupted with {} in the cache; the same command continues", progress.kept()));
}

Result<std::filesystem::path> find_offline(const hub::ModelName& name) {
  QUIRE_ASSIGN_OR_RETURN(const std::filesystem::path cache, hub::cache_directory());
  const auto snapshot = hub::find_in_cache(name, cache, hub::Needs::kWeights);
  if (snapshot.ok()) return snapshot;
  return unavailable(fmt::format(
      "[hub] HF_HUB_OFFLINE is set, so nothing is downloaded, and {} is not complete in "
      "the hub's cache, {}; unset HF_HUB_OFFLINE to download it",
      name.text(), cache.string()));
}

Result<int> run(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::filesystem::path snapshot,
                         hub::is_offline() ? find_offline(options.model) : download(options));
  print_stderr("{0} is complete; quire chat {0} talks with it\n", options.model.text());
  print_stdout("{}\n", snapshot.string());
  return kExitOk;
}

}  // namespace

Command pull_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "pull";
  command.summary = "Download a model from the Hugging Face hub into its cache";
  command.details =
      "Downloads the files that Quire reads: safetensors, configuration, tokenizer and chat\n"
      "template. The same command continues an interrupted download. Then every command that\n"
      "takes a model takes its name. No other command downloads anything.\n"
      "\n"
      "Variables, as for huggingface_hub:\n"
      "  HF_TOKEN          a token, for gated and private models\n"
      "  HF_HUB_CACHE      the cache's folder [HF_HOME/hub]\n"
      "  HF_HOME           [~/.cache/huggingface]\n"
      "  HF_ENDPOINT       another hub [https://huggingface.co]\n"
      "  HF_HUB_OFFLINE=1  forbids all downloads\n"
      "  https_proxy, no_proxy, SSL_CERT_FILE\n";
  command.example =
      "  quire pull Qwen/Qwen3-0.6B\n"
      "  quire chat Qwen/Qwen3-0.6B\n"
      "  quire pull Qwen/Qwen3-0.6B@refs/pr/1    a branch, tag or commit";
  command.flags.begin_group("Download");
  command.flags.number("--max-workers", &options->max_workers, {.min = 1, .max = 64},
                       "Most files to download at the same time");
  command.positional = {
      .name = "NAME",
      .help = "ORG/NAME or ORG/NAME@REVISION: a model on the hub",
      .required = true,
      .set = [options](std::string_view word) { return set_model(word, *options); }};
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
