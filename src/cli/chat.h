// The parts of `quire chat` that need no engine and no terminal: chat_conversation.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/engine.h"
#include "quire/status.h"

namespace quire::cli {

// The purpose of a typed line.
enum class ChatAction {
  kSay,
  kHelp,
  kReset,
  kSystem,
  kSet,
  kShow,
  kSave,
  kLoad,
  kRegenerate,
  kStats,
  kExit
};

struct ChatLine {
  ChatAction action = ChatAction::kSay;
  std::string text;  // of a message: all of it; of a command: its argument, trimmed
};

// A line that begins with "/" and letters is a command; "/tmp/x", "/5" and " /help" are messages.
// Unknown commands, and arguments too many or too few, are errors.
Result<ChatLine> parse_chat_line(std::string_view typed);
// Texts of several lines stand between """ and """. Returns whether a message, or the argument of
// /system, begins with the mark and lacks the second one, so that more lines follow.
bool is_open_text(std::string_view typed);
// Removes the marks around such a text.
std::string without_text_marks(std::string_view typed);
std::vector<std::string> chat_command_names();
std::string chat_help();

// Whether the conversation begins with a system message, which may be empty.
bool has_system(const std::vector<ChatMessage>& messages);

// Largest file of a conversation.
constexpr size_t kMaxConversationBytes = size_t{16} << 20;

// A conversation as JSON, {"messages": [{"role": …, "content": …}]}, which servers and `quire
// template` take too.
std::string conversation_json(const std::vector<ChatMessage>& messages);
// Parses such an object, or the list of messages alone. Expects at most one system message,
// followed by complete exchanges of user and assistant. `source` names the file in errors.
Result<std::vector<ChatMessage>> parse_conversation(std::string_view json, std::string_view source);

// If a conversation exceeds max_tokens, drops the oldest exchanges (a user turn and its reply)
// until it takes at most half of max_tokens, as far as possible. Dropping a few per turn would
// change the prefix every turn, so the prefix cache would never hit. A leading system message and
// the last turn always stay. Returns the number of dropped messages. num_tokens counts the tokens
// of a conversation after the template is applied.
using CountTokens = std::function<Result<int>(const std::vector<ChatMessage>& messages)>;
Result<int> trim_history(std::vector<ChatMessage>& messages, int max_tokens,
                         const CountTokens& num_tokens);

}  // namespace quire::cli
