#include "base/find_text.h"

#include <string.h>

#include <string>

namespace quire {

size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

size_t rfind_text(std::string_view text, std::string_view part) {
  if (part.size() > text.size()) return std::string_view::npos;
  const std::string backwards(text.rbegin(), text.rend());
  const std::string part_backwards(part.rbegin(), part.rend());
  const size_t at = find_text(backwards, part_backwards);
  return at == std::string_view::npos ? at : text.size() - at - part.size();
}

}  // namespace quire
