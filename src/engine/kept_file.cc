#include "engine/kept_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/ascii.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

std::string file_name_part(std::string_view text) {
  std::string part;
  for (const char c : text) part += is_alphanumeric(c) || c == '.' ? c : '-';
  return part;
}

}  // namespace

fs::path kept_file(std::string_view kind, std::initializer_list<std::string_view> parts) {
  fs::path directory;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    directory = cache;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    directory = fs::path(home) / ".cache";
  } else {
    return {};
  }
  std::string name(kind);
  for (const std::string_view part : parts) name += "_" + file_name_part(part);
  return directory / "quire" / fmt::format("{}_{}.csv", name, QUIRE_VERSION);
}

}  // namespace quire
