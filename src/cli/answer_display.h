// Shows an answer on a terminal while it is generated: words are wrapped at the edge, and typed
// keys are neither shown in the text nor lost.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quire::cli {

// Breaks lines between words, and beside wide characters, such as Chinese ones. Does not break
// lines of a fenced code block, nor words wider than the terminal: the terminal breaks these
// itself. wcwidth() of the locale gives the columns of a character.
class WordWrap {
 public:
  // Returns the text that can be shown; a word is held back until it ends. `text` consists of whole
  // characters, and `num_columns` is the width of the terminal.
  std::string add(std::string_view text, size_t num_columns);
  // Returns the text that is held back, and begins a new text.
  std::string finish(size_t num_columns);

 private:
  void end_word(size_t num_columns, std::string& out);
  void end_line(std::string& out);

  std::string spaces_;  // before word_
  std::string word_;
  size_t word_width_ = 0;
  size_t column_ = 0;
  bool is_line_start_ = true;  // no word of the current line of the text has ended
  bool in_code_ = false;
  bool opened_code_ = false;     // the current line of the text opened the code block
  bool continues_word_ = false;  // a part of the current word, which is too wide, is shown
};

// During its life, the terminal at standard input does not show typed keys, and keeps them for the
// next message. Ctrl-C remains a signal.
class QuietTerminal {
 public:
  explicit QuietTerminal(bool is_wanted);
  ~QuietTerminal();
  QuietTerminal(const QuietTerminal&) = delete;
  QuietTerminal& operator=(const QuietTerminal&) = delete;

  // Restores the terminal; safe in a signal handler.
  static void restore();
};

}  // namespace quire::cli
