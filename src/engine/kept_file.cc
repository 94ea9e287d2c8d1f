#include "engine/kept_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/digest.h"
#include "engine/model_files.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

std::string file_name_part(std::string_view text) {
  std::string part;
  for (const char c : text) part += is_alphanumeric(c) || c == '.' ? c : '-';
  return part;
}

// Empty if neither variable is set.
fs::path cache_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return fs::path(cache) / "quire";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path(home) / ".cache" / "quire";
  }
  return {};
}

}  // namespace

fs::path kept_file(std::string_view kind, std::initializer_list<std::string_view> parts) {
  const fs::path directory = cache_directory();
  if (directory.empty()) return {};
  std::string name(kind);
  for (const std::string_view part : parts) name += "_" + file_name_part(part);
  return directory / fmt::format("{}_{}.csv", name, QUIRE_VERSION);
}

// The name has a digest of the path, so that a changed model replaces its packed weights.
Result<std::shared_ptr<PackedWeights>> open_packed_weights(const EngineConfig& config,
                                                           const ModelFiles& files) {
  constexpr uint64_t kMinBytes = uint64_t{256} << 20;
  constexpr uint64_t kFreeSizes = 4;
  const std::string& wanted = config.packed_weights;
  const bool is_auto = wanted == "auto";
  if (wanted.empty()) {
    return invalid_argument(
        "[engine] packed_weights: must be auto, off or a directory, got an empty text");
  }
  const auto* const weights = dynamic_cast<const FileWeights*>(files.weights.get());
  if (wanted == "off" || weights == nullptr) return std::shared_ptr<PackedWeights>();
  const std::vector<const MappedFile*> sources = weights->files();
  uint64_t num_bytes = 0;
  for (const MappedFile* file : sources) num_bytes += file->bytes().size();
  if (sources.empty() || (is_auto && num_bytes < kMinBytes))
    return std::shared_ptr<PackedWeights>();
  const fs::path directory = is_auto ? cache_directory() / "packed" : fs::path(wanted);
  if (!directory.is_absolute() && is_auto) return std::shared_ptr<PackedWeights>();
  const Sha256Digest path = sha256_of(fs::absolute(sources.front()->path()).string());
  const std::string name = fmt::format("{}-{}.packed", file_name_part(files.name),
                                       to_hexadecimal(std::span(path).first(8)));
  return std::make_shared<PackedWeights>(PackedWeights::Config{
      .file = directory / name, .sources = sources, .free_sizes = is_auto ? kFreeSizes : 1});
}

}  // namespace quire
