// `quire quantize` as a user runs it: it is killed and continues, the copies solve the embedded
// model's problems, and the perplexity equals the result of `quire eval perplexity`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/eventually.h"
#include "support/process.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using quire::testing::expect_exit;
using quire::testing::Process;
using quire::testing::ScratchDirectory;
using quire::testing::source_path;
using quire::testing::SpawnResult;
using quire::testing::Words;
using ::testing::AllOf;
using ::testing::HasSubstr;

Words quantize_words(const std::string& target, const fs::path& out) {
  return {"quantize", "--to", target, "--out", out.string(), "--threads", "1"};
}

void quantize_to(const std::string& target, const fs::path& out) {
  EXPECT_THAT(expect_exit(0, quantize_words(target, out), {.timeout_s = 200}).out,
              AllOf(HasSubstr("Output: " + out.string()), HasSubstr("Size: 16.9 MB"),
                    HasSubstr("Bits per weight: 8.58")));
}

// Kills a run once the file has this many bytes.
void kill_at(const fs::path& out, uint64_t bytes) {
  const Process process(quantize_words("q4_k_m", out));
  const fs::path part = out.string() + ".part";
  EXPECT_TRUE(testing::eventually(
      [&] {
        std::error_code error;
        const uint64_t size = fs::file_size(part, error);
        return (!error && size >= bytes) || fs::exists(out);
      },
      std::chrono::seconds(40)));
  process.kill(SIGKILL);
}

TEST(Quantize, AKilledRunContinues) {
  const ScratchDirectory scratch;
  const fs::path whole = scratch.path() / "whole.gguf";
  quantize_to("q4_k_m", whole);
  const fs::path out = scratch.path() / "out.gguf";
  for (const uint64_t bytes : {1U, 1000000U, 3000000U, 6000000U}) kill_at(out, bytes);
  if (!fs::exists(out)) quantize_to("q4_k_m", out);
  EXPECT_TRUE(read_file(out, 1 << 30).value() == read_file(whole, 1 << 30).value());
}

TEST(Quantize, AnInterruptSaysHowToContinue) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "out.gguf";
  Process process(quantize_words("q4_k_m", out));
  process.read_err("tensor");
  process.kill(SIGINT);
  const std::string rest = process.read_err("\xFF");
  if (process.wait() == 0) GTEST_SKIP() << "the run ended before the interrupt";
  EXPECT_THAT(rest, HasSubstr("the same command continues"));
  EXPECT_TRUE(fs::exists(out.string() + ".part"));
}

int num_solved(const std::string& model, int num_problems, const ScratchDirectory& scratch) {
  const std::string report = (scratch.path() / "report.json").string();
  Words words = {"eval",
                 "gsm8k",
                 "--data",
                 source_path("models/quire-abacus/heldout.jsonl"),
                 "--num-questions",
                 std::to_string(num_problems),
                 "--json",
                 report};
  if (!model.empty()) words = words + Words{"--model", model};
  expect_exit(0, words + "--num-shots 0", {.timeout_s = 200});
  const auto json = JsonDocument::load(report);
  if (!json.ok()) return 0;
  return static_cast<int>(json->root()["accuracy"].get_double().value() * num_problems + 0.5);
}

TEST(Quantize, ACopySolvesProblems) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "q4_k_m.gguf";
  quantize_to("q4_k_m", out);
  EXPECT_GE(num_solved(out.string(), 50, scratch), 47);
}

// Runs by night. All 500 problems: of 100, a single one would be 1 %.
TEST(QuantizeAccuracy, TheCopiesSolveAsManyProblems) {
  constexpr int kNumProblems = 500;
  const ScratchDirectory scratch;
  const int expected = num_solved("", kNumProblems, scratch);
  EXPECT_GE(expected, 0.98 * kNumProblems);
  for (const std::string target : {"q8_0", "q4_0", "q4_k_m", "w4a16"}) {
    const fs::path out = scratch.path() / (target == "w4a16" ? target : target + ".gguf");
    quantize_to(target, out);
    EXPECT_GE(num_solved(out.string(), kNumProblems, scratch), 0.98 * expected) << target;
  }
}

TEST(Quantize, MeasuresThePerplexityOfBoth) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "out.gguf";
  const std::string text = source_path("models/quire-abacus/shots.jsonl");
  const Words measured = {"--perplexity", text, "--perplexity-tokens", "300"};
  const SpawnResult result =
      expect_exit(0, quantize_words("q8_0", out) + measured, {.timeout_s = 100});
  for (const Words& model : {Words(), Words{"--model", out.string()}}) {
    const Words eval = {"eval", "perplexity", "--data", text, "--max-tokens", "300"};
    const SpawnResult evaluated = expect_exit(0, eval + model, {.timeout_s = 100});
    // "Perplexity: 9.9 +/- 0.9"
    const std::string line = evaluated.out.substr(0, evaluated.out.find('\n'));
    EXPECT_THAT(result.out, HasSubstr(line.substr(line.find(' ') + 1)));
  }
}

TEST(Quantize, CalibratesAndSaysSo) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "w4a16";
  const Words calibrated = {"--calibration-file", source_path("models/quire-abacus/shots.jsonl"),
                            "--calibration-tokens", "100"};
  EXPECT_THAT(expect_exit(0, quantize_words("w4a16", out) + calibrated, {.timeout_s = 200}).err,
              AllOf(HasSubstr("quantize: load 8 of 8"), HasSubstr("quantize: calibrate 1 of 1"),
                    HasSubstr("quantize: scales 32 of 32"),
                    HasSubstr("32 of 32 groups of matrices are scaled")));
  EXPECT_TRUE(fs::exists(out / "model.safetensors"));
}

TEST(Quantize, CalibrationTextsAreChecked) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "w4a16";
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty.txt is empty; expected a text"},
      {"a\xFFz", "wrong.txt is not valid UTF-8 at byte 1"},
      {"What is 2 + 3?", "short.txt has "}};
  for (const auto& [text, expected] : cases) {
    const std::string file = scratch.write(expected.substr(0, expected.find(' ')), text);
    const Words words = quantize_words("w4a16", out) + Words{"--calibration-file", file};
    EXPECT_THAT(expect_exit(1, words, {.timeout_s = 100}).err, HasSubstr(expected));
    EXPECT_FALSE(fs::exists(out));
  }
}

TEST(Quantize, MistakesAreNamed) {
  EXPECT_THAT(expect_exit(2, "quantize").err,
              AllOf(HasSubstr("expected --to"), HasSubstr("expected --out")));
  const SpawnResult exists =
      expect_exit(1, {"quantize", "--to", "q8_0", "--out", source_path("README.md").string()});
  EXPECT_THAT(exists.err, HasSubstr("README.md exists; expected a new path, or --force"));
}

}  // namespace
}  // namespace quire
