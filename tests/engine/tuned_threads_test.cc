#include "start/tuned_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "engine/tiny_engine.h"
#include "start/model_files.h"
#include "start/platform_choice.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "support/scratch_directory.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TunedThreadsFile, KeepsOneRowPerMachineAndModel) {
  const testing::ScratchDirectory directory;
  const auto file = directory.path() / "cache" / "threads.csv";
  EXPECT_THAT(*read_tuned_threads(file), IsEmpty()) << "there is no file yet";
  const TunedThreads first = {
      .cpus = "4 cores", .model = "a", .threads = {.decode = 2, .prefill = 4}};
  TunedThreads other = first;
  other.model = "b";
  ASSERT_TRUE(keep_tuned_threads(file, first).ok());
  ASSERT_TRUE(keep_tuned_threads(file, other).ok());
  TunedThreads again = first;
  again.threads = {.decode = 3, .prefill = 3};
  ASSERT_TRUE(keep_tuned_threads(file, again).ok());
  const auto rows = read_tuned_threads(file);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_THAT(*rows, SizeIs(2));
  EXPECT_EQ((*rows)[0].model, "b");
  EXPECT_EQ((*rows)[1].threads, again.threads);
}

TEST(TunedThreadsFile, AMalformedRowIsRefusedAndReplaced) {
  const testing::ScratchDirectory directory;
  for (const char* row : {"a,b,1", "a,b,1,2,3", "a,b,0,1", "a,b,1,-1", "a,b,1,1025", "a,b,x,1",
                          "a,b,1,1 ", "\x01\xff"}) {
    const std::string file = directory.write("threads.csv", std::string("# text\n") + row + "\n");
    const auto rows = read_tuned_threads(file);
    ASSERT_FALSE(rows.ok()) << row;
    EXPECT_THAT(rows.status().message(), HasSubstr("threads.csv: got '"));
    EXPECT_TRUE(is_valid_utf8(rows.status().message()));
    ASSERT_TRUE(keep_tuned_threads(file, {.cpus = "c", .model = "m", .threads = {1, 1}}).ok());
    EXPECT_THAT(*read_tuned_threads(file), SizeIs(1));
  }
}

TEST(TunedThreadsFile, NeedsACacheDirectory) {
  EXPECT_THAT(keep_tuned_threads({}, {}).message(), HasSubstr("XDG_CACHE_HOME"));
}

class TunedPlatform : public ::testing::Test {
 protected:
  TunedPlatform() { ::setenv("XDG_CACHE_HOME", directory_.path().c_str(), 1); }
  ~TunedPlatform() override { ::unsetenv("XDG_CACHE_HOME"); }

  void keep(const EngineConfig& config, const StepThreads& threads) const {
    const TunedThreads row = {.cpus = cpus_key(choose_threads(thread_options(config))),
                              .model = model_key(config, model(config)),
                              .threads = threads};
    ASSERT_TRUE(keep_tuned_threads(tuned_threads_file(), row).ok());
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

TEST_F(TunedPlatform, AMalformedFileIsIgnored) {
  const EngineConfig config = tiny_model();
  keep(config, measured_);
  std::ofstream(tuned_threads_file()) << "nothing,useful\n";
  EXPECT_EQ(threads_of(config), StepThreads{});
}

}  // namespace
}  // namespace quire
