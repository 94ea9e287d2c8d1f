#include <fmt/format.h>
#include <hwy/highway.h>

#include <algorithm>
#include <memory>

#include "base/machine.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/version.h"
#include "cpu/ops/gemm_amx.h"
#include "engine/engine_plan.h"
#include "engine/memory_plan.h"
#include "engine/model_files.h"
#include "model/families.h"
#include "platform/platform.h"

namespace quire::cli {
namespace {

void print_line(std::string_view what, std::string_view value) {
  print_stdout("{:<20} {}\n", what, one_line(value));
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
  // From the best target (the lowest bit) to the worst.
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
                                   gib(free_memory_bytes())));
  print_line("huge pages", fmt::format("transparent: {}; reserved: {}",
                                       machine.transparent_huge_pages, machine.num_huge_pages));
  const Status gpu = cuda_status();
  print_line("CUDA", gpu.ok() ? "yes" : "no: " + gpu.message());
}

std::string answer(const Support& support) {
  return support.ok() ? "yes" : fmt::format("no: {}", fmt::join(support.reasons, "; "));
}

void print_backends(const DeviceContext& context, const KvGroup& group) {
  const Device& device = context.device();
  const AttentionShape& shape = group.decode;
  print_stdout("\nattention of {} query heads and {} KV heads, head_dim {}, {} KV cache\n",
               shape.num_heads, shape.num_kv_heads, shape.head_dim, dtype_name(shape.kv));
  for (const auto& backend : context.attention().all()) {
    print_line(
        fmt::format("  {}", backend->name()),
        fmt::format("decode {}, prefill {}",
                    answer(backend->supports(shape, {.phase = Phase::kDecode}, device)),
                    answer(backend->supports(group.prefill, {.phase = Phase::kPrefill}, device))));
  }
}

// The context length that the server would use, which may be shorter than the model's.
std::string served_context(const EnginePlan& plan, const ModelConfig& config) {
  const int longest = config.longest_model_len;
  const int served = plan.sizes.limits.max_model_len;
  if (served == longest) return fmt::format("{} tokens", served);
  return fmt::format("{} tokens of the model's {}", served, longest);
}

void print_model(const EngineConfig& engine, const ModelFiles& files) {
  const ModelConfig& config = files.config;
  print_stdout("\n");
  print_line("model",
             fmt::format("{} ({}, {:.1f} M parameters, {} layers, hidden {}, {})", files.name,
                         config.architecture, static_cast<double>(num_parameters(config)) / 1e6,
                         config.num_layers, config.hidden_size,
                         config.dtype ? dtype_name(*config.dtype) : "type not said"));
  print_line("tokenizer",
             files.tokenizer != nullptr
                 ? fmt::format("yes: {} tokens", files.tokenizer->vocab_size())
                 : "no: neither tokenizer.json nor tokenizer.model; prompts must be token ids");
  print_line("chat template", files.chat ? "yes" : "no: " + files.chat_error.message());
  const auto platform = make_platform(engine, config);
  if (!platform.ok()) return print_line("memory plan", "no: " + platform.status().message());
  const Result<EnginePlan> plan = plan_engine(engine, files, **platform);
  if (!plan.ok()) return print_line("memory plan", "no: " + plan.status().message());
  print_line("context", served_context(*plan, config));
  print_line("memory plan", describe(plan->memory, plan->kv));
  for (const std::string& line : report_attention(plan->attention).details)
    print_line("serves", line);
  const DeviceContext& context = *(*platform)->contexts().front();
  for (const KvGroup& group : plan->attention.kv_groups) print_backends(context, group);
}

Result<int> run(const EngineConfig& engine) {
  print_build();
  print_machine(inspect_machine());
  (void)finish_stdout();
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
  command.flags.begin_group("Model");
  add_chat_template_flag(command.flags, engine.get());
  add_engine_flags(command.flags, engine.get(), SeedFlag::kOfEngine);
  command.run = [engine] { return run(*engine); };
  return command;
}

}  // namespace quire::cli
