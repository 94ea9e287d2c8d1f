#include <fmt/format.h>
#include <hwy/highway.h>

#include <algorithm>
#include <memory>

#include "attn/backend.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/machine.h"
#include "cli/version.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/gemm_amx.h"
#include "engine/engine_parts.h"
#include "engine/memory_plan.h"
#include "engine/model_files.h"
#include "kv/kv_layout.h"

namespace quire::cli {
namespace {

void print_line(std::string_view what, std::string_view value) {
  fmt::print("{:<20} {}\n", what, value);
}

double gib(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 30);
}

void print_build() {
  print_line("quire", version());
  print_line("compiler", compiler());
  print_line("build type", build_type());
}

std::string simd_targets() {
  std::vector<std::string> names;
  // From the best (the lowest bit) down.
  for (int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    names.emplace_back(hwy::TargetName(left & -left));
  }
  return fmt::format("{}", fmt::join(names, " "));
}

void print_machine(const Machine& machine) {
  print_line("CPU", machine.cpu);
  print_line("usable cores", std::to_string(num_usable_cores()));
  print_line("features", fmt::format("{}", fmt::join(machine.features, " ")));
  print_line("SIMD targets", simd_targets());
  print_line("AMX", cpu::amx_usable() ? "yes" : "no: the CPU or the kernel does not offer it");
  print_line("memory", fmt::format("{:.1f} GiB, {:.1f} GiB available", gib(machine.total_bytes),
                                   gib(machine.available_bytes)));
  print_line("huge pages", fmt::format("transparent: {}; reserved: {}",
                                       machine.transparent_huge_pages, machine.num_huge_pages));
  print_line("CUDA", "no: this build has no CUDA");
}

std::string answer(const Support& support) {
  return support.ok() ? "yes" : fmt::format("no: {}", fmt::join(support.reasons, "; "));
}

void print_backends(const AttentionShape& shape) {
  ThreadPool pool(1);
  std::vector<std::unique_ptr<AttentionBackend>> backends;
  backends.push_back(make_cpu_attention(pool));
  backends.push_back(make_reference_attention());
  const Device device = {.kind = DeviceKind::kCpu, .name = "cpu"};
  fmt::print("\nattention of {} query heads and {} KV heads, head_dim {}, {} KV cache\n",
             shape.num_heads, shape.num_kv_heads, shape.head_dim, dtype_name(shape.kv));
  for (const auto& backend : backends) {
    print_line(fmt::format("  {}", backend->name()),
               fmt::format("decode {}, prefill {}",
                           answer(backend->supports(shape, Phase::kDecode, device)),
                           answer(backend->supports(shape, Phase::kPrefill, device))));
  }
}

DType kv_dtype(const EngineConfig& engine, const ModelConfig& config) {
  return parse_dtype(engine.kv_cache_dtype).value_or(config.dtype.value_or(DType::kF32));
}

AttentionShape attention_shape(const EngineConfig& engine, const ModelConfig& config) {
  AttentionShape shape;
  shape.num_heads = config.num_heads;
  shape.num_kv_heads = config.num_kv_heads;
  shape.head_dim = shape.head_dim_v = config.head_dim;
  shape.page_size = engine.block_size;
  shape.kv = kv_dtype(engine, config);
  for (const int window : config.layer_windows) shape.window = std::max(shape.window, window);
  return shape;
}

int64_t block_bytes(const AttentionShape& shape, int num_layers) {
  const KvLayout layout = {.page_size = shape.page_size,
                           .num_kv_heads = shape.num_kv_heads,
                           .head_dim = shape.head_dim,
                           .head_dim_v = shape.head_dim_v,
                           .dtype = shape.kv};
  return layout.page_bytes() * num_layers;
}

// What the engine would plan, but for activations and workspace, which only a loaded model knows.
void print_memory_plan(const EngineConfig& engine, const ModelConfig& config,
                       const AttentionShape& shape) {
  const auto weight_bytes = static_cast<int64_t>(dtype_bytes(config.dtype.value_or(DType::kF32)));
  const MemoryRequest request = {
      .block_bytes = block_bytes(shape, config.num_layers),
      .block_size = shape.page_size,
      .max_model_len = engine.max_model_len > 0 ? engine.max_model_len : longest_model_len(config),
      .max_num_seqs = engine.max_num_seqs,
      .kv_cache_memory = engine.kv_cache_memory,
      .free_bytes = inspect_machine().available_bytes,
      .weight_bytes = num_parameters(config) * weight_bytes};
  const Result<MemoryPlan> plan = plan_memory(request);
  if (!plan.ok())
    return print_line("memory plan", "not for the whole context: " + plan.status().message());
  print_line("memory plan",
             fmt::format("weights {:.3f} GiB, KV cache {:.3f} GiB for {} tokens",
                         gib(request.weight_bytes), gib(plan->kv_bytes), plan->num_kv_tokens));
}

void print_model(const EngineConfig& engine, const ModelFiles& files) {
  const ModelConfig& config = files.config;
  fmt::print("\n");
  print_line("model",
             fmt::format("{} ({}, {:.1f} M parameters, {} layers, hidden {}, {})", files.name,
                         config.architecture, static_cast<double>(num_parameters(config)) / 1e6,
                         config.num_layers, config.hidden_size,
                         config.dtype ? dtype_name(*config.dtype) : "type not said"));
  print_line("context", fmt::format("{} tokens", longest_model_len(config)));
  print_line("tokenizer",
             files.tokenizer != nullptr
                 ? fmt::format("yes: {} tokens", files.tokenizer->vocab_size())
                 : "no: neither tokenizer.json nor tokenizer.model; prompts must be token ids");
  print_line("chat template", files.chat ? "yes" : "no: " + files.chat_error.message());
  const AttentionShape shape = attention_shape(engine, config);
  print_memory_plan(engine, config, shape);
  print_backends(shape);
}

Result<int> run(const EngineConfig& engine) {
  print_build();
  print_machine(inspect_machine());
  std::fflush(stdout);
  QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(engine));
  print_model(engine, files);
  return kExitOk;
}

}  // namespace

Command doctor_command() {
  const auto engine = std::make_shared<EngineConfig>();
  Command command;
  command.name = "doctor";
  command.summary = "What this machine and build can do, and why not";
  command.example =
      "  quire doctor\n"
      "  quire doctor --model ~/models/llama";
  add_engine_flags(command.flags, engine.get(), SeedFlag::kOfEngine);
  command.run = [engine] { return run(*engine); };
  return command;
}

}  // namespace quire::cli
