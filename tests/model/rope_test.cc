#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "model/config.h"
#include "model/decoder.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

// Shapes of real models with every type of scaling, and transformers' results
// (tools/golden/models.py).
TEST(Rope, FrequenciesAreThoseOfTransformers) {
  const JsonDocument document =
      JsonDocument::load(source_path("tests/golden/models/rope.json")).value();
  int num_cases = 0;
  for (const simdjson::dom::element golden : document.root().get_array()) {
    const std::string name(golden["name"].get_string().value());
    const auto config = parse_model_config(simdjson::minify(golden["config"].value()), name);
    ASSERT_TRUE(config.ok()) << config.status().message();
    const auto max_model_len = static_cast<int>(golden["max_model_len"].get_int64().value());
    const DecoderConfig& decoder = decoder_config(*config);
    const RopeFrequencies got = rope_frequencies(decoder.ropes.at(0), decoder.head_dim,
                                                 decoder.max_position_embeddings, max_model_len);
    EXPECT_NEAR(got.attention_factor, golden["attention_factor"].get_double().value(), 1e-12)
        << name;
    const simdjson::dom::array expected = golden["inv_freq"].get_array().value();
    ASSERT_EQ(got.inv_freq.size(), expected.size()) << name;
    for (size_t i = 0; i < got.inv_freq.size(); ++i) {
      const double want = expected.at(i).get_double().value();
      EXPECT_NEAR(got.inv_freq[i], want, 1e-6 * want + 1e-12) << name << " " << i;
    }
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 9);
}

TEST(Rope, DynamicScalingDependsOnTheEngineAloneAndStartsAtTheModelsLength) {
  RopeConfig plain;
  RopeConfig dynamic;
  dynamic.type = RopeType::kDynamic;
  dynamic.factor = 2.0;
  const auto unscaled = rope_frequencies(plain, 64, 1024, 1024).inv_freq;
  EXPECT_EQ(rope_frequencies(dynamic, 64, 1024, 100).inv_freq, unscaled);
  EXPECT_EQ(rope_frequencies(dynamic, 64, 1024, 1024).inv_freq, unscaled);
  const auto scaled = rope_frequencies(dynamic, 64, 1024, 2048).inv_freq;
  EXPECT_EQ(scaled.front(), 1.0);
  EXPECT_LT(scaled.back(), unscaled.back() / 2);
}

TEST(Rope, TheSmallestHeadHasOneFrequency) {
  for (const RopeType type : {RopeType::kDefault, RopeType::kDynamic, RopeType::kYarn}) {
    RopeConfig rope;
    rope.type = type;
    rope.factor = 4.0;
    rope.original_max_position_embeddings = 16;
    const auto frequencies = rope_frequencies(rope, 2, 16, 64).inv_freq;
    ASSERT_EQ(frequencies.size(), 1U);
    EXPECT_GT(frequencies[0], 0.0);
    EXPECT_LE(frequencies[0], 1.0);
  }
}

// Gemma 4: the frequencies of a whole head, of which the first part turns.
TEST(Rope, AProportionalRotationTurnsThePairsOfHighFrequency) {
  RopeConfig rope;
  rope.type = RopeType::kProportional;
  rope.theta = 1e6;
  rope.rotated_part = 0.25;
  rope.head_dim = 32;
  EXPECT_EQ(rotated_dim(rope, 16), 32);
  const auto frequencies = rope_frequencies(rope, 32, 64, 64).inv_freq;
  ASSERT_EQ(frequencies.size(), 16U);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double turning = 1.0 / std::pow(1e6, static_cast<double>(2 * i) / 32.0);
    EXPECT_DOUBLE_EQ(frequencies[i], i < 4 ? turning : 0.0) << i;
  }
}

TEST(Rope, TheLongestContextIsStretchedAndStaysWithinTheFlagsRange) {
  RopeConfig rope;
  rope.original_max_position_embeddings = 1 << 28;
  rope.factor = 1e6;
  for (const RopeType type : {RopeType::kDefault, RopeType::kLinear, RopeType::kDynamic,
                              RopeType::kLlama3, RopeType::kYarn}) {
    rope.type = type;
    EXPECT_EQ(longest_context(rope, 1 << 28), kMaxModelLen) << static_cast<int>(type);
  }
  rope.type = RopeType::kDefault;
  EXPECT_EQ(longest_context(rope, 4096), 4096);
}

}  // namespace
}  // namespace quire::testing
