// Tests the binary from outside: exit codes, output, refusals, Ctrl-C.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/text_input.h"
#include "support/free_port.h"
#include "support/process.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;
using quire::testing::abacus_path;
using quire::testing::expect_exit;
using quire::testing::Process;
using quire::testing::run_quire;
using quire::testing::ScratchDirectory;
using quire::testing::shared_data_path;
using quire::testing::source_path;
using quire::testing::SpawnResult;
using quire::testing::Words;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

size_t count_lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The directory of all tests' files, removed at the end of the program.
const ScratchDirectory& scratch() {
  static const ScratchDirectory directory;
  return directory;
}

std::string scratch_file(const std::string& name, const std::string& text) {
  return scratch().write(name, text);
}

fs::path scratch_folder(const std::string& name) {
  fs::path folder = scratch().path() / name;
  fs::create_directories(folder);
  return folder;
}

JsonDocument parse_json(std::string_view text) {
  auto document = JsonDocument::parse(text, "output");
  EXPECT_TRUE(document.ok()) << text;
  return std::move(document).value();
}

std::vector<int32_t> ids_of(simdjson::dom::element value) {
  std::vector<int32_t> ids;
  simdjson::dom::array items;
  if (value.get_array().get(items)) return ids;
  for (const simdjson::dom::element item : items) {
    ids.push_back(static_cast<int32_t>(item.get_int64().value()));
  }
  return ids;
}

std::string text_of(simdjson::dom::element value) {
  return std::string(value.get_string().value());
}

TEST(Usage, HelpAndVersionSucceed) {
  EXPECT_THAT(run_quire("--version").out, StartsWith("quire "));
  EXPECT_EQ(run_quire("-v").out, run_quire("--version").out);
  EXPECT_EQ(run_quire("version").out, run_quire("--version").out);
  EXPECT_EQ(run_quire("help").out, run_quire("--help").out);
  EXPECT_EQ(run_quire("help bench latency").out, run_quire("bench latency --help").out);
  for (const char* command :
       {"generate", "chat", "tokenize", "detokenize", "template", "doctor", "tune", "completion"}) {
    EXPECT_THAT(expect_exit(0, {command, "--help"}).out, HasSubstr("Example:")) << command;
  }
  for (const char* command : {"bench throughput --help", "bench latency --help",
                              "eval gsm8k --help", "eval perplexity --help"}) {
    EXPECT_THAT(run_quire(command).out, HasSubstr("Example:"));
  }
}

TEST(Usage, HelpSaysDefaultsOfSizes) {
  EXPECT_THAT(run_quire("serve --help").out, AllOf(HasSubstr("Largest request body [32M]\n"),
                                                   HasSubstr("that are not parsed yet [512M]\n")));
}

