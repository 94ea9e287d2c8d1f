// A quantized KV cache that fits the model passes the check at start; an FP8 cache whose scales do
// not is warned of or refused. The weights are those of the embedded model, which is trained.
#include "start/kv_cache_probe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/tiny_engine.h"
#include "start/scaled_model.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// ---- The measure and the verdict

PositionLogprobs position_of(const std::vector<std::pair<int32_t, double>>& probabilities) {
  PositionLogprobs position = {{.token_id = 0, .logprob = -100.0F}};  // the chosen token
  for (const auto& [token_id, probability] : probabilities) {
    position.push_back(
        {.token_id = token_id, .logprob = static_cast<float>(std::log(probability))});
  }
  return position;
}

double variation(const PositionLogprobs& got, const PositionLogprobs& expected) {
  return mean_variation({&got, 1}, {&expected, 1});
}

TEST(KvCacheProbe, MeasuresTheProbabilityThatMoves) {
  const PositionLogprobs sure = position_of({{7, 0.9}, {8, 0.06}, {9, 0.02}});
  EXPECT_EQ(variation(sure, sure), 0.0);
  const PositionLogprobs other = position_of({{7, 0.5}, {8, 0.46}, {9, 0.02}});
  EXPECT_NEAR(variation(other, sure), 0.4, 1e-6);
  EXPECT_NEAR(variation(sure, other), 0.4, 1e-6);
  // Tokens 1 to 3 are not among the most likely ones of the other: each is at most 0.02.
  const PositionLogprobs elsewhere = position_of({{1, 0.6}, {2, 0.2}, {3, 0.1}});
  EXPECT_NEAR(variation(elsewhere, sure), 0.84, 1e-6);
  const std::vector<PositionLogprobs> both = {sure, other};
  const std::vector<PositionLogprobs> expected = {sure, sure};
  EXPECT_NEAR(mean_variation(both, expected), 0.2, 1e-6);
}

TEST(KvCacheProbe, GivesNoNumberWithoutNumbers) {
  const PositionLogprobs sure = position_of({{7, 0.9}, {8, 0.06}});
  const PositionLogprobs broken = position_of({{7, std::nan("")}, {8, 0.06}});
  EXPECT_TRUE(std::isnan(variation(broken, sure)));
  EXPECT_TRUE(std::isnan(variation(sure, broken)));
  EXPECT_TRUE(std::isnan(mean_variation({}, {})));
  EXPECT_TRUE(std::isnan(mean_variation({}, {&sure, 1})));
}

TEST(KvCacheProbe, JudgesByTheBounds) {
  EXPECT_EQ(judge_kv_probe(0.0), KvProbeVerdict::kGood);
  EXPECT_EQ(judge_kv_probe(kKvProbeWarning), KvProbeVerdict::kGood);
  EXPECT_EQ(judge_kv_probe(kKvProbeWarning + 0.001), KvProbeVerdict::kWarning);
  EXPECT_EQ(judge_kv_probe(kKvProbeRefusal), KvProbeVerdict::kWarning);
  EXPECT_EQ(judge_kv_probe(kKvProbeRefusal + 0.001), KvProbeVerdict::kRefusal);
  EXPECT_EQ(judge_kv_probe(std::numeric_limits<double>::quiet_NaN()), KvProbeVerdict::kRefusal);
}

TEST(KvCacheProbe, SpreadsIdsWithoutATokenizer) {
  ModelFiles files;
  files.config.vocab_size = 32000;
  const std::vector<int32_t> ids = kv_probe_tokens(files, 1000).value();
  ASSERT_EQ(ids.size(), static_cast<size_t>(kKvProbeTokens));
  EXPECT_EQ(std::set<int32_t>(ids.begin(), ids.end()).size(), ids.size());
  const auto [least, most] = std::ranges::minmax(ids);
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 1000);
  EXPECT_GT(most, 31000);
  EXPECT_LT(most, 32000);
  EXPECT_EQ(kv_probe_tokens(files, 5).value().size(), 5U);
}

// ---- The check at start

// "moves 6.32 % of the next-token probability …"
constexpr const char* kMoves = "of the next-token probability after 64 tokens";

TEST(KvCacheProbe, ScalesThatFitPass) {
  for (const float scale : {0.0F, 1.0F, 0.1F, 10.0F}) {
    const ScaledModel model(scale, scale);
    const Started started = start(model.config());
    EXPECT_THAT(started.error, IsEmpty());
    EXPECT_EQ(count(started.log, kMoves), 1U) << started.log;
    EXPECT_THAT(started.log, HasSubstr("checked in"));
  }
}

