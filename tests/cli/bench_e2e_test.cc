// Runs `bench serve` against the real server.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/json.h"
#include "platform/platform.h"
#include "support/process.h"
#include "support/scratch_directory.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;
using quire::testing::expect_exit;
using quire::testing::Process;
using quire::testing::run_quire;
using quire::testing::SpawnResult;
using quire::testing::Words;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A path in the directory of all tests' files, which is removed at the end of the program.
std::string scratch(const std::string& name) {
  static const quire::testing::ScratchDirectory directory;
  return directory.path() / name;
}

// Serves the embedded model at its own socket.
class BenchServe : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(server_.read_out("\n"), HasSubstr("serving")); }
  Words arguments(const Words& more) const {
    return Words{"bench", "serve", "--uds", socket_} + more;
  }

  const std::string socket_ = scratch("served.sock");
  Process server_{{"serve", "--uds", socket_, "--api-key", "k", "--log-level", "warning"}};
};

TEST_F(BenchServe, MeasuresTheServersOutput) {
  const std::string report = scratch("report.json");
  for (const char* endpoint : {"/v1/completions", "/v1/chat/completions"}) {
    const SpawnResult result =
        expect_exit(0, arguments({"--api-key", "k", "--endpoint", endpoint, "--random-input-len",
                                  "12", "--random-output-len", "8", "--num-prompts", "10",
                                  "--max-concurrency", "3", "--ignore-eos", "--num-warmups", "1",
                                  "--goodput", "e2el:60000", "--json", report}));
    EXPECT_THAT(result.out, HasSubstr("Successful requests:                     10"));
    EXPECT_THAT(result.out, HasSubstr("P99 TTFT (ms):"));
    const auto document = JsonDocument::load(report);
    ASSERT_TRUE(document.ok());
    const auto number = [&](const char* name) {
      return document->root()[name].get_double().value();
    };
    EXPECT_EQ(number("completed"), 10);
    EXPECT_EQ(number("total_output_tokens"), 80);
    EXPECT_EQ(number("max_concurrent_requests"), 3);
    EXPECT_GT(number("mean_ttft_ms"), 0);
    EXPECT_NEAR(number("output_throughput") * number("duration"), 80, 1e-6);
    EXPECT_NEAR(number("request_goodput"), number("request_throughput"), 1e-9);
    EXPECT_THAT(result.out, Not(HasSubstr("Drafts")));
    EXPECT_TRUE(document->root()["speculation"].error()) << "the server does not speculate";
  }
}

TEST_F(BenchServe, FollowsATraceAndDialogues) {
  const std::string trace = scratch("trace.jsonl");
  std::ofstream(trace) << R"({"timestamp_ms": 100, "prompt": "One", "output_length": 2})"
                       << "\n"
                       << R"({"timestamp_ms": 500, "input_length": 4, "output_length": 3})"
                       << "\n";
  const SpawnResult traced = expect_exit(0, arguments({"--api-key", "k", "--dataset-name", "trace",
                                                       "--dataset-path", trace, "--ignore-eos"}));
  EXPECT_THAT(traced.out, HasSubstr("Total generated tokens:                  5"));

  const std::string dialogues = scratch("sharegpt.json");
  std::ofstream(dialogues) << R"([{"conversations": [{"value": "What is one and two and three?"},)"
                           << R"({"value": "That would be six, I think."}]}])";
  const SpawnResult talked =
      expect_exit(0, arguments({"--api-key", "k", "--dataset-name", "sharegpt", "--dataset-path",
                                dialogues, "--sharegpt-output-len", "5", "--num-prompts", "2",
                                "--request-rate", "20", "--ignore-eos"}));
  EXPECT_THAT(talked.out, HasSubstr("Total generated tokens:                  10"));
}

TEST_F(BenchServe, ReportsErrors) {
  const SpawnResult refused = expect_exit(
      1, arguments("--model quire-abacus --vocab-size 10 --num-prompts 5 --api-key wrong"));
  EXPECT_THAT(refused.err, HasSubstr("5 requests failed: HTTP 401"));
  EXPECT_THAT(run_quire("bench serve --port 1").err, HasSubstr("cannot connect"));
  expect_exit(2, arguments("--goodput speed:1"));
  expect_exit(2, arguments("--dataset-name trace"));
}

TEST_F(BenchServe, CtrlCReportsTheMeasuredPart) {
  Process client(
      arguments("--api-key k --random-input-len 4 --random-output-len 4 --num-prompts 1000 "
                "--request-rate 20 --ignore-eos"));
  ::usleep(1'500'000);  // the time that is measured
  client.kill(SIGINT);
  std::string out;
  std::string err;
  while (client.read_some(out, err)) {
  }
  EXPECT_EQ(client.wait(), 130);
  EXPECT_THAT(out, HasSubstr("Partial"));
  EXPECT_THAT(out, HasSubstr("Serving Benchmark Result"));
  EXPECT_THAT(err, HasSubstr("interrupted after"));
}

// Serves the embedded model with drafts, and returns the text and the JSON of a measurement.
std::pair<std::string, JsonDocument> measure_drafts(const std::string& speculation) {
  const std::string socket = scratch("drafts.sock");
  const std::string report = scratch("drafts.json");
  Process server({"serve", "--uds", socket, "--log-level", "error", "--speculative-config",
                  R"({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1,)"
                  R"("enable_adaptive_verification": false)" +
                      speculation + "}"});
  EXPECT_THAT(server.read_out("\n"), HasSubstr("serving"));
  const SpawnResult result = expect_exit(
      0, {"bench", "serve", "--uds", socket, "--random-input-len", "12", "--random-output-len",
          "60", "--num-prompts", "4", "--num-warmups", "1", "--ignore-eos", "--json", report});
  return {result.out, JsonDocument::load(report).value()};
}