TEST(Usage, MistakesAreOneLineAndExitCode2) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {"generate --no-such-flag", "--no-such-flag"},
      {"generate --temperature hot", "--temperature: got 'hot', expected a number"},
      {"generate --top-p 1.5", "in (0, 1]"},
      {"generate --max-tokens", "--max-tokens: expected a value"},
      {"chat --generation-config dir", "got 'dir', expected one of auto, vllm: another"},
      {"bench --generation-config vllm", "is a flag of quire "},
      {"generate --block-size 20", "16, 32 or 64"},
      {"generate --device tpu", "one of auto, cpu, cuda"},
      {"generate --quantization awq", "one of none, fp8"},
      {"generate --prompt-ids 1,x", "token ids"},
      {"generate --format xml", "one of text, json"},
      {"generate mymodel 'Once upon a time'", "'mymodel' is no model"},
      {"generate mymodel --prompt Hi", "'mymodel' is no model"},
      {"generate mymodel:latest hello", "'mymodel:latest' is no model"},
      {"tokenize mymodel@main hello", "'mymodel@main' is no model"},
      {"chat embedded hello", "expected one MODEL; quire generate MODEL MESSAGE answers"},
      {"generate mymodel hello", "quire pull ORG/NAME or smollm2 downloads one"},
      {"generate --log-level loud", "debug"},
      {"template", "--input"},
      {"eval gsm8k", "--data"},
      {"eval perplexity", "expected --data FILE"},
      {"eval perplexity --data a --context 64 --stride 65",
       "--stride: got 65, expected 1 to 64, the --context"},
      {"eval perplexity --data a --stride 0", "--stride: got '0', expected"},
      {"eval perplexity --data a --context 0", "--context: got '0', expected"},
      {"eval perplexity --data a --max-tokens 1", "--max-tokens: got '1'"},
      {"bench throughput --dataset-name sharegpt", "--dataset-path"},
      {"bench throughput --random-range-ratio 1", "in [0, 1)"},
      {"completion tcsh", "got 'tcsh', expected one of bash, zsh, fish"},
      {"frobnicate", "'frobnicate' is no command; expected one of generate, chat, serve"},
      {"genrate", "'genrate' is no command; did you mean generate? See quire --help"},
      {"help benhc", "'benhc' is no command; did you mean bench?"},
      {"run llama", "run is quire chat MODEL here"},
      {"ps", "GET /api/ps of a running quire serve lists its loaded models"},
      {"stop smollm2", "stop is no command: Ctrl-C or SIGTERM ends quire serve"},
      {"create a -f Modelfile", "create is no command: a section [NAME]"},
      {"chat smollm2 --think", "--think: is /set think"},
      {"chat --num-ctx 9", "--num-ctx: is --max-model-len here"},
      {"serve --num-parallel 2", "--num-parallel: is --max-num-seqs here"},
      {"chat --url 127.0.0.1:21112", "--url: got '127.0.0.1:21112', expected http://HOST:PORT"},
      {"generate --tempurature 1",
       "--tempurature: is no flag of this command; did you mean "
       "--temperature?"},
      {"serve a --model b", "expected one model, got a and --model b"},
      {"serve ''", "MODEL: got '', expected a text that is not empty"},
      {"serve --served-model-name a /", "quire serve / …"},
      {"serve --served-model-name a /etc/passwd", "got the path /etc/passwd, expected a name"},
      {"serve --served-model-name ''", "--served-model-name: expected a name"},
      {"serve --served-model-name a a", "--served-model-name: got a twice"},
      {"serve --max-request-bytes 0", "--max-request-bytes: got 0, expected at least 1"},
      {"serve --max-tokenize-bytes 0", "--max-tokenize-bytes: got 0, expected at least 1"},
      {"serve --max-stored-response-bytes 1M", "expected --max-stored-responses with it"},
      {"serve --max-concurrency-per-key 3", "expected --api-key or --api-key-file"},
      {"serve --uds /tmp/x --max-connections-per-peer 2", "not both"},
      {"serve --allowed-origins foo", "--allowed-origins: got 'foo'"},
      {"serve --allowed-hosts a --allowed-hosts http://a", "--allowed-hosts: got 'http://a'"},
      {"serve --allowed-hosts ''", "--allowed-hosts: got ''"},
      {"serve --enable-prefix-caching --no-enable-prefix-caching",
       "contradicts --enable-prefix-caching"},
      {"serve embedded --plan-freed-bytes 1M", "--plan-freed-bytes: expected --plan-only with it"},
      {"serve -tp 65", "-tp: got '65', expected"},
      {"serve -tp=0", "-tp: got '0', expected"},
      {"serve -m a", "-m: is --model here"},
      {"eval perplexity --data x -f x", "-f: is --data here"},
      {"eval perplexity --data x -c 9", "-c: is --context here"},
      {"serve -hf a/b-GGUF", "ORG/NAME:Q4_K_M for a GGUF file"},
      {"serve --quantization awq_marlin",
       "got 'awq_marlin', expected one of none, fp8: the checkpoint's config.json names"},
      {"serve --quantization bitsandbytes", "it is not supported"},
      {"serve --kv-cache-dtype q8_0", "int8: q8_0 is int8 here, on a CPU; a GPU has fp8"},
      {"convert x", "is quire quantize --model DIR --to q4_k_m --out FILE.gguf"},
      {"quantize a/b out.gguf --to q4_0 --out x",
       "got 'out.gguf' as well, expected one MODEL; the target is --to q4_k_m here"},
      {"pull nope", "NAME: got 'nope', expected smollm2, ORG/NAME"},
      {"pull llama3.2:1b", "the hub has GGUF files of most models: quire pull ORG/NAME:Q4_K_M"},
      {"pull registry.ollama.ai/library/llama3.2", "quire pull ORG/NAME:Q4_K_M"},
      {"serve -ngl 99", "-ngl: is not needed"},
      {"generate --temp 1", "--temp: is --temperature here"},
      {"serve --mem-fraction-static=.8", "is --gpu-memory-utilization here"},
      {"generate --logprobs 1", "need --format json"},
      {"generate --prompt a --chat-template a.jinja", "needs --chat"},
      {"generate --prompt a --allow-special-tokens-in-messages", "needs --chat"},
      {"generate --prompt-logprobs 1", "need --format json"},
      {"chat --logprobs 1", "need --format json"},
      {"bench latency --json /no/such/x.json", "in a folder that exists"},
      {"template a --tokenizer b --input -", "MODEL: got a and --tokenizer b"},
      {"detokenize --ids 1 --text 2", "--text: got '1' and '2', expected one of them"},
      {"bench serve throughput", "got 'throughput', expected flags only"},
      {"tune m --num-heads 8", "together"},
      {"tune m --num-heads 8 --num-kv-heads 8 --head-dim 64",
       "expected a model or --num-heads, not both"},
      {"pull", "expected NAME: smollm2; ORG/NAME[@REVISION][:TAG]"},
      {"quantize --to q8_0", "expected --out PATH"},
      {"quantize --to q8_0 --out -", "--out: got - (standard output), expected a path"},
      {"quantize --to q3_k --out x", "--to: got 'q3_k', expected one of q8_0, q4_0"},
      {"quantize --to q8_0 --out x --group-size 64", "expected --group-size with --to w4a16 only"},
      {"quantize --to w4a16 --out x --group-size 100",
       "--group-size: got 100, expected a multiple of 16"},
      {"quantize --to q8_0 --out x --perplexity-tokens 9",
       "expected --perplexity-tokens with --perplexity FILE only"},
      {"quantize --to q8_0 --out x --calibration-file text",
       "expected --calibration-file with --to w4a16 only"},
      {"quantize --to w4a16 --out x --calibration-tokens 99",
       "expected --calibration-tokens with --calibration-file FILE only"},
      {"quantize --to w4a16 --out x --calibration-file - --perplexity -",
       "expected standard input (-) for one of --calibration-file and --perplexity"},
      {"quantize --to w4a16 --out x --calibration-file text --calibration-tokens 9",
       "--calibration-tokens: got '9'"},
      {"completion", "expected SHELL: bash, zsh or fish"},
      {"generate --ignore-eos=5", "--ignore-eos: got '5', expected true or false"},
      {"generate --stop ''", "--stop: got '', expected a text that is not empty"},
      {"generate --model ''", "--model: got '', expected a path"},
      {"generate --model=", "--model"},
      {"generate --tokenizer ''", "--tokenizer: got ''"},
      {"generate --input ''", "--input: got ''"},
      {"generate --prompt-ids ''", "--prompt-ids: got ''"},
      {"bench throughput --json ''", "--json: got ''"},
      {"bench throughput --json -", "--json: got '-'"},
      {"bench throughput --dataset-name sharegpt --dataset-path x --input-len 7",
       "--dataset-name random only"},
      {"bench throughput --dataset-path ''", "--dataset-path: got ''"},
      {"eval gsm8k --data ''", "--data: got ''"},
      {"template --template ''", "--template: got ''"},
      {"tokenize --tokenizer '' --text a", "--tokenizer: got ''"},
      {"generate --decode-attention-backend ''", "--decode-attention-backend: got ''"},
      {"generate --attention-backend nonsense", "one of auto, cpu, reference"},
      {"generate --max-model-len 1", "--max-model-len: got '1'"},
      {"generate --n 129", "--n: got '129', expected an integer in [1, 128]"},
      {"generate --logprobs 21", "--logprobs: got '21'"},
      {"generate --temperature 1e39", "--temperature: got '1e39'"},
      {{"generate", "--prompt", "a\xff"}, "--prompt: got"},
      {{"generate", "--stop", "a\xff"}, "--stop: got"},
      {{"generate", "--bad-words", "a\xff"}, "--bad-words: got"},
      {"tune --num-heads 8", "--num-kv-heads"},
      {"tune --num-heads 5000", "in [0, 4096]"},
      {"tune --output ''", "--output: got ''"},
      {"tune --device cpu --q-len 2",
       "--q-len: has no effect on the threads of a CPU; leave it out, or set --device cuda"},
      {"tune --device cpu --num-heads 8 --num-kv-heads 8 --head-dim 64",
       "--num-heads: has no effect on the threads of a CPU"},
      {"tune --num-heads 8 --num-kv-heads 8 --head-dim 64 --cpu-cores all",
       "--cpu-cores: has no effect on the attention of a GPU; leave it out; see"},
      {"tune --device cuda --kv-cache-dtype int8", "--kv-cache-dtype: got int8"},
      {"tune --quantization fp8 --cpu-activations int8",
       "--cpu-activations: got int8 with --quantization fp8"},
      {{"chat", "--system", "a\xff"}, "--system: got"},
      {"chat --n 5", "--n: a turn has one reply"},
      {"serve --device cuda --kv-cache-dtype int8",
       "--kv-cache-dtype: got int8 on a GPU, expected fp8"},
      {"generate --calculate-kv-scales",
       "--calculate-kv-scales: got true with --kv-cache-dtype auto, expected fp8"},
      {"chat --tokenizer /no/such", "--tokenizer: must be empty, because --model is empty"},
      {"bench latency --quantization fp8 --cpu-activations int8",
       "--cpu-activations: got int8 with --quantization fp8"},
      {R"(eval gsm8k --data x --max-num-batched-tokens 4 --speculative-config '{"method": "ngram", "num_speculative_tokens": 4}')",
       "--max-num-batched-tokens: got 4, expected at least 5"},
      {"bench throughput --profile --device cpu", "--profile: expected a GPU"}};
  for (const auto& [arguments, expected] : cases) {
    const SpawnResult result = expect_exit(2, arguments);
    EXPECT_THAT(result.err, AllOf(StartsWith("quire"), HasSubstr(expected)));
    EXPECT_EQ(count_lines(result.err), 1U) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST(Usage, MissingFilesAreExitCode1) {
  const SpawnResult model = expect_exit(1, "generate --model /no/such --prompt x");
  EXPECT_THAT(model.err,
              AllOf(HasSubstr("/no/such"), HasSubstr("does not exist; expected a directory")));
  const std::string file = scratch_file("model.safetensors", "");
  EXPECT_THAT(expect_exit(1, {"generate", "--model", file, "--prompt", "x"}).err,
              HasSubstr("is a file; expected a GGUF file"));
  const SpawnResult gguf = expect_exit(1, "generate no-such.gguf hi");
  EXPECT_THAT(gguf.err, AllOf(HasSubstr("the file no-such.gguf does not exist"),
                              Not(HasSubstr("`quire pull"))));
  EXPECT_THAT(run_quire("chat nope").err, HasSubstr("`quire pull ORG/NAME` one of the hub"));
  const SpawnResult input = expect_exit(1, "generate --input /no/such.jsonl");
  EXPECT_THAT(input.err, HasSubstr("/no/such.jsonl"));
  expect_exit(1, "tokenize --tokenizer /no/such --text a");
  expect_exit(1, "template --template /no/such --input -");
  expect_exit(1, "eval gsm8k --data /no/such");
  expect_exit(1, "eval perplexity --data /no/such");
}

TEST(Usage, AllMistakesAreReported) {
  const SpawnResult result = expect_exit(
      2, {"generate", "--temp", "1", "--ngl", "9", "--top-p", "7", "--trust-remote-code"});
  EXPECT_EQ(count_lines(result.err), 3U) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("quire generate: --temp: is --temperature here\n"),
                    HasSubstr("quire generate: --ngl: "),
                    HasSubstr("expected a number in (0, 1]; see quire generate --help\n")));
}

TEST(Usage, HarmlessFlagsOfOtherEnginesOnlyWarn) {
  const SpawnResult result = expect_exit(
      0, {"generate", "--trust-remote-code", "--swap-space", "4", "--max-tokens", "1", "hi"});
  EXPECT_THAT(result.err, AllOf(HasSubstr("--trust-remote-code has no effect"),
                                HasSubstr("--swap-space has no effect")));
}

TEST(Usage, AGpusBackendNeedsAGpu) {
  const SpawnResult result = run_quire("generate --device cpu --attention-backend xqa");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("xqa needs a GPU"));
}

TEST(ModelFiles, AGgufFileThatIsNotServedIsNamed) {
  std::string gguf("GGUF\3\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x14\0\0\0\0\0\0\0", 32);
  gguf += "general.architecture" + std::string("\x8\0\0\0\5\0\0\0\0\0\0\0rwkv6", 17);
  const fs::path directory = scratch_folder("gguf");
  scratch_file("gguf/model.gguf", gguf);
  EXPECT_THAT(expect_exit(1, {"chat", (directory / "model.gguf").string()}).err,
              AllOf(HasSubstr("model.gguf: metadata \"general.architecture\""),
                    HasSubstr("got \"rwkv6\", expected one of llama")));
  EXPECT_THAT(expect_exit(1, {"chat", directory.string()}).err,
              AllOf(HasSubstr("the name of one of the files, such as"),
                    HasSubstr("--models-dir " + directory.string())));
}

