#include "server/openai/responses.h"

#include <gmock/gmock.h>

#include <array>

#include "base/json.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ResponseHeader kHeader = {
    .id = "cmpl-1", .model = "m", .created = 7, .system_fingerprint = "fp_1"};
const std::string kCompletionHead = completion_chunk_head(kHeader);
const std::string kChatHead = chat_chunk_head(kHeader);
const Usage kUsage = {.num_prompt_tokens = 3,
                      .num_completion_tokens = 2,
                      .num_cached_tokens = 1,
                      .num_reasoning_tokens = 0};
constexpr std::string_view kUsageJson =
    R"({"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
    R"("prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":0}})";

// Tokens 4 and 5 are the two halves of "é"; 6 is shown as the same text as 4.
std::string decode(int32_t id) {
  constexpr std::array<std::string_view, 7> kTokens = {"<s>",  "Hi",   " \"x\"\n", "日",
                                                       "\xc3", "\xa9", "\xff"};
  return std::string(kTokens.at(static_cast<size_t>(id)));
}

SharedTokenIds shared_ids(std::vector<int32_t> ids) {
  return std::make_shared<const std::vector<int32_t>>(std::move(ids));
}

Output output_of(std::string text, std::vector<int32_t> ids = {},
                 std::vector<PositionLogprobs> logprobs = {}) {
  Output output;
  output.text = std::move(text);
  output.token_ids = std::move(ids);
  output.logprobs = std::move(logprobs);
  return output;
}

Output end_of(FinishReason reason, std::string stop_reason = "") {
  Output output;
  output.finish_reason = reason;
  output.stop_reason = std::move(stop_reason);
  return output;
}

CompletionRequest completion_request(int logprobs = -1) {
  CompletionRequest request;
  request.prompts.resize(1);
  if (logprobs >= 0) request.engine_request.sampling.logprobs = logprobs;
  request.engine_request.sampling.stop = {"END", "12"};
  return request;
}

std::string valid(std::string json) {
  EXPECT_TRUE(JsonDocument::parse(json, "body").ok()) << json;
  return json;
}

TEST(CompletionBody, IsOpenAIs) {
  const Choice choice = {.index = 0,
                         .text = "a\"\n\x01é",
                         .token_ids = {1, 2},
                         .logprobs = {},
                         .prompt_logprobs = {},
                         .prompt_token_ids = shared_ids({0, 1, 2}),
                         .finish_reason = FinishReason::kLength};
  const std::string body =
      valid(completion_body(kHeader, completion_request(), {choice}, kUsage, decode));
  EXPECT_EQ(body, R"({"id":"cmpl-1","object":"text_completion","created":7,"model":"m",)"
                  R"("system_fingerprint":"fp_1","choices":[)"
                  R"({"index":0,"text":"a\"\n\u0001é","logprobs":null,"finish_reason":"length",)"
                  R"("stop_reason":null}],"usage":)" +
                      std::string(kUsageJson) + "}");
}

TEST(CompletionBody, NamesTheStopReason) {
  const auto stop_reason = [](std::string reason) {
    const Choice choice = {.token_ids = {},
                           .logprobs = {},
                           .prompt_logprobs = {},
                           .prompt_token_ids = nullptr,
                           .stop_reason = std::move(reason)};
    const std::string body =
        completion_body(kHeader, completion_request(), {choice}, kUsage, decode);
    const size_t start = body.find("\"stop_reason\":") + 14;
    return body.substr(start, body.find('}', start) - start);
  };
  EXPECT_EQ(stop_reason("END"), "\"END\"");
  EXPECT_EQ(stop_reason("128001"), "128001");
  EXPECT_EQ(stop_reason("12"), "\"12\"");  // one of the request's stop strings
  EXPECT_EQ(stop_reason(""), "null");
}

