#include "server/tools/marker_codes.h"

#include <algorithm>

namespace quire::server {

std::string MarkerCodes::code(std::string_view marker) const {
  const auto found = std::ranges::find(markers_, marker);
  if (found == markers_.end()) return {};
  return {kLead, static_cast<char>(found - markers_.begin())};
}

std::string MarkerCodes::encode_literal(std::string_view literal) const {
  std::string out;
  while (!literal.empty()) {
    const std::string* longest = nullptr;
    for (const std::string& marker : markers_) {
      if (!marker.empty() && literal.starts_with(marker) &&
          (longest == nullptr || marker.size() > longest->size())) {
        longest = &marker;
      }
    }
    if (longest != nullptr) out += code(*longest);
    if (longest == nullptr) out += literal.front();
    literal.remove_prefix(longest != nullptr ? longest->size() : 1);
  }
  return out;
}

void MarkerCodes::append_text(std::string& out, std::string_view text) const {
  if (markers_.empty() || text.find(kLead) == std::string_view::npos) {
    out += text;
    return;
  }
  for (const char c : text) {
    out += c;
    if (c == kLead) out += kRawLead;
  }
}

std::string MarkerCodes::decode(std::string_view text) const {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (unit(text.substr(i)) == 1) {
      out += text[i];
      continue;
    }
    ++i;
    const auto idx = static_cast<unsigned char>(text[i]);
    if (text[i] == kRawLead) out += kLead;
    if (idx < markers_.size()) out += markers_[idx];
  }
  return out;
}

}  // namespace quire::server
