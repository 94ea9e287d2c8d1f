#include "cli/flags.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>

#include "cli/command_line.h"
#include "cli/engine_flags.h"
#include "cli/sampling_flags.h"
#include "cli/unknown_words.h"
#include "platform/platform.h"
#include "start/settings.h"

namespace quire::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Range, DescribesItsBounds) {
  const Range top_p = {.min = 0, .max = 1, .min_excluded = true};
  EXPECT_FALSE(top_p.contains(0.0));
  EXPECT_TRUE(top_p.contains(1.0));
  EXPECT_FALSE(top_p.contains(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(top_p.text(), "in (0, 1]");
  EXPECT_EQ((Range{.min = 0, .max = 1, .max_excluded = true}.text()), "in [0, 1)");
  EXPECT_EQ((Range{.min = 1}.text()), "of at least 1");
  EXPECT_EQ(Range{}.text(), "");
}

TEST(SamplingFlags, ListsGrowWithEachUse) {
  SamplingFlags sampling("7");
  FlagSet flags;
  sampling.add_to(flags);
  const auto give = [&](std::string_view name, std::string_view value) {
    EXPECT_TRUE(flags.find(name)->repeatable) << name;
    EXPECT_TRUE(flags.find(name)->set(value).ok()) << name;
  };
  for (const char* ids : {"1,2", "3"}) {
    give("--stop-token-ids", ids);
    give("--allowed-token-ids", ids);
    give("--stop", ids);
  }
  give("--logit-bias", "1:2");
  give("--logit-bias", "3:-4");
  EXPECT_FALSE(flags.find("--temperature")->repeatable);
  const SamplingParams params = sampling.applied_to(SamplingParams());
  EXPECT_THAT(params.stop_token_ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(params.allowed_token_ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(params.stop, ElementsAre("1,2", "3"));
  EXPECT_THAT(params.logit_bias, ElementsAre(std::pair(1, 2.0F), std::pair(3, -4.0F)));
}

TEST(ParseCount, CountsAsVllmDoes) {
  EXPECT_EQ(*parse_count("8192", {}), 8192);
  EXPECT_EQ(*parse_count("8k", {}), 8000);
  EXPECT_EQ(*parse_count("16K", {}), 16384);
  EXPECT_EQ(*parse_count("1m", {}), 1'000'000);
  EXPECT_EQ(*parse_count("1M", {}), 1 << 20);
  for (const char* bad : {"", "k", "8kk", "8 k", "1.5k", "8G", "99999999999999999M"}) {
    EXPECT_FALSE(parse_count(bad, {}).ok()) << bad;
  }
  EXPECT_FALSE(parse_count("2K", {.min = 0, .max = 2047}).ok());
}

TEST(MaxModelLen, IsTheModelsOwnWhereItIsLeftToUs) {
  EngineConfig config;
  FlagSet flags;
  add_engine_flags(flags, &config, SeedFlag::kOfEngine);
  const Flag* flag = flags.find("--max-model-len");
  ASSERT_TRUE(flag->set("8K").ok());
  EXPECT_EQ(config.max_model_len, 8192);
  for (const char* own : {"auto", "-1", "0"}) {
    config.max_model_len = 7;
    EXPECT_TRUE(flag->set(own).ok()) << own;
    EXPECT_EQ(config.max_model_len, 0) << own;
  }
}

TEST(OnByDefault, BothHalvesAtOnceContradictEachOther) {
  bool target = true;
  FlagSet flags;
  flags.on_by_default("enable-x", &target, "");
  EXPECT_TRUE(flags.find("--no-enable-x")->set("true").ok());
  EXPECT_FALSE(target);
  EXPECT_FALSE(flags.find("--enable-x")->set("true").ok());
  EXPECT_TRUE(flags.find("--enable-x")->set("false").ok());
  EXPECT_FALSE(target);
}

// Parses a command line of the whole program, without running it.
struct Parsed {
  explicit Parsed(std::vector<const char*> words)
      : root(root_command()), line(read_command_line(root, words)) {}

  const std::vector<std::string>& complaints() const { return line.complaints.messages(); }

  Command root;
  CommandLine line;
};

TEST(CommandLine, FindsTheCommandAndItsHelp) {
  EXPECT_EQ(Parsed({"bench", "latency"}).line.path, "quire bench latency");
  EXPECT_EQ(Parsed({"bench", "latency", "-h", "--zz"}).line.action, CommandLine::Action::kHelp);
  EXPECT_THAT(Parsed({"bench", "latency", "--zz", "-h"}).complaints(), IsEmpty());
  const Parsed help({"help", "bench", "latency"});
  EXPECT_EQ(help.line.action, CommandLine::Action::kHelp);
  EXPECT_EQ(help.line.path, "quire bench latency");
  EXPECT_EQ(Parsed({"-v"}).line.action, CommandLine::Action::kVersion);
  EXPECT_THAT(Parsed({}).complaints(), IsEmpty());
}

TEST(CommandLine, GathersAllMistakes) {
  const Parsed parsed({"serve", "--temp", "1", "--port", "x", "--max_num_seqs=-1", "a", "b",
                       "--tempurature=1", "--host"});
  EXPECT_THAT(parsed.complaints(),
              ElementsAre(HasSubstr("--temp: is --temperature of quire generate and quire chat"),
                          HasSubstr("--port: got 'x'"), HasSubstr("--max-num-seqs: got '-1'"),
                          HasSubstr("--tempurature: is no flag of this command"),
                          "--host: expected a value: --host ADDRESS",
                          HasSubstr("got 'b' as well, expected one MODEL; --models-dir DIR")));
  // vLLM's form of a key of a flag.
  EXPECT_THAT(Parsed({"serve", "--speculative-config.method=eagle3"}).complaints(),
              ElementsAre(HasSubstr("--speculative-config.method: is no flag of this command")));
  // A check of flags together with flags that are unknown.
  EXPECT_THAT(Parsed({"chat", "--zz", "--n", "2", "--logprobs", "1"}).complaints(),
              ElementsAre(HasSubstr("--zz"), HasSubstr("--n: a turn"), HasSubstr("--logprobs")));
}

TEST(CommandLine, MistakesNameTheAliasThatWasGiven) {
  EXPECT_THAT(Parsed({"tokenize", "--model", "", "text"}).complaints(),
              ElementsAre(HasSubstr("--model: got ''")));
  EXPECT_THAT(Parsed({"tokenize", "--tokenizer", "", "text"}).complaints(),
              ElementsAre(HasSubstr("--tokenizer: got ''")));
}

TEST(CommandLine, AFlagIsNoValueUnlessItIsJoined) {
  EXPECT_THAT(Parsed({"generate", "--prompt", "--chat"}).complaints(),
              ElementsAre(HasSubstr("--prompt: expected a value, got the flag --chat")));
  EXPECT_THAT(Parsed({"generate", "--prompt=--chat"}).complaints(), IsEmpty());
  EXPECT_THAT(Parsed({"generate", "--prompt", "-5+3", "--", "--chat"}).complaints(), IsEmpty());
  EXPECT_THAT(Parsed({"generate", "-5+3", "- a list", "--ignore_eos=false"}).complaints(),
              IsEmpty());
}

TEST(CommandLine, TwoDashesEndAFlagOfSeveralValues) {
  EXPECT_THAT(Parsed({"serve", "--served-model-name", "a", "b", "--", "m"}).complaints(),
              IsEmpty());
  EXPECT_THAT(Parsed({"serve", "--served-model-name", "a", "--", "m", "n"}).complaints(),
              ElementsAre(HasSubstr("got 'n' as well, expected one MODEL")));
}

TEST(CommandLine, HarmlessFlagsOfOtherEnginesWarn) {
  const Parsed parsed({"serve", "--trust-remote-code", "a", "--swap-space", "4", "--swap-space=4",
                       "--disable-log-requests"});
  EXPECT_THAT(parsed.complaints(), IsEmpty());
  EXPECT_THAT(parsed.line.warnings,
              ElementsAre(StartsWith("--trust-remote-code has no effect: "),
                          StartsWith("--swap-space has no effect: "),
                          StartsWith("--swap-space has no effect: "),
                          StartsWith("--disable-log-requests has no effect: ")));
}

TEST(CommandLine, AFlagOfAnotherCommandIsSaidToBeOne) {
  EXPECT_THAT(Parsed({"generate", "--port", "1"}).complaints(),
              ElementsAre("--port: is a flag of quire serve and quire bench serve"));
  EXPECT_THAT(Parsed({"--model", "a", "generate"}).complaints(),
              ElementsAre(HasSubstr("--model: is a flag of quire generate and others")));
}

// A setting has a flag of quire serve and a text that describes it, or neither.
TEST(Settings, HaveFlagsOfTheServer) {
  const Command root = root_command();
  const auto serve = std::ranges::find(root.subcommands, "serve", &Command::name);
  ASSERT_NE(serve, root.subcommands.end());
  std::set<std::string> names;
  for (const Setting& setting : all_settings()) {
    const std::string name = setting.flag_name();
    EXPECT_EQ(serve->flags.find(name) != nullptr, !setting.help.empty()) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
    const std::string alias(setting.alias);
    EXPECT_TRUE(alias.empty() || names.insert(alias).second) << alias;
  }
}

TEST(ForeignNames, NameFlagsThatExist) {
  const Command root = root_command();
  const auto has_flag = [](const Command& command, std::string_view name,
                           const auto& self) -> bool {
    return command.flags.find(name) != nullptr ||
           std::ranges::any_of(command.subcommands, [&](const Command& subcommand) {
             return self(subcommand, name, self);
           });
  };
  std::set<std::string_view> names;
  for (const ForeignFlag& foreign : foreign_flags()) {
    EXPECT_TRUE(names.insert(foreign.name).second) << foreign.name;
    EXPECT_FALSE(has_flag(root, foreign.name, has_flag)) << foreign.name;
    const std::string text = fmt::format("{} {}", foreign.text, foreign.preferred);
    const std::regex flag("--[a-z][a-z-]*");
    for (std::sregex_iterator found(text.begin(), text.end(), flag), end; found != end; ++found) {
      EXPECT_TRUE(has_flag(root, found->str(), has_flag)) << foreign.name << ": " << text;
    }
  }
  EXPECT_THAT(Parsed({"show", "x"}).complaints(), ElementsAre("show is quire doctor MODEL here"));
  EXPECT_EQ(foreign_command_remedy(""), "");
}

TEST(NamesModel, TellsModelsFromPrompts) {
  for (const char* model :
       {"/m", "./m", "../m", "~/m", "Qwen/Qwen3-0.6B", "a/b@main", "a/b:Q4_K_M", "hf.co/a/b:x.gguf",
        "https://huggingface.co/a/b", "SmolLM2", "smollm2:latest"}) {
    EXPECT_TRUE(names_model(model)) << model;
  }
  EXPECT_TRUE(names_model(::testing::TempDir()));
  for (const char* prompt : {"hello", "3/4", "10/5", "is a/b right?", "a/b/c", "a/", "",
                             "and/or: a", "3/4:5", "a:b", "https://example.com/a"}) {
    EXPECT_FALSE(names_model(prompt)) << prompt;
  }
}

TEST(GenerateWords, AreAModelAndOneMessage) {
  EXPECT_THAT(Parsed({"generate", "a/b", "What", "is", "3/4?"}).complaints(), IsEmpty());
  EXPECT_THAT(Parsed({"generate", "a/b", "c/d"}).complaints(), IsEmpty());
  EXPECT_THAT(Parsed({"generate", "--model", "a/b", "c/d"}).complaints(),
              ElementsAre("MODEL MESSAGE: expected one model, got c/d and --model a/b"));
  EXPECT_THAT(Parsed({"generate", "a\xff"}).complaints(), ElementsAre(HasSubstr("valid UTF-8")));
}

TEST(SecretFlags, AreKnownByTheirName) {
  for (const char* flag : {"--api-key", "--api_key", "--apikey=a", "--API-KEY", "--hf-token"}) {
    EXPECT_TRUE(is_secret_flag(flag)) << flag;
  }
  for (const char* flag : {"--max_tokens", "--tokenizer", "--port", "key", "--keyboard"}) {
    EXPECT_FALSE(is_secret_flag(flag)) << flag;
  }
}

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(*parse_number("0.25", {}), 0.25);
  EXPECT_EQ(*parse_number("-1e3", {}), -1000.0);
  for (const char* bad : {"", "1x", " 1", "0,5", "nan", "inf", "1e999", "--1"}) {
    EXPECT_FALSE(parse_number(bad, {}).ok()) << bad;
  }
  EXPECT_EQ(parse_number("3", {.min = 0, .max = 1}).status().message(),
            "got '3', expected a number in [0, 1]");
}

TEST(ParseInteger, RefusesFractionsAndOverflow) {
  EXPECT_EQ(*parse_integer("-7", {}), -7);
  for (const char* bad : {"1.0", "99999999999999999999", "0x10", ""}) {
    EXPECT_FALSE(parse_integer(bad, {}).ok()) << bad;
  }
}

TEST(ParseSeed, TakesAll64Bits) {
  EXPECT_EQ(*parse_seed("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(parse_seed("18446744073709551616").ok());
  EXPECT_FALSE(parse_seed("-1").ok());
}

TEST(ParseBytes, ParsesBinaryUnits) {
  EXPECT_EQ(*parse_bytes("12"), 12);
  EXPECT_EQ(*parse_bytes("3K"), 3072);
  for (const char* four : {"4G", "4GB", "4GiB"}) EXPECT_EQ(*parse_bytes(four), int64_t{4} << 30);
  EXPECT_EQ(*parse_bytes("12B"), 12);
  for (const char* bad : {"", "G", "-1", "1.5G", "9999999999T", "4GG", "4iB", "4GBs", "4 G"}) {
    EXPECT_FALSE(parse_bytes(bad).ok()) << bad;
  }
}

TEST(ParseIds, TakesListsOfTokenIds) {
  EXPECT_THAT(*parse_ids("1,2, 3"), ElementsAre(1, 2, 3));
  for (const char* bad : {"", ",", "1,", "-1", "1;2", "4294967296"}) {
    EXPECT_FALSE(parse_ids(bad).ok()) << bad;
  }
}

TEST(Unexpected, ShowsOneShortPrintableLine) {
  const std::string message = unexpected("a\nb\xff" + std::string(500, 'x'), "less").message();
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size(), 120U);
}

Status set(const FlagSet& flags, std::string_view name, std::string_view value) {
  const Flag* flag = flags.find(name);
  return flag == nullptr ? not_found(std::string(name)) : flag->set(value);
}

TEST(EngineFlags, FillTheConfig) {
  EngineConfig config;
  FlagSet flags;
  add_engine_flags(flags, &config, SeedFlag::kOfEngine);
  EXPECT_TRUE(set(flags, "--model", "/m").ok());
  EXPECT_TRUE(set(flags, "--page-size", "32").ok());
  EXPECT_TRUE(set(flags, "--kv-cache-dtype", "fp8_e4m3").ok());
  EXPECT_TRUE(set(flags, "--dtype", "bfloat16").ok());
  EXPECT_TRUE(set(flags, "--kv-cache-memory", "1M").ok());
  EXPECT_TRUE(set(flags, "--no-enable-prefix-caching", "").ok());
  EXPECT_TRUE(set(flags, "--seed", "7").ok());
  EXPECT_TRUE(set(flags, "--enforce-eager", "").ok());
  EXPECT_TRUE(set(flags, "--cpu-activations", "bf16").ok());
  EXPECT_TRUE(set(flags, "--gpu-memory-utilization", "0.5").ok());
  EXPECT_EQ(config.model, "/m");
  EXPECT_EQ(config.block_size, 32);
  EXPECT_EQ(config.kv_cache_dtype, "fp8");
  EXPECT_TRUE(set(flags, "--kv-cache-dtype", "i8").ok());
  EXPECT_EQ(config.kv_cache_dtype, "int8");
  EXPECT_EQ(config.dtype, "bf16");
  EXPECT_EQ(config.kv_cache_memory, 1 << 20);
  EXPECT_FALSE(config.enable_prefix_caching);
  EXPECT_TRUE(config.enable_chunked_prefill);
  EXPECT_EQ(config.seed, 7U);
  EXPECT_TRUE(config.enforce_eager);
  EXPECT_EQ(config.cpu_activations, "bf16");
  EXPECT_EQ(config.gpu_memory_utilization, 0.5);
}

TEST(FlagSet, PathsAreNotEmptyAndTextIsUtf8) {
  std::string path;
  std::string text = "default";
  std::vector<std::string> texts;
  FlagSet flags;
  flags.file("--file", &path, "");
  flags.directory("--directory", &path, "");
  flags.text("--text", "TEXT", &text, "");
  flags.texts("--texts", "TEXT", &texts, "");
  EXPECT_EQ(set(flags, "--file", "").message(), "got '', expected a path");
  EXPECT_EQ(set(flags, "--directory", "").message(), "got '', expected a path");
  EXPECT_TRUE(set(flags, "--file", "\xff").ok());  // a name may contain any bytes
  EXPECT_EQ(path, "\xff");
  EXPECT_THAT(set(flags, "--text", "a\xff").message(), HasSubstr("valid UTF-8"));
  EXPECT_THAT(set(flags, "--texts", "a\xff").message(), HasSubstr("valid UTF-8"));
  EXPECT_EQ(text, "default");
  EXPECT_TRUE(texts.empty());
  EXPECT_TRUE(set(flags, "--text", "").ok());
  EXPECT_TRUE(set(flags, "--texts", "").ok());  // becomes the beginning-of-sequence token
  EXPECT_EQ(texts.size(), 1U);
}

TEST(FlagSet, FilesToWriteNeedAFolder) {
  std::string path;
  FlagSet flags;
  flags.output_file("--json", &path, "");
  const std::string folder = ::testing::TempDir();
  EXPECT_TRUE(set(flags, "--json", "report.json").ok());
  EXPECT_TRUE(set(flags, "--json", folder + "/report.json").ok());
  for (const std::string& bad :
       {std::string(), folder, folder + "/", folder + "/quire_no_such_folder/report.json"}) {
    EXPECT_THAT(set(flags, "--json", bad).message(), HasSubstr("in a folder that exists")) << bad;
  }
  EXPECT_EQ(path, folder + "/report.json");
}

TEST(EngineFlags, BackendsAreThoseOfTheBuild) {
  const bool has_cuda = is_built_for(DeviceKind::kCuda);
  EngineConfig config;
  FlagSet flags;
  add_engine_flags(flags, &config, SeedFlag::kOfEngine);
  for (const char* name :
       {"--attention-backend", "--prefill-attention-backend", "--decode-attention-backend"}) {
    EXPECT_THAT(set(flags, name, "nonsense").message(),
                StartsWith("got 'nonsense', expected one of auto, cpu, reference"));
    EXPECT_EQ(set(flags, name, "flashinfer").ok(), has_cuda);
    for (const char* absent : {"flashinfer", "xqa", "cudnn", "native"}) {
      if (has_cuda) continue;
      EXPECT_EQ(
          set(flags, name, absent).message(),
          fmt::format("got '{0}', expected one of auto, cpu, reference: {0} needs a GPU, and this "
                      "build has no CUDA",
                      absent));
    }
    EXPECT_FALSE(set(flags, name, "").ok());
    EXPECT_TRUE(set(flags, name, "reference").ok());
  }
  EXPECT_EQ(config.decode_attention_backend, "reference");
}

TEST(BackendNames, AreThoseOfTheCpuToo) {
  const auto platform = make_cpu_platform({.threads = choose_threads({.num_threads = 1})});
  ASSERT_TRUE(platform.ok());
  std::vector<std::string_view> names;
  for (const BackendName& backend : backend_names()) {
    if (backend.device == DeviceKind::kCpu) names.push_back(backend.name);
  }
  EXPECT_EQ(names, (*platform)->contexts().front()->attention().names());
}

TEST(EngineFlags, AContextHoldsAPromptAndAnOutput) {
  EngineConfig config;
  FlagSet flags;
  add_engine_flags(flags, &config, SeedFlag::kOfEngine);
  EXPECT_THAT(set(flags, "--max-model-len", "1").message(), HasSubstr("at least 2"));
  EXPECT_FALSE(set(flags, "--max-model-len", "-2").ok());
  EXPECT_FALSE(set(flags, "--max-model-len", "16777217").ok());
  EXPECT_TRUE(set(flags, "--max-model-len", "0").ok());
  EXPECT_TRUE(set(flags, "--max-model-len", "2").ok());
  EXPECT_EQ(config.max_model_len, 2);
}

TEST(EngineFlags, RefuseInvalidValuesAndKeepTheDefault) {
  EngineConfig config;
  FlagSet flags;
  add_engine_flags(flags, &config, SeedFlag::kOfEngine);
  EXPECT_THAT(set(flags, "--block-size", "20").message(), HasSubstr("16, 32 or 64"));
  EXPECT_THAT(set(flags, "--dtype", "fp8").message(), HasSubstr("one of auto, f32, f16, bf16"));
  EXPECT_THAT(set(flags, "--device", "tpu").message(), HasSubstr("one of auto, cpu, cuda"));
  EXPECT_THAT(set(flags, "--nnodes", "all").message(),
              HasSubstr("got 'all', expected auto or an integer in [0, 64]"));
  EXPECT_FALSE(set(flags, "--nnodes", "65").ok());
  EXPECT_FALSE(set(flags, "--max-num-seqs", "-1").ok());
  EXPECT_FALSE(set(flags, "--gpu-memory-utilization", "1.5").ok());
  EXPECT_EQ(config.block_size, 16);
  EXPECT_EQ(config.max_num_seqs, EngineConfig().max_num_seqs);
}

TEST(BenchServeFlags, ReadListsAndLimits) {
  const Command command = bench_serve_command();
  EXPECT_TRUE(set(command.flags, "--metric-percentiles", "50,99.9").ok());
  EXPECT_TRUE(set(command.flags, "--percentile-metrics", "itl,ttft").ok());
  EXPECT_TRUE(set(command.flags, "--goodput", "ttft:250 tpot:50").ok());
  EXPECT_FALSE(set(command.flags, "--metric-percentiles", "101").ok());
  EXPECT_FALSE(set(command.flags, "--percentile-metrics", "speed").ok());
  for (const char* bad : {"ttft", "ttft:", "itl:3", "ttft:-1", "x:1"}) {
    EXPECT_FALSE(set(command.flags, "--goodput", bad).ok()) << bad;
  }
}

TEST(NameFlags, ReplacesTheFieldsOfTheLibrary) {
  const auto message = [](std::string text) { return engine_message(internal_error(text)); };
  EXPECT_EQ(message("max_num_seqs: must be 1 to 4096, got 0"),
            "--max-num-seqs: must be 1 to 4096, got 0");
  EXPECT_EQ(message("[engine] num_threads: got -1; lower `max_num_seqs` or `kv_cache_memory`"),
            "[engine] --threads: got -1; lower --max-num-seqs or --kv-cache-memory");
  EXPECT_EQ(message("[engine] set `chat_template` or `other`; max_num_seqs is 3"),
            "[engine] set --chat-template or `other`; max_num_seqs is 3");
  EXPECT_EQ(message("[attention] `decode_attention_backend` xqa cannot serve decode"),
            "[attention] --decode-attention-backend xqa cannot serve decode");
  EXPECT_EQ(message("[model] model is no word of ours"), "[model] model is no word of ours");
  EXPECT_EQ(message("[nodes] node 0 (a) has failed: [cpu] tensor_parallel_size: got 4 ranks"),
            "[nodes] node 0 (a) has failed: [cpu] --tensor-parallel-size: got 4 ranks");
  EXPECT_EQ(message("[cut"), "[cut");
}

TEST(NearestFlag, IsTheMostSimilarName) {
  const std::vector<std::string> known = {"--help", "--top-p", "--temperature", "--max-tokens"};
  EXPECT_EQ(nearest_flag("--tempurature", known), "--temperature");
  EXPECT_EQ(nearest_flag("--top_p", known), "--top-p");
  EXPECT_EQ(nearest_flag("-help", known), "--help");
  EXPECT_EQ(nearest_flag("--temp", known), "--temperature");  // the first that begins so
  EXPECT_EQ(nearest_flag("--ma", known), "");                 // too few letters
  EXPECT_EQ(nearest_flag("--", known), "");
  EXPECT_EQ(nearest_flag("--help", known), "");  // it is a known name
}

}  // namespace
}  // namespace quire::cli
