#include "server/responses_api/responses_writer.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/openai/response_fields.h"
#include "server/openai/tool_kinds.h"
#include "server/tools/output_blocks.h"

namespace quire::server {
namespace {

using Kind = OutputBlock::Kind;

constexpr std::string_view kIdPrefix = "resp_";

// The tokens of a block of text.
struct TokenLogprobs {
  std::vector<int32_t> ids = {};
  std::vector<PositionLogprobs> positions = {};

  void append(TokenLogprobs&& other) {
    ids.insert(ids.end(), other.ids.begin(), other.ids.end());
    for (PositionLogprobs& position : other.positions) positions.push_back(std::move(position));
  }
};

// The part of a response that changes while it is generated.
struct Progress {
  std::string_view status = "in_progress";
  bool has_output = false;          // false: nothing is generated yet
  const Usage* usage = nullptr;     // null: not known yet
  const ApiError* error = nullptr;  // null: none
};

void write_number(float number, JsonWriter& json) {
  json.raw(fmt::format("{}", number));
}

void write_usage(const Usage& usage, JsonWriter& json) {
  json.begin_object();
  json.field("input_tokens", usage.num_prompt_tokens);
  json.key("input_tokens_details");
  json.begin_object();
  json.field("cached_tokens", usage.num_cached_tokens);
  const bool is_cached = usage.cache_miss != CacheMiss::kDisabled;
  json.field("cache_write_tokens",
             is_cached ? usage.num_prompt_tokens - usage.num_cached_tokens : 0);
  if (usage.cache_miss != CacheMiss::kNone) {
    json.field("cache_miss_cause", cache_miss_name(usage.cache_miss));
  }
  json.end_object();
  json.field("output_tokens", usage.num_completion_tokens);
  json.key("output_tokens_details");
  json.begin_object();
  json.field("reasoning_tokens", usage.num_reasoning_tokens);
  json.end_object();
  json.field("total_tokens", int64_t{usage.num_prompt_tokens} + usage.num_completion_tokens);
  json.end_object();
}

// Returns the code of OpenAI's response.error for an error after the stream has started.
std::string_view failure_code(const ApiError& error) {
  if (error.http_status == 429) return "rate_limit_exceeded";
  return error.http_status < 500 ? "invalid_prompt" : "server_error";
}

class ResponsesWriter final : public ResponseWriter {
 public:
  ResponsesWriter(ResponsesRequest request, ResponseInfo info, StoreResponse store,
                  std::unique_ptr<OutputParser> parser)
      : request_(std::move(request)),
        info_(std::move(info)),
        store_(std::move(store)),
        parser_(std::move(parser)),
        usage_(info_.num_prompt_tokens) {}

  void add(int /*choice_idx*/, Output&& output, std::string& out) override {
    usage_.add(output, !has_started_);
    if (!has_started_) start(out);
    if (output.finish_reason) finish_reason_ = *output.finish_reason;
    const MessageDeltas deltas = next_deltas(parser_.get(), output, usage_);
    if (!output.logprobs.empty()) {
      new_tokens_.append({std::move(output.token_ids), std::move(output.logprobs)});
    }
    for (const MessageDelta& delta : deltas) blocks_.add(delta, *this, out);
    // Tokens without a delta may still become text, such as the first half of a character.
    if (!deltas.empty()) new_tokens_ = {};
  }

  void finish(std::string& out) override {
    is_cut_ = finish_reason_ == FinishReason::kLength;
    blocks_.finish(*this, out);
    const std::string_view status = is_cut_ ? "incomplete" : "completed";
    JsonWriter json;
    write_response({.status = status, .has_output = true, .usage = &usage_.now()}, json);
    std::string body = json.take();
    if (is_stream()) {
      write_event(is_cut_ ? "response.incomplete" : "response.completed", out,
                  [&](JsonWriter& event) {
                    event.key("response");
                    event.raw(body);
                  });
    } else {
      out += body;
    }
    if (request_.stores) store(std::move(body));
  }

  void fail(const ApiError& error, std::string& out) override {
    is_cut_ = true;
    write_event("error", out, [&](JsonWriter& json) {
      json.key("code");
      json.value_or_null(error.code.empty() ? failure_code(error) : error.code);
      json.field("message", error.message);
      json.key("param");
      json.value_or_null(error.param);
    });
    write_event("response.failed", out, [&](JsonWriter& json) {
      json.key("response");
      write_response(
          {.status = "failed", .has_output = true, .usage = &usage_.now(), .error = &error}, json);
    });
  }

 private:
  bool is_stream() const { return request_.chat.streaming.stream; }

  friend OutputBlocks;  // calls begin_block(), add_to_block() and end_block()

  template <typename Write>
  void write_event(std::string_view type, std::string& out, const Write& write) {
    append_typed_event(type, out, [&](JsonWriter& json) {
      json.field("sequence_number", num_events_++);
      write(json);
    });
  }

