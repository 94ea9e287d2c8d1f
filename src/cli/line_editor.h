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

// The history's file has one JSON string per line, the oldest first. The newest entries are kept.
constexpr size_t kMaxHistoryEntries = 1000;
constexpr size_t kMaxHistoryBytes = size_t{1} << 20;

// Returns the newest entries within the bounds, oldest first. Lines that are not a JSON string are
// skipped, because a broken line must not affect the others.
std::vector<std::string> parse_history(std::string_view text);
std::string history_line(std::string_view entry);
// The default file: $XDG_STATE_HOME/quire/chat_history.jsonl, else below ~/.local/state. Empty: the
// environment names no home. Relative paths are ignored, as the XDG specification demands.
std::string history_path(const char* xdg_state_home, const char* home);

// Pasted text as it enters a message: line ends are \n, other control characters but tabs are
// dropped.
std::string cleaned_paste(std::string_view text);

class LineEditor {
 public:
  enum class End { kEnter, kInterrupt, kEndOfInput };
  struct Typed {
    End end = End::kEnter;
    std::string text;  // also of an interrupted message
  };
  struct Options {
    std::vector<std::string> commands;  // completed at the start of a message
    std::string history_file;           // empty: the history ends with the session
  };

  // Returns null unless standard input and standard error are a terminal that supports editing.
  static std::unique_ptr<LineEditor> open(Options options);
  virtual ~LineEditor() = default;

  // Waits for a message. Ctrl-C and Ctrl-D on an empty line end it too.
  virtual Typed read(const std::string& prompt) = 0;
};

}  // namespace quire::cli
