#include "cli/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/sampling_flags.h"
#include "engine/run_requests.h"

namespace quire::cli {
namespace {

constexpr int kDefaultMaxTokens = 512;

struct Options {
  EngineConfig engine;
  SamplingFlags sampling{kDefaultMaxTokens};
  std::string system;
};

class Conversation {
 public:
  Conversation(Engine& engine, const Options& options)
      : engine_(engine),
        port_(engine_port(engine)),
        system_(options.system),
        sampling_(options.sampling.applied_to(engine.default_sampling())) {
    reset();
  }

  void reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({"system", system_});
  }

  // Runs one turn. On failure the conversation stays as it was.
  Status say(const std::string& text) {
    std::vector<ChatMessage> attempt = messages_;
    attempt.push_back({"user", text});
    QUIRE_ASSIGN_OR_RETURN(const int num_dropped, fit(attempt));
    if (num_dropped > 0) {
      print_stderr("(the context is full: dropped the {} oldest messages)\n", num_dropped);
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string reply, ask(attempt));
    attempt.push_back({"assistant", reply});
    messages_ = std::move(attempt);
    return {};
  }

 private:
  Result<std::vector<int32_t>> encode(const std::vector<ChatMessage>& messages) const {
    return engine_.encode_chat(messages);
  }

  // Drops old messages so that max_tokens, but at most half of the context, is left for the reply.
  Result<int> fit(std::vector<ChatMessage>& messages) const {
    const int context = engine_.model_info().max_model_len;
    const int room = std::min(sampling_.max_tokens, context / 2);
    return trim_history(messages, context - room,
                        [&](const std::vector<ChatMessage>& candidate) -> Result<int> {
                          QUIRE_ASSIGN_OR_RETURN(const auto ids, encode(candidate));
                          return static_cast<int>(ids.size());
                        });
  }

  Result<std::string> ask(const std::vector<ChatMessage>& messages) {
    Request request;
    request.sampling = sampling_;
    QUIRE_ASSIGN_OR_RETURN(request.prompt_token_ids, encode(messages));
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    const RunOptions options = {
        .on_output = [](size_t, const Output& output) { return write_stdout(shown(output.text)); },
        .interrupted = CancelScope::interrupted};
    const std::vector<RequestResult> results = run_requests(port_, std::move(requests), options);
    write_stdout("\n");
    QUIRE_RETURN_IF_ERROR(results[0].first_error());
    return results[0].samples[0].text;
  }

  Engine& engine_;
  EnginePort port_;
  std::string system_;
  SamplingParams sampling_;
  std::vector<ChatMessage> messages_;
};

// A command such as "/reset" at the start of a line, or empty. A path such as "/tmp/x" is no
// command, because it has a second slash.
std::string_view command_word(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
  const bool is_command =
      word.size() > 1 && word[0] == '/' &&
      std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return is_command ? word : "";
}

constexpr std::string_view kHelp =
    "/reset  forget the conversation\n/help   show this\n/quit   leave (or /exit, or Ctrl-D)\n"
    "Ctrl-C  stop the reply; at the prompt: leave\n";

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

Result<int> run(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(options.engine));
  QUIRE_RETURN_IF_ERROR(check_chat_template(*engine, options.system));
  const bool interactive = ::isatty(STDIN_FILENO) == 1;
  if (interactive) print_stderr("{}; /help for help\n", one_line(engine->model_info().name));
  Conversation conversation(*engine, options);
  int exit_code = kExitOk;
  while (true) {
    if (interactive) print_stderr("> ");
    QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> typed, read_typed_line());
    if (!typed) return exit_code;
    const std::string& line = *typed;
    if (is_blank(line)) continue;
    const std::string_view word = command_word(line);
    if (word == "/quit" || word == "/exit") return exit_code;
    if (word == "/help") {
      write_stderr(kHelp);
    } else if (word == "/reset") {
      conversation.reset();
    } else if (!word.empty()) {
      print_stderr(
          "quire chat: [chat] unknown command {}; expected /reset, /help, /quit or /exit\n",
          one_line(word));
      exit_code = interactive ? kExitOk : kExitFailure;
    } else if (!is_valid_utf8(line)) {
      print_stderr("quire chat: [chat] the line is not valid UTF-8\n");
      exit_code = interactive ? kExitOk : kExitFailure;
    } else {
      const CancelScope scope;
      const Status status = conversation.say(line);
      if (CancelScope::interrupted() && !interactive) return CancelScope::exit_code();
      if (finish_stdout() != 0) return kExitFailure;  // output can no longer be written
      if (status.ok()) continue;
      print_stderr("quire chat: {}\n", one_line(engine_message(status)));
      exit_code = interactive ? kExitOk : kExitFailure;
    }
  }
}

}  // namespace

Result<int> trim_history(std::vector<ChatMessage>& messages, int max_tokens,
                         const CountTokens& num_tokens) {
  const size_t first = !messages.empty() && messages.front().role == "system" ? 1 : 0;
  int num_dropped = 0;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const int count, num_tokens(messages));
    // Drops whole exchanges, because templates refuse two turns of one role in a row.
    const bool can_drop = messages.size() >= first + 3;
    const bool is_full = count > max_tokens;
    const bool makes_room = num_dropped > 0 && count > max_tokens / 2;
    if (!is_full && !(makes_room && can_drop)) return num_dropped;
    if (!can_drop) {
      return invalid_argument(fmt::format(
          "[chat] the message is too long; got {} tokens, expected at most {}", count, max_tokens));
    }
    const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(first);
    messages.erase(begin, begin + 2);
    num_dropped += 2;
  }
}

Command chat_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "chat";
  command.summary = "Chat with a model in the terminal";
  command.example =
      "  quire chat\n"
      "  quire chat ~/models/llama-instruct --system 'Answer in one sentence.'";
  command.flags.begin_group("Conversation");
  command.flags.text("--system", "TEXT", &options->system,
                     "System message, sent before the first turn");
  add_chat_flags(command.flags, &options->engine);
  options->sampling.add_to(command.flags);
  add_engine_flags(command.flags, &options->engine, SeedFlag::kOfCommand);
  command.positional = model_argument(&options->engine);
  command.check = [options](Complaints& complaints) {
    const SamplingParams sampling = options->sampling.applied_to({});
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