TEST(KvCacheProbe, AWrongScaleIsWarnedOfOnce) {
  const ScaledModel model(250.0F, 250.0F);
  const Started started = start(model.config());
  EXPECT_THAT(started.error, IsEmpty());
  EXPECT_EQ(count(started.log, kMoves), 1U);
  EXPECT_THAT(started.log, AllOf(HasSubstr(" W [engine] `kv_cache_dtype`: "),
                                 HasSubstr("expected at most 10 % (more than 25 % is refused); the "
                                           "checkpoint has scales"),
                                 HasSubstr("or take a checkpoint with other scales")));
}

// The values exceed E4M3 by less than those of the refusal below.
TEST(KvCacheProbe, AWarningWithoutScalesOffersToCalculateThem) {
  const Started started = start(ScaledModel(0.0F, 0.0F, 7.5F).config());
  EXPECT_THAT(started.error, IsEmpty());
  EXPECT_THAT(started.log,
              AllOf(HasSubstr(" W [engine] `kv_cache_dtype`: "), HasSubstr("in 0 of "),
                    HasSubstr("or `calculate_kv_scales` to true"), Not(HasSubstr("other scales"))));
}

TEST(KvCacheProbe, ScalesThatMakeTheCacheUselessAreRefused) {
  for (const float scale : {1000.0F, 0.003F, 0.001F}) {
    const ScaledModel model(scale, scale);
    const Started started = start(model.config());
    EXPECT_THAT(
        started.error,
        AllOf(HasSubstr("[engine] kv_cache_dtype: "), HasSubstr(kMoves),
              HasSubstr("expected at most 25 %"), HasSubstr("self_attn.k_scale, v_scale"),
              HasSubstr("they do not fit the model"), HasSubstr("`kv_cache_dtype` to auto")))
        << scale;
    EXPECT_EQ(count(started.log, kMoves), 0U);
  }
}

// Values up to 2^12 times as large exceed E4M3. Scales of 2^12 give the cache the same bytes as
// those of the embedded model with scales of 1.
TEST(KvCacheProbe, AModelThatNeedsScalesIsRefusedWithoutThem) {
  EXPECT_THAT(start(ScaledModel(0.0F, 0.0F, 12).config()).error,
              AllOf(HasSubstr(kMoves), HasSubstr("in 0 of "), HasSubstr("the model needs some")));
  const Started scaled = start(ScaledModel(1.0F, 4096.0F, 12).config());
  EXPECT_THAT(scaled.error, IsEmpty());
  EXPECT_THAT(scaled.log, AllOf(HasSubstr(kMoves), HasSubstr("checked in")));
}

// ---- Calculated scales

// The largest scale of values that the log names: "… values 0.0123 to 0.0456; …".
float largest_value_scale(const std::string& log) {
  const size_t values = log.find("values ", log.find("calculated the scales"));
  const size_t to = log.find(" to ", values);
  return to == std::string::npos ? 0.0F : std::stof(log.substr(to + 4));
}

TEST(KvCacheProbe, AScaleLeavesAMargin) {
  EXPECT_EQ(kv_scale(0.0F), 1.0F);
  EXPECT_FLOAT_EQ(kv_scale(448.0F), kKvScaleMargin);
  EXPECT_GT(kv_scale(1e-40F), 0.0F);
}

TEST(KvCacheProbe, CalculatedScalesServeAModelThatNeedsSome) {
  const ScaledModel plain(0.0F, 0.0F);
  const ScaledModel large(0.0F, 0.0F, 12);
  std::vector<float> scales;
  for (const ScaledModel* model : {&plain, &large}) {
    EngineConfig config = model->config();
    config.calculate_kv_scales = true;
    const Started started = start(config);
    EXPECT_THAT(started.error, IsEmpty());
    EXPECT_THAT(started.log, AllOf(HasSubstr("in 0 of "), HasSubstr("calculated ones"),
                                   HasSubstr(kMoves), HasSubstr("checked in")));
    scales.push_back(largest_value_scale(started.log));
  }
  EXPECT_GT(scales[0], 0.0F);
  EXPECT_NEAR(scales[1], 4096 * scales[0], 0.02F * scales[1]);
}

TEST(KvCacheProbe, TheCheckpointsScalesAreKept) {
  const ScaledModel model(1000.0F, 1000.0F);
  EngineConfig config = model.config();
  config.calculate_kv_scales = true;
  const Started started = start(config);
  EXPECT_THAT(started.error, HasSubstr("they do not fit the model"));
  EXPECT_THAT(started.log, HasSubstr("calculated the scales of the FP8 KV cache of 0 layers"));
}

// One layer has a wrong scale, and the others calculated ones: neither flag nor checkpoint helps.
TEST(KvCacheProbe, CalculatedScalesAreNotOfferedTwice) {
  const ScaledModel model(0.001F, 0.001F, 0, 1);
  EngineConfig config = model.config();
  config.calculate_kv_scales = true;
  const Started started = start(config);
  EXPECT_THAT(started.error,
              AllOf(HasSubstr("1 of "), HasSubstr("the others calculated ones"),
                    HasSubstr("set `kv_cache_dtype` to auto"),
                    Not(HasSubstr("`calculate_kv_scales` to true")), Not(HasSubstr("or take"))));
}

