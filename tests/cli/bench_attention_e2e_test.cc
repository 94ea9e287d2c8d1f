// quire bench attention and quire tune from outside, as far as they go without a GPU.
#include <gmock/gmock.h>

#include "platform/platform.h"
#include "support/process.h"

namespace quire::cli {
namespace {

using quire::testing::run_quire;
using quire::testing::SpawnResult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(BenchAttention, WithoutAGpuSaysSo) {
  if (cuda_status().ok()) GTEST_SKIP() << "there is a GPU";
  for (const char* grid : {"seed", "strict", "prefill"}) {
    const SpawnResult result = run_quire({"bench", "attention", "--grid", grid});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("quire bench attention: [bench] attention is measured on a "
                                      "GPU alone; [cuda]"));
  }
  const SpawnResult tune = run_quire({"tune", "--quick"});
  EXPECT_EQ(tune.exit_code, 1);
  EXPECT_THAT(tune.err, HasSubstr("[tune] there is nothing to tune"));
}

TEST(BenchAttention, MistakesAreOneLineAndExitCode2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--grid", "table"}, "one of seed, strict, prefill"},
      {{"--num-heads", "8"}, "--num-kv-heads"},
      {{"--num-heads", "9", "--num-kv-heads", "2", "--head-dim", "64"}, "multiple"},
      {{"--num-seqs", "1,x"}, "--num-seqs"},
      {{"--num-seqs", "0"}, "integers in [1, 4096]"},
      {{"--seq-lens", "4", "--q-len", "5"}, "at least the 5 tokens"},
      {{"--grid", "prefill", "--q-len", "5"}, "--q-len"},
      {{"--backends", "xqa,fa9"}, "got 'fa9', expected one of native, flashinfer, xqa, cudnn"},
      {{"--backends", ""}, "expected one of native"},
      {{"--json", "/no/such/folder/x.json"}, "--json"}};
  for (const auto& [flags, expected] : cases) {
    std::vector<std::string> words = {"bench", "attention"};
    words.insert(words.end(), flags.begin(), flags.end());
    const SpawnResult result = run_quire(words);
    EXPECT_EQ(result.exit_code, 2) << expected;
    EXPECT_THAT(result.err, AllOf(HasSubstr("quire bench attention:"), HasSubstr(expected)));
  }
}

}  // namespace
}  // namespace quire::cli
