#include "server/openai/response_writer.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/machine.h"

namespace quire::server {
namespace {

constexpr int kNumAnswers = 128;

// Returns the CPU time to make the writer of a request with echo.
int64_t ns_to_make_echo_writer(bool is_stream, const std::string& prompt) {
  CompletionRequest call;
  call.echo = true;
  call.streaming.stream = is_stream;
  call.engine_request.sampling.n = kNumAnswers;
  call.prompts.resize(1);
  ResponseInfo context;
  context.prompt_texts = {prompt};
  std::unique_ptr<ResponseWriter> writer;
  return cpu_ns_of([&] { writer = make_response_writer(std::move(call), std::move(context)); });
}

TEST(ResponseWriter, KeepsThePromptsTextOnce) {
  const std::string prompt(size_t{8} << 20, 'a');
  std::string copy;
  const int64_t of_copy = cpu_ns_of([&] { copy = prompt; });
  for (const bool is_stream : {false, true}) {
    EXPECT_LT(ns_to_make_echo_writer(is_stream, prompt), 4 * of_copy)
        << "the prompt's text is copied per answer";
  }
}

TEST(ResponseWriter, EchoesThePromptInEveryChoice) {
  for (const bool is_stream : {false, true}) {
    CompletionRequest call;
    call.echo = true;
    call.streaming.stream = is_stream;
    call.engine_request.sampling.n = 2;
    call.prompts.resize(2);
    ResponseInfo context;
    context.prompt_texts = {"Hi ", "So "};
    const auto writer = make_response_writer(std::move(call), std::move(context));
    std::string out;
    for (int i = 0; i < 4; ++i) {
      Output output;
      output.text = std::to_string(i);
      output.finish_reason = FinishReason::kStop;
      writer->add(i, std::move(output), out);
    }
    writer->finish(out);
    for (const char* text : {"\"Hi 0\"", "\"Hi 1\"", "\"So 2\"", "\"So 3\""}) {
      EXPECT_NE(out.find(text), std::string::npos) << text << " in " << out;
    }
  }
}

}  // namespace
}  // namespace quire::server