TEST(Embedded, WordsAndPipesAreMessages) {
  const std::string question = "What is 3+4?";
  const Words options = "--temperature 0 --max-tokens 8";
  const SpawnResult chat =
      expect_exit(0, Words{"generate", "--chat", "--prompt", question} + options);
  EXPECT_THAT(chat.out, Not(AnyOf(IsEmpty(), StartsWith("\n"))));
  const Words one_word = Words{"generate", question} + options;
  const SpawnResult words = run_quire(one_word);
  EXPECT_EQ(words.out, chat.out);
  EXPECT_THAT(words.err, HasSubstr("no model is named: using the embedded one"));
  EXPECT_EQ(run_quire(Words("generate embedded What is 3+4?") + options).out, chat.out);
  EXPECT_EQ(run_quire(Words("generate") + options, {.input = question + "\n"}).out, chat.out);
  // A prompt leaves standard input alone.
  const SpawnResult other = run_quire(one_word, {.input = "other\n"});
  EXPECT_EQ(other.out, chat.out);
  EXPECT_THAT(other.err, HasSubstr("standard input is not read, because"));
  EXPECT_THAT(words.err, Not(HasSubstr("standard input")));
}

// The warnings of the library name settings, not flags.
TEST(Embedded, WarningsNameFlags) {
  const SpawnResult result = expect_exit(
      0, "generate --prompt 7 --max-tokens 1 --max-num-seqs 64 --max-num-batched-tokens 16");
  EXPECT_THAT(result.err, AllOf(HasSubstr("--max-num-seqs 64 is lowered to 16: a step of "
                                          "--max-num-batched-tokens 16"),
                                Not(HasSubstr("`max_num_seqs`"))));
}

TEST(Embedded, AFailedRequestIsReportedOnce) {
  const fs::path directory = scratch_folder("nan");
  fs::copy(abacus_path(), directory);
  std::string weights = read_file(directory / "model.safetensors", 1 << 26).value();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, weights.data(), sizeof header_bytes);
  // A NaN in BF16: the first number of the embeddings, which are also lm_head.
  weights.replace(sizeof header_bytes + header_bytes, 2, "\xC0\x7F");
  scratch_file("nan/model.safetensors", weights);
  EXPECT_THAT(expect_exit(1, {"generate", directory.string(), "--prompt", "7"}).err,
              AllOf(HasSubstr("prompt 0, sample 0: "), Not(HasSubstr("is empty"))));
}

TEST(Embedded, AnEmptyFileOfPromptsIsRefused) {
  EXPECT_THAT(expect_exit(1, "generate --input -", {.input = "\n"}).err,
              HasSubstr("standard input is empty; expected one request per line"));
}

TEST(Tokenize, TakesItsTextAsAnArgument) {
  const std::string ids = expect_exit(0, "tokenize --text 'hello you'").out;
  EXPECT_EQ(run_quire("tokenize 'hello you'").out, ids);
  EXPECT_EQ(run_quire("tokenize embedded hello you").out, ids);
  EXPECT_EQ(run_quire("detokenize embedded 7,8").out, run_quire("detokenize --ids 7,8").out);
  EXPECT_THAT(expect_exit(2, "tokenize smolm2 'hello you'").err, HasSubstr("'smolm2' is no model"));
  EXPECT_THAT(expect_exit(2, "tokenize a --text b").err, HasSubstr("expected one of them"));
  EXPECT_THAT(expect_exit(2, "tokenize a --input -").err, HasSubstr("expected either a text or"));
  EXPECT_THAT(expect_exit(2, "detokenize embedded 7,x").err, HasSubstr("7,x"));
}

TEST(Tokenize, ReadsItsTextFromStandardInput) {
  const std::string ids = run_quire("tokenize --text 'hello you'").out;
  EXPECT_EQ(expect_exit(0, "tokenize", {.input = "hello you\n"}).out, ids);
  EXPECT_EQ(expect_exit(0, "tokenize embedded", {.input = "hello you"}).out, ids);
  EXPECT_EQ(expect_exit(0, "detokenize", {.input = ids}).out, "hello you\n");
  EXPECT_THAT(expect_exit(1, "tokenize").err,
              HasSubstr("got no text; expected quire tokenize TEXT"));
  EXPECT_THAT(expect_exit(1, "tokenize", {.input = "\xff"}).err, HasSubstr("UTF-8"));
}

// A program that collects the log gets JSON objects only, also for mistakes and failures.
TEST(JsonLogs, HaveNoPlainLines) {
  const auto check = [](const std::string& lines) {
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);) {
      EXPECT_TRUE(JsonDocument::parse(line, "line").ok()) << line;
    }
    EXPECT_THAT(lines, HasSubstr(R"("level":)"));
  };
  for (const Words& command : {Words("generate --log-format json hello"),
                               Words("generate --log-format json --input /no/such"),
                               Words("serve --log-format json --nonsense"),
                               Words("serve --log-format json --model /no/such"),
                               Words("tune --log-format json --model /no/such")}) {
    check(run_quire(command).err);
  }
  quire::testing::Process server("serve --model embedded --log-format json --port 0");
  const std::string log = server.read_err("[server] serving");
  server.kill(SIGTERM);
  EXPECT_EQ(server.read_out("\n"), "");
  check(log + server.read_err("never shown"));
  EXPECT_EQ(server.wait(), 0);
}

TEST(Usage, LogLevelsHaveTheirUsualNames) {
  expect_exit(0, "completion bash --log-level warn");
}

TEST(Serve, NamesOllamasVariablesThatAreSet) {
  ::setenv("OLLAMA_HOST", "0.0.0.0:11434", 1);
  ::setenv("OLLAMA_KEEP_ALIVE", "5m", 1);
  Process server("serve --model embedded --max-model-len 256 --port 0");
  ::unsetenv("OLLAMA_HOST");
  ::unsetenv("OLLAMA_KEEP_ALIVE");
  server.read_out("serving ");  // the warnings come before it
  server.kill(SIGTERM);
  const std::string log = server.read_err("no such text");
  EXPECT_THAT(log, HasSubstr("OLLAMA_HOST is ignored; --host and --port set the address"));
  EXPECT_THAT(log, HasSubstr("OLLAMA_KEEP_ALIVE is ignored"));
  EXPECT_THAT(log, Not(HasSubstr("OLLAMA_MODELS"))) << "it is not set";
  EXPECT_EQ(server.wait(), 0);
}

TEST(Serve, APortIsTakenBeforeTheModelIsRead) {
  EXPECT_THAT(expect_exit(1, "serve /no/such/model --host 192.0.2.1").err,
              AllOf(HasSubstr("--host 192.0.2.1"), Not(HasSubstr("/no/such/model"))));
}

TEST(Usage, SizesThatDoNotFitTheModelExitWith1) {
  EXPECT_THAT(expect_exit(1, "generate --max-model-len 1M").err,
              HasSubstr("--max-model-len: must be at most"));
}

