#include "cli/foreign_flags.h"

#include <array>

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
     "is not supported yet; leave it out: answers are the same without it"},
    {{"--enable-lora", "--lora-modules", "--lora"},
     "is not supported; expected a checkpoint with the adapter merged in"},
    {{"-c", "--ctx-size"}, "is --max-model-len here"},
    {{"--generation-config"},
     "is not needed: generation_config.json of the model's directory is heeded; leave it out"},
    {{"--override-generation-config"},
     "is not supported; expected the values in generation_config.json, or in each request"},
    {{"--jinja"}, "is not needed: the model's chat template is used; leave it out"},
    {{"--chat-template-file"}, "is --chat-template here"},
    {{"--enable-auto-tool-choice"},
     "is not needed: tools are on unless --tool-call-parser is none; leave it out"},
    {{"--enable-reasoning"}, "is not needed: --reasoning-parser alone decides; leave it out"},
    {{"--guided-decoding-backend", "--structured-outputs-config"},
     "is not needed: there is one way to hold answers to a form; leave it out"},
    {{"-a", "--alias"}, "is --served-model-name here"},
    {{"-p"}, "is --prompt of quire generate here"},
    {{"-f", "--file"}, "is --input of quire generate here"},
    {{"-n", "--n-predict", "--predict"}, "is --max-tokens of quire generate here"},
    {{"-np", "--parallel"}, "is --max-num-seqs here"},
    {{"-b", "--batch-size", "-ub", "--ubatch-size"}, "is --max-num-batched-tokens here"},
    {{"--scheduling-policy"}, "is not needed: --allow-request-priority alone decides"},
    {{"--swap-space", "--cpu-offload-gb"},
     "is not supported: what finds no room on the device waits, or is computed anew; leave it out"},
    {{"--num-gpu-blocks-override"}, "is --kv-cache-memory here, in bytes"},
    {{"--async-scheduling"}, "is not needed: it is always so; leave it out"},
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
     "is --log-level here: info has a line for each request, warning has none"}};

}  // namespace

std::string_view foreign_flag_remedy(std::string_view flag) {
  for (const ForeignFlags& known : kForeignFlags) {
    for (const std::string_view name : known.names) {
      if (!name.empty() && name == flag) return known.remedy;
    }
  }
  return {};
}

std::string spelled_as_here(std::string_view argument) {
  constexpr std::string_view kShort = "-tp";
  if (argument != kShort && !argument.starts_with("-tp=")) return std::string(argument);
  return "--tensor-parallel-size" + std::string(argument.substr(kShort.size()));
}

}  // namespace quire::cli
