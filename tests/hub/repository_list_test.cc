#include "hub/pull/repository_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/json_writer.h"
#include "support/value_of.h"

namespace quire::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string list_of(const std::vector<std::string>& names) {
  JsonWriter json;
  json.begin_object();
  json.field("sha", std::string(40, 'c'));
  json.key("siblings");
  json.begin_array();
  for (const std::string& name : names) {
    json.begin_object();
    json.field("rfilename", name);
    json.field("size", int64_t{1000});
    json.field("blobId", std::string(40, 'a'));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

RepositoryList parsed(const std::vector<std::string>& names) {
  return testing::value_of(parse_repository_list(list_of(names)));
}

std::vector<std::string> names_of(const std::vector<RepositoryFile>& files) {
  std::vector<std::string> names;
  for (const RepositoryFile& file : files) names.push_back(file.name);
  return names;
}

TEST(RepositoryList, LargeFilesHaveTheirOwnHashAndSize) {
  const std::string json = fmt::format(
      R"({{"sha": "{}", "siblings": [{{"rfilename": "a", "size": 9, "blobId": "{}", "lfs": {{
          "sha256": "{}", "size": 12, "pointerSize": 134}}}}, {{"rfilename": "b", "size": 7,
          "blobId": "{}", "lfs": null}}, {{"rfilename": "c"}}]}})",
      std::string(40, 'c'), std::string(40, 'a'), std::string(64, 'b'), std::string(40, 'd'));
  const auto list = testing::value_of(parse_repository_list(json));
  EXPECT_EQ(list.commit, std::string(40, 'c'));
  const RepositoryFile& large = *list.find("a");
  EXPECT_TRUE(large.is_large);
  EXPECT_EQ(large.hash, std::string(64, 'b'));
  EXPECT_EQ(large.size, 12);
  const RepositoryFile& small = *list.find("b");
  EXPECT_FALSE(small.is_large);
  EXPECT_EQ(small.hash, std::string(40, 'd'));
  EXPECT_EQ(small.size, 7);
  EXPECT_TRUE(check_file(large).ok());
  EXPECT_TRUE(check_file(small).ok());
  EXPECT_THAT(check_file(*list.find("c")).message(), HasSubstr("?blobs=true"));
}

