// The parts of `quire chat` that need no engine and no terminal, implemented in
// chat_conversation.cc.
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
  std::string text;  // kSay: the whole message; a command: its argument, trimmed
};

// A line that begins with "/" and letters is a command; "/tmp/x", "/5" and " /help" are messages.
// Fails for an unknown command, a missing argument, or an argument that the command does not take.
Result<ChatLine> parse_chat_line(std::string_view typed);
// Returns whether a message, or the argument of /system, begins with """ and has no closing """
// yet, so that more lines follow. These marks enclose a text of several lines.
bool is_open_text(std::string_view typed);
// Removes the marks around a text of several lines.
std::string without_text_marks(std::string_view typed);
std::vector<std::string> chat_command_names();
std::string chat_help();

// Whether the conversation begins with a system message, which may be empty.
bool has_system(const std::vector<ChatMessage>& messages);

// Largest size of a file that /load reads.
constexpr size_t kMaxConversationBytes = size_t{16} << 20;

// Returns a conversation as JSON, {"messages": [{"role": …, "content": …}]}, which servers and
// `quire template` accept too.
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
