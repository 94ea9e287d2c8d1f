#include "start/packed_file.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/cache_directory.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "start/model_files.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

// Whether the directory, which need not exist, is on a tmpfs or ramfs, whose files take memory.
bool is_on_tmpfs(fs::path directory) {
  std::error_code error;
  while (!fs::exists(directory, error) && directory.has_relative_path()) {
    directory = directory.parent_path();
  }
  struct statfs info = {};
  if (::statfs(directory.c_str(), &info) != 0) return false;
  return info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
}

// The digest of the path of the model's first file gives each model its own file, which a model
// that changes in place overwrites. With the layout, different machines can share a directory.
std::string packed_name(std::string_view model, const fs::path& path, std::string_view layout) {
  // A file system allows names of 255 bytes; the writer adds a suffix while the file is incomplete.
  constexpr size_t kMaxModelBytes = 100;
  const Sha256Digest digest = sha256_of(path.native());
  return fmt::format("{}-{}-{}.packed", file_name_part(model.substr(0, kMaxModelBytes)),
                     file_name_part(layout), to_hexadecimal(std::span(digest).first(8)));
}

constexpr uint64_t kMinBytes = uint64_t{256} << 20;  // smaller models are packed fast enough
// With auto, this many times the file's size must be free, so that most of the user's disk stays
// free.
constexpr uint64_t kFreeSizesIfAuto = 4;

// Returns the directory for the packed weights of files of num_bytes in total; empty if packed
// weights are not kept.
Result<fs::path> directory_for(const EngineConfig& config, uint64_t num_bytes) {
  const bool is_auto = config.packed_weights == "auto";
  if (is_auto && num_bytes < kMinBytes) return fs::path();
  const fs::path chosen = is_auto ? own_cache_directory() : fs::path(config.packed_weights);
  if (chosen.empty()) return fs::path();
  fs::path directory = canonical_path(is_auto ? chosen / "packed" : chosen);
  std::error_code error;
  if (!is_auto && fs::exists(directory, error) && !fs::is_directory(directory, error)) {
    return invalid_argument(
        fmt::format("[engine] packed_weights: must be auto, off or a directory, got the file {}",
                    directory.string()));
  }
  if (!is_on_tmpfs(directory)) return directory;
  constexpr SettingName kSetting = {"packed_weights"};
  if (is_auto) {
    log_info(
        "[weights] packed weights are not kept, because their directory {} is in memory (tmpfs or "
        "ramfs); set {} to a directory on a disk, or to off",
        directory.string(), kSetting);
    return fs::path();
  }
  log_warning(
      "[weights] the file of packed weights in {} takes {} MiB of memory, because the directory is "
      "a tmpfs or ramfs; set {} to a directory on a disk, or to off",
      directory.string(), num_bytes >> 20, kSetting);
  return directory;
}

}  // namespace

Result<std::shared_ptr<PackedWeights>> open_packed_weights(const EngineConfig& config,
                                                           const ModelFiles& files,
                                                           const PlatformConfig& platform) {
  const std::shared_ptr<PackedWeights> none;
  const bool is_auto = config.packed_weights == "auto";
  if (config.packed_weights == "off") return none;
  const std::vector<const MappedFile*> sources = files.weights->files();
  const bool is_divided = platform.devices.size() > 1 || platform.nodes != nullptr ||
                          platform.replica.size > 1 || !is_on_one_node(platform.threads);
  if (sources.empty() || is_divided) {
    if (!is_auto) {
      log_warning("[weights] {} has no effect, because {}", SettingName{"packed_weights"},
                  is_divided
                      ? "each of several ranks, replicas or nodes packs its own part of the weights"
                      : "the weights are not in files");
    }
    return none;
  }
  uint64_t num_bytes = 0;
  for (const MappedFile* file : sources) num_bytes += file->bytes().size();
  QUIRE_ASSIGN_OR_RETURN(const fs::path directory, directory_for(config, num_bytes));
  if (directory.empty()) return none;
  const std::string layout = cpu_weight_layout();
  const std::string name = packed_name(files.name, canonical_path(sources.front()->path()), layout);
  return std::make_shared<PackedWeights>(
      PackedWeights::Config{.file = directory / name,
                            .sources = sources,
                            .layout = layout,
                            .free_sizes = is_auto ? kFreeSizesIfAuto : 1,
                            .is_automatic = is_auto,
                            .waits = config.waits_for_packed_weights});
}

}  // namespace quire