TEST(RepositoryList, RefusesNamesThatLeaveTheRepository) {
  for (const std::string name :
       {"", ".", "..", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a\\b", "a\nb", "a\x7f"}) {
    const auto list = parse_repository_list(list_of({name}));
    EXPECT_THAT(list.status().message(), HasSubstr("expected a relative path")) << name;
  }
  EXPECT_FALSE(parse_repository_list(list_of({std::string(1025, 'a')})).ok());
  EXPECT_TRUE(parse_repository_list(list_of({"..a/b..", "a/b c/\xC3\xA4.json"})).ok());
}

TEST(RepositoryList, RefusesARepeatedName) {
  const auto list = parse_repository_list(list_of({"a", "b", "a"}));
  EXPECT_THAT(list.status().message(), HasSubstr("lists a twice"));
}

TEST(FileChoice, TakesOnlyFilesThatQuireReads) {
  const auto choice = testing::value_of(choose_files(
      parsed({"config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors",
              "model.safetensors.index.json", "vocab.json", "onnx/config.json", "model.gguf",
              "modules.json", "1_Pooling/config.json", "tekken.json", "tiktoken.model"}),
      ""));
  EXPECT_THAT(names_of(choice.small),
              ElementsAre("config.json", "tokenizer.json", "chat_template.jinja", "modules.json",
                          "1_Pooling/config.json", "tekken.json", "tiktoken.model"));
  EXPECT_THAT(names_of(choice.weights), ElementsAre("model.safetensors"));
  EXPECT_FALSE(choice.has_index);
  EXPECT_EQ(describe_skipped(choice.others),
            "4 files that Quire does not read (4.0 KB): model.safetensors.index.json, vocab.json, "
            "onnx/config.json, model.gguf");
}

TEST(FileChoice, TheIndexNamesTheShards) {
  auto choice = testing::value_of(choose_files(
      parsed({"config.json", "model.safetensors.index.json", "a.safetensors", "b.safetensors"}),
      ""));
  EXPECT_TRUE(choice.has_index);
  EXPECT_THAT(names_of(choice.small), ElementsAre("config.json", "model.safetensors.index.json"));
  EXPECT_TRUE(choose_shards({"b.safetensors"}, choice).ok());
  EXPECT_THAT(names_of(choice.weights), ElementsAre("b.safetensors"));
  EXPECT_THAT(names_of(choice.others), ElementsAre("a.safetensors"));
  EXPECT_THAT(choose_shards({"c.safetensors"}, choice).message(),
              HasSubstr("lacks the file c.safetensors"));
}

TEST(FileChoice, NamesTheFormatOfOtherWeights) {
  const auto error_of = [](const std::string& name) {
    return choose_files(parsed({"config.json", name}), "").status().message();
  };
  for (const char* name :
       {"pytorch_model-00001-of-00002.bin", "model.pt", "original/consolidated.00.pth"}) {
    EXPECT_THAT(error_of(name), HasSubstr(fmt::format("PyTorch weights ({})", name)));
  }
  // The states of a training are no weights.
  for (const char* name : {"training_args.bin", "optimizer.pt", "pytorch_model.bin.index.json"}) {
    EXPECT_THAT(error_of(name), HasSubstr("has neither model.safetensors nor")) << name;
  }
}

TEST(FileChoice, TakesTheGgufModelOfATag) {
  const auto list = parsed({"config.json", "model.safetensors", "mmproj-F16.gguf", "README.md",
                            "a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf",
                            "a-F16-00001-of-00003.gguf"});
  const auto choice = testing::value_of(choose_files(list, "q8_0"));
  EXPECT_TRUE(choice.is_gguf);
  EXPECT_THAT(choice.small, ::testing::IsEmpty());
  EXPECT_THAT(names_of(choice.weights),
              ElementsAre("a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf"));
  EXPECT_THAT(names_of(choice.others), ElementsAre("mmproj-F16.gguf"));
  EXPECT_FALSE(testing::value_of(choose_files(list, "")).is_gguf);
  EXPECT_THAT(choose_files(list, "Q4_0").status().message(),
              HasSubstr("no GGUF file Q4_0 beside its safetensors; expected one of F16, Q8_0"));
  EXPECT_THAT(choose_files(list, "F16").status().message(), HasSubstr("only 1 of 3 files of F16"));
}

TEST(FileChoice, TakesAGgufModelIfThereAreNoSafetensors) {
  const auto list = parsed({"config.json", "a-Q2_K.gguf", "a-Q8_0.gguf"});
  EXPECT_THAT(names_of(testing::value_of(choose_files(list, "")).weights),
              ElementsAre("a-Q8_0.gguf"));
  EXPECT_THAT(choose_files(parsed({"model.safetensors"}), "Q8_0").status().message(),
              HasSubstr("has no GGUF file, and so no Q8_0"));
  auto hostile = list;
  for (RepositoryFile& file : hostile.files) file.size = int64_t{1} << 62;
  EXPECT_THAT(choose_files(hostile, "Q8_0").status().message(), HasSubstr("the size"));
  for (RepositoryFile& file : hostile.files) file.hash = "../../evil";
  EXPECT_THAT(choose_files(hostile, "Q8_0").status().message(), HasSubstr("the hash"));
}

TEST(RepositoryList, MayStateTheArchitecture) {
  const auto list = testing::value_of(parse_repository_list(
      fmt::format(R"({{"sha": "{}", "siblings": [], "gguf": {{"architecture": "llama"}}}})",
                  std::string(40, 'c'))));
  EXPECT_EQ(list.gguf_architecture, "llama");
}

TEST(RepositoryList, ClipsNamesInErrors) {
  RepositoryFile file = {.name = std::string(1000, 'n'), .hash = "short"};
  EXPECT_LT(check_file(file).message().size(), 300U);
  file.hash = std::string(40, 'a');
  file.size = -1;
  EXPECT_LT(check_file(file).message().size(), 300U);
}

TEST(Bytes, HaveOneDecimal) {
  EXPECT_EQ(bytes_text(1), "1 byte");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.0 KB");
  EXPECT_EQ(bytes_text(999'949), "999.9 KB");
  EXPECT_EQ(bytes_text(999'950), "1.0 MB");
  EXPECT_EQ(bytes_text(1'503'300'328), "1.5 GB");
  EXPECT_EQ(bytes_text(2'000'000'000'000'000), "2000.0 TB");
}

}  // namespace
}  // namespace quire::hub
