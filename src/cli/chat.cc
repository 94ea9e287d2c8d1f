#include "cli/chat.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/sampling_flags.h"
#include "engine/run_requests.h"
#include "engine/sampling_defaults.h"
#include "start/speculation.h"

namespace quire::cli {
namespace {

// Tokens of the context that are kept for a reply without --max-tokens.
constexpr int kReplyRoom = 1024;

struct ChatOptions {
  EngineConfig engine;
  SamplingFlags sampling{"the rest of the context"};
  std::string system;
  bool keeps_history = true;
};

// The figures of /stats.
struct AnswerStats {
  int num_prompt_tokens = 0;
  int num_cached_tokens = 0;
  int num_output_tokens = 0;
  double first_token_s = 0;  // from the message to the first token
  double decode_s = 0;       // from the first token to the last

  int num_tokens() const { return num_prompt_tokens + num_output_tokens; }
};

AnswerStats stats_of(const RequestResult& result) {
  using Seconds = std::chrono::duration<double>;
  const SampleResult& sample = result.samples[0];
  AnswerStats stats = {.num_prompt_tokens = static_cast<int>(result.prompt_token_ids.size()),
                       .num_cached_tokens = result.num_cached_tokens,
                       .num_output_tokens = static_cast<int>(sample.token_ids.size())};
  if (sample.token_ids.empty()) return stats;
  stats.first_token_s = Seconds(sample.first_token_time - result.submit_time).count();
  stats.decode_s = Seconds(sample.last_token_time - sample.first_token_time).count();
  return stats;
}

// A reply may take the rest of the context.
SamplingDefaults chat_defaults(const Engine& engine, const ChatOptions& options) {
  SamplingDefaults defaults = engine.sampling_defaults(SamplingFallback::kChat);
  defaults.params.max_tokens = engine.model_info().max_model_len;
  return options.sampling.applied_to(std::move(defaults));
}

class Conversation {
 public:
  Conversation(Engine& engine, const ChatOptions& options)
      : engine_(engine),
        port_(engine_port(engine)),
        system_(options.system),
        sampling_(chat_defaults(engine, options).params) {
    reset();
  }

  const std::vector<ChatMessage>& messages() const { return messages_; }
  const std::string& system() const { return system_; }
  const AnswerStats& stats() const { return stats_; }

  void reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({"system", system_});
  }

  // Runs one turn. On failure the conversation stays as it was.
  Status say(const std::string& text) {
    num_attempts_ = 0;
    std::vector<ChatMessage> attempt = messages_;
    attempt.push_back({"user", text});
    return answer(std::move(attempt));
  }

  // Answers the last message again, with another seed.
  Status regenerate() {
    if (messages_.empty() || messages_.back().role != "assistant") {
      return invalid_argument("[chat] there is no answer to regenerate; expected a message first");
    }
    if (sampling_.temperature == 0.0F) {
      print_stderr("(the temperature is 0, so the answer will be the same)\n");
    }
    ++num_attempts_;
    std::vector<ChatMessage> attempt = messages_;
    attempt.pop_back();
    return answer(std::move(attempt));
  }

  // Replaces the system message; empty: removes it. The other messages stay.
  Status set_system(const std::string& text) {
    QUIRE_RETURN_IF_ERROR(check_chat_template(engine_, text));
    if (has_system(messages_)) messages_.erase(messages_.begin());
    system_ = text;
    if (!system_.empty()) messages_.insert(messages_.begin(), {"system", system_});
    return {};
  }

  // Replaces the conversation if the model's template accepts it.
  Status load(std::vector<ChatMessage> messages) {
    std::vector<ChatMessage> next = messages;
    next.push_back({"user", "hello"});
    QUIRE_RETURN_IF_ERROR(encode(next).status());
    system_ = has_system(messages) ? messages.front().content : "";
    messages_ = std::move(messages);
    num_attempts_ = 0;
    return {};
  }

 private:
  Result<std::vector<int32_t>> encode(const std::vector<ChatMessage>& messages) const {
    return engine_.encode_chat(messages);
  }

  Status answer(std::vector<ChatMessage> attempt) {
    QUIRE_ASSIGN_OR_RETURN(const int num_dropped, fit(attempt));
    if (num_dropped > 0) {
      print_stderr("(the context is full: dropped the {} oldest messages)\n", num_dropped);
    }
    QUIRE_ASSIGN_OR_RETURN(const SampleResult reply, ask(attempt));
    // A message that was stopped before its first word was not answered.
    if (reply.finish_reason == FinishReason::kCancelled && reply.text.empty()) return {};
    if (reply.finish_reason == FinishReason::kLength) report_cut();
    attempt.push_back({"assistant", reply.text});
    messages_ = std::move(attempt);
    return {};
  }