TEST(CompletionBody, HasLogprobsWithTheEcho) {
  CompletionRequest request = completion_request(1);
  request.echo = true;
  const Choice choice = {
      .index = 3,
      .text = "日\xef\xbf\xbd",
      .prompt_text = "Hi",
      .token_ids = {3, 4},
      .logprobs = {{{3, -0.5F, 1}, {3, -0.5F, 1}, {2, -2.0F, 2}}, {{4, -1.25F, 2}, {6, -0.25F, 1}}},
      .prompt_logprobs = {{}, {{2, -INFINITY, 9}, {1, -0.75F, 1}}},
      .prompt_token_ids = shared_ids({1, 2}),
      .finish_reason = FinishReason::kStop};
  EXPECT_THAT(
      valid(completion_body(kHeader, request, {choice}, kUsage, decode)),
      HasSubstr(R"({"index":3,"text":"Hi日�","logprobs":{"tokens":["Hi"," \"x\"\n","日","�"],)"
                R"("token_logprobs":[null,-9999,-0.5,-1.25],)"
                R"("top_logprobs":[null,{" \"x\"\n":-9999,"Hi":-0.75},{"日":-0.5},{"�":-1.25}],)"
                R"("text_offset":[0,2,7,8]},"finish_reason":"stop")"));
  request.return_tokens_as_token_ids = true;
  EXPECT_THAT(completion_body(kHeader, request, {choice}, kUsage, decode),
              HasSubstr(R"("tokens":["token_id:1","token_id:2","token_id:3","token_id:4"])"));
}

TEST(CompletionBody, ShowsOnlyThePromptWithoutOutput) {
  CompletionRequest request = completion_request(0);
  request.echo = request.echo_only = true;
  request.return_token_ids = true;
  const Choice choice = {.text = "never shown",
                         .prompt_text = "Hi",
                         .token_ids = {3},
                         .logprobs = {{{3, -0.5F, 1}}},
                         .prompt_logprobs = {{}},
                         .prompt_token_ids = shared_ids({1}),
                         .finish_reason = FinishReason::kLength};
  EXPECT_THAT(
      valid(completion_body(kHeader, request, {choice}, kUsage, decode)),
      HasSubstr(
          R"("text":"Hi","logprobs":{"tokens":["Hi"],"token_logprobs":[null],"top_logprobs":[null],)"
          R"("text_offset":[0]},"finish_reason":"length","stop_reason":null,"token_ids":[],)"
          R"("prompt_token_ids":[1]})"));
}

TEST(CompletionBody, HasPromptLogprobs) {
  CompletionRequest request = completion_request();
  request.return_prompt_logprobs = true;
  const Choice choice = {.token_ids = {},
                         .logprobs = {},
                         .prompt_logprobs = {{}, {{2, -1.5F, 1}, {2, -1.5F, 1}, {1, -2.0F, 2}}},
                         .prompt_token_ids = shared_ids({1, 2})};
  EXPECT_THAT(
      valid(completion_body(kHeader, request, {choice}, kUsage, decode)),
      HasSubstr(
          R"("prompt_logprobs":[null,{"2":{"logprob":-1.5,"rank":1,"decoded_token":" \"x\"\n"},)"
          R"("1":{"logprob":-2,"rank":2,"decoded_token":"Hi"}}]})"));
}

TEST(CompletionChunk, StreamsTextThenItsEnd) {
  CompletionRequest request = completion_request();
  request.streaming = {.stream = true, .include_usage = true};
  ChoiceStream choice = {.index = 1};
  std::string out = "data: ";
  completion_chunk(kCompletionHead, request, choice, output_of("Hi", {1}), nullptr, decode, out);
  EXPECT_EQ(out,
            R"(data: {"id":"cmpl-1","object":"text_completion","created":7,"model":"m",)"
            R"("system_fingerprint":"fp_1","choices":[)"
            R"({"index":1,"text":"Hi","logprobs":null,"finish_reason":null,"stop_reason":null}],)"
            R"("usage":null})");
  out.clear();
  completion_chunk(kCompletionHead, request, choice, end_of(FinishReason::kStop, "END"), &kUsage,
                   decode, out);
  EXPECT_EQ(valid(out),
            R"({"id":"cmpl-1","object":"text_completion","created":7,"model":"m",)"
            R"("system_fingerprint":"fp_1","choices":[)"
            R"({"index":1,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":"END"}],)"
            R"("usage":)" +
                std::string(kUsageJson) + "}");
  out.clear();
  usage_chunk(kCompletionHead, kUsage, out);
  EXPECT_EQ(out, R"({"id":"cmpl-1","object":"text_completion","created":7,"model":"m",)"
                 R"("system_fingerprint":"fp_1","choices":[],)"
                 R"("usage":)" +
                     std::string(kUsageJson) + "}");
}

