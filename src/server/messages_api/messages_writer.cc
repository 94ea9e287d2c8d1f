#include "server/messages_api/messages_writer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "server/tools/output_blocks.h"

namespace quire::server {
namespace {

using Kind = OutputBlock::Kind;

// Anthropic's input_tokens do not include the tokens from the cache.
void write_usage(const Usage& usage, JsonWriter& json) {
  json.key("usage");
  json.begin_object();
  json.field("input_tokens", usage.num_prompt_tokens - usage.num_cached_tokens);
  json.field("cache_creation_input_tokens", 0);
  json.field("cache_read_input_tokens", usage.num_cached_tokens);
  json.field("output_tokens", usage.num_completion_tokens);
  json.key("output_tokens_details");
  json.begin_object();
  json.field("thinking_tokens", usage.num_reasoning_tokens);
  json.end_object();
  json.end_object();
}

class MessagesWriter final : public ResponseWriter {
 public:
  MessagesWriter(ChatRequest request, ResponseInfo info, std::unique_ptr<OutputParser> parser)
      : request_(std::move(request)),
        info_(std::move(info)),
        parser_(std::move(parser)),
        usage_(info_.num_prompt_tokens) {}

  void add(int /*choice_idx*/, Output&& output, std::string& out) override {
    usage_.add(output, !has_started_);
    if (!has_started_) start(out);
    for (MessageDelta& delta : next_deltas(parser_.get(), output, usage_)) {
      if (!request_.include_reasoning) delta.reasoning.clear();
      blocks_.add(delta, *this, out);
    }
    if (!output.finish_reason) return;
    finish_reason_ = *output.finish_reason;
    stop_reason_ = std::move(output.stop_reason);
  }

  void finish(std::string& out) override {
    blocks_.finish(*this, out);
    if (!is_stream()) {
      JsonWriter json(out);
      return write_message(true, json);
    }
    append_typed_event("message_delta", out, [&](JsonWriter& json) {
      json.key("delta");
      json.begin_object();
      write_stop(true, json);
      json.end_object();
      write_usage(usage_.now(), json);
    });
    append_typed_event("message_stop", out, [](JsonWriter&) {});
  }

  void fail(const ApiError& error, std::string& out) override {
    out += "event: error\n";
    out += sse_event(error_body(error, ErrorShape::kAnthropic));
  }

 private:
  friend OutputBlocks;  // calls begin_block(), add_to_block() and end_block()

  bool is_stream() const { return request_.streaming.stream; }

  void start(std::string& out) {
    has_started_ = true;
    if (!is_stream()) return;
    append_typed_event("message_start", out, [&](JsonWriter& json) {
      json.key("message");
      write_message(false, json);
    });
    append_typed_event("ping", out, [](JsonWriter&) {});
  }

  void begin_block(size_t idx, const OutputBlock& block, std::string& out) {
    if (!is_stream()) return;
    append_typed_event("content_block_start", out, [&](JsonWriter& json) {
      json.field("index", idx);
      json.key("content_block");
      write_block(block, false, json);
    });
  }

  static void write_delta(size_t idx, std::string_view type, std::string_view field,
                          std::string_view piece, std::string& out) {
    append_typed_event("content_block_delta", out, [&](JsonWriter& json) {
      json.field("index", idx);
      json.key("delta");
      json.begin_object();
      json.field("type", type);
      json.field(field, piece);
      json.end_object();
    });
  }

  void add_to_block(size_t idx, const OutputBlock& block, std::string_view piece,
                    std::string& out) {
    if (!is_stream()) return;
    switch (block.kind) {
      case Kind::kText:
        return write_delta(idx, "text_delta", "text", piece, out);
      case Kind::kReasoning:
        return write_delta(idx, "thinking_delta", "thinking", piece, out);
      case Kind::kToolCall:
        return write_delta(idx, "input_json_delta", "partial_json", piece, out);
    }
  }

  void end_block(size_t idx, const OutputBlock& block, std::string& out) {
    if (!is_stream()) return;
    if (block.kind == Kind::kReasoning) {
      write_delta(idx, "signature_delta", "signature", signature(), out);
    }
    append_typed_event("content_block_stop", out,
                       [&](JsonWriter& json) { json.field("index", idx); });
  }

  // Clients send a block of thinking back with this signature, which the server ignores. It is not
  // empty, because some clients drop blocks without a signature.
  std::string_view signature() const { return info_.header.id; }

  // A block that begins has no text yet.
  void write_block(const OutputBlock& block, bool is_done, JsonWriter& json) const {
    json.begin_object();
    switch (block.kind) {
      case Kind::kText:
        json.field("type", "text");
        json.field("text", is_done ? std::string_view(block.text) : "");
        break;
      case Kind::kReasoning:
        json.field("type", "thinking");
        json.field("thinking", is_done ? std::string_view(block.text) : "");
        json.field("signature", is_done ? signature() : "");
        break;
      case Kind::kToolCall:
        json.field("type", "tool_use");
        json.field("id", block.call_id);
        json.field("name", block.call_name);
        json.key("input");
        json.raw(is_done ? in_one_line(block.text) : "{}");
        break;
    }
    json.end_object();
  }

  void write_message(bool is_done, JsonWriter& json) const {
    json.begin_object();
    json.field("id", info_.header.id);
    json.field("type", "message");
    json.field("role", "assistant");
    json.field("model", info_.header.model);
    json.key("content");
    json.begin_array();
    if (is_done) {
      for (const OutputBlock& block : blocks_.blocks()) write_block(block, true, json);
    }
    json.end_array();
    write_stop(is_done, json);
    write_usage(is_done ? usage_.now() : usage_at_start(), json);
    json.end_object();
  }

  Usage usage_at_start() const {
    Usage usage = usage_.now();
    usage.num_completion_tokens = 0;
    return usage;
  }

  bool is_stop_sequence() const {
    const std::vector<std::string>& stops = request_.engine_request.sampling.stop;
    return finish_reason_ == FinishReason::kStop &&
           std::find(stops.begin(), stops.end(), stop_reason_) != stops.end();
  }

  std::string_view anthropic_stop_reason() const {
    if (is_stop_sequence()) return "stop_sequence";
    if (finish_reason_ != FinishReason::kLength) {
      return blocks_.calls_tools() ? "tool_use" : "end_turn";
    }
    const bool is_at_limit =
        usage_.now().num_completion_tokens >= request_.engine_request.sampling.max_tokens;
    return is_at_limit ? "max_tokens" : "model_context_window_exceeded";
  }

  void write_stop(bool is_done, JsonWriter& json) const {
    json.key("stop_reason");
    json.value_or_null(is_done ? anthropic_stop_reason() : "");
    json.key("stop_sequence");
    json.value_or_null(is_done && is_stop_sequence() ? std::string_view(stop_reason_) : "");
  }

  const ChatRequest request_;
  const ResponseInfo info_;
  const std::unique_ptr<OutputParser> parser_;  // null: the whole text is content
  UsageCount usage_;
  OutputBlocks blocks_;
  FinishReason finish_reason_ = FinishReason::kStop;
  std::string stop_reason_;
  bool has_started_ = false;
};

}  // namespace

Result<std::unique_ptr<ResponseWriter>> make_messages_writer(ChatRequest request,
                                                             ResponseInfo info) {
  hold_calls(request, info.parser);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<OutputParser> parser, make_parser_if_needed(info.parser));
  return std::unique_ptr<ResponseWriter>(
      std::make_unique<MessagesWriter>(std::move(request), std::move(info), std::move(parser)));
}

}  // namespace quire::server
