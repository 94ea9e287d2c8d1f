#include "cli/unknown_flags.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/ascii.h"

namespace quire::cli {
namespace {

struct ForeignFlags {
  std::array<std::string_view, 6> names;
  std::string_view remedy;
};

// In the order of --help: model, output, scheduler and cache, device, logging.
constexpr ForeignFlags kForeignFlags[] = {
    {{"-m"}, "is --model DIR here: a Hugging Face directory with safetensors"},
    {{"--hf-repo", "-mu", "--model-url", "--download-dir", "--hf-token"},
     "is not needed: nothing is downloaded; expected --model DIR"},
    {{"--revision", "--tokenizer-revision", "--code-revision"},
     "is not needed: nothing is downloaded; give that revision's directory as --model DIR"},
    {{"--trust-remote-code"}, "is not needed: no code of a checkpoint is ever run; leave it out"},
    {{"-q", "--quantization"},
     "is not supported yet; leave it out: a checkpoint runs in the type it has"},
    {{"--speculative-config", "-md", "--model-draft"},
     "is not supported yet; leave it out: outputs are the same without it"},
    {{"--enable-lora", "--lora-modules", "--lora"},
     "is not supported; expected a checkpoint with the adapter merged in"},
    {{"-c", "--ctx-size"}, "is --max-model-len here"},
    {{"--generation-config"},
     "is not needed: generation_config.json of the model's directory is applied; leave it out"},
    {{"--override-generation-config"},
     "is not supported; expected the values in generation_config.json, or in each request"},
    {{"--jinja"}, "is not needed: the model's chat template is used; leave it out"},
    {{"--chat-template-file"}, "is --chat-template here"},
    {{"--enable-auto-tool-choice"},
     "is not needed: tools are on unless --tool-call-parser is none; leave it out"},
    {{"--enable-reasoning"}, "is not needed: --reasoning-parser alone decides; leave it out"},
    {{"--guided-decoding-backend", "--structured-outputs-config"},
     "is not needed: there is one backend for structured outputs; leave it out"},
    {{"-a", "--alias"}, "is --served-model-name here"},
    {{"-p"}, "is --prompt of quire generate here"},
    {{"-f", "--file"}, "is --input of quire generate here"},
    {{"-n", "--n-predict", "--predict"}, "is --max-tokens of quire generate here"},
    {{"-np", "--parallel"}, "is --max-num-seqs here"},
    {{"-b", "--batch-size", "-ub", "--ubatch-size"}, "is --max-num-batched-tokens here"},
    {{"--scheduling-policy"}, "is not needed: --allow-request-priority alone decides"},
    {{"--swap-space", "--cpu-offload-gb"},
     "is not supported: sequences that do not fit on the device wait or are recomputed; leave it "
     "out"},
    {{"--num-gpu-blocks-override"}, "is --kv-cache-memory here, in bytes"},
    {{"--async-scheduling"}, "is not needed: it is always on; leave it out"},
    {{"-ngl", "--n-gpu-layers", "--gpu-layers"},
     "is not needed: the whole model is on one device; expected --device cpu or cuda"},
    {{"-t"}, "is --threads here"},
    {{"-ctk", "--cache-type-k", "-ctv", "--cache-type-v"}, "is --kv-cache-dtype here"},
    {{"-pp", "--pipeline-parallel-size", "-dp", "--data-parallel-size", "-sm", "--split-mode"},
     "is not supported: one device serves a model; leave it out"},
    {{"--distributed-executor-backend"}, "is not needed: there is one process; leave it out"},
    {{"-O", "-cc", "--compilation-config"},
     "is not needed: nothing is compiled at the start; --enforce-eager does without CUDA graphs"},
    {{"--enable-log-requests", "--no-enable-log-requests", "--disable-log-requests",
      "--uvicorn-log-level", "--disable-uvicorn-access-log", "--disable-log-stats"},
     "is --log-level here: info logs a line per request, warning logs none"}};

std::string_view without_dashes(std::string_view word) {
  return word.starts_with("--") ? word.substr(2) : word;
}

}  // namespace

std::string_view foreign_flag_remedy(std::string_view flag) {
  for (const ForeignFlags& known : kForeignFlags) {
    for (const std::string_view name : known.names) {
      if (!name.empty() && name == flag) return known.remedy;
    }
  }
  return {};
}

std::string canonical_flag(std::string_view argument) {
  constexpr std::string_view kShort = "-tp";
  if (argument != kShort && !argument.starts_with("-tp=")) return std::string(argument);
  return "--tensor-parallel-size" + std::string(argument.substr(kShort.size()));
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

std::string shown_arguments(const std::vector<std::string>& arguments) {
  std::string shown;
  bool is_value = false;  // of the secret flag before it
  for (const std::string& argument : arguments) {
    if (!shown.empty()) shown += ' ';
    const bool is_secret = is_secret_flag(argument);
    const size_t equals = argument.find('=');
    if (is_value && !argument.starts_with('-')) {
      shown += "…";
    } else if (is_secret && equals != std::string::npos) {
      shown += argument.substr(0, equals + 1) + "…";
    } else {
      shown += argument;
    }
    is_value = is_secret && equals == std::string::npos;
  }
  return shown;
}

size_t edit_distance(std::string_view from, std::string_view to) {
  // Row i holds the distances from the first i letters of `from` to each prefix of `to`.
  std::vector<size_t> before_last;
  std::vector<size_t> last(to.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    std::vector<size_t> row(to.size() + 1, i);
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  if (std::ranges::find(candidates, word) != candidates.end()) return "";
  const std::string* best = nullptr;
  size_t best_distance = without_dashes(word).size() > 4 ? 3 : 2;  // one more than allowed
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size());
    const size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= best_distance) continue;  // also skips very long candidates
    const size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best = &candidate;
    best_distance = distance;
  }
  if (best != nullptr) return *best;
  const bool is_flag = word.starts_with("--") && word.size() > 4;
  const auto longer = std::ranges::find_if(
      candidates, [&](const std::string& name) { return is_flag && name.starts_with(word); });
  return longer == candidates.end() ? "" : *longer;
}

}  // namespace quire::cli
