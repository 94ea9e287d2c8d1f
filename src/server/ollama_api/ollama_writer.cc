#include "server/ollama_api/ollama_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/utc_time.h"
#include "server/openai/response_fields.h"
#include "server/tools/output_blocks.h"

namespace quire::server {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = OutputBlock::Kind;

// The output, or a part of it.
struct Part {
  std::string thinking = {};
  std::string text = {};
  std::vector<OutputBlock> calls = {};
  int first_call = 0;  // index of calls[0] among all calls of the output
};

void write_calls(const Part& part, JsonWriter& json) {
  json.key("tool_calls");
  json.begin_array();
  int idx = part.first_call;
  for (const OutputBlock& call : part.calls) {
    json.begin_object();
    json.field("id", call.call_id);
    json.key("function");
    json.begin_object();
    json.field("index", idx++);
    json.field("name", call.call_name);
    json.key("arguments");
    json.raw(in_one_line(call.text));
    json.end_object();
    json.end_object();
  }
  json.end_array();
}

// Writes the members that every object has, up to `done`.
void write_part(OllamaUse use, std::string_view model, const Part& part, bool is_done,
                JsonWriter& json) {
  json.field("model", model);
  json.field("created_at", utc_time(std::chrono::system_clock::now()));
  const bool is_chat = use == OllamaUse::kChat;
  if (is_chat) {
    json.key("message");
    json.begin_object();
    json.field("role", "assistant");
    json.field("content", part.text);
  } else {
    json.field("response", part.text);
  }
  if (!part.thinking.empty()) json.field("thinking", part.thinking);
  if (!part.calls.empty()) write_calls(part, json);
  if (is_chat) json.end_object();
  json.field("done", is_done);
}

class OllamaWriter final : public ResponseWriter {
 public:
  OllamaWriter(OllamaReply reply, ResponseInfo info, std::unique_ptr<OutputParser> parser)
      : reply_(std::move(reply)),
        info_(std::move(info)),
        parser_(std::move(parser)),
        usage_(info_.num_prompt_tokens) {}

  void add(int /*choice_idx*/, Output&& output, std::string& out) override {
    observe(output);
    MessageDeltas deltas = next_deltas(parser_.get(), output, usage_);
    if (reply_.num_logprobs) {
      token_ids_.insert(token_ids_.end(), output.token_ids.begin(), output.token_ids.end());
      std::move(output.logprobs.begin(), output.logprobs.end(), std::back_inserter(logprobs_));
    }
    for (MessageDelta& delta : deltas) {
      if (!reply_.shows_thinking) delta.reasoning.clear();
      blocks_.add(delta, *this, out);
    }
    if (output.finish_reason) finish_reason_ = *output.finish_reason;
  }

  void finish(std::string& out) override {
    blocks_.finish(*this, out);
    write_object(is_stream() ? Part() : whole(), true, out);
  }

  void fail(const ApiError& error, std::string& out) override {
    out += error_body(error, ErrorShape::kOllama);
    out += '\n';
  }

  std::string_view stream_type() const override { return kOllamaStreamType; }

 private:
  friend OutputBlocks;  // calls begin_block(), add_to_block() and end_block()

  bool is_stream() const { return reply_.is_stream; }

  void observe(const Output& output) {
    usage_.add(output, !first_output_);
    last_output_ = Clock::now();
    if (!first_output_) first_output_ = last_output_;
    if (output.first_scheduled) scheduled_ = *output.first_scheduled;
  }

  void begin_block(size_t /*idx*/, const OutputBlock& /*block*/, std::string& /*out*/) {}

  void add_to_block(size_t /*idx*/, const OutputBlock& block, std::string_view piece,
                    std::string& out) {
    if (!is_stream() || block.kind == Kind::kToolCall) return;
    Part part;
    (block.kind == Kind::kReasoning ? part.thinking : part.text) = piece;
    write_object(part, false, out);
  }

  void end_block(size_t /*idx*/, const OutputBlock& block, std::string& out) {
    if (!is_stream() || block.kind != Kind::kToolCall) return;
    write_object({.calls = {block}, .first_call = num_calls_++}, false, out);
  }

  Part whole() const {
    Part part;
    for (const OutputBlock& block : blocks_.blocks()) {
      switch (block.kind) {
        case Kind::kReasoning:
          part.thinking += block.text;
          break;
        case Kind::kText:
          part.text += block.text;
          break;
        case Kind::kToolCall:
          part.calls.push_back(block);
          break;
      }
    }
    return part;
  }