TEST(CompletionChunk, EchoesAndContinuesCountingCharacters) {
  CompletionRequest request = completion_request(0);
  request.echo = true;
  ChoiceStream choice = {.prompt_text = "Hi日",
                         .prompt_token_ids = shared_ids({1, 3}),
                         .prompt_logprobs = {{}, {{3, -1.0F, 1}}}};
  std::string out;
  completion_chunk(kCompletionHead, request, choice, output_of(" \"x\"\n", {2}, {{{2, -0.5F, 1}}}),
                   nullptr, decode, out);
  EXPECT_THAT(valid(out), HasSubstr(R"("text":"Hi日 \"x\"\n","logprobs":{"tokens":["Hi","日",)"));
  EXPECT_THAT(out, HasSubstr(R"("text_offset":[0,2,3])"));
  out.clear();
  completion_chunk(kCompletionHead, request, choice, output_of("Hi", {1}, {{{1, -0.25F, 1}}}),
                   nullptr, decode, out);
  EXPECT_THAT(valid(out), HasSubstr(R"("text":"Hi","logprobs":{"tokens":["Hi"],)"
                                    R"("token_logprobs":[-0.25],"top_logprobs":[{"Hi":-0.25}],)"
                                    R"("text_offset":[8]})"));
}

TEST(ChatBody, IsOpenAIs) {
  ChatRequest request;
  request.engine_request.sampling.logprobs = 1;
  const Choice choice = {.index = 0,
                         .text = "",
                         .message = {.reasoning = "hm", .content = "Hé", .tool_calls = {}},
                         .token_ids = {1, 4},
                         .logprobs = {{{1, -0.5F, 1}, {1, -0.5F, 1}}, {{4, -1.0F, 1}}},
                         .prompt_logprobs = {},
                         .prompt_token_ids = shared_ids({0}),
                         .finish_reason = FinishReason::kStop};
  EXPECT_EQ(valid(chat_body(kHeader, request, {choice}, kUsage, decode)),
            R"({"id":"cmpl-1","object":"chat.completion","created":7,"model":"m",)"
            R"("system_fingerprint":"fp_1","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":"Hé","refusal":null,)"
            R"("reasoning_content":"hm","reasoning":"hm"},"logprobs":{"content":[)"
            R"({"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[)"
            R"({"token":"Hi","logprob":-0.5,"bytes":[72,105]}]},)"
            R"({"token":"�","logprob":-1,"bytes":[195],"top_logprobs":[]}]},)"
            R"("finish_reason":"stop","stop_reason":null}],"usage":)" +
                std::string(kUsageJson) + "}");
  request.include_reasoning = false;
  request.engine_request.sampling.logprobs.reset();
  request.return_token_ids = true;
  const std::string bare = valid(chat_body(kHeader, request, {choice}, kUsage, decode));
  EXPECT_THAT(bare, Not(HasSubstr("reasoning_content")));
  EXPECT_THAT(bare, HasSubstr(R"("logprobs":null)"));
  EXPECT_THAT(bare, HasSubstr(R"("token_ids":[1,4]}])"));
  EXPECT_THAT(bare, HasSubstr(R"("prompt_token_ids":[0]})"));
}

// The end token is one of the tokens that usage counts, so it is listed, as by vLLM.
TEST(ChatBody, ListsTheLogprobsOfTheEndToken) {
  ChatRequest request;
  request.engine_request.sampling.logprobs = 0;
  const Choice choice = {.index = 0,
                         .text = "",
                         .message = {.reasoning = "", .content = "Hi", .tool_calls = {}},
                         .token_ids = {1, 0},
                         .logprobs = {{{1, -0.5F, 1}}, {{0, -0.25F, 1}}},
                         .prompt_logprobs = {},
                         .prompt_token_ids = shared_ids({0}),
                         .finish_reason = FinishReason::kStop};
  EXPECT_EQ(kUsage.num_completion_tokens, 2);
  EXPECT_THAT(
      valid(chat_body(kHeader, request, {choice}, kUsage, decode)),
      HasSubstr(R"("content":"Hi","refusal":null},"logprobs":{"content":[)"
                R"({"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[]},)"
                R"({"token":"<s>","logprob":-0.25,"bytes":[60,115,62],"top_logprobs":[]}]})"));
}

TEST(ChatBody, HasToolCalls) {
  ChatRequest request;
  request.tool_choice = ToolChoice::kAuto;
  Choice choice = {
      .message = {.reasoning = "",
                  .content = "",
                  .tool_calls = {{"call_1", "add", "{\"a\": 1}"}, {"call_2", "now", "{}"}}},
      .token_ids = {},
      .logprobs = {},
      .prompt_logprobs = {},
      .prompt_token_ids = nullptr};
  EXPECT_THAT(
      valid(chat_body(kHeader, request, {choice}, kUsage, decode)),
      HasSubstr(R"("message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[)"
                R"({"id":"call_1","type":"function","function":{"name":"add",)"
                R"("arguments":"{\"a\": 1}"}},)"
                R"({"id":"call_2","type":"function","function":{"name":"now","arguments":"{}"}}]},)"
                R"("logprobs":null,"finish_reason":"tool_calls")"));
  request.tool_choice = ToolChoice::kNamed;
  EXPECT_THAT(chat_body(kHeader, request, {choice}, kUsage, decode),
              HasSubstr(R"("finish_reason":"stop")"));
  request.tool_choice = ToolChoice::kAuto;
  choice.finish_reason = FinishReason::kLength;
  EXPECT_THAT(chat_body(kHeader, request, {choice}, kUsage, decode),
              HasSubstr(R"("finish_reason":"length")"));
}

