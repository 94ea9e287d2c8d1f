// Reads the answers of the four APIs with conversations.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "server/tools/output_parser.h"

namespace quire::server {

enum class Api { kChat, kResponses, kMessages, kOllama };

inline const auto kAllApis =
    ::testing::Values(Api::kChat, Api::kResponses, Api::kMessages, Api::kOllama);
inline std::string name_of_api(const ::testing::TestParamInfo<Api>& info) {
  constexpr const char* kNames[] = {"Chat", "Responses", "Messages", "Ollama"};
  return kNames[static_cast<size_t>(info.param)];
}

// The parts of an answer that a client reads. The blocks are those of the APIs that have an order of
// reasoning, texts and calls; otherwise there is one block per kind.
struct Answer {
  std::vector<std::string> blocks = {};
  std::string finish = {};

  friend bool operator==(const Answer&, const Answer&) = default;
};

inline std::string show(const Answer& answer) {
  return fmt::format("{}\nfinish: {}", fmt::join(answer.blocks, "\n"), answer.finish);
}

// A block as it grows in a stream.
struct GrowingBlock {
  std::string kind;  // "reasoning", "text" or the name of a call
  std::string text = {};
  bool is_call = false;

  std::string shown() const { return fmt::format("{}: {}", kind, text); }
};

inline std::string text_at(simdjson::dom::element object, std::string_view name) {
  std::string_view text;
  return object[name].get_string().get(text) ? std::string() : std::string(text);
}

inline std::string json_at(simdjson::dom::element object, std::string_view name) {
  simdjson::dom::element value;
  return object[name].get(value) ? std::string() : std::string(simdjson::minify(value));
}

// The JSON without white space between its tokens; the text itself if it is not JSON.
inline std::string minified(const std::string& text) {
  const auto document = JsonDocument::parse(text, "arguments");
  return document.ok() ? std::string(simdjson::minify(document->root())) : text;
}

// Collects the blocks of an answer, and leaves out texts that are empty.
class AnswerReader {
 public:
  GrowingBlock& add(std::string kind, bool is_call = false) {
    return blocks_.emplace_back(GrowingBlock{.kind = std::move(kind), .is_call = is_call});
  }
  // Adds to the block of a kind that there is only once.
  void append(std::string_view kind, const std::string& text) {
    const auto found = std::ranges::find_if(
        blocks_, [&](const GrowingBlock& block) { return !block.is_call && block.kind == kind; });
    (found == blocks_.end() ? add(std::string(kind)) : *found).text += text;
  }
  GrowingBlock& block(size_t idx) { return blocks_.at(idx); }
  GrowingBlock& call(size_t idx) {
    for (GrowingBlock& block : blocks_) {
      if (block.is_call && idx-- == 0) return block;
    }
    return add("?", true);
  }
  size_t num_calls() const {
    return static_cast<size_t>(std::ranges::count(blocks_, true, &GrowingBlock::is_call));
  }
  // With `is_sorted`, the answer has no order of its kinds.
  Answer take(std::string finish, bool is_sorted) {
    if (is_sorted) {
      std::ranges::stable_sort(blocks_, {}, [](const GrowingBlock& block) {
        return block.is_call ? 2 : block.kind == "text" ? 1 : 0;
      });
    }
    Answer answer = {.finish = std::move(finish)};
    for (GrowingBlock& block : blocks_) {
      if (block.is_call) block.text = minified(block.text);
      if (block.is_call || !block.text.empty()) answer.blocks.push_back(block.shown());
    }
    return answer;
  }