  void start(std::string& out) {
    has_started_ = true;
    if (!is_stream()) return;
    for (const std::string_view type : {"response.created", "response.in_progress"}) {
      write_event(type, out, [&](JsonWriter& json) {
        json.key("response");
        write_response({}, json);
      });
    }
  }

  bool is_custom(const OutputBlock& block) const {
    return block.kind == Kind::kToolCall && is_custom_tool(request_.chat, block.call_name);
  }

  std::string item_id(size_t idx, const OutputBlock& block) const {
    const std::string_view prefix = block.kind == Kind::kText        ? "msg"
                                    : block.kind == Kind::kReasoning ? "rs"
                                    : is_custom(block)               ? "ctc"
                                                                     : "fc";
    return fmt::format("{}_{}_{}", prefix, info_.header.id.substr(kIdPrefix.size()), idx);
  }

  void write_place(size_t idx, const OutputBlock& block, JsonWriter& json) const {
    json.field("item_id", item_id(idx, block));
    json.field("output_index", idx);
    if (block.kind != Kind::kToolCall) json.field("content_index", 0);
  }

  void write_item_event(std::string_view type, size_t idx, const OutputBlock& block,
                        std::string_view status, std::string& out) {
    write_event(type, out, [&](JsonWriter& json) {
      json.field("output_index", idx);
      json.key("item");
      write_item(idx, block, status, json);
    });
  }

  void write_part_event(std::string_view type, size_t idx, const OutputBlock& block,
                        std::string& out) {
    write_event(type, out, [&](JsonWriter& json) {
      write_place(idx, block, json);
      json.key("part");
      write_part(idx, block, json);
    });
  }

  void write_input_event(std::string_view step, std::string_view field, size_t idx,
                         const OutputBlock& block, std::string& out) {
    const std::string type = fmt::format("response.custom_tool_call_input.{}", step);
    write_event(type, out, [&](JsonWriter& json) {
      write_place(idx, block, json);
      json.field(field, custom_input(block.text));
    });
  }

  void begin_block(size_t idx, const OutputBlock& block, std::string& out) {
    tokens_.resize(idx + 1);
    if (!is_stream()) return;
    write_item_event("response.output_item.added", idx, block, "in_progress", out);
    if (block.kind == Kind::kToolCall) return;
    write_part_event("response.content_part.added", idx, block, out);
  }

  void add_to_block(size_t idx, const OutputBlock& block, std::string_view piece,
                    std::string& out) {
    TokenLogprobs tokens = std::exchange(new_tokens_, {});
    // The text of a custom call is known when its arguments are whole.
    if (is_stream() && !is_custom(block)) write_delta(idx, block, piece, tokens, out);
    tokens_[idx].append(std::move(tokens));
  }

  void write_delta(size_t idx, const OutputBlock& block, std::string_view piece,
                   const TokenLogprobs& tokens, std::string& out) {
    const std::string_view type = block.kind == Kind::kText ? "response.output_text.delta"
                                  : block.kind == Kind::kReasoning
                                      ? "response.reasoning_text.delta"
                                      : "response.function_call_arguments.delta";
    write_event(type, out, [&](JsonWriter& json) {
      write_place(idx, block, json);
      json.field("delta", piece);
      if (block.kind == Kind::kText) write_logprobs(tokens, json);
    });
  }

  void end_block(size_t idx, const OutputBlock& block, std::string& out) {
    if (!is_stream()) return;
    if (is_custom(block)) {
      write_input_event("delta", "delta", idx, block, out);
      write_input_event("done", "input", idx, block, out);
    } else if (block.kind == Kind::kToolCall) {
      write_event("response.function_call_arguments.done", out, [&](JsonWriter& json) {
        write_place(idx, block, json);
        json.field("name", block.call_name);
        json.field("arguments", block.text);
      });
    } else {
      const bool is_text = block.kind == Kind::kText;
      write_event(is_text ? "response.output_text.done" : "response.reasoning_text.done", out,
                  [&](JsonWriter& json) {
                    write_place(idx, block, json);
                    json.field("text", block.text);
                    if (is_text) write_logprobs(tokens_[idx], json);
                  });
      write_part_event("response.content_part.done", idx, block, out);
    }
    write_item_event("response.output_item.done", idx, block, end_status(idx), out);
  }

  // A limit cuts the last item of a response; a call may also end before its arguments are whole.
  std::string_view end_status(size_t idx) const {
    const std::vector<OutputBlock>& blocks = blocks_.blocks();
    const bool is_cut = blocks[idx].is_cut || (is_cut_ && idx + 1 == blocks.size());
    return is_cut ? "incomplete" : "completed";
  }

  void write_logprobs(const TokenLogprobs& tokens, JsonWriter& json) const {
    std::vector<ScoredToken> scored;
    append_scored(tokens.ids, tokens.positions, scored);
    json.key("logprobs");
    write_scored_tokens(scored, {request_.top_logprobs, false, info_.decode}, json);
  }

  void write_part(size_t idx, const OutputBlock& block, JsonWriter& json) const {
    json.begin_object();
    if (block.kind == Kind::kText) {
      json.field("type", "output_text");
      json.key("annotations");
      json.raw("[]");
      write_logprobs(tokens_[idx], json);
    } else {
      json.field("type", "reasoning_text");
    }
    json.field("text", block.text);
    json.end_object();
  }

