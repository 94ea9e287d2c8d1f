#include "supervisor/model_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scratch_directory.h"

namespace quire::supervisor {
namespace {

using ::testing::HasSubstr;

TEST(Ini, HasSectionsKeysAndComments) {
  const auto sections = parse_ini(
      "\xef\xbb\xbfversion = 1\r\n; a comment\n[*]\n  max-model-len=4096  \n\n[ org/name:Q8_0 ]\r\n"
      "# another\nalias = a, b\r\nspeculative-config = {\"k\": [1;2]}\nmodel = \"x #1.gguf\"\n"
      "tokenizer = '~/\"y\"'\n[empty]",
      "m.ini");
  ASSERT_TRUE(sections.ok()) << sections.status().message();
  ASSERT_EQ(sections->size(), 3u);
  EXPECT_EQ((*sections)[0].name, "*");
  EXPECT_EQ((*sections)[0].values.at(0).key, "max-model-len");
  EXPECT_EQ((*sections)[0].values.at(0).value, "4096");
  EXPECT_EQ((*sections)[1].name, "org/name:Q8_0");
  EXPECT_EQ((*sections)[1].values.at(0).value, "a, b");
  EXPECT_EQ((*sections)[1].values.at(1).value, "{\"k\": [1;2]}");
  EXPECT_EQ((*sections)[1].values.at(1).line, 9);
  EXPECT_EQ((*sections)[1].values.at(2).value, "x #1.gguf");
  EXPECT_EQ((*sections)[1].values.at(3).value, "~/\"y\"");
  EXPECT_TRUE((*sections)[2].values.empty());
}

TEST(Ini, ErrorsNameFileLineAndCause) {
  const auto error = [](std::string_view text) {
    return parse_ini(text, "m.ini").status().message();
  };
  EXPECT_THAT(error("[a]\nx"), HasSubstr("m.ini:2: got 'x', expected [NAME], or KEY = VALUE"));
  EXPECT_THAT(error("[a\n"), HasSubstr("m.ini:1: got '[a', expected the name"));
  EXPECT_THAT(error("[]"), HasSubstr("expected the name"));
  EXPECT_THAT(error("["), HasSubstr("expected the name"));
  EXPECT_THAT(error("x = 1\n[a]"), HasSubstr("before the first section"));
  EXPECT_THAT(error("version = 2\n[a]"), HasSubstr("m.ini:1: got version 2, expected 1"));
  EXPECT_EQ(error("[" + std::string(256, 'n') + "]"), "");
  const std::string long_name = error("[" + std::string(1'000'000, 'n') + "]");
  EXPECT_THAT(long_name, HasSubstr("with a name of 1000000 bytes, expected at most 256"));
  EXPECT_LT(long_name.size(), 1000u);
  for (const std::string value : {R"("x", "y")", R"("/path)", "'x' y", "\"", R"("y" ; mine)"}) {
    EXPECT_THAT(error("[a]\nx = " + value),
                HasSubstr("m.ini:2: got the value " + value +
                          ", which begins with a quote; "
                          "expected quotes around the whole value, or none"));
  }
  EXPECT_THAT(error("[a]\n= 1"), HasSubstr("no key"));
  EXPECT_THAT(error("[a]\nx = y.gguf ; mine"), HasSubstr("m.ini:2: got the comment '; mine'"));
  EXPECT_THAT(error("[a]\nx = y.gguf\t# mine"), HasSubstr("after a value"));
  EXPECT_THAT(error("[a]\nx=1\nx=2"), HasSubstr("m.ini:3: section [a] has the key 'x' twice"));
  EXPECT_THAT(error("[a]\n[b]\n[a]"), HasSubstr("[a] again, expected one; the first is in line 1"));
  EXPECT_THAT(error("[a]\nx=\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(error(std::string_view("[a]\0", 4)), HasSubstr("NUL"));
  EXPECT_EQ(error(""), "");
}

TEST(ModelsDirectory, HasFilesAndFoldersWithModels) {
  const quire::testing::ScratchDirectory scratch;
  namespace fs = std::filesystem;
  for (const char* folder : {"hf", "one", "parts", "empty", ".hidden"}) {
    fs::create_directory(scratch.path() / folder);
  }
  for (const char* file :
       {"b.gguf", "A.GGUF", "note.txt", "mmproj-x.gguf", "hf/config.json", "one/m.gguf",
        "one/mmproj.gguf", "parts/p-00001-of-00002.gguf", "parts/p-00002-of-00002.gguf"}) {
    scratch.write(file, std::string_view("x"));
  }
  const auto models = list_models_directory(scratch.path());
  ASSERT_TRUE(models.ok()) << models.status().message();
  std::vector<std::string> names;
  std::vector<std::string> arguments;
  for (const ModelEntry& model : *models) {
    names.push_back(model.name);
    arguments.push_back(model.arguments.at(0).substr(8 + scratch.path().string().size()));
  }
  EXPECT_THAT(names, ::testing::ElementsAre("A", "b", "hf", "one", "parts"));
  EXPECT_THAT(arguments, ::testing::ElementsAre("/A.GGUF", "/b.gguf", "/hf", "/one/m.gguf",
                                                "/parts/p-00001-of-00002.gguf"));
  scratch.write("one/n.gguf", std::string_view("x"));
  EXPECT_THAT(list_models_directory(scratch.path()).status().message(),
              HasSubstr("has 2 GGUF files, expected one"));
  EXPECT_THAT(list_models_directory(scratch.path() / "empty").status().message(),
              HasSubstr("got no model"));
  EXPECT_THAT(list_models_directory(scratch.path() / "absent").status().message(),
              HasSubstr("expected a folder"));
}

TEST(StampOfFiles, ChangesWithEachFileThatAModelReads) {
  const quire::testing::ScratchDirectory scratch;
  namespace fs = std::filesystem;
  const std::string part = scratch.write("m-00001-of-00002.gguf", std::string_view("x"));
  fs::create_directories(scratch.path() / "other/drafter/parts");
  const std::string chat_template = scratch.write("other/template", std::string_view("x"));
  const std::string drafter = scratch.write("other/drafter/parts/weights", std::string_view("x"));
  const ModelEntry model = {
      .name = "m",
      .arguments = {"--model=" + part, "--chat-template=" + chat_template, "--threads=2",
                    R"(--speculative-config={"model":")" +
                        (scratch.path() / "other/drafter").string() +
                        R"(","num_speculative_tokens":3})"},
      .files = part};
  std::optional<std::string> before = stamp_of_files(model);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(stamp_of_files(model), before);
  for (const char* file : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "other/template",
                           "other/drafter/parts/weights"}) {
    scratch.write(file, std::string_view("longer"));
    const std::optional<std::string> after = stamp_of_files(model);
    EXPECT_NE(after, before) << file;
    before = after;
  }
  // Another file of the same size and time.
  const fs::file_time_type time = fs::last_write_time(drafter);
  scratch.write("copy", std::string_view("others"));
  fs::last_write_time(scratch.path() / "copy", time);
  fs::rename(scratch.path() / "copy", drafter);
  EXPECT_NE(stamp_of_files(model), before);
}

TEST(StampOfFiles, IsAbsentForUnknownFiles) {
  EXPECT_EQ(stamp_of_files({.name = "m", .arguments = {"--model=org/name"}}), std::nullopt);
  EXPECT_TRUE(stamp_of_files({.name = "m", .is_embedded = true}).has_value());
  EXPECT_TRUE(stamp_of_files({.name = "m", .files = "/deleted"}).has_value());
}

TEST(Models, HaveDifferentNames) {
  EXPECT_TRUE(check_models({{.name = "a", .aliases = {"b"}}, {.name = "c"}}).ok());
  EXPECT_THAT(check_models({{.name = "a", .aliases = {"b"}}, {.name = "b"}}).message(),
              HasSubstr("'b' twice"));
  EXPECT_THAT(check_models({{.name = "a"}, {.name = "A:latest"}}).message(),
              HasSubstr("'A:latest' twice"))
      << "requests could not name the second";
  EXPECT_THAT(check_models({{.name = "a", .aliases = {""}}}).message(), HasSubstr("empty name"));
  EXPECT_THAT(check_models({{.name = "a", .is_default = true}, {.name = "b", .is_default = true}})
                  .message(),
              HasSubstr("at most once"));
}

}  // namespace
}  // namespace quire::supervisor
