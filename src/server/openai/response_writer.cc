#include "server/openai/response_writer.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace quire::server {
namespace {

void append_output(Output&& output, Choice& choice) {
  if (choice.token_ids.empty()) {
    choice.prompt_token_ids = std::move(output.prompt_token_ids);
    choice.prompt_logprobs = std::move(output.prompt_logprobs);
  }
  choice.text += output.text;
  choice.token_ids.insert(choice.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
  for (PositionLogprobs& logprobs : output.logprobs) choice.logprobs.push_back(std::move(logprobs));
  if (!output.finish_reason) return;
  choice.finish_reason = *output.finish_reason;
  choice.stop_reason = std::move(output.stop_reason);
}

// Moves the prompt's ids and log probabilities into a stream's choice if this is its first output.
// Returns whether it is.
bool take_prompt(Output& output, ChoiceStream& choice) {
  if (choice.has_started) return false;
  choice.prompt_token_ids = std::move(output.prompt_token_ids);
  choice.prompt_logprobs = std::move(output.prompt_logprobs);
  return true;
}

// Wraps the JSON that write(out) appends into one server-sent event.
template <typename Write>
void append_event(std::string& out, const Write& write) {
  out += kSsePrefix;
  write(out);
  out += kSseSuffix;
}

class CompletionWriter final : public ResponseWriter {
 public:
  CompletionWriter(CompletionRequest request, ResponseInfo info)
      : request_(std::move(request)),
        info_(std::move(info)),
        chunk_head_(completion_chunk_head(info_.header)),
        n_(request_.engine_request.sampling.n),
        usage_(info_.num_prompt_tokens) {
    const int num_choices = static_cast<int>(request_.prompts.size()) * n_;
    for (int i = 0; i < num_choices; ++i) {
      if (request_.streaming.stream) {
        streams_.push_back({.index = i, .prompt_text = prompt_text(i)});
      } else {
        choices_.push_back({.index = i, .prompt_text = prompt_text(i)});
      }
    }
  }

  void add(int choice_idx, Output&& output, std::string& out) override {
    count(choice_idx, output);
    const auto i = static_cast<size_t>(choice_idx);
    if (!request_.streaming.stream) return append_output(std::move(output), choices_[i]);
    const Usage* usage = request_.streaming.continuous_usage_stats ? &usage_.now() : nullptr;
    take_prompt(output, streams_[i]);
    append_event(out, [&](std::string& json) {
      completion_chunk(chunk_head_, request_, streams_[i], output, usage, info_.decode, json);
    });
  }

  void finish(std::string& out) override {
    if (!request_.streaming.stream) {
      out += completion_body(info_.header, request_, choices_, usage_.now(), info_.decode);
      return;
    }
    if (request_.streaming.include_usage) {
      append_event(out, [&](std::string& json) { usage_chunk(chunk_head_, usage_.now(), json); });
    }
    out += kSseDone;
  }

 private:
  // With echo_only, the one token that the engine generates is not counted.
  void count(int choice_idx, const Output& output) {
    const bool is_first_of_prompt = choice_idx % n_ == 0;
    if (!request_.echo_only) {
      usage_.add(output, is_first_of_prompt);
    } else if (is_first_of_prompt) {
      usage_.add_cached(output);
    }
  }
  // A view of info_, which the n choices of a prompt share.
  std::string_view prompt_text(int choice_idx) const {
    if (!request_.echo) return {};
    return info_.prompt_texts[static_cast<size_t>(choice_idx / n_)];
  }

  const CompletionRequest request_;
  const ResponseInfo info_;
  const std::string chunk_head_;
  const int n_;
  UsageCount usage_;
  std::vector<Choice> choices_;        // of a whole body
  std::vector<ChoiceStream> streams_;  // of a stream
};

// Joins the deltas of an output, because a chunk of a chat has no order of its parts.
MessageDelta joined(MessageDeltas deltas) {
  MessageDelta all;
  for (MessageDelta& delta : deltas) {
    all.reasoning += delta.reasoning;
    all.content += delta.content;
    std::ranges::move(delta.tool_calls, std::back_inserter(all.tool_calls));
    if (delta.cut != CutCall::kNone) all.cut = delta.cut;
  }
  return all;
}

void move_to(MessageDeltas& all, MessageDeltas deltas) {
  std::ranges::move(deltas, std::back_inserter(all));
}

using Parsers = std::vector<std::unique_ptr<OutputParser>>;  // one per choice; may be null

class ChatWriter final : public ResponseWriter {
 public:
  ChatWriter(ChatRequest request, ResponseInfo info, Parsers parsers)
      : request_(std::move(request)),
        info_(std::move(info)),
        chunk_head_(chat_chunk_head(info_.header)),
        usage_(info_.num_prompt_tokens),
        parsers_(std::move(parsers)) {
    for (int i = 0; i < request_.engine_request.sampling.n; ++i) {
      if (request_.streaming.stream) {
        streams_.push_back({.index = i});
      } else {
        choices_.push_back({.index = i});
      }
    }
  }

  void add(int choice_idx, Output&& output, std::string& out) override {
    usage_.add(output, choice_idx == 0);
    const auto i = static_cast<size_t>(choice_idx);
    if (request_.streaming.stream) return add_chunk(i, output, out);
    append(choices_[i].message, next_deltas(parsers_[i].get(), output, usage_));
    if (choice_idx > 0) output.prompt_logprobs = {};  // only the first choice's are shown
    append_output(std::move(output), choices_[i]);
  }

  void finish(std::string& out) override {
    if (!request_.streaming.stream) {
      out += chat_body(info_.header, request_, choices_, usage_.now(), info_.decode);
      return;
    }
    if (request_.streaming.include_usage) {
      append_event(out, [&](std::string& json) { usage_chunk(chunk_head_, usage_.now(), json); });
    }
    out += kSseDone;
  }

 private:
  void add_chunk(size_t i, Output& output, std::string& out) {
    const Usage* usage = request_.streaming.continuous_usage_stats ? &usage_.now() : nullptr;
    if (take_prompt(output, streams_[i])) {
      append_event(out, [&](std::string& json) {
        chat_role_chunk(chunk_head_, request_, streams_[i], usage, info_.decode, json);
      });
    }
    const MessageDelta delta = joined(next_deltas(parsers_[i].get(), output, usage_));
    if (!needs_chat_chunk(request_, delta, output)) return;
    append_event(out, [&](std::string& json) {
      chat_chunk(chunk_head_, request_, streams_[i], delta, output, usage, info_.decode, json);
    });
  }

  const ChatRequest request_;
  const ResponseInfo info_;
  const std::string chunk_head_;
  UsageCount usage_;
  Parsers parsers_;
  std::vector<Choice> choices_;        // of a whole body
  std::vector<ChoiceStream> streams_;  // of a stream
};

}  // namespace

void ResponseWriter::fail(const ApiError& error, std::string& out) {
  out += sse_event(error_body(error));
  out += kSseDone;
}

MessageDeltas next_deltas(OutputParser* parser, const Output& output, UsageCount& usage) {
  MessageDeltas deltas;
  if (parser == nullptr) {
    if (!output.text.empty()) deltas.push_back({.content = output.text});
    return deltas;
  }
  const std::string_view text = output.text;
  size_t at = 0;
  for (const AddedTokenPlace& place : output.added_tokens) {
    move_to(deltas, parser->feed(text.substr(at, place.begin - at)));
    move_to(deltas,
            parser->feed_token(place.token_id, text.substr(place.begin, place.end - place.begin)));
    at = place.end;
  }
  move_to(deltas, parser->feed(text.substr(at)));
  const auto has_reasoning = [](const MessageDelta& delta) { return !delta.reasoning.empty(); };
  if (std::ranges::any_of(deltas, has_reasoning)) usage.add_reasoning(output);
  if (!output.finish_reason) return deltas;
  const bool is_by_model =
      output.finish_reason == FinishReason::kStop && output.stop_reason.empty();
  move_to(deltas, parser->finish(is_by_model ? TextEnd::kModel : TextEnd::kCut));
  return deltas;
}

void hold_calls(const ChatRequest& request, OutputParserConfig& config) {
  config.holds_calls = config.holds_calls || !request.streaming.stream;
  for (const Tool& tool : request.tools) {
    if (tool.is_custom) config.held_tools.push_back(tool.name);
  }
}

Result<std::unique_ptr<OutputParser>> make_parser_if_needed(const OutputParserConfig& config) {
  const bool is_needed = !config.tool_call_parser.empty() || !config.reasoning_parser.empty() ||
                         config.call_template != nullptr || config.reasoning_template != nullptr ||
                         config.forced != ForcedCall::kNo;
  if (!is_needed) return std::unique_ptr<OutputParser>();
  return make_output_parser(config);
}

std::unique_ptr<ResponseWriter> make_response_writer(CompletionRequest request, ResponseInfo info) {
  return std::make_unique<CompletionWriter>(std::move(request), std::move(info));
}

Result<std::unique_ptr<ResponseWriter>> make_response_writer(ChatRequest request,
                                                             ResponseInfo info) {
  Parsers parsers;
  hold_calls(request, info.parser);
  for (int i = 0; i < request.engine_request.sampling.n; ++i) {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<OutputParser> parser,
                           make_parser_if_needed(info.parser));
    parsers.push_back(std::move(parser));
  }
  return std::unique_ptr<ResponseWriter>(
      std::make_unique<ChatWriter>(std::move(request), std::move(info), std::move(parsers)));
}

}  // namespace quire::server
