#include "base/cache_directory.h"

#include <cstdlib>

#include "base/ascii.h"

namespace quire {

std::filesystem::path own_cache_directory() {
  namespace fs = std::filesystem;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return fs::path(cache) / "quire";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path(home) / ".cache" / "quire";
  }
  return {};
}

std::string file_name_part(std::string_view text) {
  std::string part;
  for (const char c : text) part += is_alphanumeric(c) || c == '.' ? c : '-';
  return part;
}

}  // namespace quire
