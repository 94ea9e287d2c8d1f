#include "hub/cache/gguf_sets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace quire::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> tags_of(const std::vector<std::string>& names) {
  std::vector<std::string> tags;
  for (const GgufSet& set : group_gguf_files(names)) tags.push_back(set.tag);
  return tags;
}

// The first file of the set that the tag names; empty: the tag names none.
std::string chosen(const std::vector<std::string>& names, std::string_view tag) {
  const std::vector<GgufSet> sets = group_gguf_files(names);
  const GgufSet* const set = choose_gguf(sets, tag);
  return set == nullptr ? "" : set->files.front();
}

TEST(GgufSets, ATagIsTheTypeThatTheNameEndsWith) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Qwen3-0.6B-Q8_0.gguf", "Q8_0"},
      {"qwen2.5-7b-instruct-q4_k_m.gguf", "q4_k_m"},
      {"tiny.Q4_K_M.gguf", "Q4_K_M"},
      {"Model-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
      {"UD-IQ1_S/Model-UD-IQ1_S-00001-of-00002.gguf", "UD-IQ1_S"},
      {"BF16/Model-BF16-00001-of-00002.gguf", "BF16"},
      {"Q6_K/model.gguf", "Q6_K"},
      {"gpt-oss-20b-mxfp4.gguf", "mxfp4"},
      {"Model-TQ1_0.gguf", "TQ1_0"},
      {"Model-f16.gguf", "f16"},
      {"Model-Q4_K_M-imat.gguf", "Q4_K_M"},
      {"CLOUD-Q4_0.gguf", "Q4_0"},
      {"Quirk-7B.gguf", "Quirk-7B"},
      {"sub/plain.gguf", "sub/plain"},
  };
  for (const auto& [name, tag] : cases) EXPECT_THAT(tags_of({name}), ElementsAre(tag)) << name;
}

TEST(GgufSets, EachTagNamesOneSet) {
  EXPECT_THAT(tags_of({"a-Q4_0.gguf", "b-q4_0.gguf", "c/b-Q4_0.gguf"}),
              ElementsAre("Q4_0", "b-q4_0", "c/b-Q4_0"));
}

TEST(GgufSets, JoinsShards) {
  const std::vector<GgufSet> sets =
      group_gguf_files({"m-Q8_0-00003-of-00003.gguf", "m-Q8_0-00001-of-00003.gguf", "m-Q8_0.gguf",
                        "m-Q8_0-00002-of-00003.gguf", "m-Q8_0-00001-of-00002.gguf", "README.md"});
  ASSERT_EQ(sets.size(), 3U);
  EXPECT_FALSE(sets[0].is_complete());  // of two
  EXPECT_THAT(sets[1].files, ElementsAre("m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00002-of-00003.gguf",
                                         "m-Q8_0-00003-of-00003.gguf"));
  EXPECT_TRUE(sets[1].is_complete());
  EXPECT_TRUE(sets[2].is_complete());
}

TEST(GgufSets, NamesThatAreAlmostShardsAreFilesOfTheirOwn) {
  for (const std::string name :
       {"m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m-0001-of-00002.gguf",
        "m-+0001-of-00002.gguf", "m_00001-of-00002.gguf", "-00001-of-00001.gguf",
        "m-00001-of-00000.gguf"}) {
    const std::vector<GgufSet> sets = group_gguf_files({name});
    ASSERT_EQ(sets.size(), 1U) << name;
    EXPECT_TRUE(sets[0].is_complete()) << name;
  }
  EXPECT_FALSE(group_gguf_files({"m-00001-of-99999.gguf"})[0].is_complete());
}

TEST(GgufSets, LeavesOutCompanionsAndOtherFiles) {
  EXPECT_THAT(
      tags_of({"mmproj-F16.gguf", "model-mmproj_f16.gguf", "x-MMPROJ.gguf", "imatrix.gguf",
               "mtp-Q8_0.gguf", "sub/eagle3-Q8_0.gguf", ".gguf", "a.bin", "model.gguf.part"}),
      IsEmpty());
  EXPECT_TRUE(is_gguf_companion("a/mmproj-model-f16.gguf"));
  EXPECT_FALSE(is_gguf_companion("mmproj/model-Q8_0.gguf"));
  EXPECT_FALSE(is_gguf_companion("mmproj.txt"));
}

TEST(GgufSets, ATagIsFoundInAnyCase) {
  const std::vector<std::string> names = {"M-Q4_K_M.gguf",     "M-Q4_K_S.gguf",   "M-IQ4_NL.gguf",
                                          "M-UD-Q4_K_XL.gguf", "M-Q8_0.gguf",     "M-F16.gguf",
                                          "sub/M-Q5_K_M.gguf", "M-UD-Q4_K_M.gguf"};
  EXPECT_EQ(chosen(names, "q4_k_m"), "M-Q4_K_M.gguf");
  EXPECT_EQ(chosen(names, "UD-Q4_K_M"), "M-UD-Q4_K_M.gguf");
  EXPECT_EQ(chosen(names, "ud-q4_k_xl"), "M-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(names, "Q4_K_XL"), "M-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(names, "m-q8_0.GGUF"), "M-Q8_0.gguf");
  EXPECT_EQ(chosen(names, "M-F16"), "M-F16.gguf");
  EXPECT_EQ(chosen(names, "sub/M-Q5_K_M.gguf"), "sub/M-Q5_K_M.gguf");
  EXPECT_EQ(chosen(names, "M-Q5_K_M.gguf"), "sub/M-Q5_K_M.gguf");
  for (const char* none : {"Q4_K", "4_K_M", "Q4_NL", "Q4", "Q8", "K_M", "gguf", "16"}) {
    EXPECT_EQ(chosen(names, none), none == std::string("K_M") ? "M-Q4_K_M.gguf" : "") << none;
  }
}

TEST(GgufSets, AWholeNameWinsOverAPart) {
  EXPECT_EQ(chosen({"a-Q8_0-Q4_0.gguf", "b-Q8_0.gguf"}, "Q8_0"), "b-Q8_0.gguf");
}

TEST(GgufSets, WithoutATagTheOrderIsThatOfLlamaCpp) {
  EXPECT_EQ(chosen({"a-F16.gguf", "a-Q8_0.gguf", "a-Q4_K_M.gguf"}, ""), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"a-F16.gguf", "a-Q8_0.gguf", "mmproj-Q4_K_M.gguf"}, ""), "a-Q8_0.gguf");
  EXPECT_EQ(chosen({"b-Q2_K.gguf", "a-Q6_K.gguf"}, ""), "a-Q6_K.gguf");
  EXPECT_EQ(chosen({"mmproj-F16.gguf"}, ""), "");
}

TEST(GgufSets, ListsATagOnce) {
  EXPECT_EQ(list_of_tags(group_gguf_files({"a-Q8_0.gguf", "a-F16.gguf"})), "F16, Q8_0");
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back(fmt::format("{:02}\x1b.gguf", i));
  const std::string text = list_of_tags(group_gguf_files(names));
  EXPECT_THAT(text, HasSubstr(" and 10 more"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace quire::hub
