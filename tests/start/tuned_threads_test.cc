#include "start/tuned_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/machine.h"
#include "engine/tiny_engine.h"
#include "start/model_files.h"
#include "start/model_identity.h"
#include "start/platform_choice.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "support/scratch_directory.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(TunedThreads, AMalformedValueIsNoChoice) {
  for (const char* value : {"", "1", "0 1", "1 -1", "1 1025", "x 1", "1 1 "}) {
    MeasuredChoices choices;
    choices.add(ChoiceKind::kThreads, "key", value);
    EXPECT_EQ(find_tuned_threads("key", choices), std::nullopt) << value;
  }
  MeasuredChoices choices;
  keep_tuned_threads("key", {.decode = 3, .prefill = 4}, choices);
  EXPECT_EQ(find_tuned_threads("key", choices), (StepThreads{.decode = 3, .prefill = 4}));
}

class TunedPlatform : public ::testing::Test {
 protected:
  TunedPlatform() { ::setenv("XDG_CACHE_HOME", directory_.path().c_str(), 1); }
  ~TunedPlatform() override { ::unsetenv("XDG_CACHE_HOME"); }

  void keep(const EngineConfig& config, const StepThreads& threads) const {
    const auto choices = open_choices(config, cpu_model(), "");
    keep_tuned_threads(threads_key(choose_threads(thread_options(config)), config, model(config)),
                       threads, *choices);
    ASSERT_TRUE(choices->keep().ok());
  }
  static StepThreads threads_of(const EngineConfig& config) {
    return make_platform(config, model(config)).value()->step_threads();
  }
  // Without a number of threads, which would override the kept ones.
  static EngineConfig tiny_model() {
    EngineConfig config = testing::tiny_config();
    config.num_threads = 0;
    return config;
  }
  static ModelFiles model(const EngineConfig& config) { return open_model_files(config).value(); }

  const testing::ScratchDirectory directory_;
  const StepThreads measured_ = {.decode = 1, .prefill = 2};
};

TEST_F(TunedPlatform, UsesTheKeptThreads) {
  const EngineConfig config = tiny_model();
  EXPECT_EQ(threads_of(config), StepThreads{});
  keep(config, measured_);
  EXPECT_EQ(threads_of(config), measured_);
}

TEST_F(TunedPlatform, FlagsOverrideTheKeptThreads) {
  EngineConfig config = tiny_model();
  keep(config, measured_);
  EngineConfig builtin = config;
  builtin.tuning_table = "builtin";
  EXPECT_EQ(threads_of(builtin), StepThreads{});
  EngineConfig off = config;
  off.measure = "off";
  EXPECT_EQ(threads_of(off), StepThreads{});
  config.num_threads = 2;
  EXPECT_EQ(threads_of(config), StepThreads{});
}

TEST_F(TunedPlatform, OtherModelsAndTypesAreNotAffected) {
  const EngineConfig config = tiny_model();
  keep(config, measured_);
  EngineConfig other_type = config;
  other_type.dtype = "f16";
  EXPECT_EQ(threads_of(other_type), StepThreads{});
  EngineConfig other_model = testing::tiny_windows_config();
  other_model.num_threads = 0;
  EXPECT_EQ(threads_of(other_model), StepThreads{});
}

// The number of bits decides the time of a step.
TEST_F(TunedPlatform, IntegersOfOtherWidthsAreOtherTypes) {
  const EngineConfig config = tiny_model();
  ModelFiles files = model(config);
  std::set<std::string> keys = {model_key(config, files)};
  files.config.format = WeightFormat{.scheme = {.values = DType::kI8, .scales = ScaleLayout::kRows},
                                     .scales_suffix = ".scales"};
  for (const int bits : {4, 8}) {
    files.config.format->scheme.bits = bits;
    keys.insert(model_key(config, files));
  }
  EXPECT_THAT(keys, SizeIs(3));
  EXPECT_THAT(keys, ::testing::Contains(HasSubstr(" i4 ")));
}

// A checkpoint whose matrices are all stored in blocks of one type.
class BlockSource : public DummyWeights {
 public:
  explicit BlockSource(const GgufBlockType* type) : DummyWeights(DType::kF32), type_(type) {}
  std::vector<std::string> names() const override { return {"a", "b"}; }
  const GgufBlockType* block_type(std::string_view name) const override {
    return name == "a" ? type_ : nullptr;
  }

 private:
  const GgufBlockType* type_;
};

TEST_F(TunedPlatform, BlocksOfOtherTypesAreOtherTypes) {
  const EngineConfig config = tiny_model();
  ModelFiles files = model(config);
  constexpr GgufBlockType kSmall = {
      .id = 1, .name = "Q4_0", .block_elements = 32, .block_bytes = 18};
  constexpr GgufBlockType kLarge = {
      .id = 2, .name = "Q8_0", .block_elements = 32, .block_bytes = 34};
  std::vector<std::string> keys;
  for (const GgufBlockType* type : {&kSmall, &kLarge}) {
    files.weights = std::make_unique<BlockSource>(type);
    keys.push_back(model_key(config, files));
  }
  EXPECT_THAT(keys[0], HasSubstr(" Q4_0 "));
  EXPECT_THAT(keys[1], HasSubstr(" Q8_0 "));
}

TEST_F(TunedPlatform, MoreThreadsThanCoresAreMade) {
  const EngineConfig config = tiny_model();
  const auto num_threads = static_cast<int>(choose_threads(thread_options(config)).places.size());
  keep(config, {.decode = num_threads, .prefill = 2 * num_threads});
  const auto platform = make_platform(config, model(config)).value();
  EXPECT_EQ(platform->thread_choice()->places.size(), 2 * static_cast<size_t>(num_threads));
}

}  // namespace
}  // namespace quire
