#include "cli/chat.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>

#include "base/ascii.h"
#include "base/file.h"
#include "base/model_name.h"
#include "base/text.h"
#include "cli/answer_display.h"
#include "cli/chat_model.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/live_conversation.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/running_servers.h"
#include "engine/sampling_defaults.h"
#include "hub/cache/model_cache.h"
#include "start/settings.h"
#include "start/speculation.h"

namespace quire::cli {
namespace {

struct ChatOptions {
  EngineConfig engine;
  ChatSettings settings;
  std::string system;
  std::string url;
  std::string api_key;
  bool finds_servers = true;
  bool keeps_history = true;
  bool wraps_words = true;
};

// Reads messages and commands, and executes them until the input ends.
class Session {
 public:
  Session(std::unique_ptr<ChatModel> model, const ChatOptions& options)
      : conversation_(std::move(model), options.settings, options.system, options.wraps_words),
        editor_(LineEditor::open(
            {.commands = chat_command_names(),
             .history_file = options.keeps_history
                                 ? history_path(std::getenv("XDG_STATE_HOME"), std::getenv("HOME"))
                                 : ""})),
        is_interactive_(::isatty(STDIN_FILENO) == 1) {}

  Result<int> run() {
    if (is_interactive_) {
      print_stderr("{}; /help for help\n", one_line(conversation_.model().name()));
    }
    int exit_code = kExitOk;
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> typed, next_message());
      if (!typed) return exit_code;
      if (trimmed(*typed).empty()) continue;
      const Result<ChatLine> line = parse_chat_line(*typed);
      if (line.ok() && line->action == ChatAction::kExit) return exit_code;
      const Status status = line.ok() ? perform(*line) : line.status();
      // At a terminal, Ctrl-C ends only the output, not the session.
      const bool is_ctrl_c = CancelScope::exit_code() == 128 + SIGINT;
      if (was_interrupted_ && !(is_interactive_ && is_ctrl_c)) return CancelScope::exit_code();
      if (finish_stdout() != 0) return kExitFailure;  // output can no longer be written
      if (status.ok()) continue;
      report("quire chat: " + one_line(engine_message(status)));
      exit_code = is_interactive_ ? kExitOk : kExitFailure;
    }
  }

 private:
  // Prints a line to standard error, wrapped like an answer.
  void report(const std::string& line) const {
    std::string text = line;
    if (conversation_.wraps_words() && ::isatty(STDERR_FILENO) == 1) {
      const size_t num_columns = terminal_columns(STDERR_FILENO);
      WordWrap wrap;
      text = wrap.add(line, num_columns);
      text += wrap.finish(num_columns);
    }
    print_stderr("{}\n", text);
  }

