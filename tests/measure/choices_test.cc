#include "measure/choices.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/scratch_directory.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using Use = MeasuredChoices::Use;

class MeasuredChoicesTest : public ::testing::Test {
 protected:
  MeasuredChoices::Config config(Use use = Use::kAuto, std::string_view build = "build 1") const {
    return {.file = file_, .build = std::string(build), .use = use};
  }
  void keep_one(std::string_view key, std::string_view value) const {
    MeasuredChoices choices(config());
    choices.add(ChoiceKind::kProduct, key, value);
    ASSERT_TRUE(choices.keep().ok());
  }
  std::optional<std::string> kept(std::string_view key) const {
    return MeasuredChoices(config()).find(ChoiceKind::kProduct, key);
  }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }

  const testing::ScratchDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "cache" / "choices.tsv";
};

TEST_F(MeasuredChoicesTest, AreKept) {
  EXPECT_EQ(kept("8 rows"), std::nullopt);
  keep_one("8 rows", "skinny 1");
  EXPECT_EQ(kept("8 rows"), "skinny 1");
  EXPECT_EQ(kept("9 rows"), std::nullopt);
  EXPECT_EQ(MeasuredChoices(config()).find(ChoiceKind::kHeadProduct, "8 rows"), std::nullopt);
}

TEST_F(MeasuredChoicesTest, ANewValueReplacesTheOldOne) {
  keep_one("8 rows", "skinny 1");
  keep_one("8 rows", "generic");
  EXPECT_EQ(kept("8 rows"), "generic");
}

TEST_F(MeasuredChoicesTest, KeepValuesOfAnotherProcess) {
  MeasuredChoices first(config());
  MeasuredChoices second(config());
  first.add(ChoiceKind::kProduct, "a", "1");
  second.add(ChoiceKind::kProduct, "b", "2");
  ASSERT_TRUE(first.keep().ok());
  ASSERT_TRUE(second.keep().ok());
  EXPECT_EQ(kept("a"), "1");
  EXPECT_EQ(kept("b"), "2");
}

TEST_F(MeasuredChoicesTest, OfAnotherBuildAreNotRead) {
  keep_one("8 rows", "skinny 1");
  MeasuredChoices other(config(Use::kAuto, "build 2"));
  EXPECT_EQ(other.find(ChoiceKind::kProduct, "8 rows"), std::nullopt);
  other.add(ChoiceKind::kProduct, "9 rows", "generic");
  ASSERT_TRUE(other.keep().ok());
  EXPECT_EQ(kept("8 rows"), std::nullopt) << "the file belongs to build 2 now";
}

TEST_F(MeasuredChoicesTest, AgainMeasuresEverythingAndKeepsTheRest) {
  keep_one("8 rows", "skinny 1");
  keep_one("9 rows", "generic");
  MeasuredChoices again(config(Use::kAgain));
  EXPECT_TRUE(again.measures());
  EXPECT_EQ(again.find(ChoiceKind::kProduct, "8 rows"), std::nullopt);
  again.add(ChoiceKind::kProduct, "8 rows", "skinny 2");
  ASSERT_TRUE(again.keep().ok());
  EXPECT_EQ(kept("8 rows"), "skinny 2");
  EXPECT_EQ(kept("9 rows"), "generic");
}

TEST_F(MeasuredChoicesTest, OffNeitherReadsNorMeasures) {
  keep_one("8 rows", "skinny 1");
  MeasuredChoices off(config(Use::kNothing));
  EXPECT_FALSE(off.measures());
  EXPECT_EQ(off.find(ChoiceKind::kProduct, "8 rows"), std::nullopt);
  EXPECT_THAT(off.report(), HasSubstr("`measure` is off"));
}

TEST_F(MeasuredChoicesTest, ListAKind) {
  MeasuredChoices choices;
  choices.add(ChoiceKind::kAttention, "b", "2");
  choices.add(ChoiceKind::kAttention, "a", "1");
  choices.add(ChoiceKind::kProduct, "c", "3");
  EXPECT_THAT(choices.all(ChoiceKind::kAttention), ElementsAre(Pair("a", "1"), Pair("b", "2")));
}

// A checkpoint's text may be part of a key.
TEST_F(MeasuredChoicesTest, KeysMayContainSeparators) {
  keep_one("a\tb\nc", "1\t2\n3");
  EXPECT_EQ(kept("a\tb\nc"), "1 2 3");
}

