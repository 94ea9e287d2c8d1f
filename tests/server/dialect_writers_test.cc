// The answers to the corpus of every dialect, through the writer of each API: streamed, the deltas
// add up to the whole response, wherever the text is cut.
#include <gmock/gmock.h>

#include "server/dialect_answers.h"
#include "server/messages_api/messages_writer.h"
#include "server/ollama_api/ollama_writer.h"
#include "server/openai/response_writer.h"
#include "server/responses_api/responses_writer.h"
#include "server/tools/dialect_corpus.h"

namespace quire::server {
namespace {

Result<std::unique_ptr<ResponseWriter>> make_writer(Api api, bool is_stream,
                                                    const OutputParserConfig& config) {
  ResponseInfo info = {.header = {.id = "resp_1", .model = "m"},
                       .decode = [](int32_t) { return std::string(); },
                       .num_prompt_tokens = 1,
                       .prompt_texts = {},
                       .parser = config};
  ChatRequest chat;
  chat.streaming.stream = is_stream;
  chat.engine_request.sampling.max_tokens = 1;  // so that a limit is this one
  switch (api) {
    case Api::kChat:
      return make_response_writer(std::move(chat), std::move(info));
    case Api::kResponses: {
      ResponsesRequest request;
      request.chat = std::move(chat);
      return make_responses_writer(std::move(request), std::move(info), nullptr);
    }
    case Api::kMessages:
      return make_messages_writer(std::move(chat), std::move(info));
    case Api::kOllama:
      break;
  }
  return make_ollama_writer({.model = "m", .is_stream = is_stream}, std::move(info));
}

// Writes the text in outputs that end at the given places.
std::string write_answer(Api api, bool is_stream, const OutputParserConfig& config,
                         std::string_view text, const std::vector<size_t>& cuts,
                         FinishReason reason) {
  const auto writer = make_writer(api, is_stream, config).value();
  std::string out;
  size_t begin = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t end = i < cuts.size() ? cuts[i] : text.size();
    Output output;
    output.text = text.substr(begin, end - begin);
    output.token_ids = {1};
    if (i == cuts.size()) output.finish_reason = reason;
    writer->add(0, std::move(output), out);
    begin = end;
  }
  writer->finish(out);
  return out;
}

class DialectWriters : public ::testing::TestWithParam<Api> {
 protected:
  static Answer whole(const OutputParserConfig& config, std::string_view text,
                      FinishReason reason = FinishReason::kStop) {
    return read_whole(GetParam(), write_answer(GetParam(), false, config, text, {}, reason));
  }
  static Answer streamed(const OutputParserConfig& config, std::string_view text,
                         const std::vector<size_t>& cuts,
                         FinishReason reason = FinishReason::kStop) {
    return read_stream(GetParam(), write_answer(GetParam(), true, config, text, cuts, reason));
  }
};

TEST_P(DialectWriters, WriteTheMessage) {
  if (GetParam() != Api::kChat && GetParam() != Api::kOllama) return;  // others divide the texts
  for_each_dialect_case([](const OutputParserConfig& config, const DialectCase& c) {
    EXPECT_EQ(whole(config, c.text).blocks, blocks_of(c.message));
  });
}

TEST_P(DialectWriters, StreamTheWholeResponseWhereverItIsCut) {
  constexpr size_t kShort = 40;
  for_each_dialect_case([](const OutputParserConfig& config, const DialectCase& c) {
    const Answer answer = whole(config, c.text);
    const std::vector<size_t> places = character_places(c.text);
    EXPECT_EQ(show(streamed(config, c.text, places)), show(answer));
    EXPECT_EQ(show(read_whole(GetParam(), write_answer(GetParam(), false, config, c.text, places,
                                                       FinishReason::kStop))),
              show(answer));
    for (const size_t place : places) {
      ASSERT_EQ(show(streamed(config, c.text, {place})), show(answer)) << "cut at " << place;
      if (c.text.size() > kShort) continue;
      for (const size_t second : places) {
        if (second <= place) continue;
        ASSERT_EQ(show(streamed(config, c.text, {place, second})), show(answer))
            << "cut at " << place << " and " << second;
      }
    }
  });
}

bool is_call(std::string_view block) {
  return !block.starts_with("text: ") && !block.starts_with("reasoning: ");
}

bool is_whole_call(std::string_view block) {
  const size_t begin = block.find(": ") + 2;
  return is_call(block) && JsonDocument::parse(block.substr(begin), "arguments").ok();
}

std::vector<std::string> whole_calls(const Answer& answer) {
  std::vector<std::string> calls;
  std::ranges::copy_if(answer.blocks, std::back_inserter(calls), is_whole_call);
  return calls;
}

std::string text_of(const Answer& answer) {
  std::string text;
  for (const std::string& block : answer.blocks) {
    if (block.starts_with("text: ")) text += block.substr(6);
  }
  return text;
}

// A limit of tokens ends the text anywhere. A response that is whole has only whole calls, and the
// text of a call that is cut. A stream that has begun this call ends it there; it differs in
// nothing else.
TEST_P(DialectWriters, ACallThatALimitHasCutIsText) {
  int num_cut = 0;
  for_each_dialect_case([&](const OutputParserConfig& config, const DialectCase& c) {
    const std::vector<std::string> complete = whole_calls(whole(config, c.text));
    for (const size_t size : character_places(c.text)) {
      const std::string text = c.text.substr(0, size);
      const Answer answer = whole(config, text, FinishReason::kLength);
      const Answer stream = streamed(config, text, character_places(text), FinishReason::kLength);
      SCOPED_TRACE(text);
      const std::vector<std::string> calls = whole_calls(answer);
      ASSERT_EQ(calls.size(), static_cast<size_t>(std::ranges::count_if(answer.blocks, is_call)));
      for (size_t i = 0; c.has_prefixes && i < calls.size(); ++i) {
        ASSERT_EQ(calls[i], complete.at(i));
      }
      ASSERT_EQ(stream.finish, answer.finish);
      if (stream == answer) continue;
      ++num_cut;
      ASSERT_NE(GetParam(), Api::kOllama);  // its streams have only whole calls
      ASSERT_EQ(whole_calls(stream), calls);
      ASSERT_TRUE(std::ranges::any_of(
          stream.blocks,
          [](const std::string& block) { return is_call(block) && !is_whole_call(block); }))
          << show(stream) << "\n--- but whole ---\n"
          << show(answer);
      ASSERT_THAT(text_of(answer), ::testing::StartsWith(text_of(stream)));
    }
  });
  EXPECT_EQ(num_cut > 0, GetParam() != Api::kOllama);
}

// The client gets the text of a list that is forced, by a grammar of the dialect or without one,
// and that a limit cuts before its first name.
TEST_P(DialectWriters, AForcedListThatALimitHasCutIsText) {
  OutputParserConfig config;
  config.tool_names = {"f"};
  config.tool_schemas = {"{}"};
  const Answer none = whole(config, "", FinishReason::kLength);
  const auto expect_text = [&](std::string_view all) {
    for (size_t size = 1; size <= all.size(); ++size) {
      const std::string text(all.substr(0, size));
      SCOPED_TRACE(text);
      const Answer answer = whole(config, text, FinishReason::kLength);
      EXPECT_EQ(text_of(answer), text);
      EXPECT_EQ(answer.blocks.size(), 1U) << show(answer);
      EXPECT_EQ(answer.finish, none.finish);
      EXPECT_EQ(show(streamed(config, text, character_places(text), FinishReason::kLength)),
                show(answer));
    }
  };
  config.tool_call_parser = "hermes";
  expect_text(R"(<tool_call>{"name":)");
  config.tool_call_parser = "";
  config.forced = ForcedCall::kAny;
  expect_text(R"([{"name":)");
}

INSTANTIATE_TEST_SUITE_P(Api, DialectWriters, kAllApis, name_of_api);

}  // namespace
}  // namespace quire::server
