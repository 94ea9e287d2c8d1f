// Compares rendered templates with Jinja2's (tools/golden/templates.py), byte for byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "jinja/chat_template.h"
#include "jinja/python_text.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire {
namespace {

constexpr std::string_view kGolden = "tests/golden/templates/";
constexpr int64_t kNowUnixS = 1'722'053'106;  // the value in tools/golden/templates.py

JsonDocument golden(std::string_view name) {
  return testing::value_of(
      JsonDocument::load(testing::source_path(std::string(kGolden) + std::string(name))));
}

Result<std::string> render(std::string_view source, const jinja::Value& variables) {
  TemplateLimits limits;
  limits.now_unix_s = kNowUnixS;
  QUIRE_ASSIGN_OR_RETURN(const ChatTemplate parsed, ChatTemplate::parse(source, limits));
  QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, parsed.render(variables, limits));
  return std::move(prompt.text);
}

// Checks a result against a golden file's row. `prefix` is text that the row omits.
void expect_row(simdjson::dom::object row, const Result<std::string>& result,
                const std::string& prefix, const std::string& label) {
  std::string_view text;
  if (row["text"].get(text) == simdjson::SUCCESS) {
    ASSERT_TRUE(result.ok()) << label << "\n" << result.status().message();
    EXPECT_EQ(*result, prefix + std::string(text)) << label;
    return;
  }
  EXPECT_FALSE(result.ok()) << label << "\nrendered: " << (result.ok() ? *result : "");
  if (result.ok()) return;
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(result.status().message().starts_with("[template] line ")) << label;
  std::string_view raised;
  if (row["raised"].get(raised) == simdjson::SUCCESS) {
    EXPECT_TRUE(result.status().message().ends_with(": " + std::string(raised)))
        << label << "\n"
        << result.status().message() << "\n"
        << raised;
  }
  // Errors name an undefined value as Jinja does.
  std::string_view error;
  constexpr std::string_view kUndefined = "UndefinedError: ";
  if (row["error"].get(error) == simdjson::SUCCESS && error.starts_with(kUndefined)) {
    EXPECT_TRUE(result.status().message().ends_with(error.substr(kUndefined.size())))
        << label << "\n"
        << result.status().message() << "\n"
        << error;
  }
}

TEST(ChatTemplateGolden, Expressions) {
  const JsonDocument document = golden("expressions.json");
  int num_cases = 0;
  for (const simdjson::dom::object row : simdjson::dom::array(document.root())) {
    const std::string source{std::string_view(row["template"])};
    expect_row(row, render(source, value_from_json(row["variables"])), "", source);
    ++num_cases;
  }
  EXPECT_GE(num_cases, 800);
}

// One test per template of the shared data.
class ChatTemplateGoldenModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ChatTemplateGoldenModel, RendersAsJinja) {
  const auto path = testing::shared_data_path("chat_templates/" + GetParam() + ".jinja");
  QUIRE_REQUIRE_SHARED(path);
  const auto source = testing::value_of(read_file(path, size_t{1} << 20));

  const JsonDocument conversations = golden("conversations.json");
  std::map<std::string, jinja::Value> variables;
  for (const simdjson::dom::object row : simdjson::dom::array(conversations.root())) {
    variables.emplace(std::string(std::string_view(row["name"])),
                      value_from_json(row["variables"]));
  }
  const JsonDocument expected = golden(GetParam() + ".json");
  int num_rendered = 0;
  std::string previous;
  for (const simdjson::dom::object row : simdjson::dom::array(expected.root())) {
    const std::string name{std::string_view(row["name"])};
    const Result<std::string> result = render(source, variables.at(name));
    int64_t shared_chars = 0;
    std::string prefix;
    if (row["shared_prefix_chars"].get(shared_chars) == simdjson::SUCCESS) {
      prefix = previous.substr(0, jinja::byte_of_char(previous, static_cast<size_t>(shared_chars)));
      previous = prefix + std::string(std::string_view(row["text"]));
      ++num_rendered;
    }
    expect_row(row, result, prefix, GetParam() + ": " + name);
  }
  EXPECT_GE(num_rendered, 8);
}

INSTANTIATE_TEST_SUITE_P(
    All, ChatTemplateGoldenModel,
    ::testing::Values("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "HuggingFaceTB-SmolLM3-3B",
                      "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "Qwen-Qwen2.5-7B-Instruct",
                      "Qwen-Qwen3-0.6B", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
                      "google-gemma-2-2b-it", "ibm-granite-granite-3.3-2B-Instruct",
                      "meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct",
                      "meta-llama-Llama-3.3-70B-Instruct", "microsoft-Phi-3.5-mini-instruct",
                      "mistralai-Mistral-Nemo-Instruct-2407", "openai-gpt-oss-120b"),
    [](const ::testing::TestParamInfo<std::string>& param_info) {
      std::string name = param_info.param;
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace quire
