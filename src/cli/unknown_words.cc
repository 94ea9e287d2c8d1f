#include "cli/unknown_words.h"

#include <algorithm>
#include <iterator>

#include "base/ascii.h"

namespace quire::cli {
namespace {

using enum ForeignFlag::Kind;

constexpr bool kValue = true;
constexpr bool kNoValue = false;

constexpr std::string_view kHasNoAdapters =
    "is not supported: merge the adapter into the checkpoint";
constexpr std::string_view kIsText = "is not supported: only text is served";
constexpr std::string_view kIsOneDevice =
    "is not needed: a model's layers are all on devices of one kind; expected --device cpu or cuda";
constexpr std::string_view kFilesDecide =
    "has no effect: the model's files decide whether it generates, embeds or ranks";
constexpr std::string_view kIsAlwaysSo = "has no effect: Quire always does so";
constexpr std::string_view kIsNotSeparate =
    "has no effect: a step's tokens are bounded by --max-num-batched-tokens";
constexpr std::string_view kNamesModel =
    "is not needed: --model ORG/NAME, or ORG/NAME:Q4_K_M for a GGUF file, is a model of the hub, "
    "which quire pull downloads";

// Quire's flags have vLLM's names, so the list has flags of llama.cpp, SGLang and Ollama, and the
// flags of vLLM that Quire does not have.
constexpr ForeignFlag kForeignFlags[] = {
    {"-m", kNamed, "--model"},
    {"--model-path", kNamed, "--model"},
    {"-c", kNamed, "--max-model-len", kValue, "--context"},
    {"--ctx-size", kNamed, "--max-model-len", kValue, "--context"},
    {"--context-length", kNamed, "--max-model-len"},
    {"-p", kNamed, "--prompt", kValue, "--input-len"},
    {"-f", kNamed, "--input", kValue, "--data"},
    {"-n", kNamed, "--max-tokens", kValue, "--output-len"},
    {"--n-predict", kNamed, "--max-tokens"},
    {"--temp", kNamed, "--temperature"},
    {"--repeat-penalty", kNamed, "--repetition-penalty"},
    {"-np", kNamed, "--max-num-seqs"},
    {"--max-running-requests", kNamed, "--max-num-seqs"},
    {"-t", kNamed, "--threads"},
    {"-ctk", kNamed, "--kv-cache-dtype"},
    {"-ctv", kNamed, "--kv-cache-dtype"},
    {"--mem-fraction-static", kNamed, "--gpu-memory-utilization"},
    {"--tp", kNamed, "--tensor-parallel-size"},
    {"--models-preset", kNamed, "--models"},
    {"--models-max", kNamed, "--max-loaded-models"},
    {"--alias", kNamed, "--served-model-name"},
    {"-a", kNamed, "--served-model-name"},
    {"-hf", kRefused, kNamesModel},
    {"-hfr", kRefused, kNamesModel},
    {"--hf-repo", kRefused, kNamesModel},
    {"-hff", kRefused, "is part of the model's name here: --model ORG/NAME:FILE.gguf"},
    {"--hf-file", kRefused, "is part of the model's name here: --model ORG/NAME:FILE.gguf"},
    {"--offline", kRefused, "is the environment variable HF_HUB_OFFLINE=1 here", kNoValue},
    {"--download-dir", kRefused, "is the environment variable HF_HUB_CACHE here"},
    {"--hf-token", kRefused, "is the environment variable HF_TOKEN here"},
    {"--gpu-layers", kRefused, kIsOneDevice},
    {"--n-gpu-layers", kRefused, kIsOneDevice},
    {"-ot", kRefused, kIsOneDevice},
    {"--override-tensor", kRefused, kIsOneDevice},
    {"--n-cpu-moe", kRefused, kIsOneDevice},
    {"--cpu-offload-gb", kRefused, kIsOneDevice},
    {"--mmproj", kRefused, kIsText},
    {"--limit-mm-per-prompt", kRefused, kIsText},
    {"--mm-processor-kwargs", kRefused, kIsText},
    {"--lora", kRefused, kHasNoAdapters},
    {"--lora-modules", kRefused, kHasNoAdapters},
    {"--enable-lora", kRefused, kHasNoAdapters, kNoValue},
    {"--pipeline-parallel-size", kRefused, "is not supported: use --tensor-parallel-size"},
    {"-pp", kRefused, "is not supported: use --tensor-parallel-size"},
    {"--enable-expert-parallel", kRefused,
     "is not supported: --tensor-parallel-size also divides experts", kNoValue},
    {"--override-generation-config", kRefused,
     "is not supported: requests set the values, or the model's generation_config.json"},
    {"--scheduling-policy", kRefused,
     "is not needed: --allow-request-priority lets requests set their priority"},
    {"--root-path", kRefused, "is not supported: a proxy removes the prefix of the path"},
    {"--shutdown-timeout", kNamed, "--drain-timeout"},
    {"--flash-attn", kIgnored, kIsAlwaysSo},
    {"-fa", kIgnored, kIsAlwaysSo},
    {"--jinja", kIgnored, kIsAlwaysSo, kNoValue},
    {"--cont-batching", kIgnored, kIsAlwaysSo, kNoValue},
    {"-cb", kIgnored, kIsAlwaysSo, kNoValue},
    {"--metrics", kIgnored, kIsAlwaysSo, kNoValue},
    {"--async-scheduling", kIgnored, kIsAlwaysSo, kNoValue},
    {"--embedding", kIgnored, kFilesDecide, kNoValue},
    {"--embeddings", kIgnored, kFilesDecide, kNoValue},
    {"--reranking", kIgnored, kFilesDecide, kNoValue},
    {"--is-embedding", kIgnored, kFilesDecide, kNoValue},
    {"--task", kIgnored, kFilesDecide},
    {"--runner", kIgnored, kFilesDecide},
    {"-b", kIgnored, kIsNotSeparate},
    {"-ub", kIgnored, kIsNotSeparate},
    {"--ubatch-size", kIgnored, kIsNotSeparate},
    {"--mlock", kIgnored, "has no effect: the system decides which pages stay in memory", kNoValue},
    {"--no-mmap", kIgnored, "has no effect: weights are mapped where that is possible", kNoValue},
    {"--no-webui", kIgnored, "has no effect: a proxy can deny the path / of the page", kNoValue},
    {"--compilation-config", kIgnored, "has no effect: nothing is compiled at run time"},
    {"--disable-log-stats", kIgnored, "has no effect: the log has no statistics, /metrics does",
     kNoValue},
    {"--enable-log-requests", kIgnored, "has no effect: --log-level info logs a line per request",
     kNoValue},
    {"--disable-uvicorn-access-log", kIgnored,
     "has no effect: --log-level warning leaves out the line per request", kNoValue},
    {"--uvicorn-log-level", kNamed, "--log-level"},
    {"--num-ctx", kNamed, "--max-model-len"},
    {"--num-predict", kNamed, "--max-tokens"},
    {"--num-parallel", kNamed, "--max-num-seqs"},
    {"--origins", kNamed, "--allowed-origins"},
    {"--nowordwrap", kNamed, "--no-word-wrap", kNoValue},
    {"--keepalive", kRefused,
     "is not needed: a model stays loaded until its command ends, and quire serve --models-dir DIR "
     "--sleep-idle-seconds N unloads it after N seconds without requests"},
    {"--think", kRefused, "is /set think or /set nothink in quire chat", kNoValue},
    {"--hidethinking", kRefused, "is not supported; /set nothink in quire chat ends the reasoning",
     kNoValue},
    {"--verbose", kRefused,
     "is /stats in quire chat; quire generate prints the speed on standard error", kNoValue},
    {"--revision", kRefused, "is part of the model's name here: --model ORG/NAME@REVISION"},
    {"-ngl", kRefused, kIsOneDevice},
    {"--trust-remote-code", kIgnored, "has no effect: Quire never runs code of a checkpoint",
     kNoValue},
    {"--enable-auto-tool-choice", kIgnored,
     "has no effect: tools are on unless --tool-call-parser is none", kNoValue},
    {"--swap-space", kIgnored,
     "has no effect: sequences that do not fit on the device wait or are recomputed"},
    {"--disable-log-requests", kIgnored,
     "has no effect: --log-level info logs a line per request, warning logs none", kNoValue},
};

struct ForeignCommand {
  std::string_view name;
  std::string_view remedy;
};

constexpr ForeignCommand kForeignCommands[] = {
    {"run", "is quire chat MODEL here, or quire generate MODEL PROMPT"},
    {"run-batch", "is quire batch INPUT OUTPUT --model MODEL here"},
    {"start", "is quire serve MODEL here; MODEL may be a GGUF file"},
    {"convert",
     "is quire quantize --model DIR --to q4_k_m --out FILE.gguf here; a directory in safetensors "
     "is served as it is"},
    {"show", "is quire doctor MODEL here"},
    {"ls", "is quire list here"},
    {"ps",
     "is no command: GET /api/ps of a running quire serve lists its loaded models, and "
     "GET /v1/models all of them"},
    {"stop",
     "is no command: Ctrl-C or SIGTERM ends quire serve, and quire serve --models-dir DIR "
     "--sleep-idle-seconds N unloads models that are idle"},
    {"cp",
     "is no command: a section [NAME] in a file of quire serve --models gives a model a name"},
    {"create",
     "is no command: a section [NAME] in a file of quire serve --models gives a model a name and "
     "flags; quire quantize converts one"},
    {"push", "is no command: Quire uploads nothing; hf upload does it for the hub"},
};

}  // namespace

std::span<const ForeignFlag> foreign_flags() {
  return kForeignFlags;
}

std::string_view foreign_command_remedy(std::string_view word) {
  const auto* known = std::ranges::find(kForeignCommands, word, &ForeignCommand::name);
  return known == std::end(kForeignCommands) ? std::string_view() : known->remedy;
}

bool is_secret_flag(std::string_view flag) {
  constexpr std::string_view kSecrets[] = {"key",   "keys",     "apikey", "apikeys",
                                           "token", "password", "secret"};
  if (!flag.starts_with('-')) return false;
  std::string_view name = flag.substr(0, flag.find('='));
  while (!name.empty()) {
    const size_t size = std::min(name.find_first_of("-_"), name.size());
    const auto is_word = [&](std::string_view secret) {
      return equals_ignoring_case(name.substr(0, size), secret);
    };
    if (std::ranges::any_of(kSecrets, is_word)) return true;
    name.remove_prefix(std::min(size + 1, name.size()));
  }
  return false;
}

}  // namespace quire::cli
