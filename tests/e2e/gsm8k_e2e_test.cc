// The embedded model solves a few of its held-out problems. These commands run all 500:
//   quire eval gsm8k --data models/quire-abacus/heldout.jsonl --num-shots 0
//   quire eval gsm8k --data models/quire-abacus/heldout.jsonl
//     --shots models/quire-abacus/shots.jsonl --num-shots 8
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "support/process.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire {
namespace {

using quire::testing::run_quire;
using quire::testing::source_path;
using quire::testing::SpawnResult;

void expect_accuracy(int num_shots, int num_questions) {
  const testing::ScratchDirectory scratch;
  const std::string report_path = scratch.path() / "report.json";
  const SpawnResult result = run_quire(
      {"eval", "gsm8k", "--data", source_path("models/quire-abacus/heldout.jsonl"), "--shots",
       source_path("models/quire-abacus/shots.jsonl"), "--num-shots", std::to_string(num_shots),
       "--num-questions", std::to_string(num_questions), "--json", report_path},
      {.timeout_s = 200});  // the machine may be busy
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = JsonDocument::load(report_path);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->root()["num_questions"].get_int64().value(), num_questions);
  EXPECT_EQ(report->root()["num_shots"].get_int64().value(), num_shots);
  EXPECT_GE(report->root()["accuracy"].get_double().value(), 0.97) << result.out;
}

TEST(Gsm8k, ZeroShot) {
  expect_accuracy(0, 100);
}

TEST(Gsm8k, EightShots) {
  expect_accuracy(8, 40);
}

}  // namespace
}  // namespace quire