TEST(BenchServeDrafts, AreThoseOfTheMeasurement) {
  const auto [out, json] = measure_drafts("");
  EXPECT_THAT(out, AllOf(HasSubstr("\nDrafts: "), HasSubstr("; mean accepted length ")));
  const auto drafts = json.root()["speculation"];
  const auto count = [&](const char* name) { return drafts[name].get_int64().value(); };
  EXPECT_FALSE(drafts["synthetic_acceptance"].get_bool().value());
  EXPECT_GT(count("num_accepted_tokens"), 0);
  EXPECT_GT(count("num_draft_tokens"), count("num_accepted_tokens"));
  EXPECT_LE(count("num_drafts") + count("num_accepted_tokens"), 4 * 60) << "the warm-up counts not";
  EXPECT_GT(drafts["mean_accepted_length"].get_double().value(), 1.0);
}

TEST(BenchServeDrafts, AreLabelledIfTheirAcceptanceIsSynthetic) {
  const auto [out, json] = measure_drafts(
      R"(, "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [1, 0, 0])");
  EXPECT_THAT(out, HasSubstr("\nDrafts (synthetic acceptance: the outputs have no meaning): "));
  const auto drafts = json.root()["speculation"];
  EXPECT_TRUE(drafts["synthetic_acceptance"].get_bool().value());
  EXPECT_EQ(drafts["mean_accepted_length"].get_double().value(), 2.0);
}

TEST(BenchServeUsage, RefusesWrongServersWithoutShowingSecrets) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {"--base-url nope", "--base-url: got 'nope'"},
      {"--base-url http://user:secret@host", "--base-url: got 'host'"},
      {"--base-url http://a --port 1", "expected --base-url or --uds"},
      {"--uds a --port 1", "expected --base-url or --uds"},
      {{"--api-key", "secret\xff"}, "--api-key: expected valid UTF-8"},
      {{"--api_key", "secret\xff"}, "--api-key: expected valid UTF-8"},
      {"--apikey secret", "--apikey: is no flag of this command; did you mean --api-key?"},
      {"--apikey=secret", "--apikey: is no flag of this command; did you mean --api-key?"}};
  for (const auto& [more, error] : cases) {
    const SpawnResult result = expect_exit(2, "bench serve" + more);
    EXPECT_THAT(result.err, HasSubstr(error));
    EXPECT_THAT(result.err, Not(HasSubstr("secret")));
  }
}

TEST(BenchAttention, FailsWithAReasonWithoutAGpu) {
  if (cuda_status().ok()) GTEST_SKIP() << "there is a GPU";
  for (const char* grid : {"seed", "strict", "outlier", "prefill"}) {
    const SpawnResult result = expect_exit(1, {"bench", "attention", "--grid", grid});
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("quire bench attention: [bench] attention is measured on a "
                                      "GPU only; [cuda]"));
  }
  const SpawnResult tune = expect_exit(1, "tune --quick --device cuda");
  EXPECT_THAT(tune.err, HasSubstr("[tune] attention is tuned on a GPU only"));
}

TEST(Tune, KeepsTheThreadsOfACpuForLaterStarts) {
  const std::string cache = scratch("cache");
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const std::string csv = scratch("threads.csv");
  const SpawnResult tune = expect_exit(0, {"tune", "--device", "cpu", "--quick", "--output", csv});
  EXPECT_THAT(tune.out, HasSubstr("prompt of 512"));
  EXPECT_THAT(tune.out, HasSubstr("chosen: "));
  EXPECT_THAT(tune.out, HasSubstr("kept in " + cache + "/quire/choices_"));
  std::ifstream written(csv);
  std::string header;
  std::getline(written, header);
  EXPECT_EQ(header, "threads,decode_s,batch_decode_s,prefill_s");

  const auto doctor = [](const Words& flags) {
    return run_quire("doctor --device cpu" + flags).out;
  };
  EXPECT_THAT(doctor({}), HasSubstr("\ntuned threads"));
  EXPECT_THAT(doctor("--threads 1"), Not(HasSubstr("tuned threads")));
  EXPECT_THAT(doctor("--tuning-table builtin"), Not(HasSubstr("tuned threads")));
  ::unsetenv("XDG_CACHE_HOME");
}

TEST(BenchAttention, MistakesAreOneLineAndExitCode2) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {"--grid table", "one of seed, strict, outlier, prefill"},
      {"--num-heads 8", "--num-kv-heads"},
      {"--num-heads 9 --num-kv-heads 2 --head-dim 64", "multiple"},
      {"--num-heads 16 --num-kv-heads 1 --head-dim 64 --latent-dim 65", "--latent-dim"},
      {"--num-seqs 1,x", "--num-seqs"},
      {"--num-seqs 0", "integers in [1, 4096]"},
      {"--seq-lens 4 --q-len 5", "at least the 5 tokens"},
      {"--grid prefill --q-len 5", "--q-len"},
      {"--cached-prefix 64", "--cached-prefix: has no effect with --grid seed"},
      {"--grid prefill --cached-prefix -1", "--cached-prefix"},
      {"--backends xqa,fa9", "got 'fa9', expected one of native, flashinfer, xqa, cudnn"},
      {"--backends ''", "expected one of native"},
      {"--kv-cache-dtype int8", "--kv-cache-dtype: got int8 on a GPU"},
      {"--json /no/such/folder/x.json", "--json"}};
  for (const auto& [flags, expected] : cases) {
    EXPECT_THAT(expect_exit(2, "bench attention" + flags).err,
                AllOf(HasSubstr("quire bench attention:"), HasSubstr(expected)));
  }
}

}  // namespace
}  // namespace quire::cli
