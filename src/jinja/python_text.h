// Text with the rules of Python's str: UTF-8, in which a character is a code point. Nothing here
// charges a budget, except write_escaped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/marked_text.h"
#include "jinja/budget.h"

namespace quire::jinja {

size_t count_chars(std::string_view text);
// The byte offset of character `char_idx`; the size of the text for the index after the last one.
size_t byte_of_char(std::string_view text, size_t char_idx);
std::u32string to_code_points(std::string_view text);
std::string from_code_points(std::u32string_view text);

// Iterates over the characters of a text without a copy.
class Chars {
 public:
  struct Char {
    char32_t code_point;
    std::string_view bytes;
  };
  class Iterator {
   public:
    explicit Iterator(std::string_view rest) : rest_(rest) { decode(); }
    const Char& operator*() const { return now_; }
    Iterator& operator++() {
      rest_.remove_prefix(now_.bytes.size());
      decode();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return rest_.size() != other.rest_.size(); }

   private:
    void decode() {
      if (rest_.empty()) return;
      if (rest_[0] >= 0) {
        now_ = {static_cast<char32_t>(rest_[0]), rest_.substr(0, 1)};
      } else {
        decode_wide();
      }
    }
    void decode_wide();

    std::string_view rest_;
    Char now_{};
  };

  explicit Chars(std::string_view text) : text_(text) {}
  Iterator begin() const { return Iterator(text_); }
  Iterator end() const { return Iterator(text_.substr(text_.size())); }

 private:
  std::string_view text_;
};

bool is_space(char32_t c);  // str.isspace(), which equals \s in regular expressions
bool is_word(char32_t c);   // \w
bool is_printable(char32_t c);
bool is_identifier(std::string_view text);
// Returns whether the text has cased characters and all of them are lower (or upper) case.
bool is_lower_case(std::string_view text);
bool is_upper_case(std::string_view text);

// Strips the characters in `chars`; nullopt: white space.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left,
                       bool right);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);         // str.title()
std::string title_filter(std::string_view text);  // The filter `title` splits words differently.
// The start of a text of the template, for error messages.
std::string_view shortened(std::string_view text);
// Removes and returns the first line of a non-empty text, without its line end.
std::string_view take_line(std::string_view& text);

// The number of bytes of digits at the start of the text, which single underscores may separate.
size_t count_digits(std::string_view text, int base = 10);
// The number of bytes of an exponent ("e-3") at the start of the text.
size_t count_exponent(std::string_view text);
// nullopt: more than 64 bits.
std::optional<int64_t> digits_to_int(std::string_view digits, bool negative, int base);
double digits_to_float(std::string_view digits);
// Python's int(text, base) and float(text); nullopt where they raise ValueError. Integers beyond 64
// bits fail.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// Calls `escape` with each character and its bytes. An empty result keeps the character.
template <typename Escape>
void write_escaped(const MarkedText& source, TextBuilder& out, Escape escape) {
  constexpr size_t kMaxPending = 4096;  // bytes scanned before they are charged
  const std::string_view text = source.text;
  const char* pending = text.data();
  for (const auto& [c, bytes] : Chars(text)) {
    const std::string escaped = escape(c, bytes);
    const auto num_pending = static_cast<size_t>(bytes.data() - pending);
    if (escaped.empty() && num_pending < kMaxPending) continue;
    out.append(source, {pending, num_pending});
    out.append_replacement(source, bytes, escaped);
    pending = bytes.data() + (escaped.empty() ? 0 : bytes.size());
  }
  out.append(source, text.substr(static_cast<size_t>(pending - text.data())));
}

}  // namespace quire::jinja
