// Measures the cost of writing a streamed token: a chunk of one token for completions and chats,
// with and without log probabilities.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/machine.h"
#include "server/openai/responses.h"

namespace {

using namespace quire;
using namespace quire::server;

constexpr int kNumChunks = 1'000'000;

template <typename Write>
void measure(const char* name, Write write) {
  std::string out;
  size_t num_bytes = 0;
  const int64_t start = process_cpu_ns();
  for (int i = 0; i < kNumChunks; ++i) {
    out.assign(kSsePrefix);
    write(out);
    out += kSseSuffix;
    num_bytes += out.size();
  }
  const double spent_ns = static_cast<double>(process_cpu_ns() - start);
  fmt::print("{:<34} {:6.0f} ns per chunk of {} bytes\n", name, spent_ns / kNumChunks,
             num_bytes / kNumChunks);
}

Output one_token() {
  Output output;
  output.text = " token";
  output.token_ids = {17};
  return output;
}

}  // namespace

int main() {
  const ResponseHeader header = {.id = "chatcmpl-0123456789abcdef0123456789abcdef",
                                 .model = "meta-llama/Llama-3.1-8B-Instruct",
                                 .created = 1'700'000'000};
  const std::string completion_head = completion_chunk_head(header);
  const std::string chat_head = chat_chunk_head(header);
  const DecodeToken decode = [](int32_t id) { return id == 17 ? " token" : " other"; };
  const Usage usage = {.num_prompt_tokens = 1000, .num_completion_tokens = 100};
  CompletionRequest completion;
  ChatRequest chat;
  ChoiceStream choice;
  Output output = one_token();
  std::unique_ptr<OutputParser> parser;
  OutputParserConfig config;
  config.tool_call_parser = "hermes";
  config.tool_names = {"f"};
  if (auto made = make_output_parser(config); made.ok()) parser = std::move(*made);

  measure("completion", [&](std::string& out) {
    completion_chunk(completion_head, completion, choice, output, nullptr, decode, out);
  });
  const auto chunks = [&](const Usage* of_chunk, std::string& out) {
    for (const MessageDelta& delta : parser->feed(output.text)) {
      chat_chunk(chat_head, chat, choice, delta, output, of_chunk, decode, out);
    }
  };
  measure("chat", [&](std::string& out) { chunks(nullptr, out); });
  measure("chat with usage", [&](std::string& out) { chunks(&usage, out); });
  output.logprobs = {{{17, -0.25F, 1},
                      {17, -0.25F, 1},
                      {3, -1.5F, 2},
                      {4, -2.5F, 3},
                      {5, -3.5F, 4},
                      {6, -4.5F, 5}}};
  completion.engine_request.sampling.logprobs = 5;
  chat.engine_request.sampling.logprobs = 5;
  measure("completion with 5 logprobs", [&](std::string& out) {
    completion_chunk(completion_head, completion, choice, output, nullptr, decode, out);
  });
  measure("chat with 5 logprobs", [&](std::string& out) { chunks(nullptr, out); });
  return 0;
}