TEST(Usage, KvEventsAreRefusedByTheirKeyBeforeTheModelIsRead) {
  const auto error = [](int exit_code, const std::string& config, const Words& more = {}) {
    return expect_exit(exit_code,
                       Words{"serve", "/no/such/model", "--kv-events-config", config} + more)
        .err;
  };
  EXPECT_THAT(error(2, R"({"end_point": "tcp://*:1"})"),
              HasSubstr("--kv-events-config: \"end_point\"; got an unknown field"));
  EXPECT_THAT(error(1, R"({"enable_kv_cache_events": true, "endpoint": "tcp://*:99999"})"),
              HasSubstr("endpoint: got tcp://*:99999 with one replica, expected a port"));
  EXPECT_THAT(error(2, R"({"enable_kv_cache_events": true})", "--no-enable-prefix-caching"),
              HasSubstr("--kv-events-config needs the prefix cache"));
}

TEST(Usage, SpeculationIsRefusedByItsKeyAndServedWithTheSameText) {
  EXPECT_THAT(expect_exit(2, "generate --speculative-config {}").err,
              HasSubstr("--speculative-config: method; got nothing"));
  const Words command = "generate --temperature 0 'What is 12*34?'";
  const Words drafts = {"--speculative-config", R"({"method": "suffix"})"};
  EXPECT_EQ(expect_exit(0, command + drafts).out, run_quire(command).out);
}

TEST(Streams, OutputThatIsLostIsAnError) {
  for (const char* command :
       {"--version", "chat --help", "completion bash", "tokenize --model embedded --text a"}) {
    EXPECT_EQ(expect_exit(1, command, {.out_file = "/dev/full"}).err,
              "quire: [output] cannot write standard output; No space left on device\n");
  }
  for (const std::string command : {"doctor", "chat", "generate"}) {
    const SpawnResult result = expect_exit(1, {command, "--log-level", "off"},
                                           {.input = "hi\nhi\n", .out_file = "/dev/full"});
    EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  }
}

TEST(Streams, MessagesThatAreLostAreNone) {
  expect_exit(0, "generate --max-tokens 2", {.err_file = "/dev/full"});
  expect_exit(2, "generate --no-such-flag", {.err_file = "/dev/full"});
}

TEST(Completion, ScriptsAreThere) {
  const SpawnResult bash = expect_exit(0, "completion bash");
  EXPECT_THAT(bash.out, AllOf(HasSubstr("complete -F _quire quire"), HasSubstr("--log-level")));
  const std::string script = scratch_file("completion.bash", bash.out);
  const std::string check = "source '" + script +
                            "' && COMP_WORDS=(quire generate --fo) COMP_CWORD=2 && _quire && [ "
                            "\"$COMPREPLY\" = --format ]"
                            " && COMP_WORDS=(quire bench latency --device c) COMP_CWORD=4 && _quire"
                            " && [ \"${COMPREPLY[*]}\" = 'cpu cuda' ]";
  EXPECT_EQ(std::system(("bash -c \"" +
                         [&] {
                           std::string escaped;
                           for (const char c : check) {
                             if (c == '"' || c == '$') escaped += '\\';
                             escaped += c;
                           }
                           return escaped;
                         }() +
                         "\"")
                            .c_str()),
            0);
  EXPECT_THAT(run_quire("completion zsh").out, StartsWith("#compdef quire"));
  EXPECT_THAT(run_quire("completion fish").out, HasSubstr("complete -c quire"));
}

TEST(Tokenize, RoundTripsThroughDetokenize) {
  const fs::path tokenizer = shared_data_path("tokenizers/llama3.2-instruct");
  QUIRE_REQUIRE_SHARED(tokenizer);
  const std::string input = "\"Hello world\"\n\"h\\u00e9llo \\ud83d\\ude00\"\n\"\"\n";
  const SpawnResult ids =
      expect_exit(0, {"tokenize", "--tokenizer", tokenizer, "--input", "-"}, {.input = input});
  EXPECT_THAT(ids.out, StartsWith("[9906,1917]\n"));
  const SpawnResult texts =
      run_quire({"detokenize", "--tokenizer", tokenizer, "--input", "-"}, {.input = ids.out});
  EXPECT_EQ(texts.out, "\"Hello world\"\n\"héllo 😀\"\n\"\"\n");
  EXPECT_EQ(run_quire({"detokenize", "--tokenizer", tokenizer, "--ids", "9906,1917"}).out,
            "Hello world\n");
  const SpawnResult special = run_quire(
      {"tokenize", "--tokenizer", tokenizer, "--add-special-tokens", "--text", "Hello world"});
  EXPECT_EQ(special.out, "[128000,9906,1917]\n");
}

TEST(Tokenize, ABadLineIsNamed) {
  const fs::path tokenizer = shared_data_path("tokenizers/gpt2");
  QUIRE_REQUIRE_SHARED(tokenizer);
  const SpawnResult bad = expect_exit(1, {"tokenize", "--tokenizer", tokenizer, "--input", "-"},
                                      {.input = "\"a\"\n\"\xff\"\n"});
  EXPECT_EQ(count_lines(bad.out), 1U);
  EXPECT_THAT(bad.err, HasSubstr("standard input:2"));
}

TEST(Tokenize, IdsOutsideTheVocabularyAreRefused) {
  EXPECT_THAT(run_quire("detokenize --ids 1,99999999").err,
              HasSubstr("99999999 is not in the vocabulary"));
  const SpawnResult lines =
      expect_exit(1, "detokenize --input -", {.input = "[1]\n[1, 99999999]\n"});
  EXPECT_THAT(lines.err, HasSubstr("standard input:2: token id 99999999"));
}

TEST(Template, TakesTheModelAsAnArgument) {
  EXPECT_THAT(expect_exit(1, "template /no/such --input -", {.input = "{}"}).err,
              HasSubstr("/no/such"));
}

TEST(Template, RendersByteForByte) {
  const std::string file = scratch_file(
      "t.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{{ extra }}");
  const SpawnResult result =
      expect_exit(0, {"template", "--template", file, "--input", "-"},
                  {.input = R"({"messages": [{"role": "user", "content": "hé"}], "extra": 5})"});
  EXPECT_EQ(result.out, "<user>hé\n5");
  EXPECT_THAT(result.err, IsEmpty());
  const SpawnResult bad =
      expect_exit(1, {"template", "--template", file, "--input", "-"}, {.input = "["});
  EXPECT_EQ(count_lines(bad.err), 1U);
}

TEST(Template, ATemplatesOwnRefusalIsTheError) {
  const std::string file =
      scratch_file("raise.jinja", "{{ raise_exception('roles must alternate') }}");
  const SpawnResult result =
      expect_exit(1, {"template", "--template", file, "--input", "-"}, {.input = "{}"});
  EXPECT_THAT(result.err, HasSubstr("roles must alternate"));
}

TEST(Template, ARefusalDoesNothingToTheTerminal) {
  const std::string file =
      scratch_file("rude.jinja", "{{ raise_exception('\x1b]0;owned\x07\nsecond') }}");
  const SpawnResult result =
      expect_exit(1, {"template", "--template", file, "--input", "-"}, {.input = "{}"});
  EXPECT_EQ(count_lines(result.err), 1U) << result.err;
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
}

TEST(Template, StandardInputHasAName) {
  const std::string file = scratch_file("plain.jinja", "{{ extra }}");
  EXPECT_THAT(run_quire({"template", "--template", file, "--input", "-"}, {.input = "3"}).err,
              HasSubstr("standard input"));
  EXPECT_EQ(run_quire({"template", "--template", file, "--input", "-"},
                      {.input = "\xef\xbb\xbf{\"extra\": 5}"})
                .out,
            "5");
}

TEST(Template, AMisspeltKeyCausesAWarning) {
  const std::string file = scratch_file("empty.jinja", "x");
  const SpawnResult result = expect_exit(0, {"template", "--template", file, "--input", "-"},
                                         {.input = R"({"mesages": [], "tool": [], "extra": 5})"});
  EXPECT_EQ(result.out, "x");
  EXPECT_THAT(result.err, AllOf(HasSubstr("'mesages': did you mean 'messages'?"),
                                HasSubstr("'tool': did you mean 'tools'?")));
  EXPECT_EQ(count_lines(result.err), 2U) << result.err;
}

TEST(Doctor, ReportsTheMachine) {
  const SpawnResult result = expect_exit(0, "doctor");
  for (const char* what : {"compiler", "SIMD targets", "AMX", "AVX-512 BF16", "CUDA", "reference",
                           "decode yes", "memory plan", "xqa", "physical core", "\npinning "}) {
    EXPECT_THAT(result.out, HasSubstr(what));
  }
}

// Sets a variable of this process and of those that it starts, until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(MaxCpuIsa, LimitsTheInstructions) {
  const ScopedVariable variable("QUIRE_MAX_CPU_ISA", "avx2");
  EXPECT_THAT(expect_exit(0, "doctor").out,
              AllOf(HasSubstr("AMX                  no: QUIRE_MAX_CPU_ISA excludes it\n"),
                    HasSubstr("AVX-512 BF16         no: QUIRE_MAX_CPU_ISA excludes it\n"),
                    Not(HasSubstr("AVX3"))));
  const Words generate = "generate --device cpu --prompt 3+4= --max-tokens 2 --log-level info";
  EXPECT_THAT(expect_exit(0, generate).err, HasSubstr("kernels use no instructions above avx2"));
  EXPECT_THAT(run_quire(generate + "--cpu-activations bf16").err,
              HasSubstr("--cpu-activations: got bf16, which needs AVX-512 BF16, expected f32"));
}

TEST(MaxCpuIsa, ExcludesOnlyHigherLevels) {
  const std::string line = "AVX-512 BF16         yes\n";
  const bool has_bf16 = run_quire("doctor").out.find(line) != std::string::npos;
  const ScopedVariable variable("QUIRE_MAX_CPU_ISA", "avx512");
  const std::string out = run_quire("doctor").out;
  EXPECT_THAT(out, HasSubstr("AMX                  no: QUIRE_MAX_CPU_ISA excludes it\n"));
  EXPECT_EQ(out.find(line) != std::string::npos, has_bf16);
}

TEST(MaxCpuIsa, RefusesOtherValues) {
  const ScopedVariable variable("QUIRE_MAX_CPU_ISA", "avx10");
  for (const char* command : {"doctor", "generate --device cpu --prompt a"}) {
    EXPECT_THAT(expect_exit(1, command).err,
                HasSubstr("QUIRE_MAX_CPU_ISA: must be avx2, avx512 or amx, got 'avx10'"));
  }
}

TEST(Doctor, ReportsTheThreads) {
  const SpawnResult result = expect_exit(0, "doctor --threads 1 --cpu-pinning off");
  EXPECT_THAT(result.out, HasSubstr("\nthreads              1 on "));
  EXPECT_THAT(result.out, HasSubstr("\npinning              off, as --cpu-pinning says\n"));
  EXPECT_THAT(run_quire("doctor --threads 1 --cpu-pinning on").out,
              HasSubstr("\npinning              each thread to a core, as --cpu-pinning says\n"));
  EXPECT_THAT(run_quire("doctor --cpu-cores fast").err,
              HasSubstr("--cpu-cores: got 'fast', expected one of performance, all"));
}

TEST(Doctor, ReportsTheServedContext) {
  EXPECT_THAT(run_quire("doctor").out, HasSubstr("context              4096 tokens\n"));
  EXPECT_THAT(run_quire("doctor --device cpu --kv-cache-dtype int8").out,
              HasSubstr(", int8 KV cache\n"));
  EXPECT_THAT(run_quire("doctor --max-model-len 64").out,
              HasSubstr("context              64 tokens of the model's 4096\n"));
  EXPECT_THAT(run_quire("doctor --block-size 64 --kv-cache-memory 1M").out,
              AllOf(HasSubstr(" tokens of the model's 4096\n"), HasSubstr("memory plan")));
}

TEST(Doctor, ChecksOneNode) {
  const std::string port = fmt::format("{}", quire::testing::free_port());
  const auto doctor = [&](const Words& more) {
    return run_quire("doctor --device cpu --threads 1 -tp 2 --nnodes 2 --master-port " + port +
                     " " + more);
  };
  const SpawnResult first = doctor("--node-rank 0 --master-addr 127.0.0.1");
  EXPECT_EQ(first.exit_code, 0) << first.out;
  EXPECT_THAT(first.out,
              HasSubstr("nodes                node 0 of 2: 127.0.0.1 port " + port + " is free"));
  EXPECT_THAT(first.out, HasSubstr("memory plan          made by all nodes together"));
  const SpawnResult other = doctor("--node-rank 1 --master-addr 127.0.0.1");
  EXPECT_EQ(other.exit_code, 0) << other.out;
  EXPECT_THAT(other.out, HasSubstr("node 1 of 2: 127.0.0.1 port " + port + " does not answer yet"));
  // Another machine could connect, so a token is needed.
  const SpawnResult open = doctor("--node-rank 0 --master-addr 192.0.2.1");
  EXPECT_EQ(open.exit_code, 1);
  EXPECT_THAT(open.out,
              HasSubstr("nodes                no: [nodes] QUIRE_CLUSTER_TOKEN is not set"));
  EXPECT_THAT(doctor("--node-rank 1 --master-addr 127.0.0.1 -tp 4").out,
              HasSubstr("got 2 ranks for 1 threads"));
  EXPECT_THAT(doctor("--node-rank 2 --master-addr 127.0.0.1").err, HasSubstr("got 2 of 2 nodes"));
}

// The number before " MiB" after `what` in the memory plan.
double planned_mib(const std::string& report, const std::string& what) {
  const size_t at = report.find(what + " ", report.find("memory plan"));
  return at == std::string::npos ? -1 : std::stod(report.substr(at + what.size() + 1));
}

TEST(Doctor, PlansWithTheDrafter) {
  const std::string plain = run_quire("doctor").out;
  EXPECT_THAT(plain, Not(HasSubstr("drafter")));
  const auto report = [](const char* config) {
    return expect_exit(0, {"doctor", "--speculative-config", config}).out;
  };
  const std::string head = report(R"({"method": "eagle3", "num_speculative_tokens": 4})");
  EXPECT_THAT(head,
              AllOf(HasSubstr("drafter              the embedded eagle3 drafter (eagle3, up to "
                              "4 tokens per step)\n"),
                    HasSubstr("drafter serves       ")));
  for (const char* what : {"weights", "KV cache"}) {
    EXPECT_GT(planned_mib(plain, what), 0) << plain;
    EXPECT_GT(planned_mib(head, what), planned_mib(plain, what)) << what;
  }
  EXPECT_THAT(report(R"({"method": "suffix"})"),
              AllOf(HasSubstr("drafter              suffix, up to 8 tokens per step\n"),
                    Not(HasSubstr("drafter serves"))));
  // A server with this drafter would not start.
  const SpawnResult refused = expect_exit(
      1, {"doctor", "--speculative-config", R"({"method": "mtp", "num_speculative_tokens": 1})"});
  EXPECT_THAT(refused.out, HasSubstr("memory plan          no: "));
  expect_exit(2, "doctor --speculative-config {}");
}

TEST(Embedded, TheMainJobAnswersAWordProblem) {
  const SpawnResult result = expect_exit(0, "generate");
  EXPECT_THAT(result.out, HasSubstr("#### 12\n"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("Maya has 3 bags"), HasSubstr("tokens/s")));
}

TEST(Embedded, ChatsAndForgets) {
  const std::string question =
      "Zoe sleeps 7 hours a day, works 6 hours and travels 2 hours. How many free hours is that in "
      "5 days?\n";
  const SpawnResult result =
      expect_exit(0, "chat --temperature 0 --log-level error",
                  {.input = question + "/reset\n" + question + "/quit\nmore\n"});
  const std::string half = result.out.substr(0, result.out.size() / 2);
  EXPECT_EQ(result.out, half + half);  // /reset cleared the history
  EXPECT_THAT(half, HasSubstr("9 * 5 = 45\n"));
}

TEST(Embedded, ChatHasCommands) {
  const SpawnResult known = expect_exit(0, "chat --log-level error", {.input = "/help\n/exit\n"});
  EXPECT_THAT(known.err, HasSubstr("/exit"));
  const SpawnResult unknown =
      expect_exit(1, "chat --log-level error", {.input = "/frob\n/quit\nmore\n"});
  EXPECT_THAT(unknown.out, IsEmpty());  // the model did not run
  EXPECT_THAT(unknown.err,
              HasSubstr("unknown command /frob; expected one of /help, /reset, /system"));
}

TEST(Embedded, TheAnswerStandsOut) {
  const Words arguments = "generate --prompt a --max-tokens 1";
  const SpawnResult quiet = run_quire(arguments);
  EXPECT_THAT(quiet.err, AllOf(HasSubstr("1 output tokens in "), Not(HasSubstr("["))));
  EXPECT_THAT(run_quire(arguments + "--log-level info").err,
              AllOf(HasSubstr(" I [memory]"), HasSubstr(" I [engine]")));
  EXPECT_EQ(run_quire("chat embedded", {.input = ""}).err,
            "(sampling: temperature 0, top_p 1, top_k 0, min_p 0, repetition_penalty 1; from "
            "generation_config.json)\n");
}

TEST(Embedded, TheLogDoesNotLamentAMissingGpu) {
  EXPECT_THAT(run_quire("generate --device auto --max-tokens 1 --log-level info").err,
              Not(HasSubstr("[cuda]")));
}

TEST(Embedded, ChatRefusesBrokenText) {
  EXPECT_THAT(expect_exit(1, "chat --log-level error", {.input = "\xff\n"}).err,
              HasSubstr("UTF-8"));
}

class Stories : public ::testing::Test {
 protected:
  void SetUp() override { QUIRE_REQUIRE_SHARED(model_); }

  Words generate(const Words& more) const {
    return Words{"generate", "--model", model_.string(), "--log-level", "warning"} + more;
  }

  fs::path model_ = shared_data_path("models/stories15M");
};

TEST_F(Stories, GeneratesTheGoldenText) {
  const SpawnResult result =
      expect_exit(0, generate("--prompt 'Once upon a time' --temperature 0 --max-tokens 12"));
  EXPECT_THAT(result.out, StartsWith(", there was a little girl"));
  EXPECT_THAT(result.out, ::testing::EndsWith("\n"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("5 prompt tokens, 12 output tokens"),
                                HasSubstr(" ms (ended at --max-tokens)\n")));
}

TEST_F(Stories, AnOutputEndsAtTheContextsEnd) {
  const SpawnResult result = expect_exit(
      0, generate("--prompt 'Once upon a time' --temperature 0 --ignore-eos --max-model-len 16"));
  EXPECT_THAT(result.err, HasSubstr(" ms (ended at the context's end, 16)\n"));
}

// The weights are F32. Processors without AVX-512 BF16 refuse the setting.
TEST_F(Stories, RoundingToBf16WithoutBf16WeightsIsWarnedOf) {
  const SpawnResult result =
      run_quire(generate("--device cpu --cpu-activations bf16 --prompt a --max-tokens 1"));
  EXPECT_THAT(result.err,
              AnyOf(HasSubstr("--cpu-activations bf16 has no effect with weights in f32"),
                    HasSubstr("expected f32")));
}

// FP8 becomes BF16 on a CPU.
TEST(Generate, RoundingToBf16HasAnEffectWithFp8) {
  const SpawnResult result = run_quire(
      "generate --device cpu --quantization fp8 --cpu-activations bf16 --prompt a --max-tokens 1");
  EXPECT_THAT(result.err, Not(HasSubstr("no effect")));
}

TEST_F(Stories, ATokenizerOfAnotherModelIsRefused) {
  const fs::path other = shared_data_path("tokenizers/qwen2_5");
  QUIRE_REQUIRE_SHARED(other);
  EXPECT_THAT(expect_exit(1, generate({"--tokenizer", other.string(), "--prompt", "a"})).err,
              AllOf(HasSubstr("--tokenizer: " + other.string() + " has 151"),
                    HasSubstr("expected about 32000")));
  const SpawnResult own = expect_exit(
      0, generate({"--tokenizer", model_.string(), "--prompt", "Once", "--max-tokens", "1"}));
  EXPECT_THAT(own.err, Not(HasSubstr("another model")));
}

TEST_F(Stories, PrintsOneJsonObjectAPrompt) {
  const SpawnResult result =
      expect_exit(0, generate("--prompt 'Once upon a time' --prompt-ids 1,9038,2501 --temperature "
                              "0 --max-tokens 4 --format json --logprobs 2"));
  const auto lines = split_lines(result.out);
  ASSERT_EQ(lines.size(), 2U);
  const JsonDocument first = parse_json(lines[0].text);
  EXPECT_EQ(ids_of(first.root()["prompt_token_ids"]).size(), 5U);
  EXPECT_EQ(ids_of(first.root()["token_ids"]).size(), 4U);
  EXPECT_EQ(text_of(first.root()["finish_reason"]), "length");
  EXPECT_EQ(first.root()["logprobs"].get_array().value().size(), 4U);
  EXPECT_EQ(first.root()["logprobs"].at(0).get_array().value().size(), 3U);
  const JsonDocument second = parse_json(lines[1].text);
  EXPECT_EQ(ids_of(second.root()["prompt_token_ids"]), (std::vector<int32_t>{1, 9038, 2501}));
}

TEST_F(Stories, ABadLineCostsOnlyItself) {
  const std::string input =
      scratch_file("in.jsonl",
                   "{\"prompt\": \"Once\", \"max_tokens\": 2}\n{\"prompt\": 3}\n"
                   "{\"prompt_token_ids\": [1, 99999999]}\n{\"prompt\": \"Tom\", \"n\": 2, "
                   "\"max_tokens\": 3}\n");
  const SpawnResult result =
      expect_exit(1, generate({"--input", input, "--format", "json", "--seed", "1"}));
  const auto lines = split_lines(result.out);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(ids_of(parse_json(lines[0].text).root()["token_ids"]).size(), 2U);
  EXPECT_THAT(text_of(parse_json(lines[1].text).root()["error"]),
              AllOf(HasSubstr("in.jsonl:2: "), HasSubstr("'prompt'")));
  EXPECT_THAT(text_of(parse_json(lines[2].text).root()["error"]),
              AllOf(HasSubstr("in.jsonl:3: "), HasSubstr("99999999")));
  const std::vector<int64_t> prompts = {0, 1, 2, 3, 3};
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(parse_json(lines[i].text).root()["index"].get_int64().value(), prompts[i]);
  }
  EXPECT_EQ(parse_json(lines[3].text).root()["sample_index"].get_int64().value(), 0);
  EXPECT_EQ(parse_json(lines[4].text).root()["sample_index"].get_int64().value(), 1);
  EXPECT_THAT(result.err, HasSubstr("2 of 4 prompts failed"));
}

