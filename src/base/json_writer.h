// Writes JSON into a string.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire {

// Appends one JSON value to a string. The writer adds commas and escapes; the caller keeps the
// nesting correct.
//   JsonWriter w; w.begin_object(); w.key("id"); w.value(7); w.end_object(); w.text()
class JsonWriter {
 public:
  JsonWriter() : text_(own_text_) {}
  // Appends to `out`, which must outlive the writer.
  explicit JsonWriter(std::string& out) : text_(out) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);
  // Writes a literal without escaping it, which is several times as fast. It must not need escapes.
  template <size_t N>
  void key(const char (&name)[N]) {
    std::array<char, N + 3> text = {',', '"'};
    std::copy_n(name, N - 1, text.begin() + 2);
    text[N + 1] = '"';
    text[N + 2] = ':';
    const size_t first = need_comma_ ? 0 : 1;
    text_.append(text.data() + first, text.size() - first);
    need_comma_ = false;
  }
  void value(std::string_view text);  // invalid UTF-8 becomes U+FFFD: output is always valid JSON
  void value(const char* text) { value(std::string_view(text)); }
  void value(int64_t number);
  void value(int number) { value(int64_t{number}); }
  void value(size_t number) { value(static_cast<int64_t>(number)); }
  void value(double number);  // shortest form that reads back the same; null for NaN and infinities
  void value(bool flag) { raw(flag ? "true" : "false"); }
  void null() { raw("null"); }
  void value_or_null(std::string_view text) { text.empty() ? null() : value(text); }
  // Writes a value that is already JSON.
  void raw(std::string_view json) {
    separate();
    text_ += json;
  }
  // `[1,2,3]`
  void ids(const std::vector<int32_t>& ids);
  template <typename Name, typename T>
  void field(const Name& name, const T& field_value) {
    key(name);
    value(field_value);
  }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void open(char bracket) {
    separate();
    text_ += bracket;
    need_comma_ = false;
  }
  void close(char bracket) {
    text_ += bracket;
    need_comma_ = true;
  }
  void separate() {
    if (need_comma_) text_ += ',';
    need_comma_ = true;
  }
  void append_quoted(std::string_view text);

  std::string own_text_;
  std::string& text_;
  bool need_comma_ = false;
};

}  // namespace quire