  // An item in progress is written without its parts and their text.
  void write_item(size_t idx, const OutputBlock& block, std::string_view status,
                  JsonWriter& json) const {
    const bool is_done = status != "in_progress";
    json.begin_object();
    json.field("id", item_id(idx, block));
    if (block.kind == Kind::kToolCall) {
      json.field("type", is_custom(block) ? "custom_tool_call" : "function_call");
      json.field("status", status);
      json.field("call_id", block.call_id);
      json.field("name", block.call_name);
      if (is_custom(block)) {
        json.field("input", is_done ? custom_input(block.text) : "");
      } else {
        json.field("arguments", block.text);
      }
      return json.end_object();
    }
    json.field("type", block.kind == Kind::kText ? "message" : "reasoning");
    json.field("status", status);
    if (block.kind == Kind::kText) {
      json.field("role", "assistant");
    } else {
      json.key("summary");
      json.raw("[]");
      if (request_.shows_encrypted_reasoning && is_done) {
        json.field("encrypted_content", std::string(kReasoningPrefix) + block.text);
      }
    }
    json.key("content");
    json.begin_array();
    if (is_done) write_part(idx, block, json);
    json.end_array();
    json.end_object();
  }

  void write_response(const Progress& progress, JsonWriter& json) const {
    const ChatRequest& chat = request_.chat;
    json.begin_object();
    json.field("id", info_.header.id);
    json.field("object", "response");
    json.field("created_at", info_.header.created);
    json.field("status", progress.status);
    json.field("background", false);
    write_error(progress.error, json);
    json.key("incomplete_details");
    if (progress.status == "incomplete") {
      json.raw(R"({"reason":"max_output_tokens"})");
    } else {
      json.null();
    }
    write_json("instructions", request_.instructions, json);
    write_json("max_output_tokens", request_.max_output_tokens, json);
    json.field("model", info_.header.model);
    json.key("output");
    json.begin_array();
    for (size_t i = 0; progress.has_output && i < blocks_.blocks().size(); ++i) {
      write_item(i, blocks_.blocks()[i], end_status(i), json);
    }
    json.end_array();
    json.field("parallel_tool_calls", chat.parallel_tool_calls);
    json.key("previous_response_id");
    json.value_or_null(request_.previous_response_id);
    write_json("reasoning", request_.reasoning, json);
    json.field("store", request_.stores);
    json.key("temperature");
    write_number(chat.engine_request.sampling.temperature, json);
    write_json("text", request_.text, json);
    write_json("tool_choice", request_.tool_choice, json);
    write_json("tools", request_.tools, json);
    json.field("top_logprobs", request_.top_logprobs);
    json.key("top_p");
    write_number(chat.engine_request.sampling.top_p, json);
    json.field("truncation", "disabled");
    json.key("usage");
    if (progress.usage == nullptr) {
      json.null();
    } else {
      write_usage(*progress.usage, json);
    }
    write_json("metadata", request_.metadata, json);
    json.end_object();
  }

  // Writes a field whose value is JSON already.
  static void write_json(std::string_view name, std::string_view value, JsonWriter& json) {
    json.key(name);
    json.raw(value);
  }

  static void write_error(const ApiError* error, JsonWriter& json) {
    json.key("error");
    if (error == nullptr) return json.null();
    json.begin_object();
    json.field("code", failure_code(*error));
    json.field("message", error->message);
    json.end_object();
  }

  void store(std::string&& body) {
    StoredResponse response = {
        .items = std::move(request_.items), .output = {}, .body = std::move(body)};
    for (size_t i = 0; i < blocks_.blocks().size(); ++i) {
      JsonWriter json;
      write_item(i, blocks_.blocks()[i], end_status(i), json);
      response.output.push_back(std::make_shared<const std::string>(json.take()));
    }
    store_(std::move(response));
  }

  ResponsesRequest request_;
  const ResponseInfo info_;
  const StoreResponse store_;
  const std::unique_ptr<OutputParser> parser_;  // null: the whole text is content
  UsageCount usage_;
  OutputBlocks blocks_;
  std::vector<TokenLogprobs> tokens_;  // one per block
  TokenLogprobs new_tokens_;           // not in a block yet
  FinishReason finish_reason_ = FinishReason::kStop;
  bool has_started_ = false;
  bool is_cut_ = false;
  int64_t num_events_ = 0;
};

}  // namespace

Result<std::unique_ptr<ResponseWriter>> make_responses_writer(ResponsesRequest request,
                                                              ResponseInfo info,
                                                              StoreResponse store) {
  hold_calls(request.chat, info.parser);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<OutputParser> parser, make_parser_if_needed(info.parser));
  return std::unique_ptr<ResponseWriter>(std::make_unique<ResponsesWriter>(
      std::move(request), std::move(info), std::move(store), std::move(parser)));
}

}  // namespace quire::server