TEST_F(Stories, PrintsSeveralTextsInOrder) {
  const SpawnResult result = run_quire(
      generate("--prompt 'Once upon a time' --prompt Tom --temperature 0 --max-tokens 3"));
  EXPECT_THAT(result.out, StartsWith("==> prompt 0 <==\n"));
  EXPECT_THAT(result.out, HasSubstr("\n==> prompt 1 <==\n"));
}

TEST_F(Stories, SignalsEndCleanly) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const SpawnResult result = run_quire(
        generate(
            "--prompt 'Once upon a time' --ignore-eos --max-tokens 250 --temperature 1 --seed 1"),
        {.interrupt_after_bytes = 1, .interrupt_signal = signal});
    EXPECT_EQ(result.signal, 0);
    EXPECT_EQ(result.exit_code, 128 + signal) << result.err;
    EXPECT_THAT(result.out, ::testing::EndsWith("\n"));
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("output tokens"), HasSubstr("interrupted after 0 of 1 prompts")));
  }
}

TEST(Pipes, OneSignalEndsTheWaitForAWriter) {
  const std::string fifo = scratch().path() / "pipe";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Words commands[] = {
      {"serve", "--port", "0", "--api-key-file", fifo},
      {"quantize", "--to", "w4a16", "--out", fifo + ".out", "--calibration-file", fifo}};
  for (const Words& words : commands) {
    Process process(words);
    EXPECT_THAT(process.read_err("waiting"), HasSubstr("is a FIFO, and nothing is written to it"));
    process.kill(SIGTERM);
    EXPECT_EQ(process.wait(), 128 + SIGTERM) << words.front();
  }
  for (const char* command : {"serve --port 0", "doctor", "quantize --to q8_0 --out x.gguf"}) {
    EXPECT_THAT(expect_exit(1, command + Words{"--model", fifo}, {.timeout_s = 20}).err,
                HasSubstr("is not a regular file; got a FIFO"));
  }
}

