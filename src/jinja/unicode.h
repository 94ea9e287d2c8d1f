// Python's str methods over UTF-8. A character is a code point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Strips the characters in `chars`; nullopt: white space.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left,
                       bool right);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title(), which differs from the filter
std::string swapcase(std::string_view text);

// Calls one of Python's str.is…() methods by name; nullopt if there is none of that name.
std::optional<bool> classify(std::string_view question, std::string_view text);

// Removes and returns the first line of a non-empty text, with its line end if `keep_end`.
std::string_view take_line(std::string_view& text, bool keep_end);

}  // namespace quire::jinja
