// With every backend, in graphs or eagerly, a token has the probability that prefilling the whole
// text gives it, at every length up to the longest; and several backends serve in one run.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "attn/tuning_table.h"
#include "cuda/platform/gpu_engine.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

// The attention shape of the embedded model.
constexpr AttentionShape kShape = {.num_heads = 8,
                                   .num_kv_heads = 4,
                                   .head_dim = 64,
                                   .head_dim_v = 64,
                                   .q = DType::kBF16,
                                   .kv = DType::kBF16};
// Just above a context bucket, so that sequences grow from one graph into another.
constexpr int kMaxModelLen = 1100;
constexpr int kPromptLen = 960;

// Selects native for one request, xqa for several, flashinfer if their lengths are ragged, and
// native for long ones.
std::string mixed_table() {
  std::vector<TuningRow> rows;
  const auto add = [&](int num_reqs, int kv_len, bool ragged, const char* backend) {
    rows.push_back({tuning_point(kShape, Phase::kDecode, num_reqs, 1, kv_len, ragged), backend, 1});
  };
  add(1, 1024, false, "native");
  add(4, 1024, false, "xqa");
  add(4, 1024, true, "flashinfer");
  add(4, kMaxModelLen, false, "native");
  const std::string path = ::testing::TempDir() + "mixed_backends.csv";
  std::ofstream(path) << to_csv(rows);
  return path;
}

struct Case {
  std::string name;  // a backend; "auto"; "mixed": selected by mixed_table()
  bool enforce_eager = false;
};

EngineConfig config_of(const Case& test) {
  EngineConfig config = embedded("cuda");
  config.max_model_len = kMaxModelLen;
  config.max_num_batched_tokens = 2048;
  config.enforce_eager = test.enforce_eager;
  config.enable_prefix_caching = false;
  if (test.name == "mixed") {
    config.tuning_table = mixed_table();
  } else {
    config.decode_attention_backend = test.name;
  }
  return config;
}

class GpuSelection : public GpuTest, public ::testing::WithParamInterface<Case> {
 protected:
  // Whether the machine has the backend, or all backends of the table.
  static bool is_served() {
    const std::string& name = GetParam().name;
    const auto served = served_backends(config_of({"auto"}), Phase::kDecode);
    const auto is_one = [&](const std::string& wanted) {
      return std::ranges::find(served, wanted) != served.end();
    };
    return name == "mixed" ? is_one("xqa") && is_one("flashinfer") : name == "auto" || is_one(name);
  }
};

Request spoken(int prompt_len, uint64_t salt, int max_tokens) {
  Request request = greedy(tiny_prompt(prompt_len, salt), max_tokens);
  request.sampling.logprobs = 0;
  return request;
}

// The log probabilities of the output tokens when prompt and output are prefilled as one prompt.
std::vector<PositionLogprobs> read_anew(Engine& engine, const Request& request,
                                        const Collected& answer) {
  Request again = request;
  again.prompt_token_ids.insert(again.prompt_token_ids.end(), answer.token_ids.begin(),
                                answer.token_ids.end() - 1);
  again.sampling.logprobs.reset();
  again.sampling.prompt_logprobs = 0;
  again.sampling.max_tokens = 1;
  auto read = run_all(engine, {again}).front().prompt_logprobs;
  read.erase(read.begin(), read.begin() + static_cast<int64_t>(request.prompt_token_ids.size()));
  return read;
}

TEST_P(GpuSelection, TokensHaveTheLogprobsOfAPrefill) {
  if (!is_served()) GTEST_SKIP() << "this machine lacks " << GetParam().name;
  const auto engine = make_engine(config_of(GetParam()));
  // One request alone, then even lengths, then ragged ones, both up to kMaxModelLen.
  const std::vector<std::vector<Request>> batches = {
      {spoken(kPromptLen, 1, kMaxModelLen - kPromptLen)},
      {spoken(kPromptLen, 2, 40), spoken(kPromptLen, 3, 140), spoken(kPromptLen, 4, 140),
       spoken(kPromptLen, 5, 90)},
      {spoken(900, 6, 200), spoken(9, 7, 200), spoken(100, 8, 60), spoken(17, 9, 120)}};
  for (const std::vector<Request>& batch : batches) {
    const std::vector<Collected> answers = run_all(*engine, batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto read = read_anew(*engine, batch[i], answers[i]);
      ASSERT_EQ(answers[i].token_ids.size(), static_cast<size_t>(batch[i].sampling.max_tokens));
      ASSERT_EQ(read.size() + 1, answers[i].logprobs.size());
      double sum = 0.0;
      for (size_t t = 0; t < read.size(); ++t) {
        ASSERT_EQ(read[t][0].token_id, answers[i].token_ids[t]);
        sum += std::abs(read[t][0].logprob - answers[i].logprobs[t][0].logprob);
      }
      EXPECT_LT(sum / static_cast<double>(read.size()), 0.05) << "request " << i;
    }
  }
}

// The lines with times of attention in the file that a start writes to the cache directory.
std::set<std::string> kept_times(const std::string& cache) {
  std::set<std::string> lines;
  for (const auto& file : std::filesystem::directory_iterator(cache + "/quire")) {
    std::ifstream text(file.path());
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("attention\t")) lines.insert(line);
    }
  }
  return lines;
}

class GpuMeasuredTable : public GpuTest {};

TEST_F(GpuMeasuredTable, MeasuresAtStartAndKeepsTheTimes) {
  const std::string cache = ::testing::TempDir() + "measured_at_start";
  std::filesystem::remove_all(cache);
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  EngineConfig config = config_of({"auto"});
  config.tuning_table = "measured";
  make_engine(config);
  const std::set<std::string> first = kept_times(cache);
  EXPECT_GE(first.size(), 2U) << "at least two backends compete";
  make_engine(config);  // measures the rest, if the time limit left one
  EXPECT_THAT(kept_times(cache), ::testing::IsSupersetOf(first)) << "no time is measured again";
  ::unsetenv("XDG_CACHE_HOME");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* name : {"auto", "native", "flashinfer", "xqa", "cudnn", "mixed"}) {
    cases.push_back({name, false});
    cases.push_back({name, true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, GpuSelection, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) {
                           return test.param.name + (test.param.enforce_eager ? "_eager" : "");
                         });

class GpuTuningTable : public GpuTest {};

TEST_F(GpuTuningTable, SeveralBackendsGiveTheTokensOfOne) {
  const auto mixed = Engine::create(config_of({"mixed"}));
  if (!mixed.ok()) GTEST_SKIP() << mixed.status().message();
  for (const char* name : {"native", "xqa", "flashinfer"}) {
    EXPECT_THAT((*mixed)->model_info().attention_backend, HasSubstr(name));
  }
  const auto one = make_engine(config_of({"native"}));
  std::vector<Request> requests = questions(*one);
  // They end one after another, so that every batch size occurs.
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i].sampling.max_tokens = 2 + static_cast<int>(i);
  EXPECT_LE(count_differences(run_all(**mixed, requests), run_all(*one, requests)), 2);
}

}  // namespace
}  // namespace quire::testing
