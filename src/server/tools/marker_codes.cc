#include "server/tools/marker_codes.h"

#include <algorithm>
#include <utility>

namespace quire::server {

MarkerCodes::MarkerCodes(std::vector<TokenMarker> markers) : markers_(std::move(markers)) {
  if (markers_.size() > kMaxMarkers) markers_.resize(kMaxMarkers);
}

std::string MarkerCodes::encode_literal(std::string_view literal) const {
  if (empty()) return std::string(literal);
  std::string out;
  while (!literal.empty()) {
    size_t longest = 0;
    size_t idx = 0;
    for (size_t i = 0; i < markers_.size(); ++i) {
      const std::string& text = markers_[i].text;
      if (text.size() <= longest || !literal.starts_with(text)) continue;
      longest = text.size();
      idx = i;
    }
    if (longest > 0) {
      out += {kLead, static_cast<char>(idx)};
    } else {
      out += literal.front();
    }
    literal.remove_prefix(std::max<size_t>(longest, 1));
  }
  return out;
}

void MarkerCodes::append_token(std::string& out, int32_t token_id, std::string_view text) const {
  const auto found = std::ranges::find(markers_, token_id, &TokenMarker::token_id);
  if (found == markers_.end()) {
    append_text(out, text);
  } else if (is_coded_) {
    out += {kLead, static_cast<char>(found - markers_.begin())};
  } else {
    out += found->text;
  }
}

void MarkerCodes::append_text(std::string& out, std::string_view text) const {
  if (empty() || text.find(kLead) == std::string_view::npos) {
    out += text;
    return;
  }
  for (const char c : text) {
    out += c;
    if (c == kLead) out += kRawLead;
  }
}

std::string MarkerCodes::decode(std::string_view text) const {
  if (empty() || text.find(kLead) == std::string_view::npos) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (unit(text.substr(i)) == 1) {
      out += text[i];
      continue;
    }
    ++i;
    const auto idx = static_cast<unsigned char>(text[i]);
    if (text[i] == kRawLead) out += kLead;
    if (idx < markers_.size() && !markers_[idx].is_hidden) out += markers_[idx].text;
  }
  return out;
}

}  // namespace quire::server