TEST(ChatChunk, StreamsRoleContentAndCalls) {
  ChatRequest request;
  request.tool_choice = ToolChoice::kAuto;
  request.echoed_message = "So ";
  ChoiceStream choice = {.index = 2};
  std::string out;
  chat_role_chunk(kChatHead, request, choice, nullptr, decode, out);
  EXPECT_EQ(valid(out),
            R"({"id":"cmpl-1","object":"chat.completion.chunk","created":7,"model":"m",)"
            R"("system_fingerprint":"fp_1","choices":[)"
            R"({"index":2,"delta":{"role":"assistant","content":"So "},"logprobs":null,)"
            R"("finish_reason":null,"stop_reason":null}]})");
  const auto chunk = [&](const MessageDelta& delta, const Output& output) {
    std::string text;
    chat_chunk(kChatHead, request, choice, delta, output, nullptr, decode, text);
    valid(text);
    const size_t start = text.find("\"delta\"");
    return text.substr(start, text.rfind("}]") - start);
  };
  EXPECT_EQ(chunk({.reasoning = "hm", .content = "a", .tool_calls = {}}, {}),
            R"("delta":{"reasoning_content":"hm","reasoning":"hm","content":"a"},"logprobs":null,)"
            R"("finish_reason":null,"stop_reason":null)");
  EXPECT_EQ(chunk({.reasoning = "",
                   .content = "",
                   .tool_calls = {{0, "call_1", "add", ""}, {0, "", "", "{\"a"}}},
                  {}),
            R"("delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":)"
            R"({"name":"add","arguments":""}},{"index":0,"function":{"arguments":"{\"a"}}]},)"
            R"("logprobs":null,"finish_reason":null,"stop_reason":null)");
  EXPECT_EQ(chunk({}, end_of(FinishReason::kStop)),
            R"("delta":{},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null)");
  out.clear();
  usage_chunk(kChatHead, kUsage, out);
  EXPECT_THAT(valid(out), HasSubstr(R"("choices":[],"usage":{"prompt_tokens":3)"));
}

TEST(ChatChunk, LosesNoLogprobsOfTextThatIsHeldBack) {
  ChatRequest request;
  const Output output = output_of("", {1}, {{{1, -0.5F, 1}}});
  EXPECT_FALSE(needs_chat_chunk(request, {}, output));
  request.include_reasoning = false;
  EXPECT_FALSE(needs_chat_chunk(request, {.reasoning = "x", .content = "", .tool_calls = {}}, {}));
  EXPECT_TRUE(needs_chat_chunk(request, {}, end_of(FinishReason::kStop)));
  request.engine_request.sampling.logprobs = 0;
  EXPECT_TRUE(needs_chat_chunk(request, {}, output));
  ChoiceStream choice;
  std::string out;
  chat_chunk(kChatHead, request, choice, {}, output, nullptr, decode, out);
  EXPECT_THAT(valid(out), HasSubstr(R"("delta":{},"logprobs":{"content":[{"token":"Hi")"));
}

TEST(SseEvent, IsOneEvent) {
  EXPECT_EQ(sse_event("{}"), "data: {}\n\n");
}

}  // namespace
}  // namespace quire::server