  // Drops old messages so that max_tokens or kReplyRoom, but at most half of the context, is left
  // for the reply.
  Result<int> fit(std::vector<ChatMessage>& messages) const {
    const int context = engine_.model_info().max_model_len;
    const int wanted = sampling_.max_tokens < context ? sampling_.max_tokens : kReplyRoom;
    const int room = std::min(wanted, context / 2);
    return trim_history(messages, context - room,
                        [&](const std::vector<ChatMessage>& candidate) -> Result<int> {
                          QUIRE_ASSIGN_OR_RETURN(const auto ids, encode(candidate));
                          return static_cast<int>(ids.size());
                        });
  }

  Result<SampleResult> ask(const std::vector<ChatMessage>& messages) {
    Request request;
    request.sampling = sampling_;
    // The default seed of a prompt never changes.
    if (num_attempts_ > 0) request.sampling.seed = sampling_.seed.value_or(0) + num_attempts_;
    QUIRE_ASSIGN_OR_RETURN(request.prompt_token_ids, encode(messages));
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    const RunOptions options = {
        .on_output = [](size_t, const Output& output) { return write_stdout(shown(output.text)); },
        .interrupted = CancelScope::interrupted};
    std::vector<RequestResult> results = run_requests(port_, std::move(requests), options);
    write_stdout("\n");
    QUIRE_RETURN_IF_ERROR(results[0].first_error());
    stats_ = stats_of(results[0]);
    return std::move(results[0].samples[0]);
  }

  void report_cut() const {
    const int context = engine_.model_info().max_model_len;
    if (stats_.num_tokens() >= context) {
      print_stderr("(the answer is cut off: the context of {} tokens is full)\n", context);
    } else {
      print_stderr(
          "(the answer is cut off after --max-tokens {} tokens; \"continue\" asks for "
          "more)\n",
          sampling_.max_tokens);
    }
  }

  Engine& engine_;
  EnginePort port_;
  std::string system_;
  SamplingParams sampling_;
  std::vector<ChatMessage> messages_;
  AnswerStats stats_;
  uint64_t num_attempts_ = 0;  // of /regenerate on the last message
};

// "~/x" in the user's home.
std::string expanded(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

// Reads lines and performs them until the input ends.
class Session {
 public:
  Session(Engine& engine, const ChatOptions& options)
      : engine_(engine),
        conversation_(engine, options),
        editor_(LineEditor::open(
            {.prompt = "> ",
             .commands = chat_command_names(),
             .history_file = options.keeps_history
                                 ? history_path(std::getenv("XDG_STATE_HOME"), std::getenv("HOME"))
                                 : ""})),
        is_interactive_(::isatty(STDIN_FILENO) == 1) {}

  Result<int> run() {
    if (is_interactive_) {
      print_stderr("{}; /help for help\n", one_line(engine_.model_info().name));
    }
    int exit_code = kExitOk;
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> typed, next_line());
      if (!typed) return exit_code;
      if (trimmed(*typed).empty()) continue;
      const Result<ChatLine> line = parse_chat_line(*typed);
      if (line.ok() && line->action == ChatAction::kExit) return exit_code;
      const Status status = line.ok() ? perform(*line) : line.status();
      // At a terminal, Ctrl-C ends the output alone.
      const bool is_ctrl_c = CancelScope::exit_code() == 128 + SIGINT;
      if (was_interrupted_ && !(is_interactive_ && is_ctrl_c)) return CancelScope::exit_code();
      if (finish_stdout() != 0) return kExitFailure;  // output can no longer be written
      if (status.ok()) continue;
      print_stderr("quire chat: {}\n", one_line(engine_message(status)));
      exit_code = is_interactive_ ? kExitOk : kExitFailure;
    }
  }

 private:
  Result<std::optional<std::string>> next_line() {
    if (editor_ != nullptr) return edited_line();
    if (is_interactive_) print_stderr("> ");
    return read_typed_line();
  }

  // The first Ctrl-C asks, the second one leaves.
  std::optional<std::string> edited_line() {
    for (bool has_asked = false;;) {
      LineEditor::Typed typed = editor_->read();
      if (typed.end == LineEditor::End::kEnter) return std::move(typed.text);
      if (typed.end == LineEditor::End::kEndOfInput) return std::nullopt;
      if (has_asked && typed.text.empty()) return std::nullopt;
      print_stderr("(Ctrl-C again leaves; Ctrl-D and /exit do, too)\n");
      has_asked = true;
    }
  }

  Status perform(const ChatLine& line) {
    switch (line.action) {
      case ChatAction::kSay:
        return answered([&] { return conversation_.say(line.text); });
      case ChatAction::kRegenerate:
        return answered([&] { return conversation_.regenerate(); });
      case ChatAction::kReset:
        conversation_.reset();
        file_.clear();  // it has the earlier conversation, which /save must not replace
        return {};
      case ChatAction::kSystem:
        return set_system(line.text);
      case ChatAction::kSave:
        return save(expanded(line.text));
      case ChatAction::kLoad:
        return load(expanded(line.text));
      case ChatAction::kStats:
        print_stats();
        return {};
      case ChatAction::kHelp:
        write_stderr(chat_help());
        return {};
      case ChatAction::kExit:
        return {};  // run() has returned
    }
    return {};
  }

