// Compares logits and greedy ids of tiny models of every family with those of transformers in
// float64, from configurations as published and as transformers saves them, and from GGUF files.
#include "model/families.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>

#include "base/json.h"
#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/cpu_ops.h"
#include "cpu/ops/rank_group.h"
#include "model/config.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_weights.h"
#include "model/model_loader.h"
#include "parity/golden_families.h"
#include "parity/golden_gguf.h"
#include "support/model_harness.h"
#include "support/reference_ops.h"

namespace quire::testing {
namespace {

using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Pointwise;

// Shares of the largest logit. Products with blocks round their inputs to 16 bits.
constexpr float kTolerance = 1e-4F;
constexpr float kBlocksTolerance = 5e-4F;
const std::vector<int> kChunks = {7, 1, 1, 16, 2, 1};

// By prompt, the logits of all its inputs.
using PromptLogits = std::vector<std::vector<float>>;

struct FamilyCase {
  GoldenFamily family;
  std::string spelling;  // a key of GoldenFamily::configs
};

void PrintTo(const FamilyCase& one, std::ostream* out) {
  *out << one.family.name << ", " << one.spelling;
}

// The fields of a configuration that name its family.
struct FamilyKey {
  std::string architecture;
  std::string text_type;  // empty: the configuration has no text_config
};

FamilyKey family_key_of(const FamilyCase& one) {
  const JsonDocument config =
      JsonDocument::parse(one.family.configs.at(one.spelling), one.family.name).value();
  FamilyKey key = {std::string(config.root()["architectures"].at(0).get_string().value()), {}};
  const auto text_type = config.root()["text_config"]["model_type"].get_string();
  if (text_type.error() == simdjson::SUCCESS) key.text_type = text_type.value_unsafe();
  return key;
}

// The tokens whose logits predict the greedy tokens: the prompt, and all greedy ones but the last.
std::vector<int32_t> inputs_of(const GoldenPrompt& prompt) {
  std::vector<int32_t> inputs = prompt.ids;
  inputs.insert(inputs.end(), prompt.following.begin(), prompt.following.end() - 1);
  return inputs;
}

// Cuts a sequence into steps of these sizes, and one step for the rest.
std::vector<int> steps_of(size_t num_inputs, const std::vector<int>& sizes) {
  std::vector<int> steps;
  auto rest = static_cast<int>(num_inputs);
  for (size_t i = 0; rest > 0; ++i) {
    steps.push_back(i < sizes.size() ? std::min(sizes[i], rest) : rest);
    rest -= steps.back();
  }
  return steps;
}

// Runs all prompts at once, so that they share batches.
Result<PromptLogits> run_prompts(ModelHarness& harness, int first_seq,
                                 const std::vector<GoldenPrompt>& prompts,
                                 const std::vector<int>& sizes) {
  PromptLogits logits(prompts.size());
  std::vector<size_t> num_done(prompts.size());
  for (size_t step = 0;; ++step) {
    std::vector<HarnessChunk> chunks;
    std::vector<size_t> owners;
    for (size_t i = 0; i < prompts.size(); ++i) {
      const std::vector<int32_t> inputs = inputs_of(prompts[i]);
      const std::vector<int> steps = steps_of(inputs.size(), sizes);
      if (step >= steps.size()) continue;
      const auto begin = inputs.begin() + static_cast<std::ptrdiff_t>(num_done[i]);
      chunks.push_back({first_seq + static_cast<int>(i), {begin, begin + steps[step]}});
      owners.push_back(i);
      num_done[i] += static_cast<size_t>(steps[step]);
    }
    if (chunks.empty()) return logits;
    QUIRE_ASSIGN_OR_RETURN(const auto results, harness.step(chunks));
    for (size_t i = 0; i < owners.size(); ++i) {
      std::vector<float>& all = logits[owners[i]];
      all.insert(all.end(), results[i].begin(), results[i].end());
    }
  }
}

float tolerance_of(const GoldenFamily& family) {
  const bool has_blocks = std::ranges::any_of(
      family.tensors, [](const auto& entry) { return entry.first.ends_with("_blocks"); });
  return has_blocks ? kBlocksTolerance : kTolerance;
}

void expect_golden(const std::vector<float>& logits, const GoldenPrompt& golden, float tolerance) {
  const size_t num_inputs = inputs_of(golden).size();
  ASSERT_EQ(logits.size() % num_inputs, 0U);
  const auto vocab_size = static_cast<std::ptrdiff_t>(logits.size() / num_inputs);
  const auto row = [&](size_t position) {
    return logits.begin() + static_cast<std::ptrdiff_t>(position) * vocab_size;
  };
  for (const auto& [position, expected] : golden.logits) {
    ASSERT_EQ(std::ssize(expected), vocab_size);
    const auto got = row(static_cast<size_t>(position));
    float largest = 0.0F;
    float difference = 0.0F;
    for (size_t i = 0; i < expected.size(); ++i) {
      const float logit = got[static_cast<std::ptrdiff_t>(i)];
      largest = std::max(largest, std::fabs(expected[i]));
      difference =
          std::max(difference, std::isnan(logit) ? INFINITY : std::fabs(logit - expected[i]));
    }
    EXPECT_LE(difference, tolerance * largest) << "position " << position;
  }
  std::vector<int32_t> ids;
  for (size_t position = golden.ids.size() - 1; position < num_inputs; ++position) {
    const auto begin = row(position);
    ids.push_back(static_cast<int32_t>(std::max_element(begin, begin + vocab_size) - begin));
  }
  EXPECT_EQ(ids, golden.following);
}

// Loads a model for one rank, and returns the logits of the prompts, once per way of cutting them
// into steps.
Result<std::vector<PromptLogits>> run_model(const GoldenFamily& family, const ModelConfig& config,
                                            WeightSource& weights, Ops& ops,
                                            AttentionBackend& attention,
                                            const std::vector<std::vector<int>>& cuts,
                                            const Parallel& parallel = {}) {
  ModelLimits limits;
  limits.max_model_len = family.max_model_len;
  limits.max_num_tokens = 2 * limits.max_model_len;  // of two prompts
  limits.max_num_logit_rows = 16;  // less than a prompt has, so that several calls are needed
  limits.kv_dtype = DType::kF32;
  limits.parallel = parallel;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                         load_model(config, weights, ops, limits));
  ModelHarness harness(*model, attention, limits);
  std::vector<PromptLogits> all;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const int first_seq = static_cast<int>(i * family.prompts.size());
    QUIRE_ASSIGN_OR_RETURN(auto logits, run_prompts(harness, first_seq, family.prompts, cuts[i]));
    all.push_back(std::move(logits));
  }
  return all;
}

