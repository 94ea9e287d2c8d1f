#include "start/embedding_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using testing::source_path;

// Reads a checkpoint's directory with these modules and this configuration of the pooling.
auto read_modules(const std::string& modules, const std::string& pooling = "") {
  const testing::ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path() / "1_Pooling");
  scratch.write("modules.json", modules);
  if (!pooling.empty()) scratch.write("1_Pooling/config.json", pooling);
  return read_embedding_modules(scratch.path());
}

constexpr const char* kTransformer =
    R"({"path":"","type":"sentence_transformers.models.Transformer"})";
constexpr const char* kPooling =
    R"({"path":"1_Pooling","type":"sentence_transformers.models.Pooling"})";

std::string list(const std::vector<std::string>& modules) {
  std::string text = "[";
  for (const std::string& module : modules) text += (text.size() > 1 ? "," : "") + module;
  return text + "]";
}

TEST(EmbeddingModules, AreThoseOfSentenceTransformers) {
  const auto last = R"({"pooling_mode_cls_token":false,"pooling_mode_lasttoken":true})";
  auto modules = testing::value_of(read_modules(list({kTransformer, kPooling}), last));
  ASSERT_TRUE(modules.has_value());
  EXPECT_FALSE(modules->normalizes);
  const std::string normalize = R"({"path":"2_Normalize","type":"a.b.Normalize"})";
  modules = testing::value_of(
      read_modules(list({kTransformer, kPooling, normalize}), R"({"pooling_mode":"lasttoken"})"));
  EXPECT_TRUE(modules->normalizes);
}

// A reranker has modules, too.
TEST(EmbeddingModules, WithoutPoolingBelongToAGeneratingModel) {
  const std::string score = R"({"path":"1_LogitScore","type":"a.LogitScore"})";
  EXPECT_EQ(*read_modules(list({kTransformer, score})), std::nullopt);
  EXPECT_EQ(*read_embedding_modules(source_path("tests/golden/pooling/reranker")), std::nullopt);
}

TEST(EmbeddingModules, AreRefusedByName) {
  const auto message = [](const std::string& modules, const std::string& pooling = "") {
    return read_modules(modules, pooling).status().message();
  };
  const std::string all = list({kTransformer, kPooling});
  EXPECT_THAT(message(all, R"({"pooling_mode_mean_tokens":true})"),
              HasSubstr("got pooling_mode_mean_tokens, expected pooling_mode_lasttoken"));
  EXPECT_THAT(message(all, R"({"pooling_mode_lasttoken":true,"pooling_mode_max_tokens":true})"),
              HasSubstr("got pooling_mode_max_tokens"));
  EXPECT_THAT(message(all, R"({"pooling_mode":["cls","mean"]})"), HasSubstr("not supported"));
  EXPECT_THAT(message(all, R"({"pooling_mode":"cls"})"), HasSubstr("got cls"));
  EXPECT_THAT(message(all, R"({"pooling_mode":7})"), HasSubstr("got pooling_mode, expected"));
  EXPECT_THAT(message(all, R"({"pooling_mode_lasttoken":false})"), HasSubstr("got none"));
  for (const char* const value : {"0", "null", "\"no\""}) {
    EXPECT_THAT(message(all, std::string(R"({"pooling_mode_lasttoken":)") + value + "}"),
                HasSubstr("got pooling_mode_lasttoken, expected"));
  }
  EXPECT_THAT(message(all, "{}"), HasSubstr("got none"));
  EXPECT_THAT(message(all, "[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message(all), HasSubstr("config.json"));
  EXPECT_THAT(message("{}"), HasSubstr("not a JSON array"));
  EXPECT_THAT(message("[{}]"), HasSubstr("a module without a type"));
  EXPECT_THAT(message(list({kTransformer, kPooling, R"({"path":"3","type":"a.Dense"})"}),
                      R"({"pooling_mode":"lasttoken"})"),
              HasSubstr("got Dense, expected Transformer, Pooling, Normalize"));
  EXPECT_THAT(message(R"([{"path":"../other","type":"a.Pooling"}])"),
              HasSubstr("got '../other', expected a folder in the checkpoint"));
  EXPECT_THAT(message(list({kTransformer, kPooling, kPooling}), R"({"pooling_mode":"lasttoken"})"),
              HasSubstr("got several Pooling modules, expected one"));
}

}  // namespace
}  // namespace quire