TEST_F(Stories, TextHasNoPlaceForLogprobsOfAFile) {
  const SpawnResult result =
      expect_exit(1, generate("--input -"), {.input = "{\"prompt\": \"Tom\", \"logprobs\": 1}\n"});
  EXPECT_THAT(result.err, AllOf(HasSubstr("standard input:1: "), HasSubstr("need --format json")));
}

// Sends the signal once the engine runs. Returns the exit code and the text on standard error.
std::pair<int, std::string> end_after(const Words& arguments, const std::string& input,
                                      int signal) {
  Process process(arguments);
  process.write(input);
  process.read_err("[engine]");
  process.kill(signal);
  std::string out;
  std::string err;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (process.read_some(out, err)) {
    if (std::chrono::steady_clock::now() < deadline) continue;
    ADD_FAILURE() << fmt::format("{} does not end after signal {}:\n{}{}",
                                 fmt::join(arguments, " "), signal, err, process.threads_text());
    process.kill(SIGKILL);
  }
  return {process.wait(), err};
}

TEST_F(Stories, AnInterruptedBenchmarkReportsItsFinishedPart) {
  const std::string json = scratch_file("partial.json", "");
  for (const char* command : {"bench latency --num-iters-warmup 0 --num-iters 100000",
                              "bench throughput --num-prompts 20000"}) {
    Process process(command + Words{"--model", model_.string(), "--input-len", "4", "--output-len",
                                    "2", "--json", json});
    process.read_err("[engine]");
    std::this_thread::sleep_for(std::chrono::seconds(1));  // some requests have ended by then
    process.kill(SIGINT);
    std::string out;
    std::string err;
    while (process.read_some(out, err)) {
    }
    EXPECT_EQ(process.wait(), 130) << err;
    EXPECT_THAT(out, AllOf(StartsWith("Partial: [bench] interrupted after "),
                           HasSubstr("Time to first token: mean ")));
    EXPECT_THAT(err, HasSubstr("[bench] interrupted after "));
    EXPECT_EQ(fs::file_size(json), 0U);
  }
}

TEST_F(Stories, SignalsEndEveryLongCommand) {
  std::string problems;
  for (int i = 0; i < 400; ++i) problems += "{\"question\": \"Why?\", \"answer\": \"#### 2\"}\n";
  const std::string data = scratch_file("many.jsonl", problems);
  const Words commands[] = {"bench latency --output-len 200 --num-iters 1000",
                            "bench throughput --input-len 32 --num-prompts 2000",
                            "eval gsm8k --num-shots 0 --max-tokens 200 --data " + data,
                            "eval perplexity --stride 1 --data " + data};
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const Words& words : commands) {
      const Words command = words + Words{"--model", model_.string()};
      const auto [exit_code, err] = end_after(command, "", signal);
      EXPECT_EQ(exit_code, 128 + signal) << command[1];
      // If the signal arrives before the work begins, the program ends without a message.
      EXPECT_THAT(err, AnyOf(IsEmpty(), HasSubstr("] interrupted "))) << command[1];
    }
    EXPECT_EQ(
        end_after("chat --log-level info", "How many free hours are in 5 days?\n", signal).first,
        128 + signal);
  }
}

