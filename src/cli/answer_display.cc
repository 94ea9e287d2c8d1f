#include "cli/answer_display.h"

#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <atomic>

#include "base/text.h"

namespace quire::cli {
namespace {

constexpr size_t kTabColumns = 8;

size_t width_of(char32_t code_point) {
  const int width = ::wcwidth(static_cast<wchar_t>(code_point));
  return width < 0 ? 1 : static_cast<size_t>(width);
}

// Returns whether the word begins or ends a fenced code block. A word such as ```a``` is inline
// code.
bool is_fence(std::string_view word) {
  if (!word.starts_with("```") && !word.starts_with("~~~")) return false;
  const size_t end = word.find_first_not_of(word.front());
  return end == std::string_view::npos || word.find('`', end) == std::string_view::npos;
}

termios saved_terminal;
std::atomic<bool> is_quiet = false;

}  // namespace

std::string WordWrap::add(std::string_view text, size_t num_columns) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const std::string_view bytes = text.substr(0, static_cast<size_t>(c.num_bytes));
    text.remove_prefix(bytes.size());
    if (bytes == "\n" || bytes == " " || bytes == "\t") {
      end_word(num_columns, out);
      continues_word_ = false;
      if (bytes == "\n") {
        end_line(out);
      } else {
        spaces_ += bytes;
      }
      continue;
    }
    const size_t width = width_of(c.code_point);
    const bool is_wide = width > 1 && !in_code_;
    if (is_wide) {
      end_word(num_columns, out);
      continues_word_ = false;
    }
    word_ += bytes;
    word_width_ += width;
    if (!is_wide && word_width_ < num_columns) continue;
    end_word(num_columns, out);
    continues_word_ = !is_wide;
  }
  return out;
}

std::string WordWrap::finish(size_t num_columns) {
  std::string out;
  end_word(num_columns, out);
  out += spaces_;
  *this = WordWrap();
  return out;
}

void WordWrap::end_word(size_t num_columns, std::string& out) {
  if (word_.empty()) return;
  if (is_line_start_ && is_fence(word_)) {
    opened_code_ = in_code_ = !in_code_;
    word_width_ = 0;
  } else if (opened_code_ && word_.find('`') != std::string::npos) {
    in_code_ = false;  // the line has inline code, not a fence: ```a b```
  }
  is_line_start_ = false;
  size_t column = column_;
  for (const char c : spaces_)
    column = c == '\t' ? (column / kTabColumns + 1) * kTabColumns : column + 1;
  if (!in_code_ && !continues_word_ && column_ > 0 && column + word_width_ > num_columns) {
    out += '\n';
    column = 0;
  } else {
    out += spaces_;
  }
  out += word_;
  column_ = column + word_width_;
  if (column_ > num_columns) column_ %= num_columns;
  spaces_.clear();
  word_.clear();
  word_width_ = 0;
}

void WordWrap::end_line(std::string& out) {
  out += in_code_ ? spaces_ + '\n' : "\n";
  spaces_.clear();
  column_ = 0;
  is_line_start_ = true;
  opened_code_ = false;
}

QuietTerminal::QuietTerminal(bool is_wanted) {
  if (!is_wanted || ::tcgetattr(STDIN_FILENO, &saved_terminal) != 0) return;
  termios quiet = saved_terminal;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | ICANON);
  quiet.c_lflag |= NOFLSH;  // Ctrl-C keeps the keys that were typed before it
  is_quiet = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet) == 0;
}

QuietTerminal::~QuietTerminal() {
  restore();
}

void QuietTerminal::restore() {
  if (is_quiet.exchange(false)) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_terminal);
}

}  // namespace quire::cli