// Runs the model of the checkpoint with this config.json.
Result<std::vector<PromptLogits>> run_checkpoint(const GoldenFamily& family,
                                                 const std::string& config_json, Ops& ops,
                                                 AttentionBackend& attention,
                                                 const std::vector<std::vector<int>>& cuts,
                                                 const Parallel& parallel = {}) {
  QUIRE_ASSIGN_OR_RETURN(ModelConfig config, parse_model_config(config_json, family.name));
  QUIRE_ASSIGN_OR_RETURN(const auto weights,
                         present_weights(std::make_unique<GeneratedWeights>(family), config));
  return run_model(family, config, *weights, ops, attention, cuts, parallel);
}

void expect_all_golden(const GoldenFamily& family, const PromptLogits& logits) {
  ASSERT_EQ(logits.size(), family.prompts.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    SCOPED_TRACE(fmt::format("prompt {}", i));
    expect_golden(logits[i], family.prompts[i], tolerance_of(family));
  }
}

class GoldenFamilies : public ::testing::TestWithParam<FamilyCase> {
 protected:
  // A row of the table of families makes the test run.
  void SetUp() override {
    const FamilyKey key = family_key_of(GetParam());
    if (find_family(key.architecture, key.text_type) == nullptr) {
      GTEST_SKIP() << "no family has the architecture " << key.architecture << " " << key.text_type;
    }
  }

  static const GoldenFamily& family() { return GetParam().family; }

  static Result<std::vector<PromptLogits>> run(Ops& ops, AttentionBackend& attention,
                                               const std::vector<std::vector<int>>& cuts,
                                               const Parallel& parallel = {}) {
    return run_checkpoint(family(), family().configs.at(GetParam().spelling), ops, attention, cuts,
                          parallel);
  }