TEST_F(Stories, ChatTakesTheOperatorsTemplate) {
  const std::string file =
      scratch_file("once.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  const SpawnResult plain =
      run_quire(generate("--prompt 'Once upon a time' --temperature 0 --max-tokens 12"));
  const SpawnResult generated = expect_exit(
      0,
      generate({"--chat", "--chat-template", file, "--prompt", "<s>Once upon a time",
                "--allow-special-tokens-in-messages", "--temperature", "0", "--max-tokens", "12"}));
  EXPECT_EQ(generated.out, plain.out);
  const std::string broken = scratch_file("broken.jinja", "{% for %}");
  const SpawnResult refused = expect_exit(
      1, {"chat", "--model", model_.string(), "--chat-template", broken}, {.input = "a\n"});
  EXPECT_THAT(refused.err, HasSubstr("--chat-template: " + broken));
}

// A message is not sent as plain text because of a fault in the model's template.
TEST_F(Stories, ATemplateThatCannotBeParsedFailsChatsOnly) {
  const ScratchDirectory copy;
  for (const char* const name : {"config.json", "tokenizer.model", "model.safetensors"}) {
    fs::create_symlink(model_ / name, copy.path() / name);
  }
  copy.write("tokenizer_config.json", "{}");
  copy.write("chat_template.jinja", "{% for %}");
  const std::string model = copy.path().string();
  for (const Words& command : {Words{"chat", "--model", model}, Words{"generate", model, "hello"},
                               Words{"generate", "--model", model, "--chat", "--prompt", "a"}}) {
    EXPECT_THAT(expect_exit(1, command, {.input = "hi\n"}).err,
                AllOf(HasSubstr("chat_template.jinja: line 1"), HasSubstr("--chat-template")));
  }
  expect_exit(0, {"generate", "--model", model, "--prompt", "Once", "--max-tokens", "2"});
}

TEST_F(Stories, ChatNeedsATemplate) {
  const SpawnResult result =
      expect_exit(1, {"chat", "--model", model_.string(), "--log-level", "off"}, {.input = "hi\n"});
  EXPECT_THAT(result.err, HasSubstr("the model has no chat template; --chat-template"));
  const SpawnResult generated =
      expect_exit(1, generate("--chat --prompt a --prompt b --log-level off"));
  EXPECT_THAT(generated.err, HasSubstr("the model has no chat template; --chat-template"));
  EXPECT_EQ(count_lines(generated.err), 1U) << generated.err;
}

TEST(Embedded, ABadWordOfSpacesIsRefused) {
  EXPECT_THAT(expect_exit(1, "generate --prompt a --bad-words ' '").err,
              HasSubstr("expected words of more than spaces"));
}

// A model's directory that has only a config.json, for --load-format dummy.
fs::path tiny_model(const std::string& name) {
  fs::path directory = scratch_folder(name);
  std::ofstream(directory / "config.json") << R"({"architectures": ["LlamaForCausalLM"],
    "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1,
    "vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "bfloat16"})";
  return directory;
}

TEST(EvalPerplexity, ScoresATextWithTheEmbeddedModel) {
  const std::string data = source_path("models/quire-abacus/shots.jsonl");
  const std::string json = scratch_file("perplexity.json", "");
  const auto eval = [&](const Words& more) {
    const Words words = {"eval", "perplexity", "--data", data, "--json", json};
    return expect_exit(0, words + "--max-tokens 600 --context 200" + more);
  };
  const SpawnResult result = eval({});
  EXPECT_THAT(result.out, AllOf(HasSubstr("Perplexity: "), HasSubstr("600 scored"),
                                HasSubstr("of context 200 and stride 100, each after a BOS")));
  const auto first = testing::value_of(JsonDocument::load(json));
  const auto number = [](const JsonDocument& report, const char* name) {
    return report.root()[name].get_double().value();
  };
  EXPECT_EQ(number(first, "num_scored"), 600);
  EXPECT_EQ(number(first, "num_windows"), 5);
  EXPECT_NEAR(number(first, "perplexity"), std::exp(number(first, "mean_nll")), 1e-9);
  EXPECT_GT(number(first, "bits_per_byte"), 0);
  // Neither the threads nor the batch change a bit.
  eval("--threads 1 --max-num-seqs 1");
  EXPECT_EQ(number(JsonDocument::load(json).value(), "mean_nll"), number(first, "mean_nll"));
}

TEST(EvalPerplexity, RefusalsAreOneLine) {
  const std::string text = scratch_file("text.txt", "Ann has 3 apples and buys 4.");
  const std::vector<std::pair<Words, std::string>> cases = {
      {{scratch_file("empty.txt", "")}, "empty.txt is empty; expected a text"},
      {{scratch_file("latin1.txt", "caf\xe9")}, "is not valid UTF-8 at byte 3"},
      {{scratch_file("short.txt", "3")}, "short.txt; got 1, expected at least 2"},
      {{text, "--context", "4096"},
       "--context: got 4096, expected 1 to 4095: the engine's context of 4096 tokens less"},
      {{text, "--context", "64", "--max-model-len", "64"}, "expected 1 to 63"},
      {{text, "--stride", "513"}, "--stride: got 513, expected 1 to 512, the --context"},
      {{text, "--model", source_path("tests/golden/pooling/embedding")},
       "embeds texts and predicts no tokens"},
      {{text, "--model", tiny_model("perplexity").string(), "--load-format", "dummy"},
       "no tokenizer; give one with --tokenizer"}};
  for (const auto& [more, expected] : cases) {
    const SpawnResult result = expect_exit(1, "eval perplexity --log-level error --data" + more);
    EXPECT_THAT(result.err, AllOf(StartsWith("quire eval perplexity: "), HasSubstr(expected)));
    EXPECT_EQ(count_lines(result.err), 1U) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST(ModelFiles, AFolderOfTheHubsCacheNamesItsSnapshot) {
  const std::string commit(40, 'a');
  const fs::path cache = scratch_folder("models--a--b");
  scratch_folder("models--a--b/refs");
  scratch_folder("models--a--b/snapshots/" + commit);
  scratch_file("models--a--b/refs/main", commit);
  EXPECT_THAT(expect_exit(1, {"generate", "--model", cache.string(), "--prompt", "a"}).err,
              HasSubstr((cache / "snapshots" / commit).string()));
}

TEST(Usage, AGroupOfCommandsNeedsOneOfThem) {
  for (const char* group : {"bench", "eval"}) {
    const SpawnResult result = expect_exit(2, {group});
    EXPECT_THAT(result.err, HasSubstr(std::string("quire ") + group + ": expected one of "));
    EXPECT_EQ(count_lines(result.err), 1U) << result.err;
  }
}

TEST(ModelFiles, ABrokenLinkIsNotAnAbsentFile) {
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json"}) {
    const fs::path directory = tiny_model(std::string("link_to_") + name);
    fs::remove(directory / name);
    fs::create_symlink("/no/such/blob", directory / name);
    const SpawnResult result =
        expect_exit(1, {"doctor", "--model", directory.string(), "--load-format", "dummy"});
    EXPECT_THAT(result.err + result.out,
                HasSubstr(std::string(name) + " exists but cannot be opened"));
  }
}

TEST(ModelFiles, DoctorLooksForEveryTensor) {
  const fs::path directory = tiny_model("half");
  fs::copy_file(source_path("tests/golden/models/llama/default.config.json"),
                directory / "config.json", fs::copy_options::overwrite_existing);
  fs::copy_file(source_path("tests/golden/models/llama/model.safetensors"),
                directory / "model.safetensors", fs::copy_options::overwrite_existing);
  const Words arguments = {"doctor", "--model", directory.string()};
  EXPECT_THAT(expect_exit(0, arguments).out, HasSubstr("weights              yes\n"));
  std::string config = read_file(directory / "config.json", 1 << 20).value();
  const std::string layers = "\"num_hidden_layers\": 2";
  config.replace(config.find(layers), layers.size(), "\"num_hidden_layers\": 3");
  std::ofstream(directory / "config.json") << config;
  EXPECT_THAT(expect_exit(1, arguments).out,
              AllOf(HasSubstr("weights              no: [model] the checkpoint lacks"),
                    HasSubstr("model.layers.2.")));
}

// Whether a model fits this machine can be asked before its weights are fetched.
TEST(ModelFiles, DoctorTakesABareConfig) {
  const std::string config = (tiny_model("tiny") / "config.json").string();
  for (const char* flags : {"", "--load-format dummy"}) {
    EXPECT_THAT(expect_exit(0, Words{"doctor", "--model", config} + flags).out,
                AllOf(HasSubstr("LlamaForCausalLM"), HasSubstr("memory plan"),
                      HasSubstr("memory plan          weights")));
  }
  expect_exit(1, {"doctor", "--model", scratch_file("model.gguf", "GGUF")});
}

// A report goes on after a tokenizer that cannot be read.
TEST(ModelFiles, DoctorReportsABrokenTokenizer) {
  const fs::path directory = tiny_model("broken_tokenizer");
  std::ofstream(directory / "tokenizer.json") << "{";
  const SpawnResult result =
      expect_exit(1, {"doctor", "--model", directory.string(), "--load-format", "dummy"});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("\ntokenizer            no: "), HasSubstr("tokenizer.json"),
                    HasSubstr("\nmemory plan          weights ")));
}

TEST(ModelFiles, FlagsWithoutEffectOnACpuAreWarnedOf) {
  const SpawnResult result = expect_exit(
      0, {"generate", "--device", "cpu", "--model", tiny_model("tiny").string(), "--load-format",
          "dummy", "--prompt-ids", "1", "--max-tokens", "1", "--tuning-table", "measured"});
  EXPECT_THAT(result.err, HasSubstr("--tuning-table measured has no effect on a CPU"));
}

TEST(ModelFiles, AMissingTokenizerIsNamed) {
  const SpawnResult result =
      expect_exit(1, {"generate", "--model", tiny_model("tiny").string(), "--load-format", "dummy",
                      "--tokenizer", "/no/such", "--prompt", "a"});
  EXPECT_THAT(result.err, HasSubstr("--tokenizer: /no/such does not exist"));
}

TEST(ModelFiles, ATokenizerWithMoreTokensThanTheModelIsWarnedOf) {
  const fs::path tokenizer = shared_data_path("tokenizers/llama2");
  QUIRE_REQUIRE_SHARED(tokenizer);
  const SpawnResult result =
      expect_exit(0, {"doctor", "--model", tiny_model("tiny").string(), "--load-format", "dummy",
                      "--tokenizer", tokenizer.string()});
  EXPECT_THAT(result.err, HasSubstr("has 32000 tokens and the model 64"));
}