 private:
  std::vector<GrowingBlock> blocks_;
};

// The blocks of a message, without their order.
inline std::vector<std::string> blocks_of(const ParsedMessage& message) {
  AnswerReader reader;
  reader.append("reasoning", message.reasoning);
  reader.append("text", message.content);
  for (const ToolCall& call : message.tool_calls) reader.add(call.name, true).text = call.arguments;
  return reader.take("", true).blocks;
}

inline void read_chat_message(simdjson::dom::element message, AnswerReader& reader) {
  reader.append("reasoning", text_at(message, "reasoning"));
  reader.append("text", text_at(message, "content"));
  simdjson::dom::array calls;
  if (message["tool_calls"].get(calls)) return;
  size_t position = 0;
  for (const simdjson::dom::element call : calls) {
    uint64_t given = 0;
    const size_t idx = call["index"].get(given) ? position : given;
    ++position;
    if (idx >= reader.num_calls()) reader.add(text_at(call["function"].value(), "name"), true);
    reader.call(idx).text += text_at(call["function"].value(), "arguments");
  }
}

inline Answer read_whole(Api api, const std::string& body) {
  const auto document = JsonDocument::parse(body, "body");
  EXPECT_TRUE(document.ok()) << body;
  if (!document.ok()) return {};
  const simdjson::dom::element root = document->root();
  AnswerReader reader;
  switch (api) {
    case Api::kChat: {
      const simdjson::dom::element choice = root["choices"].at(0).value();
      read_chat_message(choice["message"].value(), reader);
      return reader.take(text_at(choice, "finish_reason"), true);
    }
    case Api::kResponses:
      for (const simdjson::dom::element item : root["output"].get_array()) {
        const std::string type = text_at(item, "type");
        if (type == "function_call") {
          reader.add(text_at(item, "name"), true).text = text_at(item, "arguments");
        } else {
          reader.add(type == "message" ? "text" : "reasoning").text =
              text_at(item["content"].at(0).value(), "text");
        }
      }
      return reader.take(text_at(root, "status"), false);
    case Api::kMessages:
      for (const simdjson::dom::element block : root["content"].get_array()) {
        const std::string type = text_at(block, "type");
        if (type == "tool_use") {
          reader.add(text_at(block, "name"), true).text = json_at(block, "input");
        } else {
          reader.add(type == "text" ? "text" : "reasoning").text =
              text_at(block, type == "text" ? "text" : "thinking");
        }
      }
      return reader.take(text_at(root, "stop_reason"), false);
    case Api::kOllama: {
      const simdjson::dom::element message = root["message"].value();
      reader.append("reasoning", text_at(message, "thinking"));
      reader.append("text", text_at(message, "content"));
      simdjson::dom::array calls;
      if (!message["tool_calls"].get(calls)) {
        for (const simdjson::dom::element call : calls) {
          const simdjson::dom::element function = call["function"].value();
          reader.add(text_at(function, "name"), true).text = json_at(function, "arguments");
        }
      }
      return reader.take(text_at(root, "done_reason"), true);
    }
  }
  return {};
}

// Reads the deltas alone, not the repetitions at the end of a block.
inline void read_event(Api api, simdjson::dom::element event, AnswerReader& reader,
                       std::string& finish) {
  const std::string type = text_at(event, "type");
  switch (api) {
    case Api::kChat: {
      simdjson::dom::element choice;
      if (event["choices"].at(0).get(choice)) return;
      read_chat_message(choice["delta"].value(), reader);
      finish += text_at(choice, "finish_reason");
      return;
    }
    case Api::kResponses:
      if (type == "response.output_item.added") {
        const simdjson::dom::element item = event["item"].value();
        const std::string kind = text_at(item, "type");
        const bool is_call = kind == "function_call";
        reader.add(is_call             ? text_at(item, "name")
                   : kind == "message" ? "text"
                                       : "reasoning",
                   is_call);
      } else if (type.ends_with(".delta")) {
        reader.block(event["output_index"].get_uint64().value()).text += text_at(event, "delta");
      } else if (type == "response.completed" || type == "response.incomplete") {
        finish = text_at(event["response"].value(), "status");
      }
      return;
    case Api::kMessages:
      if (type == "content_block_start") {
        const simdjson::dom::element block = event["content_block"].value();
        const std::string kind = text_at(block, "type");
        const bool is_call = kind == "tool_use";
        reader.add(is_call          ? text_at(block, "name")
                   : kind == "text" ? "text"
                                    : "reasoning",
                   is_call);
      } else if (type == "content_block_delta") {
        const simdjson::dom::element delta = event["delta"].value();
        GrowingBlock& block = reader.block(event["index"].get_uint64().value());
        for (const char* const field : {"text", "thinking", "partial_json"}) {
          block.text += text_at(delta, field);
        }
      } else if (type == "message_delta") {
        finish = text_at(event["delta"].value(), "stop_reason");
      }
      return;
    case Api::kOllama: {
      const simdjson::dom::element message = event["message"].value();
      reader.append("reasoning", text_at(message, "thinking"));
      reader.append("text", text_at(message, "content"));
      simdjson::dom::array calls;
      if (!message["tool_calls"].get(calls)) {
        for (const simdjson::dom::element call : calls) {
          const simdjson::dom::element function = call["function"].value();
          reader.add(text_at(function, "name"), true).text = json_at(function, "arguments");
        }
      }
      finish = text_at(event, "done_reason");
      return;
    }
  }
}

inline Answer read_stream(Api api, std::string_view stream) {
  AnswerReader reader;
  std::string finish;
  simdjson::dom::parser parser;
  while (!stream.empty()) {
    const size_t end = std::min(stream.find('\n'), stream.size() - 1);
    std::string_view line = stream.substr(0, end);
    stream.remove_prefix(end + 1);
    if (api != Api::kOllama) {
      constexpr std::string_view kPrefix = "data: ";
      if (!line.starts_with(kPrefix)) continue;
      line.remove_prefix(kPrefix.size());
    }
    if (line == "[DONE]") continue;
    simdjson::dom::element event;
    const bool is_json = parser.parse(line.data(), line.size()).get(event) == simdjson::SUCCESS;
    EXPECT_TRUE(is_json) << line;
    if (is_json) read_event(api, event, reader, finish);
  }
  return reader.take(finish, api == Api::kChat || api == Api::kOllama);
}

// The places between the characters of a text. An output has whole characters.
inline std::vector<size_t> character_places(std::string_view text) {
  std::vector<size_t> places;
  for (size_t i = 1; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) places.push_back(i);
  }
  return places;
}

}  // namespace quire::server
