#include "cli/doctor.h"

#include <fmt/format.h>
#include <hwy/highway.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <sstream>

#include "base/ascii.h"
#include "base/build_info.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/thread_choice.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/output.h"
#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/gemm_bf16.h"
#include "cpu/ops/isa.h"
#include "kv/cache_dtype.h"
#include "model/decoder_config.h"
#include "model/model_loader.h"
#include "platform/platform.h"
#include "start/memory_plan.h"
#include "start/model_files.h"
#include "start/node_setup.h"
#include "start/plan.h"
#include "start/platform_choice.h"
#include "start/replica_plan.h"
#include "start/report.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "start/speculation.h"
#include "tokenizer/tokenizer.h"

namespace quire::cli {
namespace {

// Reads a file of /proc or /sys; returns an empty string if it is missing.
std::string read_system_file(const char* path) {
  constexpr size_t kMaxBytes = size_t{16} << 20;
  const Result<std::string> text = read_file(path, kMaxBytes);
  return text.ok() ? *text : "";
}

std::vector<std::string> known_features(const std::string& flags) {
  constexpr std::string_view kNames[] = {
      "sse4_2",      "avx",         "avx2",     "fma",         "f16c",     "avx512f",  "avx512bw",
      "avx512_bf16", "avx512_fp16", "avx_vnni", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8",
      "asimd",       "asimdhp",     "sve",      "sve2",        "bf16",     "i8mm"};
  std::istringstream words(flags);
  const std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  std::vector<std::string> found;
  for (const std::string_view name : kNames) {
    if (std::find(all.begin(), all.end(), name) != all.end()) found.emplace_back(name);
  }
  return found;
}

std::string or_unknown(std::string text) {
  return text.empty() ? "unknown" : text;
}

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
  // Lists the targets from the best one, which has the lowest bit, to the worst.
  for (int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    names.emplace_back(hwy::TargetName(left & -left));
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string instructions(bool are_usable, cpu::IsaLevel level, std::string_view offered_by) {
  if (are_usable) return "yes";
  if (!cpu::may_use(level)) return "no: QUIRE_MAX_CPU_ISA excludes it";
  return fmt::format("no: {} does not offer it", offered_by);
}

void print_threads(const ThreadChoice& choice) {
  print_line("threads", choice.threads);
  print_line("pinning", choice.pinning);
  if (!choice.left_out.empty()) print_line("efficiency cores", choice.left_out);
  if (!choice.quota.empty()) print_line("CPU quota", choice.quota);
}

void print_machine(const Machine& machine, const ThreadChoice& threads) {
  print_line("CPU", machine.cpu);
  print_threads(threads);
  print_line("features", fmt::format("{}", fmt::join(machine.features, " ")));
  print_line("SIMD targets", simd_targets());
  print_line("AMX", instructions(cpu::amx_usable(), cpu::IsaLevel::kAmx, "the CPU or the kernel"));
  print_line("AVX-512 BF16",
             instructions(cpu::avx512_bf16_usable(), cpu::IsaLevel::kAvx512, "the CPU"));
  print_line("memory", fmt::format("{:.1f} GiB, {:.1f} GiB available", gib(machine.total_bytes),
                                   gib(free_memory_bytes())));
  print_line("huge pages", fmt::format("transparent: {}; reserved: {}",
                                       machine.transparent_huge_pages, machine.num_huge_pages));
  const Status gpu = cuda_status();
  print_line("CUDA", gpu.ok() ? "yes" : "no: " + engine_message(gpu));
}

std::string yes_or_no(const Support& support) {
  return support.ok() ? "yes" : fmt::format("no: {}", fmt::join(support.reasons, "; "));
}

// Prints the backends that are not in the set, and the reason: no GPU, not built in, or another
// device.
void print_absent_backends(const BackendSet& present) {
  const bool has_gpu = cuda_status().ok();
  const std::vector<std::string_view> names = present.names();
  for (const BackendName& backend : backend_names()) {
    if (std::ranges::find(names, backend.name) != names.end()) continue;
    const bool lacks_gpu = backend.device == DeviceKind::kCuda && !has_gpu;
    print_line(fmt::format("  {}", backend.name),
               lacks_gpu ? "no: needs a GPU; see CUDA above"
                         : "no: is not built in, or runs on another --device");
  }
}

void print_backends(const DeviceContext& context, const KvGroup& group) {
  const Device& device = context.device();
  const AttentionShape& shape = group.decode;
  print_stdout("\nattention of {} query heads and {} KV heads, head_dim {}, {} {}KV cache\n",
               shape.num_heads, shape.num_kv_heads, shape.head_dim, kv_cache_dtype_name(shape.kv),
               shape.is_latent ? "latent " : "");
  for (const auto& backend : context.attention().all()) {
    print_line(fmt::format("  {}", backend->name()),
               fmt::format("decode {}, prefill {}",
                           yes_or_no(backend->supports(shape, {.phase = Phase::kDecode}, device)),
                           yes_or_no(backend->supports(group.prefill, {.phase = Phase::kPrefill},
                                                       device))));
  }
  print_absent_backends(context.attention());
}

// Returns the context length that a server would use, which may be shorter than the model's.
std::string served_context(const EnginePlan& plan, const ModelConfig& config) {
  const int longest = config.longest_model_len;
  const int served = plan.sizes.limits.max_model_len;
  if (served == longest) return fmt::format("{} tokens", served);
  return fmt::format("{} tokens of the model's {}", served, longest);
}

std::string describe_drafter(const Speculation& speculation, const DraftModel* draft) {
  const std::string method = describe_drafts(speculation.method, speculation.num_drafts);
  return draft == nullptr ? method : fmt::format("{} ({})", draft->name(), method);
}

void print_serving_backends(std::string_view what, const AttentionSetup& attention) {
  for (const std::string& line : report_attention(attention).details) print_line(what, line);
}

// Prints the plan of an engine with these settings. Fails if the engine could not start.
Status print_plan(const EngineConfig& engine, const Speculation& wanted, const ModelFiles& files) {
  QUIRE_ASSIGN_OR_RETURN(const Speculation speculation, settle_method(wanted, engine, files));
  std::vector<PlannedReplica> replicas;
  QUIRE_RETURN_IF_ERROR(plan_replicas(engine, speculation, files, nullptr, replicas));
  const PlannedReplica& planned = replicas.front();
  const Platform& platform = *replicas.front().platform;
  const EnginePlan& plan = planned.plans.front();
  print_line("context", served_context(plan, files.config));
  if (speculation.num_drafts > 0) {
    print_line("drafter", describe_drafter(speculation, planned.draft.get()));
  }
  DeviceContext& context = *platform.contexts().front();
  const std::string quantization =
      describe_quantization(files.config, *files.weights, context.ops(), plan.target.weights);
  if (!quantization.empty()) print_line("quantization", quantization);
  if (planned.plans.size() > 1) {
    print_line("ranks", fmt::format("{}, with the memory plan of one rank", planned.plans.size()));
  }
  if (replicas.size() > 1) {
    print_line("replicas", fmt::format("{}, with the plan of the first", replicas.size()));
  }
  const auto memory_of = [](const EnginePlan& of) {
    constexpr std::string_view kModule = "[memory] ";
    return describe(of.memory_request, of.memory_plan).substr(kModule.size());
  };
  print_line("memory plan", memory_of(plan));
  for (size_t r = 1; r < replicas.size(); ++r) {
    const std::string memory = memory_of(replicas[r].plans.front());
    if (memory != memory_of(plan)) print_line(fmt::format("  of replica {}", r), memory);
  }
  const StepThreads steps = platform.step_threads();
  if (steps.decode > 0) {
    print_line("tuned threads",
               fmt::format("{} for decode, {} for prompts; from {}, which may be deleted",
                           steps.decode, steps.prefill, platform.choices()->file().string()));
  }
  print_serving_backends("serves", plan.target.attention);
  if (plan.draft) print_serving_backends("drafter serves", plan.draft->attention);
  for (const KvGroup& group : plan.target.attention.kv_groups) print_backends(context, group);
  return {};
}

std::string shown_value(const Setting& setting, const EngineConfig& engine) {
  if (setting.is_secret) return "(not shown)";
  if (setting.notation != Notation::kBytes) return setting.text(engine);
  return bytes_text(engine.*std::get<int64_t EngineConfig::*>(setting.member));
}

// Prints the settings that differ from their defaults.
void print_settings(const EngineConfig& engine) {
  std::vector<std::string> given;
  for (const Setting& setting : all_settings()) {
    if (setting.is_default(engine)) continue;
    given.push_back(fmt::format("{} {}", setting.flag_name(), shown_value(setting, engine)));
  }
  if (!given.empty()) print_line("settings", fmt::format("{}", fmt::join(given, ", ")));
}

void print_model(const ModelFiles& files) {
  const ModelConfig& config = files.config;
  print_stdout("\n");
  print_line("model",
             fmt::format("{} ({}, {:.1f} M parameters, {} layers, hidden {}, {})", files.name,
                         config.architecture, static_cast<double>(num_parameters(config)) / 1e6,
                         config.num_layers, config.hidden_size,
                         config.dtype ? dtype_name(*config.dtype) : "type not given"));
  if (!config.unread_fields.empty()) {
    print_line("unread fields", fmt::format("{}: no computation depends on them here",
                                            fmt::join(config.unread_fields, ", ")));
  }
  print_line("task",
             files.embedding ? "embed: last-token pooling, for /v1/embeddings" : "generate");
  print_line(
      "tokenizer",
      !files.tokenizer_error.ok() ? "no: " + engine_message(files.tokenizer_error)
      : files.tokenizer != nullptr
          ? fmt::format("yes: {} tokens", files.tokenizer->vocab_size())
          : fmt::format("no: there is no {}; prompts must be token ids", kTokenizerFileList));
  if (!files.tokenizer_error.ok()) return;
  const Status& fault = files.template_fault.ok() ? files.chat_error : files.template_fault;
  print_line("chat template", files.chat ? "yes" : "no: " + engine_message(fault));
}

// With several nodes, checks only this node, because the memory plan needs all nodes.
Status print_node(const EngineConfig& engine, const ModelConfig& model) {
  QUIRE_RETURN_IF_ERROR(check_shards(model, {.rank = 0, .size = engine.tensor_parallel_size}));
  QUIRE_RETURN_IF_ERROR(check_devices(engine));
  QUIRE_ASSIGN_OR_RETURN(const std::string found, check_own_node(engine));
  print_line("nodes", found);
  print_line(
      "memory plan",
      "made by all nodes together when they start; run quire serve on each, whose log has it");
  return {};
}

Result<int> run(const EngineConfig& given) {
  QUIRE_ASSIGN_OR_RETURN(const EngineConfig engine,
                         place_node(with_dummy_weights_of_config(given)));
  QUIRE_RETURN_IF_ERROR(check_settings(engine));
  QUIRE_ASSIGN_OR_RETURN(const Speculation speculation,
                         read_speculation(engine.speculative_config));
  print_build();
  QUIRE_RETURN_IF_ERROR(cpu::apply_max_isa());
  print_machine(inspect_machine(), choose_threads(thread_options(engine)));
  print_settings(given);
  (void)finish_stdout();
  QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, inspect_model_files(engine));
  print_model(files);
  const Status has_weights = check_stored_tensors(files.config, *files.weights);
  if (engine.load_format == "dummy") {
    print_line("weights", "dummy");
  } else {
    print_line("weights", has_weights.ok() ? "yes" : "no: " + engine_message(has_weights));
  }
  const bool has_nodes = engine.nnodes > 1;
  const Status plan =
      has_nodes ? print_node(engine, files.config) : print_plan(engine, speculation, files);
  if (!plan.ok()) print_line(has_nodes ? "nodes" : "memory plan", "no: " + engine_message(plan));
  return has_weights.ok() && plan.ok() && files.tokenizer_error.ok() ? kExitOk : kExitFailure;
}

}  // namespace

int64_t kib_field_bytes(std::string_view value) {
  int64_t kib = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), kib);
  const std::string_view unit(end, static_cast<size_t>(value.data() + value.size() - end));
  if (error != std::errc() || unit != " kB" || kib < 0 || kib > (INT64_MAX >> 10)) return 0;
  return kib << 10;
}

