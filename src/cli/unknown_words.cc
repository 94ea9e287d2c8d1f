#include "cli/unknown_words.h"

#include <algorithm>
#include <iterator>

#include "base/ascii.h"

namespace quire::cli {
namespace {

using enum ForeignFlag::Kind;

constexpr bool kValue = true;
constexpr bool kNoValue = false;

// vLLM's names are Quire's, so these are flags of llama.cpp, SGLang and Ollama, and a few of vLLM
// that scripts set although they change nothing here.
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
    {"-hf", kRefused,
     "is not needed: --model ORG/NAME, or ORG/NAME:Q4_K_M for a GGUF file, is a model of the hub, "
     "which quire pull downloads"},
    {"--num-ctx", kNamed, "--max-model-len"},
    {"--num-predict", kNamed, "--max-tokens"},
    {"--num-parallel", kNamed, "--max-num-seqs"},
    {"--origins", kNamed, "--allowed-origins"},
    {"--nowordwrap", kNamed, "--no-word-wrap", kNoValue},
    {"--keepalive", kRefused,
     "is not needed: a model stays loaded until its command ends, and quire serve --models-dir DIR "
     "--sleep-idle-seconds N unloads it after N seconds without requests"},
    {"--think", kRefused, "is /set think or /set nothink in quire chat", kNoValue},
    {"--hidethinking", kRefused, "is not there; /set nothink in quire chat ends the reasoning",
     kNoValue},
    {"--verbose", kRefused,
     "is /stats in quire chat; quire generate prints the speed on standard error", kNoValue},
    {"--revision", kRefused, "is part of the model's name here: --model ORG/NAME@REVISION"},
    {"-ngl", kRefused,
     "is not needed: a model's layers are all on devices of one kind; expected --device cpu or "
     "cuda"},
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
    {"run-batch", "is quire generate --input FILE here"},
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