TEST(KvCacheProbe, ScalesAreCalculatedForAnFp8CacheAlone) {
  for (const char* kv_cache_dtype : {"auto", "int8"}) {
    EngineConfig config = tiny_config();
    config.kv_cache_dtype = kv_cache_dtype;
    config.calculate_kv_scales = true;
    EXPECT_THAT(start(config).error, AllOf(HasSubstr("[engine] calculate_kv_scales: got true"),
                                           HasSubstr("set `kv_cache_dtype` to fp8")));
  }
}

TEST(KvCacheProbe, ScalesThatCannotBeCalculatedAreAnError) {
  const ScaledModel model(0.0F, 0.0F);
  EngineConfig config = model.config();
  config.calculate_kv_scales = true;
  config.max_model_len = 2;
  EXPECT_THAT(start(config).error,
              AllOf(HasSubstr("the scales of the FP8 KV cache cannot be calculated"),
                    HasSubstr("the context is too short")));
}

// ---- Kinds of caches, and those without a check

// The probe finds equal numbers in steps of any size.
TEST(KvCacheProbe, FitsShortStepsAndContexts) {
  const ScaledModel model(1000.0F, 1000.0F);
  EngineConfig config = model.config();
  const std::string error = start(config).error;
  config.max_num_batched_tokens = 24;
  EXPECT_EQ(start(config).error, error);
  config.max_model_len = 20;
  EXPECT_THAT(start(config).error, HasSubstr("after 19 tokens"));
  config.max_model_len = 2;
  const Started shortest = start(config);
  EXPECT_THAT(shortest.error, IsEmpty());
  EXPECT_THAT(shortest.log, HasSubstr("the FP8 KV cache is not checked: the context is too short"));
}

// Models with several block tables, latent attention and experts, without a tokenizer.
TEST(KvCacheProbe, ServesEveryKindOfCache) {
  namespace fs = std::filesystem;
  for (const char* name : {"gemma2", "gemma3", "deepseek_v2", "mixtral"}) {
    const fs::path source = fs::path(source_path("tests/golden/models")) / name;
    const ScratchDirectory scratch;
    scratch.copy(source / "default.config.json", "config.json");
    scratch.copy(source / "model.safetensors", "model.safetensors");
    EngineConfig config;
    config.model = scratch.path();
    config.device = "cpu";
    config.num_threads = 2;
    struct CacheCase {
      const char* dtype;
      bool calculates_scales;
    };
    for (const CacheCase& cache : {CacheCase{"fp8", false}, {"fp8", true}, {"int8", false}}) {
      config.kv_cache_dtype = cache.dtype;
      config.calculate_kv_scales = cache.calculates_scales;
      const Started started = start(config);
      EXPECT_THAT(started.error, IsEmpty()) << name;
      EXPECT_THAT(started.log, AllOf(HasSubstr(kMoves), HasSubstr("checked in"))) << name;
      EXPECT_EQ(count(started.log, "calculated the scales"), cache.calculates_scales ? 1U : 0U)
          << name;
      EXPECT_THAT(started.log, Not(HasSubstr("values 1 to 1;"))) << "those of latent vectors";
    }
  }
}

// An int8 cache makes its own scales: those of the checkpoint and the magnitude of values do not
// matter.
TEST(KvCacheProbe, AnInt8CachePassesWhateverTheScales) {
  for (const float values_exponent : {0.0F, 12.0F}) {
    const ScaledModel model(1000.0F, 1000.0F, values_exponent);
    const Started started = start(model.config("int8"));
    EXPECT_THAT(started.error, IsEmpty());
    EXPECT_THAT(started.log, AllOf(HasSubstr("the int8 KV cache moves"), HasSubstr(kMoves),
                                   Not(HasSubstr("FP8")), HasSubstr("checked in")));
  }
}

TEST(KvCacheProbe, OtherCachesAreNotChecked) {
  const ScaledModel model(1000.0F, 1000.0F);
  const Started started = start(model.config("auto"));
  EXPECT_THAT(started.error, IsEmpty());
  EXPECT_THAT(started.log, Not(HasSubstr("FP8 KV cache")));
}

TEST(KvCacheProbe, RandomWeightsAreNotChecked) {
  EngineConfig config = tiny_config();
  config.kv_cache_dtype = "fp8";
  const Started started = start(config);
  EXPECT_THAT(started.error, IsEmpty());
  EXPECT_THAT(started.log, HasSubstr("the FP8 KV cache is not checked: the weights are random"));
}

}  // namespace
}  // namespace quire::testing
