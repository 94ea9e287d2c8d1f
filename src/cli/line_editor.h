// Edits messages on a terminal, with libedit: arrows, history over sessions, search with Ctrl-R,
// messages of several lines (Alt-Enter, or a paste), and completion of commands with Tab.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::cli {

// Bounds of the history's file, which has one JSON string per line, the oldest first. Only the
// newest entries within both bounds are kept.
constexpr size_t kMaxHistoryEntries = 1000;
constexpr size_t kMaxHistoryBytes = size_t{1} << 20;

// Returns the newest entries within the bounds, oldest first. Lines that are not a JSON string are
// skipped, because a broken line must not affect the others.
std::vector<std::string> parse_history(std::string_view text);
std::string history_line(std::string_view entry);
// Returns the default file: $XDG_STATE_HOME/quire/chat_history.jsonl, otherwise the same file below
// ~/.local/state. Empty: the environment has neither variable. Relative paths are ignored, as the
// XDG specification requires.
std::string history_path(const char* xdg_state_home, const char* home);

// Returns pasted text in the form in which it enters a message: line ends become \n, and other
// control characters except tabs are dropped.
std::string cleaned_paste(std::string_view text);

class LineEditor {
 public:
  enum class End { kEnter, kInterrupt, kEndOfInput };
  struct Typed {
    End end = End::kEnter;
    std::string text;  // the message, also after kInterrupt
  };
  struct Options {
    std::vector<std::string> commands;  // Tab completes them at the start of a message
    std::string history_file;           // empty: the history ends with the session
  };

  // Returns null unless standard input and standard error are a terminal that supports editing.
  static std::unique_ptr<LineEditor> open(Options options);
  virtual ~LineEditor() = default;

  // Waits for a message. Ctrl-C also returns, and so does Ctrl-D on an empty line.
  virtual Typed read(const std::string& prompt) = 0;
};

}  // namespace quire::cli
