// Python's str over UTF-8: characters are code points.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::jinja {

size_t count_chars(std::string_view text);
// The byte at which character `char_idx` begins; the size of the text at its end.
size_t byte_of_char(std::string_view text, size_t char_idx);
std::u32string to_code_points(std::string_view text);
std::string from_code_points(std::u32string_view text);

// The characters of a text for a range-based for, without a copy.
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

bool is_space(char32_t c);  // str.isspace(), which is also what regular expressions call \s
bool is_word(char32_t c);   // \w
bool is_printable(char32_t c);

// `chars`: the characters to remove; white space when absent.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left,
                       bool right);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title(), not the filter
std::string swapcase(std::string_view text);

// One of Python's str.is…() questions; nullopt if it has no such method.
std::optional<bool> classify(std::string_view question, std::string_view text);

// Removes and returns the first line of a non-empty text, with its end if `keep_end`.
std::string_view take_line(std::string_view& text, bool keep_end);

}  // namespace quire::jinja