  static void expect_all_golden(const PromptLogits& logits) {
    testing::expect_all_golden(family(), logits);
  }
};

// The bits do not depend on the steps: all tokens at once, token by token, or chunks.
TEST_P(GoldenFamilies, AgreeHoweverTheyAreCut) {
  std::vector<int> token_by_token(40, 1);
  token_by_token.front() = 5;
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool, {.use_amx = false, .use_avx512_bf16 = false});
  const auto all = run(*ops, *make_cpu_attention(pool), {{}, token_by_token, kChunks});
  ASSERT_TRUE(all.ok()) << all.status().message();
  expect_all_golden(all.value().at(0));
  EXPECT_EQ(all.value().at(1), all.value().at(0)) << "token by token";
  EXPECT_EQ(all.value().at(2), all.value().at(0)) << "in chunks";
}

// The definitions of the operations, with which other devices are compared.
TEST_P(GoldenFamilies, AgreeByTheDefinitions) {
  ReferenceOps ops;
  const auto all = run(ops, *make_reference_attention(), {kChunks});
  ASSERT_TRUE(all.ok()) << all.status().message();
  expect_all_golden(all.value().front());
}

// The ranks wait for each other in every layer of a step, so there are few steps.
TEST_P(GoldenFamilies, AgreeOnTwoRanks) {
  constexpr int kNumRanks = 2;
  RankGroup group(kNumRanks);
  std::vector<PromptLogits> logits(kNumRanks);
  std::vector<Status> statuses(kNumRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kNumRanks; ++rank) {
    ranks.emplace_back([&group, &logits, &statuses, rank] {
      ThreadPool pool(1);
      const auto ops = make_cpu_ops(
          pool, {.use_amx = false, .use_avx512_bf16 = false, .ranks = &group, .rank = rank});
      auto all = run(*ops, *make_cpu_attention(pool), {{30, 1}}, {rank, kNumRanks});
      const auto idx = static_cast<size_t>(rank);
      statuses[idx] = group.join(all.status());
      if (all.ok()) logits[idx] = std::move(all).value().front();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (size_t rank = 0; rank < kNumRanks; ++rank) {
    SCOPED_TRACE(fmt::format("rank {}", rank));
    ASSERT_TRUE(statuses[rank].ok()) << statuses[rank].message();
    expect_all_golden(logits[rank]);
  }
}

std::vector<FamilyCase> family_cases() {
  std::vector<FamilyCase> cases;
  for (const GoldenFamily& family : read_golden_families()) {
    for (const auto& config : family.configs) cases.push_back({family, config.first});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFamilies, ::testing::ValuesIn(family_cases()),
                         [](const auto& test) {
                           return test.param.family.name + "_" + test.param.spelling;
                         });

class GoldenGgufs : public ::testing::TestWithParam<GoldenGguf> {};

// A GGUF file of the model has the same logits.
TEST_P(GoldenGgufs, AgreeWithTheirFamilies) {
  const std::vector<GoldenFamily> families = read_golden_families();
  const auto family = std::ranges::find(families, GetParam().family, &GoldenFamily::name);
  ASSERT_NE(family, families.end());
  const std::string file = write_golden_gguf(GetParam(), *family);
  auto gguf = GgufModel::from_memory(std::as_bytes(std::span(file)), "m.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  const auto config = gguf_model_config(*gguf);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_THAT(config->unread_fields, IsEmpty());
  const auto weights = GgufWeights::open(std::move(*gguf), *config);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool, {.use_amx = false, .use_avx512_bf16 = false});
  const auto attention = make_cpu_attention(pool);
  const auto all = run_model(*family, *config, **weights, *ops, *attention, {{}});
  ASSERT_TRUE(all.ok()) << all.status().message();
  if (GetParam().left_out.empty()) return expect_all_golden(*family, all->front());
  std::string json = family->configs.at("published");
  const size_t at = json.find(GetParam().left_out);
  ASSERT_NE(at, std::string::npos);
  json.erase(at, GetParam().left_out.size());
  const auto expected = run_checkpoint(*family, json, *ops, *attention, {{}});
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  for (size_t i = 0; i < family->prompts.size(); ++i) {
    const std::vector<float>& logits = expected->front().at(i);
    const float largest = std::ranges::max(logits, {}, [](float x) { return std::fabs(x); });
    EXPECT_THAT(all->front().at(i), Pointwise(FloatNear(kTolerance * std::fabs(largest)), logits));
  }
}

// A layer that reads another layer's FP8 cache has the scales of that layer. Powers of 2 change no
// bits of numbers in the range of E4M3.
TEST(Gemma4SharedCache, HasTheScalesOfTheLayerThatWritesIt) {
  const std::vector<GoldenFamily> families = read_golden_families();
  const auto family = std::ranges::find(families, "gemma4_small", &GoldenFamily::name);
  ASSERT_NE(family, families.end());
  const auto run = [&](std::span<const KvScaleValues> scales) {
    ModelConfig config = parse_model_config(family->configs.at("published"), "config.json").value();
    const auto weights =
        present_weights(std::make_unique<GeneratedWeights>(*family), config).value();
    ModelLimits limits;
    limits.max_model_len = family->max_model_len;
    limits.max_num_tokens = 2 * limits.max_model_len;
    limits.max_num_logit_rows = 16;
    limits.kv_dtype = DType::kF8E4M3;
    ThreadPool pool(1);
    const auto ops = make_cpu_ops(pool);
    const auto attention = make_cpu_attention(pool);
    const auto model = load_model(config, *weights, *ops, limits).value();
    if (!scales.empty()) {
      EXPECT_EQ(model->add_kv_scales(scales).value(), 2);
    }
    ModelHarness harness(*model, *attention, limits);
    return run_prompts(harness, 0, family->prompts, kChunks).value().front();
  };
  const KvScaleValues of_readers = {1024.0F, 1024.0F};
  const std::vector<KvScaleValues> scales = {{0.25F, 0.5F}, {0.5F, 0.25F}, of_readers, of_readers};
  const std::vector<float> expected = run({});
  const float largest = std::ranges::max(expected, {}, [](float x) { return std::fabs(x); });
  EXPECT_THAT(run(scales), Pointwise(FloatNear(0.02F * std::fabs(largest)), expected));
}

// Gemma 4's matrices in blocks, also the tables of embeddings: products with the blocks have the
// results of products with their numbers.
TEST(Gemma4Blocks, AreComputedAsTheirNumbers) {
  constexpr float kBlockTolerance = 1e-2F;  // of the largest logit: the inputs have 16 bits
  const std::vector<GoldenFamily> families = read_golden_families();
  for (const GoldenGguf& gguf : golden_ggufs()) {
    if (gguf.architecture != "gemma4") continue;
    const auto family = std::ranges::find(families, gguf.family, &GoldenFamily::name);
    ASSERT_NE(family, families.end());
    for (const char* const type : {"Q8_0", "Q4_0"}) {
      SCOPED_TRACE(fmt::format("{} in {}", gguf.family, type));
      const std::string file = write_golden_gguf(gguf, *family, type);
      const auto run = [&](Ops& ops, AttentionBackend& attention) {
        GgufModel model = GgufModel::from_memory(std::as_bytes(std::span(file)), "m.gguf").value();
        const ModelConfig config = gguf_model_config(model).value();
        const auto weights = GgufWeights::open(std::move(model), config).value();
        return run_model(*family, config, *weights, ops, attention, {{}}).value().front();
      };
      ThreadPool pool(1);
      const auto ops = make_cpu_ops(pool);
      const PromptLogits got = run(*ops, *make_cpu_attention(pool));
      ReferenceOps reference;
      const PromptLogits expected = run(reference, *make_reference_attention());
      for (size_t i = 0; i < expected.size(); ++i) {
        const float largest =
            std::fabs(std::ranges::max(expected[i], {}, [](float x) { return std::fabs(x); }));
        EXPECT_THAT(got[i], Pointwise(FloatNear(kBlockTolerance * largest), expected[i]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGgufs, ::testing::ValuesIn(golden_ggufs()),
                         [](const auto& test) { return test.param.family + test.param.layout; });

}  // namespace
}  // namespace quire::testing
