#include "server/answer_writer.h"

#include <string_view>
#include <utility>

namespace quire::server {
namespace {

// Counts the tokens of a response for its usage field.
class UsageCount {
 public:
  explicit UsageCount(int num_prompt_tokens) { usage_.num_prompt_tokens = num_prompt_tokens; }

  void add(const Output& output, bool is_first_of_prompt) {
    usage_.num_completion_tokens += static_cast<int>(output.token_ids.size());
    if (is_first_of_prompt) add_cached(output);
  }
  void add_cached(const Output& output) { usage_.num_cached_tokens += output.num_cached_tokens; }
  void add_reasoning(const Output& output) {
    usage_.num_reasoning_tokens += static_cast<int>(output.token_ids.size());
  }
  const Usage& now() const { return usage_; }

 private:
  Usage usage_;
};

void take(Output&& output, Choice& choice) {
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

// Wraps the JSON that write(out) appends into one server-sent event.
template <typename Write>
void append_event(std::string& out, const Write& write) {
  out += kSsePrefix;
  write(out);
  out += kSseSuffix;
}

class CompletionWriter : public AnswerWriter {
 protected:
  CompletionWriter(CompletionRequest call, AnswerContext context)
      : call_(std::move(call)),
        context_(std::move(context)),
        n_(call_.engine_request.sampling.n),
        usage_(context_.num_prompt_tokens) {}

  // With echo_only, the one token that the engine generates is not counted.
  void count(int choice_idx, const Output& output) {
    const bool is_first_of_prompt = choice_idx % n_ == 0;
    if (!call_.echo_only) {
      usage_.add(output, is_first_of_prompt);
    } else if (is_first_of_prompt) {
      usage_.add_cached(output);
    }
  }
  // A view of context_, which the n choices of a prompt share.
  std::string_view prompt_text(int choice_idx) const {
    if (!call_.echo) return {};
    return context_.prompt_texts[static_cast<size_t>(choice_idx / n_)];
  }
  int num_choices() const { return static_cast<int>(call_.prompts.size()) * n_; }

  const CompletionRequest call_;
  const AnswerContext context_;
  const int n_;
  UsageCount usage_;
};

class CompletionBody final : public CompletionWriter {
 public:
  CompletionBody(CompletionRequest call, AnswerContext context)
      : CompletionWriter(std::move(call), std::move(context)) {
    choices_.resize(static_cast<size_t>(num_choices()));
    for (int i = 0; i < num_choices(); ++i) {
      choices_[static_cast<size_t>(i)].index = i;
      choices_[static_cast<size_t>(i)].prompt_text = prompt_text(i);
    }
  }

  void add(int choice_idx, Output&& output, std::string& /*out*/) override {
    count(choice_idx, output);
    take(std::move(output), choices_[static_cast<size_t>(choice_idx)]);
  }
  void finish(std::string& out) override {
    out += completion_body(context_.header, call_, choices_, usage_.now(), context_.decode);
  }

 private:
  std::vector<Choice> choices_;
};

class CompletionStream final : public CompletionWriter {
 public:
  CompletionStream(CompletionRequest call, AnswerContext context)
      : CompletionWriter(std::move(call), std::move(context)) {
    for (int i = 0; i < num_choices(); ++i) {
      choices_.push_back({.index = i, .prompt_text = prompt_text(i)});
    }
  }

  void add(int choice_idx, Output&& output, std::string& out) override {
    count(choice_idx, output);
    ChoiceStream& choice = choices_[static_cast<size_t>(choice_idx)];
    if (!choice.has_started) {
      choice.prompt_token_ids = std::move(output.prompt_token_ids);
      choice.prompt_logprobs = std::move(output.prompt_logprobs);
    }
    const Usage* usage = call_.streaming.continuous_usage_stats ? &usage_.now() : nullptr;
    append_event(out, [&](std::string& json) {
      completion_chunk(context_.header, call_, choice, output, usage, context_.decode, json);
    });
  }
  void finish(std::string& out) override {
    if (call_.streaming.include_usage) {
      append_event(out, [&](std::string& json) {
        completion_usage_chunk(context_.header, usage_.now(), json);
      });
    }
    out += kSseDone;
  }

 private:
  std::vector<ChoiceStream> choices_;
};

using Parsers = std::vector<std::unique_ptr<OutputParser>>;  // one per choice; may be empty

class ChatWriter : public AnswerWriter {
 protected:
  ChatWriter(ChatRequest call, AnswerContext context, Parsers parsers)
      : call_(std::move(call)),
        context_(std::move(context)),
        usage_(context_.num_prompt_tokens),
        parsers_(std::move(parsers)) {}

  MessageDelta parse(int choice_idx, const Output& output) {
    MessageDelta delta;
    if (parsers_.empty()) {
      delta.content = output.text;
      return delta;
    }
    OutputParser& parser = *parsers_[static_cast<size_t>(choice_idx)];
    delta = parser.feed(output.text);
    if (!delta.reasoning.empty()) usage_.add_reasoning(output);
    if (output.finish_reason) append_delta(delta, parser.finish());
    return delta;
  }

  static void append_delta(MessageDelta& delta, MessageDelta&& more) {
    delta.reasoning += more.reasoning;
    delta.content += more.content;
    for (ToolCallDelta& call : more.tool_calls) delta.tool_calls.push_back(std::move(call));
  }

  const ChatRequest call_;
  const AnswerContext context_;
  UsageCount usage_;

 private:
  Parsers parsers_;
};

class ChatBody final : public ChatWriter {
 public:
  ChatBody(ChatRequest call, AnswerContext context, Parsers parsers)
      : ChatWriter(std::move(call), std::move(context), std::move(parsers)) {
    choices_.resize(static_cast<size_t>(call_.engine_request.sampling.n));
    for (size_t i = 0; i < choices_.size(); ++i) {
      choices_[i].index = static_cast<int>(i);
    }
  }

  void add(int choice_idx, Output&& output, std::string& /*out*/) override {
    usage_.add(output, choice_idx == 0);
    Choice& choice = choices_[static_cast<size_t>(choice_idx)];
    append(choice.message, parse(choice_idx, output));
    if (choice_idx > 0) output.prompt_logprobs = {};  // only the first choice's are shown
    take(std::move(output), choice);
  }
  void finish(std::string& out) override {
    out += chat_body(context_.header, call_, choices_, usage_.now(), context_.decode);
  }

 private:
  std::vector<Choice> choices_;
};

class ChatStream final : public ChatWriter {
 public:
  ChatStream(ChatRequest call, AnswerContext context, Parsers parsers)
      : ChatWriter(std::move(call), std::move(context), std::move(parsers)) {
    for (int i = 0; i < call_.engine_request.sampling.n; ++i) {
      choices_.push_back({.index = i});
    }
  }

  void add(int choice_idx, Output&& output, std::string& out) override {
    usage_.add(output, choice_idx == 0);
    ChoiceStream& choice = choices_[static_cast<size_t>(choice_idx)];
    const Usage* usage = call_.streaming.continuous_usage_stats ? &usage_.now() : nullptr;
    if (!choice.has_started) {
      choice.prompt_token_ids = std::move(output.prompt_token_ids);
      choice.prompt_logprobs = std::move(output.prompt_logprobs);
      append_event(out, [&](std::string& json) {
        chat_role_chunk(context_.header, call_, choice, usage, context_.decode, json);
      });
    }
    const MessageDelta delta = parse(choice_idx, output);
    if (!chat_chunk_has_news(call_, delta, output)) return;
    append_event(out, [&](std::string& json) {
      chat_chunk(context_.header, call_, choice, delta, output, usage, context_.decode, json);
    });
  }
  void finish(std::string& out) override {
    if (call_.streaming.include_usage) {
      append_event(
          out, [&](std::string& json) { chat_usage_chunk(context_.header, usage_.now(), json); });
    }
    out += kSseDone;
  }

 private:
  std::vector<ChoiceStream> choices_;
};

bool needs_parser(const OutputParserConfig& config) {
  return !config.tool_call_parser.empty() || !config.reasoning_parser.empty() ||
         config.forced != ForcedCall::kNo;
}

}  // namespace

std::unique_ptr<AnswerWriter> make_answer_writer(CompletionRequest call, AnswerContext context) {
  if (call.streaming.stream) {
    return std::make_unique<CompletionStream>(std::move(call), std::move(context));
  }
  return std::make_unique<CompletionBody>(std::move(call), std::move(context));
}

Result<std::unique_ptr<AnswerWriter>> make_answer_writer(ChatRequest call, AnswerContext context) {
  Parsers parsers;
  for (int i = 0; needs_parser(context.parser) && i < call.engine_request.sampling.n; ++i) {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<OutputParser> parser,
                           make_output_parser(context.parser));
    parsers.push_back(std::move(parser));
  }
  if (call.streaming.stream) {
    return std::unique_ptr<AnswerWriter>(
        std::make_unique<ChatStream>(std::move(call), std::move(context), std::move(parsers)));
  }
  return std::unique_ptr<AnswerWriter>(
      std::make_unique<ChatBody>(std::move(call), std::move(context), std::move(parsers)));
}

}  // namespace quire::server