TEST_F(MeasuredChoicesTest, ADamagedFileIsMeasuredAgain) {
  keep_one("8 rows", "skinny 1");
  const std::string good = content();
  for (size_t length = 0; length < good.size(); length += 7) {
    std::ofstream(file_, std::ios::trunc) << good.substr(0, length);
    EXPECT_EQ(kept("8 rows"), std::nullopt) << length;
  }
  for (size_t at = good.find("digest"); at < good.size(); ++at) {
    std::string changed = good;
    changed[at] ^= 1;
    std::ofstream(file_, std::ios::trunc) << changed;
    EXPECT_EQ(kept("8 rows"), std::nullopt) << at;
  }
  keep_one("9 rows", "generic");
  EXPECT_EQ(kept("9 rows"), "generic") << "the file is replaced";
}

TEST_F(MeasuredChoicesTest, WithoutAPlaceNothingIsKept) {
  MeasuredChoices choices;
  EXPECT_TRUE(choices.keep().ok()) << "there is nothing to keep";
  choices.add(ChoiceKind::kProduct, "8 rows", "generic");
  EXPECT_EQ(choices.keep().code(), StatusCode::kUnavailable);
  EXPECT_EQ(choices.find(ChoiceKind::kProduct, "8 rows"), "generic");
}

TEST_F(MeasuredChoicesTest, ReportsMeasuredAndFoundValues) {
  EXPECT_THAT(MeasuredChoices(config()).report(), IsEmpty());
  MeasuredChoices first(config());
  {
    const MeasuredChoices::Timing timing(first, ChoiceKind::kProduct);
    first.add(ChoiceKind::kProduct, "8 rows", "generic");
    first.add(ChoiceKind::kProduct, "9 rows", "generic");
  }
  EXPECT_TRUE(first.find(ChoiceKind::kProduct, "8 rows")) << "found, but not in the file";
  EXPECT_THAT(first.report(), ::testing::MatchesRegex(
                                  "measured 2 matrix products in 0.0. s; the next start finds all "
                                  "in .*choices.tsv"));
  ASSERT_TRUE(first.keep().ok());

  MeasuredChoices second(config());
  EXPECT_TRUE(second.find(ChoiceKind::kProduct, "8 rows"));
  EXPECT_EQ(second.report(), "measured nothing; found 1 matrix product in " + file_.string());
  second.add(ChoiceKind::kLayerTail, "a layer", "fused");
  EXPECT_THAT(second.report(),
              HasSubstr("measured 1 layer tail in 0.00 s; found 1 matrix product"));
}

// Ranks measure side by side.
TEST_F(MeasuredChoicesTest, TimesThatOverlapCountOnce) {
  MeasuredChoices choices;
  constexpr std::chrono::milliseconds kTime(60);
  {
    std::vector<std::jthread> ranks;
    for (int i = 0; i < 8; ++i) {
      ranks.emplace_back([&] {
        const MeasuredChoices::Timing timing(choices, ChoiceKind::kProduct);
        std::this_thread::sleep_for(kTime);
        choices.add(ChoiceKind::kProduct, "8 rows", "generic");
      });
    }
  }
  double seconds = 0;
  ASSERT_EQ(std::sscanf(choices.report().c_str(), "measured 1 matrix product in %lf s", &seconds),
            1);
  EXPECT_GE(seconds, 0.06);
  EXPECT_LT(seconds, 8 * 0.06) << "the sum of all ranks";
}

TEST(ChoicesFile, NamesDeviceAndDriver) {
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  const auto file = choices_file("NVIDIA L40S/x", "580.159.04");
  EXPECT_EQ(file.parent_path(), "/cache/quire");
  EXPECT_THAT(file.filename().string(),
              ::testing::MatchesRegex("choices_NVIDIA-L40S-x_580.159.04_[0-9.]+\\.tsv"));
  EXPECT_THAT(choices_file("a CPU", "").filename().string(), Not(HasSubstr("__")));
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/one", 1);
  EXPECT_EQ(choices_file("x", "y").parent_path(), "/home/one/.cache/quire");
  ::unsetenv("HOME");
  EXPECT_TRUE(choices_file("x", "y").empty());
}

}  // namespace
}  // namespace quire