  Status answered(const std::function<Status()>& ask) {
    const CancelScope scope;
    const Status status = ask();
    was_interrupted_ = CancelScope::interrupted();
    return status;
  }

  Status set_system(const std::string& text) {
    if (!text.empty()) return conversation_.set_system(text == "-" ? "" : text);
    const std::string& system = conversation_.system();
    print_stderr("{}\n", system.empty() ? "(no system message)" : escape_controls(system));
    return {};
  }

  // Overwrites only the file that this conversation was saved to or loaded from.
  Status save(const std::string& path) {
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(path));
    if (exists && path != file_) {
      return invalid_argument(
          fmt::format("[chat] {} exists; expected the path of a new file", path));
    }
    QUIRE_RETURN_IF_ERROR(write_output_file(path, conversation_json(conversation_.messages())));
    use_file(path, "saved");
    return {};
  }

  Status load(const std::string& path) {
    QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxConversationBytes));
    QUIRE_ASSIGN_OR_RETURN(std::vector<ChatMessage> messages, parse_conversation(text, path));
    QUIRE_RETURN_IF_ERROR(conversation_.load(std::move(messages)));
    use_file(path, "loaded");
    return {};
  }

  void use_file(const std::string& path, std::string_view action) {
    file_ = path;
    const size_t num = conversation_.messages().size();
    print_stderr("({} {} message{})\n", action, num, num == 1 ? "" : "s");
  }

  void print_stats() const {
    const AnswerStats& stats = conversation_.stats();
    if (stats.num_output_tokens == 0) return write_stderr("(nothing was answered yet)\n");
    const int num_decoded = stats.num_output_tokens - 1;
    print_stderr(
        "last answer: {} prompt tokens ({} cached), {} output tokens; first token after {:.0f} ms",
        stats.num_prompt_tokens, stats.num_cached_tokens, stats.num_output_tokens,
        stats.first_token_s * 1e3);
    if (num_decoded > 0 && stats.decode_s > 0) {
      print_stderr(", then {:.1f} tokens/s", num_decoded / stats.decode_s);
    }
    print_stderr("\ncontext: {} of {} tokens; {} messages\n", stats.num_tokens(),
                 engine_.model_info().max_model_len, conversation_.messages().size());
  }

  const Engine& engine_;
  Conversation conversation_;
  std::unique_ptr<LineEditor> editor_;  // null: plain lines
  bool is_interactive_;
  bool was_interrupted_ = false;
  std::string file_;  // of this conversation, by /save or /load; empty: none
};

// Prints the engine's method of drafting, if it drafts.
void report_drafts(const ModelInfo& info) {
  if (info.num_speculative_tokens == 0) return;
  print_stderr("(drafts by {})\n",
               describe_drafts(info.speculative_method, info.num_speculative_tokens));
}

Result<int> run(ChatOptions& options) {
  if (options.engine.model.empty()) {
    DefaultModel chosen = default_model();
    print_stderr("{}\n", chosen.note);
    options.engine.model = std::move(chosen.model);
  }
  QUIRE_RETURN_IF_ERROR(pull_missing_model(options.engine));
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(options.engine));
  QUIRE_RETURN_IF_ERROR(check_chat_template(*engine, options.system));
  report_drafts(engine->model_info());
  print_stderr("(sampling: {})\n", describe(chat_defaults(*engine, options)));
  return Session(*engine, options).run();
}

}  // namespace

Command chat_command() {
  const auto options = std::make_shared<ChatOptions>();
  Command command;
  command.name = "chat";
  command.summary = "Chat with a model in the terminal";
  command.example =
      "  quire chat smollm2\n"
      "  quire chat ~/models/llama-instruct --system 'Answer in one sentence.'";
  command.flags.begin_group("Conversation");
  command.flags.text("--system", "TEXT", &options->system,
                     "System message, sent before the first turn");
  command.flags.toggle("--no-history", &options->keeps_history,
                       "Keep no history of typed messages in ~/.local/state/quire", false);
  add_chat_flags(command.flags, &options->engine);
  options->sampling.add_to(command.flags);
  add_setting(command.flags, &options->engine, "generation_config");
  add_engine_flags(command.flags, &options->engine, SeedFlag::kOfCommand);
  command.positional = model_argument(&options->engine, MissingModel::kIsPulled);
  command.check = [options](Complaints& complaints) {
    const SamplingParams sampling = options->sampling.applied_to(SamplingParams());
    if (sampling.n != 1) complaints.add("--n: a turn has one reply; expected 1");
    if (asks_for_logprobs(sampling)) {
      complaints.add("--logprobs and --prompt-logprobs need --format json of quire generate");
    }
  };
  command.log->level = "warning";  // keeps info messages out of the conversation
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
