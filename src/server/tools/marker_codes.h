// Markers that are single tokens of the tokenizer, told apart from text that spells them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire::server {

// Within a parser, a marker that arrived as one token is two bytes: 0xFF, which UTF-8 never has,
// and the marker's number. The forms of a template have the same bytes in place of such markers,
// so a text that spells one does not match. Without such markers all texts stay as they are.
class MarkerCodes {
 public:
  static constexpr char kLead = '\xff';

  MarkerCodes() = default;
  // Later markers than the first 250 are recognized as text.
  explicit MarkerCodes(std::vector<std::string> markers) : markers_(std::move(markers)) {
    if (markers_.size() > kMaxMarkers) markers_.resize(kMaxMarkers);
  }

  bool empty() const { return markers_.empty(); }
  // The code of a marker; "" if it is none.
  std::string code(std::string_view marker) const;
  // Replaces the markers in a literal of a template by their codes.
  std::string encode_literal(std::string_view literal) const;
  // Makes text safe: it has no codes then.
  void append_text(std::string& out, std::string_view text) const;
  // Puts the markers' texts in place of their codes.
  std::string decode(std::string_view text) const;
  // Bytes of the unit at the start of the text: a byte or a code.
  size_t unit(std::string_view text) const {
    return !markers_.empty() && text.size() > 1 && text[0] == kLead ? 2 : 1;
  }

 private:
  static constexpr size_t kMaxMarkers = 250;
  static constexpr char kRawLead = '\xfe';  // the code of the byte 0xFF itself

  std::vector<std::string> markers_;
};

}  // namespace quire::server
