// The lines and files of a conversation, as pure functions.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/nearest_word.h"
#include "base/text.h"
#include "cli/chat.h"

namespace quire::cli {
namespace {

enum class Argument { kNone, kOptional, kRequired };

struct ChatCommand {
  std::string_view name;
  ChatAction action;
  Argument argument;
  std::string_view usage;
  std::string_view help;
};

constexpr ChatCommand kCommands[] = {
    {"/help", ChatAction::kHelp, Argument::kNone, "/help", "show this"},
    {"/reset", ChatAction::kReset, Argument::kNone, "/reset",
     "forget the conversation (or /clear)"},
    {"/system", ChatAction::kSystem, Argument::kOptional, "/system [TEXT]",
     "show or set the system message; - removes it"},
    {"/set", ChatAction::kSet, Argument::kRequired, "/set NAME VALUE",
     "set a sampling value (temperature, top_p, seed, …), without VALUE to its default"},
    {"/set think", ChatAction::kSet, Argument::kNone, "/set think",
     "let the model reason; /set nothink: do not"},
    {"/show", ChatAction::kShow, Argument::kNone, "/show",
     "show the model, the sampling values and the system message"},
    {"/save", ChatAction::kSave, Argument::kRequired, "/save FILE",
     "write the conversation to a file, as JSON"},
    {"/load", ChatAction::kLoad, Argument::kRequired, "/load FILE",
     "go on with the conversation of such a file"},
    {"/regenerate", ChatAction::kRegenerate, Argument::kNone, "/regenerate",
     "answer the last message again"},
    {"/stats", ChatAction::kStats, Argument::kNone, "/stats",
     "show the speed of the last answer, and how much of the context is used"},
    {"/exit", ChatAction::kExit, Argument::kNone, "/exit", "leave (or /quit, /bye or Ctrl-D)"},
    {"/quit", ChatAction::kExit, Argument::kNone, "", ""},
    {"/bye", ChatAction::kExit, Argument::kNone, "", ""},
    {"/clear", ChatAction::kReset, Argument::kNone, "", ""},
    {"/?", ChatAction::kHelp, Argument::kNone, "", ""}};

constexpr std::string_view kTextMark = "\"\"\"";

// Returns the command at the start of a line, such as "/reset", or an empty text.
std::string_view command_word(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r\n"));
  if (word == "/?") return word;
  const bool is_command =
      word.size() > 1 && word[0] == '/' && std::ranges::all_of(word.substr(1), [](char c) {
        return is_alphanumeric(c) && !is_digit(c);
      });
  return is_command ? word : "";
}

// Returns the line with "/system" in place of "/set system", which is Ollama's form.
std::string in_own_form(std::string_view line) {
  const std::string_view word = command_word(line);
  const size_t begin = std::min(line.find_first_not_of(" \t", word.size()), line.size());
  const size_t end = std::min(line.find_first_of(" \t\r\n", begin), line.size());
  if (word != "/set" || line.substr(begin, end - begin) != "system") return std::string(line);
  return fmt::format("/system{}", line.substr(end));
}

// Returns the position at which a text of several lines may begin: the start of the message, or the
// position after "/system ".
size_t text_position(std::string_view typed) {
  const std::string_view word = command_word(typed);
  const size_t begin = word == "/system" ? word.size() : 0;
  const size_t at = typed.find_first_not_of(" \t", begin);
  return at == std::string_view::npos ? typed.size() : at;
}

Status unknown_command(std::string_view word) {
  const std::vector<std::string> names = chat_command_names();
  const std::string meant = nearest_word(word, names);
  return invalid_argument(fmt::format(
      "[chat] unknown command {}; {}expected one of {}", clipped(word),
      meant.empty() ? "" : fmt::format("did you mean {}? ", meant), fmt::join(names, ", ")));
}

Status conversation_error(std::string_view source, std::string_view what) {
  return invalid_argument(fmt::format("[chat] {}: {}", source, what));
}

Result<ChatMessage> parse_message(simdjson::dom::element value, size_t idx,
                                  std::string_view source) {
  std::string_view role;
  std::string_view content;
  if (value["role"].get_string().get(role) || value["content"].get_string().get(content)) {
    return conversation_error(
        source,
        fmt::format("message {}: expected an object with the strings role and content", idx));
  }
  return ChatMessage{std::string(role), std::string(content)};
}

// Fails unless the messages are at most one system message, and then complete exchanges of user and
// assistant.
Status check_roles(const std::vector<ChatMessage>& messages, std::string_view source) {
  const size_t first = has_system(messages) ? 1 : 0;
  for (size_t i = first; i < messages.size(); ++i) {
    const std::string_view expected = (i - first) % 2 == 0 ? "user" : "assistant";
    if (messages[i].role == expected) continue;
    return conversation_error(source, fmt::format("message {}: got the role '{}', expected {}", i,
                                                  clipped(messages[i].role), expected));
  }
  if ((messages.size() - first) % 2 == 0) return {};
  return conversation_error(source, "the last message has no answer; expected one by assistant");
}

}  // namespace

Result<ChatLine> parse_chat_line(std::string_view typed) {
  if (!is_valid_utf8(typed)) return invalid_argument("[chat] the line is not valid UTF-8");
  const std::string own = in_own_form(typed);
  const std::string_view word = command_word(own);
  if (word.empty()) return ChatLine{.action = ChatAction::kSay, .text = std::string(typed)};
  const auto found = std::ranges::find(kCommands, word, &ChatCommand::name);
  if (found == std::end(kCommands)) return unknown_command(word);
  const std::string_view argument = trimmed(std::string_view(own).substr(word.size()));
  if (found->argument == Argument::kRequired && argument.empty()) {
    return invalid_argument(fmt::format("[chat] expected {}", found->usage));
  }
  if (found->argument == Argument::kNone && !argument.empty()) {
    return invalid_argument(
        fmt::format("[chat] got {} with '{}', expected it alone", word, clipped(argument)));
  }
  return ChatLine{.action = found->action, .text = std::string(argument)};
}

bool is_open_text(std::string_view typed) {
  const std::string own = in_own_form(typed);
  const std::string_view text = std::string_view(own).substr(text_position(own));
  return text.starts_with(kTextMark) &&
         find_text(text, kTextMark, kTextMark.size()) == std::string_view::npos;
}

std::string without_text_marks(std::string_view typed) {
  const std::string own = in_own_form(typed);
  const size_t at = text_position(own);
  std::string_view text = std::string_view(own).substr(at);
  if (!text.starts_with(kTextMark)) return std::string(typed);
  text.remove_prefix(kTextMark.size());
  const size_t end = text.find(kTextMark);
  std::string plain(text.substr(0, end));
  if (end != std::string_view::npos) plain += text.substr(end + kTextMark.size());
  if (plain.starts_with('\n')) plain.erase(0, 1);
  if (plain.ends_with('\n')) plain.pop_back();
  return own.substr(0, command_word(own).empty() ? 0 : at) + plain;
}

std::vector<std::string> chat_command_names() {
  std::vector<std::string> names;
  for (const ChatCommand& command : kCommands) names.emplace_back(command.name);
  return names;
}

std::string chat_help() {
  std::string help;
  for (const ChatCommand& command : kCommands) {
    if (!command.usage.empty()) help += fmt::format("{:<16}{}\n", command.usage, command.help);
  }
  return help +
         "A message in \"\"\" and \"\"\" may have several lines. Alt-Enter begins a new line, "
         "too.\n"
         "Ctrl-R searches the history, Ctrl-C stops an answer, /? shows this, too.\n";
}

bool has_system(const std::vector<ChatMessage>& messages) {
  return !messages.empty() && messages.front().role == "system";
}

std::string conversation_json(const std::vector<ChatMessage>& messages) {
  std::string text = "{\"messages\": [\n";
  for (size_t i = 0; i < messages.size(); ++i) {
    JsonWriter json;
    json.begin_object();
    json.field("role", std::string_view(messages[i].role));
    json.field("content", std::string_view(messages[i].content));
    json.end_object();
    text += fmt::format("  {}{}\n", json.text(), i + 1 < messages.size() ? "," : "");
  }
  return text + "]}\n";
}

Result<std::vector<ChatMessage>> parse_conversation(std::string_view json,
                                                    std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, {.max_bytes = kMaxConversationBytes}));
  simdjson::dom::array list;
  if (document.root().get_array().get(list) && document.root()["messages"].get_array().get(list)) {
    return conversation_error(source, "expected an object with a list of messages");
  }
  std::vector<ChatMessage> messages;
  for (const simdjson::dom::element value : list) {
    QUIRE_ASSIGN_OR_RETURN(ChatMessage message, parse_message(value, messages.size(), source));
    messages.push_back(std::move(message));
  }
  QUIRE_RETURN_IF_ERROR(check_roles(messages, source));
  return messages;
}

