#include "cli/unknown_words.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "base/ascii.h"

namespace quire::cli {
namespace {

constexpr bool kValue = true;
constexpr bool kNoValue = false;

constexpr std::string_view kOneDevice =
    "is not supported: --tensor-parallel-size divides a model equally among devices";
constexpr std::string_view kOnlyText = "is not supported: Quire serves text models; leave it out";
constexpr std::string_view kWholeOnDevices =
    "is not supported: a model's weights and its KV cache are all on its devices; leave it out";
constexpr std::string_view kOneCache =
    "has no effect: all sequences share one paged KV cache, and prefixes are found block by block";
constexpr std::string_view kLogLevel =
    "has no effect: --log-level info logs a line per request, warning logs none";

struct Row {
  std::array<std::string_view, 6> names;
  std::string_view text;
  bool takes_value = true;
  std::string_view other = {};  // as ForeignFlag::other
};

// Each table is in the order of --help: model, requests, scheduler and cache, device, server.
constexpr Row kNamed[] = {
    {{"-m", "--model-path", "--model-id"}, "--model"},
    {{"--tokenizer-path"}, "--tokenizer"},
    {{"-c", "--ctx-size", "--context-length", "--num-ctx"}, "--max-model-len", kValue, "--context"},
    {{"--chat-template-file"}, "--chat-template"},
    {{"-sys", "--system-prompt"}, "--system"},
    {{"-p"}, "--prompt", kValue, "--input-len"},
    {{"-f", "--file"}, "--input", kValue, "--data"},
    {{"-n", "--n-predict", "--predict", "--num-predict"}, "--max-tokens", kValue, "--output-len"},
    {{"--temp"}, "--temperature"},
    {{"-s", "--random-seed"}, "--seed"},
    {{"--repeat-penalty"}, "--repetition-penalty"},
    {{"-r", "--reverse-prompt"}, "--stop"},
    {{"-a", "--alias"}, "--served-model-name"},
    {{"-np", "--parallel", "--max-running-requests"}, "--max-num-seqs"},
    {{"-b", "--batch-size", "-ub", "--ubatch-size", "--chunked-prefill-size",
      "--max-prefill-tokens"},
     "--max-num-batched-tokens"},
    {{"--disable-radix-cache"}, "--no-enable-prefix-caching", kNoValue},
    {{"-t", "--num-thread"}, "--threads"},
    {{"-ctk", "--cache-type-k", "-ctv", "--cache-type-v"}, "--kv-cache-dtype"},
    {{"--mem-fraction-static"}, "--gpu-memory-utilization"},
    {{"--disable-cuda-graph"}, "--enforce-eager", kNoValue},
    {{"--tp", "--tp-size"}, "--tensor-parallel-size"},
    {{"--dp", "--dp-size"}, "--data-parallel-size"},
    {{"--reasoning-format"}, "--reasoning-parser"},
    {{"--threads-http", "--api-server-count"}, "--num-workers"}};

constexpr std::string_view kSpeculation =
    "is a key of --speculative-config here, which has the methods ngram, suffix, draft_model, "
    "eagle3, mtp, dflash and dspark; without it outputs are the same";

constexpr Row kRefused[] = {
    {{"-hf", "--hf-repo", "-hfr", "-mu", "--model-url", "--download-dir"},
     "is not needed: quire pull ORG/NAME downloads a model in safetensors, and --model ORG/NAME "
     "finds it; GGUF files are not downloaded: give the path of one, --model FILE.gguf"},
    {{"--hf-token", "-hft"}, "is not needed: only quire pull downloads; it reads HF_TOKEN"},
    {{"--revision", "--tokenizer-revision", "--code-revision"},
     "is part of the model's name here: --model ORG/NAME@REVISION"},
    {{"-md", "--model-draft", "--speculative-algorithm", "--speculative-model", "--spec-method",
      "--spec-type"},
     kSpeculation},
    {{"--spec-model", "--spec-tokens", "--speculative-draft-model-path", "-hfd", "-hfrd",
      "--hf-repo-draft"},
     kSpeculation},
    {{"--num-speculative-tokens", "--speculative-num-draft-tokens", "--speculative-num-steps",
      "--draft", "--draft-max", "--draft-min"},
     kSpeculation},
    {{"--draft-n", "--draft-n-min", "--draft-p-min", "--draft-p-split", "-cd", "--ctx-size-draft"},
     kSpeculation},
    {{"--ngram-prompt-lookup-max", "--ngram-prompt-lookup-min", "--num-lookahead-slots",
      "--speculative-eagle-topk"},
     kSpeculation},
    {{"--speculative-max-model-len", "--speculative-disable-by-batch-size",
      "--speculative-draft-tensor-parallel-size", "-spec-draft-tp",
      "--speculative-model-quantization", "--spec-decoding-acceptance-method"},
     kSpeculation},
    {{"--imatrix"},
     "is not supported: --to w4a16 with --calibration-file TEXT quantizes by a text; the types of "
     "GGUF files have no such mode"},
    {{"--enable-lora"},
     "is not supported; expected a checkpoint with the adapter merged in",
     kNoValue},
    {{"--lora-modules", "--lora", "--lora-paths"},
     "is not supported; expected a checkpoint with the adapter merged in"},
    {{"--override-generation-config"},
     "is not supported; expected the values in generation_config.json, or in each request"},
    {{"--hf-overrides"},
     "is not supported: expected the values in the model's config.json; a reranker needs none"},
    {{"-cnv", "--conversation", "-i", "--interactive"}, "is quire chat here", kNoValue},
    {{"-j", "--json-schema", "--grammar", "--grammar-file"},
     "is a field of a server's requests here: response_format or structured_outputs"},
    {{"--structured-outputs-config"},
     "is not needed: there is one backend for structured outputs; leave it out"},
    {{"--scheduling-policy", "--schedule-policy"},
     "is not needed: --allow-request-priority alone decides"},
    {{"--mmproj", "-mm", "--limit-mm-per-prompt", "--mm-processor-kwargs"}, kOnlyText},
    {{"--rope-scaling", "--rope-scale", "--rope-freq-base", "--rope-freq-scale", "--rope-theta"},
     "is not supported: expected the values in the model's config.json or GGUF file"},
    {{"--default-chat-template-kwargs"},
     "is not supported: chat_template_kwargs is a field of a request"},
    {{"--logits-processors"},
     "is not supported: logit_bias and structured_outputs are fields of a request"},
    {{"--config"}, "is not supported: expected the settings as flags"},
    {{"--cpu-offload-gb", "-ot", "--override-tensor", "-ncmoe", "--n-cpu-moe",
      "--kv-transfer-config"},
     kWholeOnDevices},
    {{"--kv-offloading-size", "--kv-offloading-backend"}, kWholeOnDevices},
    {{"-cmoe", "--cpu-moe", "-nkvo", "--no-kv-offload"}, kWholeOnDevices, kNoValue},
    {{"--enable-expert-parallel", "--enable-ep-moe"},
     "is not supported: --tensor-parallel-size divides each expert among the devices",
     kNoValue},
    {{"--ep", "--ep-size", "--expert-parallel-size"},
     "is not supported: --tensor-parallel-size divides each expert among the devices"},
    {{"-dev", "-mg", "--main-gpu"},
     "is not supported: --device chooses cpu or cuda, and CUDA_VISIBLE_DEVICES the GPUs"},
    {{"--dist-init-addr"}, "is --master-addr and --master-port here"},
    {{"--enable-sleep-mode"},
     "is not supported: stop the server, and start it again when it is needed",
     kNoValue},
    {{"--root-path"}, "is not supported: let the proxy remove the prefix of the path"},
    {{"--ssl-ca-certs"},
     "is not supported: certificates of clients are not checked; --api-key-file keeps others out"},
    {{"--log-file"}, "is not needed: the log goes to standard error; redirect it"},
    {{"--num-gpu-blocks-override", "--max-total-tokens"}, "is --kv-cache-memory here, in bytes"},
    {{"-ngl", "--ngl", "--n-gpu-layers", "--gpu-layers", "--num-gpu"},
     "is not needed: a model's layers are all on devices of one kind; expected --device cpu or "
     "cuda"},
    {{"-fa", "--flash-attn"},
     "is not needed: attention never materializes its scores; leave it out"},
    {{"-tb", "--threads-batch", "-Cb", "--cpu-mask-batch"},
     "is not needed: quire tune measures the threads of decode and of prompts"},
    {{"-C", "--cpu-mask", "-Cr", "--cpu-range"},
     "is not needed: Quire uses the CPUs that taskset, numactl or a container leave to it"},
    {{"--numa"},
     "is not needed: weights lie on the nodes whose threads read them; taskset or numactl limits "
     "the nodes"},
    {{"--cpu-strict"}, "is --cpu-pinning on or off here"},
    {{"-pp", "--pipeline-parallel-size", "--pp-size", "-sm", "--split-mode", "--pp"}, kOneDevice},
    {{"-ts", "--tensor-split"}, kOneDevice},
    {{"-O", "-cc", "--compilation-config", "--max-seq-len-to-capture", "--cuda-graph-max-bs"},
     "is not needed: nothing is compiled at the start; --enforce-eager does without CUDA graphs"},
    {{"-O0", "-O1", "-O2", "-O3"},
     "is not needed: nothing is compiled at the start; --enforce-eager does without CUDA graphs",
     kNoValue},
    {{"--keepalive", "--keep-alive"}, "is not needed: quire serve keeps the model until it ends"},
    {{"--verbose", "-v"}, "is --log-level info or debug here", kNoValue}};

constexpr Row kIgnored[] = {
    {{"--trust-remote-code"}, "has no effect: Quire never runs code of a checkpoint", kNoValue},
    {{"--task", "--runner", "--convert"},
     "has no effect: the model's modules.json decides whether it embeds or generates"},
    {{"--is-embedding", "--embedding", "--embeddings", "--rerank", "--reranking"},
     "has no effect: the model's modules.json decides whether it embeds; a reranker is served as "
     "any model that generates",
     kNoValue},
    {{"--jinja"}, "has no effect: the model's template is always used", kNoValue},
    {{"--enable-auto-tool-choice"},
     "has no effect: tools are on unless --tool-call-parser is none",
     kNoValue},
    {{"--enable-reasoning"}, "has no effect: --reasoning-parser alone decides", kNoValue},
    {{"--guided-decoding-backend", "--grammar-backend"},
     "has no effect: there is one backend for structured outputs"},
    {{"-cb", "--cont-batching", "--async-scheduling", "--enable-mixed-chunk"},
     "has no effect: it is always on",
     kNoValue},
    {{"--num-scheduler-steps", "--max-num-partial-prefills", "--max-parallel-loading-workers"},
     "has no effect: the scheduler has no such setting"},
    {{"--use-v2-block-manager"}, "has no effect: there is one scheduler", kNoValue},
    {{"--swap-space"},
     "has no effect: sequences that do not fit on the device wait or are recomputed"},
    {{"--mlock", "--no-mmap"}, "has no effect: weights stay in memory", kNoValue},
    {{"--distributed-executor-backend", "--data-parallel-backend"},
     "has no effect: there is one process"},
    {{"--tokenizer-mode"}, "has no effect: there is one tokenizer"},
    {{"--preemption-mode"}, "has no effect: preempted sequences are recomputed"},
    {{"--prefix-caching-hash-algo"},
     "has no effect: blocks have the hashes of vLLM's sha256_cbor, which KV events show"},
    {{"-kvu", "--kv-unified", "--swa-full"}, kOneCache, kNoValue},
    {{"--cache-reuse"}, kOneCache},
    {{"--slots", "--no-slots", "--props"},
     "has no effect: /metrics and /v1/models are always on",
     kNoValue},
    {{"--enable-prompt-tokens-details"}, "has no effect: usage always has them", kNoValue},
    {{"--max-logprobs"}, "has no effect: requests may ask for up to 20"},
    {{"--enable-torch-compile"}, "has no effect: nothing is compiled at the start", kNoValue},
    {{"--metrics", "--enable-metrics"}, "has no effect: /metrics is always on", kNoValue},
    {{"--skip-server-warmup", "--no-warmup"},
     "has no effect: the server warms up before it listens",
     kNoValue},
    {{"--enable-log-requests", "--no-enable-log-requests", "--disable-log-requests",
      "--disable-uvicorn-access-log", "--disable-log-stats", "--log-requests"},
     kLogLevel,
     kNoValue},
    {{"--uvicorn-log-level"}, kLogLevel}};

struct Table {
  ForeignFlag::Answer answer;
  std::span<const Row> rows;
};
constexpr Table kTables[] = {{ForeignFlag::Answer::kNamed, kNamed},
                             {ForeignFlag::Answer::kRefused, kRefused},
                             {ForeignFlag::Answer::kIgnored, kIgnored}};

struct ForeignCommands {
  std::array<std::string_view, 5> names;
  std::string_view remedy;
};

constexpr std::string_view kNoModelStore =
    "is no command: quire pull downloads a model, and quire list and quire rm show and remove it";

constexpr ForeignCommands kForeignCommands[] = {
    {{"run"}, "is quire chat MODEL here, or quire generate MODEL PROMPT"},
    {{"complete"}, "is quire generate MODEL PROMPT here"},
    {{"run-batch"}, "is quire generate --input FILE here"},
    {{"launch_server", "launch-server", "server", "start", "llama-server"},
     "is quire serve MODEL here; MODEL may be a GGUF file"},
    {{"llama-cli", "llama-run", "main"},
     "is quire chat MODEL here, or quire generate MODEL PROMPT; MODEL may be a GGUF file"},
    {{"llama-bench", "benchmark"},
     "is quire bench latency MODEL here, with --input-len for -p and --output-len for -n"},
    {{"llama-perplexity", "perplexity"}, "is quire eval perplexity --model MODEL --data TEXT here"},
    {{"convert_hf_to_gguf.py", "convert", "llama-quantize"},
     "is quire quantize --model DIR --to q4_k_m --out FILE.gguf here (f16 and bf16 do not "
     "quantize); "
     "a directory in safetensors is served as it is"},
    {{"imatrix", "llama-imatrix"},
     "is no command: quire quantize --to w4a16 with --calibration-file TEXT quantizes by a text"},
    {{"show"}, "is quire doctor MODEL here"},
    {{"collect-env", "info"}, "is quire doctor here"},
    {{"ps"}, "is no command: a running quire serve lists its model at /v1/models"},
    {{"stop"}, "is no command: Ctrl-C or SIGTERM ends quire serve"},
    {{"ls"}, "is quire list here"},
    {{"cp", "create", "push", "signin"}, kNoModelStore}};

std::string_view without_dashes(std::string_view word) {
  return word.starts_with("--") ? word.substr(2) : word;
}

}  // namespace

std::optional<ForeignFlag> find_foreign_flag(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const auto& [answer, rows] : kTables) {
    for (const Row& row : rows) {
      if (std::ranges::find(row.names, name) == row.names.end()) continue;
      return ForeignFlag{
          .answer = answer, .takes_value = row.takes_value, .text = row.text, .other = row.other};
    }
  }
  return std::nullopt;
}

std::vector<std::string_view> foreign_flag_names() {
  std::vector<std::string_view> names;
  for (const auto& [answer, rows] : kTables) {
    for (const Row& row : rows) names.insert(names.end(), row.names.begin(), row.names.end());
  }
  std::erase(names, "");
  return names;
}

std::string_view foreign_command_remedy(std::string_view word) {
  if (word.empty()) return {};
  for (const ForeignCommands& known : kForeignCommands) {
    if (std::ranges::find(known.names, word) != known.names.end()) return known.remedy;
  }
  return {};
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