TEST(Serve, AKeyFileIsReadBeforeTheModel) {
  const SpawnResult result = expect_exit(1, "serve /no/such/model --api-key-file /no/such/keys");
  EXPECT_THAT(result.err, HasSubstr("/no/such/keys"));
}

TEST(Serve, AWrongKeyIsWrongUsage) {
  EXPECT_THAT(expect_exit(2, "serve /no/such/model --api-key sécret").err,
              AllOf(HasSubstr("--api-key"), Not(HasSubstr("cret"))));
}

TEST(Serve, ATlsPairIsReadBeforeTheModel) {
  const std::string nonsense = scratch_file("nonsense.pem", "nonsense");
  const SpawnResult result = expect_exit(
      1, {"serve", "/no/such/model", "--ssl-certfile", nonsense, "--ssl-keyfile", nonsense});
  EXPECT_THAT(result.err, HasSubstr("--ssl-certfile"));
  EXPECT_THAT(result.err, Not(HasSubstr("/no/such/model")));
}

TEST(Embedded, TextNeedsATokenizer) {
  const fs::path directory = tiny_model("no_tokenizer");
  const SpawnResult result =
      expect_exit(1, {"generate", "--model", directory.string(), "--load-format", "dummy",
                      "--prompt", "a", "--log-level", "off"});
  EXPECT_THAT(result.err, AllOf(HasSubstr("--prompt-ids"), HasSubstr("prompt_token_ids")));
}

TEST_F(Stories, BenchThroughputReportsAndWritesJson) {
  const std::string json = scratch_file("throughput.json", "");
  const SpawnResult result = expect_exit(
      0, {"bench", "throughput", "--model", model_.string(), "--input-len", "16", "--output-len",
          "8", "--num-prompts", "6", "--random-range-ratio", "0.5", "--json", json});
  EXPECT_THAT(result.out, AllOf(HasSubstr("requests/s"), HasSubstr("Time to first token")));
  const auto report = testing::value_of(JsonDocument::load(json));
  EXPECT_EQ(report.root()["num_requests"].get_int64().value(), 6);
  EXPECT_GT(report.root()["tokens_per_second"].get_double().value(), 0.0);
}

TEST_F(Stories, BenchThroughputReadsShareGpt) {
  const fs::path data =
      shared_data_path("datasets/sharegpt_format/fastchat_dummy_conversation.json");
  QUIRE_REQUIRE_SHARED(data);
  const SpawnResult result = expect_exit(
      0, {"bench", "throughput", "--model", model_.string(), "--dataset-name", "sharegpt",
          "--dataset-path", data.string(), "--num-prompts", "5", "--output-len", "4"});
  EXPECT_THAT(result.out, HasSubstr("Total num output tokens:  20"));
}

TEST_F(Stories, BenchRefusesSizesThatDoNotFit) {
  const SpawnResult result =
      expect_exit(1, {"bench", "throughput", "--model", model_.string(), "--num-prompts", "1"});
  EXPECT_THAT(result.err, HasSubstr("1024 + 128"));
}

// Lists of ids of these lengths would take gigabytes.
TEST_F(Stories, BenchRefusesAbsurdLengthsAtOnce) {
  for (const std::string command : {"throughput", "latency"}) {
    const SpawnResult result = expect_exit(1,
                                           {"bench", command, "--model", model_.string(),
                                            "--input-len", "16777216", "--output-len", "16777216"},
                                           {.timeout_s = 20});
    EXPECT_THAT(result.err, HasSubstr("16777216 + 16777216"));
    EXPECT_EQ(result.err.find("--random-range-ratio") != std::string::npos,
              command == "throughput");
  }
}

TEST_F(Stories, BenchLatencyReportsPercentiles) {
  const SpawnResult result = expect_exit(
      0, {"bench", "latency", "--model", model_.string(), "--input-len", "8", "--output-len", "4",
          "--batch-size", "2", "--num-iters-warmup", "1", "--num-iters", "2"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("Avg latency"), HasSubstr("99% percentile latency")));
}

TEST_F(Stories, EvalPrintsSglangsFourLines) {
  std::string data;
  for (int i = 0; i < 3; ++i) data += "{\"question\": \"1+1?\", \"answer\": \"#### 2\"}\n";
  const std::string file = scratch_file("gsm8k.jsonl", data);
  const SpawnResult result = expect_exit(0, {"eval", "gsm8k", "--model", model_.string(), "--data",
                                             file, "--num-shots", "1", "--max-tokens", "4"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("Accuracy: "), HasSubstr("Invalid: "),
                                HasSubstr("Latency: "), HasSubstr("Output throughput: ")));
  const SpawnResult few =
      expect_exit(1, {"eval", "gsm8k", "--model", model_.string(), "--data", file});
  EXPECT_THAT(few.err, HasSubstr("--num-shots 8"));
}

TEST_F(Stories, EvalCountsAnOverlongQuestionAsInvalid) {
  const std::string too_long(5000, 'x');
  const std::string file = scratch_file(
      "overlong.jsonl", "{\"question\": \"1+1?\", \"answer\": \"#### 2\"}\n{\"question\": \"" +
                            too_long + "\", \"answer\": \"#### 3\"}\n");
  const std::string json = scratch_file("overlong.json", "");
  const Words arguments = "eval gsm8k --num-shots 0 --max-tokens 4 --log-level warning" +
                          Words{"--model", model_.string(), "--json", json, "--data"};
  const SpawnResult result = expect_exit(0, arguments + file);
  EXPECT_THAT(result.err, HasSubstr("counted as invalid: "));
  EXPECT_EQ(count_lines(result.err), 1U) << result.err;
  const auto report = testing::value_of(JsonDocument::load(json));
  EXPECT_EQ(report.root()["num_refused"].get_int64().value(), 1);
  EXPECT_GE(report.root()["invalid"].get_double().value(), 0.5);

  const std::string only_long = scratch_file(
      "only_overlong.jsonl", "{\"question\": \"" + too_long + "\", \"answer\": \"#### 3\"}\n");
  expect_exit(1, arguments + only_long);
}

TEST_F(Stories, AnUnknownBackendIsRefused) {
  const SpawnResult result = expect_exit(2, generate("--prompt a --attention-backend nonsense"));
  EXPECT_THAT(result.err, HasSubstr("nonsense"));
}

TEST(Embedded, TooManyThreadsAreWarnedOfOnce) {
  const SpawnResult result = expect_exit(0, "generate --threads 1000 --max-tokens 1");
  const size_t first = result.err.find("--threads 1000 is more than");
  EXPECT_NE(first, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("--threads", first + 1), std::string::npos) << result.err;
}

TEST(Embedded, FlagsOfGpusAreWarnedOfOnACpu) {
  const Words arguments =
      "generate --device cpu --max-tokens 1 --enforce-eager --gpu-memory-utilization 0.5";
  EXPECT_THAT(expect_exit(0, arguments).err,
              AllOf(HasSubstr("--enforce-eager has no effect on a CPU"),
                    HasSubstr("--gpu-memory-utilization has no effect on a CPU")));
}

TEST(Embedded, ChatTemplatesTakeText) {
  const SpawnResult result = expect_exit(
      1, {"generate", "--chat", "--input", "-", "--format", "json", "--max-tokens", "1"},
      {.input = "{\"prompt_token_ids\": [5, 6]}\n{\"prompt\": \"Hi\"}\n"});
  const auto lines = split_lines(result.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(std::string(lines[0].text), HasSubstr("a template takes text"));
  EXPECT_THAT(std::string(lines[1].text), HasSubstr("token_ids"));
}

// A pseudo-terminal that the test opens.
class Terminal {
 public:
  Terminal() : fd_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    EXPECT_EQ(::grantpt(fd_), 0);
    EXPECT_EQ(::unlockpt(fd_), 0);
  }
  ~Terminal() { ::close(fd_); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::string path() const { return ::ptsname(fd_); }
  std::string shown() const {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(fd_, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int fd_;
};

// The file is large enough that reading it takes a while.
std::string slow_config() {
  return scratch_file("slow.json", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 1024,
    "intermediate_size": 4096, "num_hidden_layers": 12, "num_attention_heads": 16,
    "num_key_value_heads": 4, "vocab_size": 512, "max_position_embeddings": 256,
    "torch_dtype": "bfloat16"})");
}

TEST(Loading, ShowsABarOnATerminalOnly) {
  const Words arguments =
      "generate --model " + slow_config() + " --load-format dummy --prompt-ids 1 --max-tokens 1";
  const Terminal terminal;
  expect_exit(0, arguments, {.err_file = terminal.path()});
  EXPECT_THAT(terminal.shown(), AllOf(HasSubstr("\rloading ["), HasSubstr("/12 layers")));
  EXPECT_THAT(run_quire(arguments).err, Not(HasSubstr("loading [")));
}

TEST(Loading, AModelsNameDoesNothingToTheTerminal) {
  const fs::path directory = scratch_folder("rude_\x1b[2J");
  fs::copy_file(slow_config(), directory / "config.json");
  const SpawnResult result =
      expect_exit(0, {"doctor", "--model", directory.string(), "--load-format", "dummy"});
  EXPECT_THAT(result.err, AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace quire::cli
