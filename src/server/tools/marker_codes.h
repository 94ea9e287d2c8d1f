// Distinguishes markers that are single tokens of the tokenizer from text that spells them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/tools/token_marker.h"

namespace quire::server {

// Within a parser, a marker that arrived as one token is two bytes: 0xFF, which UTF-8 never has,
// and the marker's number. The forms of a template have the same bytes in place of such markers, so
// a text that spells a marker does not match. Without such markers, all texts stay as they are.
class MarkerCodes {
 public:
  static constexpr char kLead = '\xff';

  MarkerCodes() = default;
  // Markers after the first 250 are recognized as text.
  explicit MarkerCodes(std::vector<TokenMarker> markers);

  // Recognizes all markers as text from now on.
  void use_text() { is_coded_ = false; }
  bool empty() const { return !is_coded_ || markers_.empty(); }
  // Replaces the markers in a literal of a template by their codes.
  std::string encode_literal(std::string_view literal) const;
  // Appends a token whose part of the visible text is `text`.
  void append_token(std::string& out, int32_t token_id, std::string_view text) const;
  // Appends text that is not a token. A byte 0xFF in it does not become a code.
  void append_text(std::string& out, std::string_view text) const;
  // Returns the visible text: hidden markers are omitted, and other markers have their text.
  std::string decode(std::string_view text) const;
  // Returns the number of bytes of the unit at the start of the text: 1, or 2 for a code.
  size_t unit(std::string_view text) const {
    return !empty() && text.size() > 1 && text[0] == kLead ? 2 : 1;
  }

 private:
  static constexpr size_t kMaxMarkers = 250;
  static constexpr char kRawLead = '\xfe';  // the code of the byte 0xFF itself

  std::vector<TokenMarker> markers_;
  bool is_coded_ = true;
};

}  // namespace quire::server