std::string bracketed(std::string_view text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

Machine inspect_machine() {
  const std::string cpuinfo = read_system_file("/proc/cpuinfo");
  const std::string meminfo = read_system_file("/proc/meminfo");
  const std::string x86_flags = proc_field(cpuinfo, "flags");
  Machine machine;
  machine.cpu = cpu_model();
  machine.features =
      known_features(x86_flags.empty() ? proc_field(cpuinfo, "Features") : x86_flags);
  machine.total_bytes = kib_field_bytes(proc_field(meminfo, "MemTotal"));
  machine.transparent_huge_pages =
      or_unknown(bracketed(read_system_file("/sys/kernel/mm/transparent_hugepage/enabled")));
  const std::string huge_pages = proc_field(meminfo, "HugePages_Total");
  std::from_chars(huge_pages.data(), huge_pages.data() + huge_pages.size(), machine.num_huge_pages);
  return machine;
}

Command doctor_command() {
  const auto engine = std::make_shared<EngineConfig>();
  Command command;
  command.name = "doctor";
  command.summary = "Report what this machine and build can do, and why not";
  command.example =
      "  quire doctor\n"
      "  quire doctor ~/models/llama\n"
      "  quire doctor config.json";
  command.flags.begin_group("Model");
  add_chat_flags(command.flags, engine.get());
  add_engine_flags(command.flags, engine.get(), SeedFlag::kOfEngine);
  command.positional = model_argument(engine.get());
  command.run = [engine] { return run(*engine); };
  return command;
}

}  // namespace quire::cli