  // Reads a line, and the lines after it if it begins a text of several lines.
  Result<std::optional<std::string>> next_message() {
    QUIRE_ASSIGN_OR_RETURN(std::optional<std::string> message, next_line("> "));
    while (message && is_open_text(*message)) {
      QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> more, next_line("... "));
      if (!more && is_interactive_) return std::optional<std::string>();
      if (!more) {
        return invalid_argument("[chat] the input ends within a text; expected \"\"\" at its end");
      }
      if (was_dropped_) {
        message = *more;
        continue;
      }
      *message += '\n' + *more;
      if (message->size() > kMaxTypedBytes) {
        return invalid_argument(fmt::format(
            "[chat] the message is too long; expected at most {} bytes", kMaxTypedBytes));
      }
    }
    if (message) *message = without_text_marks(*message);
    return message;
  }

  Result<std::optional<std::string>> next_line(const std::string& prompt) {
    if (editor_ != nullptr) return edited_line(prompt);
    if (is_interactive_) write_stderr(prompt);
    return read_typed_line();
  }

  // The first Ctrl-C drops the message and prints a hint. A further Ctrl-C on an empty line ends
  // the session.
  std::optional<std::string> edited_line(const std::string& prompt) {
    was_dropped_ = false;
    for (bool has_asked = false;;) {
      LineEditor::Typed typed = editor_->read(was_dropped_ ? "> " : prompt);
      if (typed.end == LineEditor::End::kEnter) return std::move(typed.text);
      if (typed.end == LineEditor::End::kEndOfInput) return std::nullopt;
      if (has_asked && typed.text.empty()) return std::nullopt;
      print_stderr("(Ctrl-C again leaves; Ctrl-D and /exit do, too)\n");
      has_asked = true;
      was_dropped_ = true;
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
        print_stderr("(the conversation is forgotten)\n");
        file_.clear();  // the file has the earlier conversation, which /save must not replace
        return {};
      case ChatAction::kSystem:
        return set_system(line.text);
      case ChatAction::kSet:
        return set(line.text);
      case ChatAction::kShow:
        write_stderr(conversation_.described());
        return {};
      case ChatAction::kSave:
        return save(hub::expanded(line.text).string());
      case ChatAction::kLoad:
        return load(hub::expanded(line.text).string());
      case ChatAction::kStats:
        print_stats();
        return {};
      case ChatAction::kHelp:
        write_stderr(chat_help());
        return {};
      case ChatAction::kExit:
        return {};  // not reached: run() handles it
    }
    return {};
  }

  Status answered(const std::function<Status()>& ask) {
    Status status;
    {
      const CancelScope scope(QuietTerminal::restore);
      const QuietTerminal quiet(editor_ != nullptr);
      status = ask();
    }
    was_interrupted_ = CancelScope::was_interrupted();
    return status;
  }

  Status set(const std::string& words) {
    QUIRE_ASSIGN_OR_RETURN(const std::string effect, conversation_.set(words));
    print_stderr("({})\n", escape_controls(effect));
    return {};
  }

  Status set_system(const std::string& text) {
    if (!text.empty()) {
      const bool removes = text == "-";
      QUIRE_RETURN_IF_ERROR(conversation_.set_system(removes ? "" : text));
      print_stderr("(the system message is {})\n", removes ? "removed" : "set");
      return {};
    }
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
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
    if (!std::filesystem::is_directory(folder, error)) {
      return invalid_argument(fmt::format(
          "[chat] {} is no folder; expected the path of a file in one", folder.string()));
    }
    QUIRE_RETURN_IF_ERROR(replace_file(path, conversation_json(conversation_.messages())));
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
    const int context = conversation_.model().max_model_len();
    print_stderr("\ncontext: {} of {} tokens; {} messages\n", stats.num_tokens(),
                 context > 0 ? std::to_string(context) : "unknown",
                 conversation_.messages().size());
  }

  LiveConversation conversation_;
  std::unique_ptr<LineEditor> editor_;  // null: lines are read without editing
  bool is_interactive_;
  bool was_interrupted_ = false;
  bool was_dropped_ = false;  // Ctrl-C dropped the message during the last edited_line()
  std::string file_;          // the last file of /save or /load; empty: none
};

// Prints the method of speculative decoding, if the engine uses one.
void report_drafts(const ModelInfo& info) {
  if (info.num_speculative_tokens == 0) return;
  print_stderr("(drafts by {})\n",
               describe_drafts(info.speculative_method, info.num_speculative_tokens));
}

// Returns the flag of the first setting, except the model, that differs from its default; empty:
// none does. With such a flag no server can be used, because a server has its own settings.
std::string changed_setting(const EngineConfig& config) {
  for (const Setting& setting : all_settings()) {
    if (setting.name != "model" && !setting.is_default(config)) return setting.flag_name();
  }
  return "";
}

std::string key_of(const ChatOptions& options) {
  const char* key = std::getenv("OPENAI_API_KEY");
  return options.api_key.empty() && key != nullptr ? key : options.api_key;
}

// Finds the model in a server's record: by its path, or by its name if this machine does not have
// the model. Null: the server does not have the model.
const ServedModel* find_served(const ServerRecord& record, const std::string& model,
                               const std::string& path) {
  const auto found = std::ranges::find_if(record.models, [&](const ServedModel& served) {
    return path.empty() ? is_same_model_name(served.name, model) : served.path == path;
  });
  return found == record.models.end() ? nullptr : &*found;
}