  void write_object(const Part& part, bool is_done, std::string& out) {
    JsonWriter json(out);
    json.begin_object();
    write_part(reply_.use, reply_.model, part, is_done, json);
    if (is_done) write_end(json);
    if (!token_ids_.empty()) write_logprobs(json);
    json.end_object();
    if (is_stream()) out += '\n';
  }

  // Tokens whose text is held back are written with the next object.
  void write_logprobs(JsonWriter& json) {
    std::vector<ScoredToken> tokens;
    append_scored(token_ids_, logprobs_, tokens);
    json.key("logprobs");
    write_scored_tokens(tokens, {.num_top = *reply_.num_logprobs, .decode = info_.decode}, json);
    token_ids_.clear();
    logprobs_.clear();
  }

  // Durations are nanoseconds.
  void write_end(JsonWriter& json) const {
    const auto write_duration = [&](const auto& name, Clock::time_point from,
                                    Clock::time_point to) {
      const auto duration = std::chrono::duration_cast<std::chrono::nanoseconds>(to - from);
      json.field(name, std::max<int64_t>(duration.count(), 0));
    };
    const Clock::time_point first = first_output_.value_or(reply_.arrived);
    json.field("done_reason", finish_reason_ == FinishReason::kLength ? "length" : "stop");
    write_duration("total_duration", reply_.arrived - reply_.load_time, Clock::now());
    json.field("load_duration", reply_.load_time.count());
    json.field("prompt_eval_count", usage_.now().num_prompt_tokens);
    write_duration("prompt_eval_duration", scheduled_.value_or(first), first);
    json.field("eval_count", usage_.now().num_completion_tokens);
    write_duration("eval_duration", first, last_output_);
  }

  const OllamaReply reply_;
  const ResponseInfo info_;
  const std::unique_ptr<OutputParser> parser_;  // null: the whole text is content
  UsageCount usage_;
  OutputBlocks blocks_;
  int num_calls_ = 0;               // calls that the stream has sent
  std::vector<int32_t> token_ids_;  // not yet in an object; only with logprobs
  std::vector<PositionLogprobs> logprobs_;
  FinishReason finish_reason_ = FinishReason::kStop;
  std::optional<Clock::time_point> scheduled_;
  std::optional<Clock::time_point> first_output_;
  Clock::time_point last_output_;
};

}  // namespace

Result<std::unique_ptr<ResponseWriter>> make_ollama_writer(OllamaReply reply, ResponseInfo info) {
  info.parser.holds_calls = true;  // also of a stream, because arguments are an object
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<OutputParser> parser, make_parser_if_needed(info.parser));
  return std::unique_ptr<ResponseWriter>(
      std::make_unique<OllamaWriter>(std::move(reply), std::move(info), std::move(parser)));
}

std::string tagged_name(const std::string& name) {
  const std::string_view last = std::string_view(name).substr(name.rfind('/') + 1);  // npos + 1: 0
  return last.find(':') == std::string_view::npos ? name + ":latest" : name;
}

std::string ollama_without_prompt(OllamaUse use, std::string_view model, std::string_view reason) {
  JsonWriter json;
  json.begin_object();
  write_part(use, model, {}, true, json);
  json.field("done_reason", reason);
  json.end_object();
  return json.take();
}

std::optional<ApiError> pull_for_ollama(std::string_view body, const RequestLimits& limits,
                                        std::string_view names,
                                        const std::function<bool(std::string_view)>& is_served,
                                        OllamaPulled& out) {
  const Parsed<OllamaPull> parsed = parse_ollama_pull(body, limits);
  if (parsed.error) return parsed.error;
  const auto& [model, is_stream] = parsed.request;
  if (!is_served(model)) {
    return make_api_error(
        404,
        fmt::format("the model '{}' is not served; expected one of {}. The server downloads no "
                    "models: run 'quire pull NAME' on its machine, then start it with that model",
                    clipped(model), names),
        "model", "model_not_found");
  }
  const std::string end = R"({"status":"success"})";
  out = is_stream
            ? OllamaPulled{"{\"status\":\"pulling manifest\"}\n" + end + "\n", kOllamaStreamType}
            : OllamaPulled{end, "application/json"};
  return std::nullopt;
}

}  // namespace quire::server
