// Faults of the chat format in a model's directory. The tokenizer and the configuration are the
// embedded model's.
#include "start/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/engine_case.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ChatFiles : public ::testing::Test {
 protected:
  ChatFiles() {
    for (const char* const name : {"config.json", "tokenizer.json"}) {
      scratch_.copy(source_path("models/quire-abacus") / name, name);
    }
  }

  Result<ModelFiles> open(const std::string& tokenizer_config, const std::string& file = "") {
    scratch_.write("tokenizer_config.json", tokenizer_config);
    EngineConfig config = cpu_config(scratch_.path());
    config.load_format = "dummy";
    config.chat_template = file;
    return open_model_files(config);
  }
  std::string error_of(const std::string& tokenizer_config) {
    return open(tokenizer_config).status().message();
  }
  std::string warnings_of(const std::string& tokenizer_config) {
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(open(tokenizer_config).ok());
    return ::testing::internal::GetCapturedStderr();
  }

  const ScratchDirectory scratch_;
};

TEST_F(ChatFiles, ATemplateOfAnotherKindIsRefused) {
  EXPECT_THAT(open(R"({"chat_template":null})")->chat_error.message(),
              HasSubstr("has no chat template"));
  for (const auto& [value, got] :
       {std::pair("7", "a number"), std::pair("true", "a boolean"), std::pair("{}", "an object"),
        std::pair(R"([{"name":"rag","template":"x"}])", "a list without a default"),
        std::pair(R"([{"name":"default"}])", "a list without a default")}) {
    EXPECT_THAT(error_of(std::string(R"({"chat_template":)") + value + "}"),
                AllOf(HasSubstr("tokenizer_config.json: chat_template; got " + std::string(got)),
                      HasSubstr("`chat_template`")));
  }
  const auto listed = open(R"({"chat_template":[{"name":"default","template":"x"}]})");
  EXPECT_EQ(listed->chat->source(), "x");
  // The field is not read beside a file.
  const std::string file = scratch_.write("other.jinja", "y");
  EXPECT_EQ(open(R"({"chat_template":7})", file)->chat->source(), "y");
  scratch_.write("chat_template.jinja", "z");
  EXPECT_EQ(open(R"({"chat_template":7})")->chat->source(), "z");
}

// Completions need no template. Clients get an error without paths, operators one with the fault.
TEST_F(ChatFiles, ATemplateThatCannotBeParsedFailsChatsOnly) {
  scratch_.write("chat_template.jinja", "{% for %}");
  const auto files = open("{}");
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_FALSE(files->chat);
  EXPECT_THAT(files->chat_error.message(), AllOf(HasSubstr("cannot be used"), Not(HasSubstr("/"))));
  EXPECT_THAT(files->template_fault.message(),
              AllOf(HasSubstr("chat_template.jinja: line 1"), HasSubstr("`chat_template`")));
  const std::string broken = scratch_.write("broken.jinja", "{% if %}");
  EXPECT_THAT(open("{}", broken).status().message(),
              HasSubstr("[template] chat_template: " + broken + ": line 1"));
  EXPECT_THAT(open("{}", broken + "x").status().message(),
              HasSubstr("[template] chat_template: " + broken + "x: "));
}

TEST_F(ChatFiles, SpecialTokensAreTextsOfTheVocabulary) {
  EXPECT_THAT(error_of(R"({"bos_token":7,"chat_template":"x"})"),
              HasSubstr("tokenizer_config.json: bos_token; got a number, expected a text"));
  EXPECT_THAT(error_of(R"({"eos_token":{"text":"a"},"chat_template":"x"})"),
              HasSubstr("eos_token; got an object"));
  const std::string known = R"({"bos_token":{"content":"<|begin|>"},"eos_token":null,)";
  const std::string uses_bos = R"("chat_template":"{{ bos_token }}"})";
  EXPECT_EQ(warnings_of(known + uses_bos), "");
  const std::string unknown = R"({"bos_token":"<|start|>",)";
  EXPECT_THAT(
      warnings_of(unknown + uses_bos),
      HasSubstr("bos_token is \"<|start|>\", which is not a token of the vocabulary: the chat "
                "template writes it as text"));
  EXPECT_EQ(warnings_of(unknown + R"("chat_template":"x"})"), "");
}

TEST(EmbeddedModel, IsAGgufFile) {
  const auto files = open_model_files(cpu_config("embedded"));
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->file_format, "gguf");
}

}  // namespace
}  // namespace quire::testing