// Connects to a server of this user that has the model. Null: no server can be used; if one has the
// model, a printed line states the reason.
std::unique_ptr<ChatModel> find_server(const ChatOptions& options) {
  if (!options.finds_servers) return nullptr;
  const std::string path = model_path(options.engine.model);
  for (const ServerRecord& record : running_servers()) {
    const ServedModel* const served = find_served(record, options.engine.model, path);
    if (served == nullptr) continue;
    const std::string address = one_line(record.address.text());
    if (const std::string flag = changed_setting(options.engine); !flag.empty()) {
      print_stderr("(not using the server at {}, which has its own {})\n", address, flag);
      return nullptr;
    }
    ServerAddress local = record.address;
    local.verifies_peer = false;  // a process of this user has written the address
    Result<std::unique_ptr<ChatModel>> model =
        connect_to_server(local, key_of(options), served->name);
    if (model.ok()) {
      print_stderr("using the server at {}; --no-server loads the model here\n", address);
      return std::move(*model);
    }
    print_stderr("(not using the server at {}: {})\n", address, one_line(model.status().message()));
  }
  return nullptr;
}

Result<std::unique_ptr<ChatModel>> open_server(const ChatOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const ServerAddress address, parse_server_address(options.url));
  return connect_to_server(address, key_of(options), options.engine.model);
}

Result<int> talk(std::unique_ptr<ChatModel> model, const ChatOptions& options) {
  QUIRE_RETURN_IF_ERROR(model->check_system(options.system));
  const std::optional<SamplingDefaults> defaults = model->sampling_defaults();
  print_stderr("(sampling: {})\n", defaults
                                       ? describe(options.settings.sampling.applied_to(*defaults))
                                       : kUnknownDefaults);
  return Session(std::move(model), options).run();
}

Result<int> run(ChatOptions& options) {
  if (!options.url.empty()) {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ChatModel> server, open_server(options));
    return talk(std::move(server), options);
  }
  use_default_model(&options.engine.model);
  if (std::unique_ptr<ChatModel> server = find_server(options)) {
    return talk(std::move(server), options);
  }
  QUIRE_RETURN_IF_ERROR(pull_missing_model(options.engine));
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(options.engine));
  report_drafts(engine->model_info());
  return talk(make_local_model(*engine), options);
}

void add_server_flags(FlagSet& flags, ChatOptions* options) {
  flags.begin_group("Server");
  flags.text(
      "--url", "URL", &options->url,
      "Talk with this server, http://HOST:PORT or unix:PATH; MODEL is a name that it serves");
  flags.last().field = "base_url";
  flags.text("--api-key", "KEY", &options->api_key,
             "The server's key; without it, OPENAI_API_KEY of the environment");
  flags.toggle("--no-server", &options->finds_servers,
               "Load the model, even if a quire serve of this user has it", false);
}

void check(const ChatOptions& options, Complaints& complaints) {
  const SamplingParams sampling = options.settings.sampling.applied_to(SamplingParams());
  if (sampling.n != 1) complaints.add("--n: a turn has one reply; expected 1");
  if (asks_for_logprobs(sampling)) {
    complaints.add("--logprobs and --prompt-logprobs need --format json of quire generate");
  }
  if (options.url.empty()) return;
  complaints.add(parse_server_address(options.url).status());
  if (!options.finds_servers) complaints.add("expected --url or --no-server, not both");
  if (const std::string flag = changed_setting(options.engine); !flag.empty()) {
    complaints.add(fmt::format("expected --url or {}, not both: the server has its own", flag));
  }
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
  command.flags.toggle("--no-word-wrap", &options->wraps_words,
                       "Let the terminal break the lines of answers", false);
  add_chat_flags(command.flags, &options->engine);
  add_server_flags(command.flags, options.get());
  options->settings.sampling.add_to(command.flags);
  add_setting(command.flags, &options->engine, "generation_config");
  add_engine_flags(command.flags, &options->engine, SeedFlag::kOfCommand);
  command.positional = model_argument(&options->engine, MissingModel::kIsPulled);
  command.positional->excess = "quire generate MODEL MESSAGE answers one message";
  command.check = [options](Complaints& complaints) { check(*options, complaints); };
  command.log->level = "warning";  // keeps info messages out of the conversation
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