Result<int> trim_history(std::vector<ChatMessage>& messages, int max_tokens,
                         const CountTokens& num_tokens) {
  QUIRE_ASSIGN_OR_RETURN(int count, num_tokens(messages));
  if (count <= max_tokens) return 0;
  const size_t first = !messages.empty() && messages.front().role == "system" ? 1 : 0;
  // Removes whole exchanges, because templates refuse two messages of one role in a row.
  const auto without = [&](size_t num_exchanges) {
    std::vector<ChatMessage> rest = messages;
    const auto begin = rest.begin() + static_cast<std::ptrdiff_t>(first);
    rest.erase(begin, begin + static_cast<std::ptrdiff_t>(2 * num_exchanges));
    return rest;
  };
  // A binary search finds the smallest number of exchanges to drop, because each count renders and
  // tokenizes the rest of the conversation.
  size_t most = messages.size() <= first ? 0 : (messages.size() - first - 1) / 2;
  for (size_t least = 1; least < most;) {
    const size_t middle = least + (most - least) / 2;
    QUIRE_ASSIGN_OR_RETURN(count, num_tokens(without(middle)));
    if (count <= max_tokens / 2) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  std::vector<ChatMessage> rest = without(most);
  QUIRE_ASSIGN_OR_RETURN(count, num_tokens(rest));
  if (count > max_tokens) {
    return invalid_argument(fmt::format(
        "[chat] the message is too long; got {} tokens, expected at most {}", count, max_tokens));
  }
  messages = std::move(rest);
  return static_cast<int>(2 * most);
}

}  // namespace quire::cli
