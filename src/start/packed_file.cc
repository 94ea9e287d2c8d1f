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

// The name has a digest of the model's path, so that a changed model replaces its packed weights,
// and the layout, so that different machines can share a directory.
std::string packed_name(std::string_view model, const fs::path& path, std::string_view layout) {
  constexpr size_t kMaxModelBytes = 100;  // a file's name has at most 255, with what a writer adds
  const Sha256Digest digest = sha256_of(path.native());
  return fmt::format("{}-{}-{}.packed", file_name_part(model.substr(0, kMaxModelBytes)),
                     file_name_part(layout), to_hexadecimal(std::span(digest).first(8)));
}

}  // namespace

Result<std::shared_ptr<PackedWeights>> open_packed_weights(const EngineConfig& config,
                                                           const ModelFiles& files,
                                                           const PlatformConfig& platform) {
  constexpr uint64_t kMinBytes = uint64_t{256} << 20;
  constexpr uint64_t kFreeSizes = 4;
  const std::shared_ptr<PackedWeights> none;
  const std::string& wanted = config.packed_weights;
  const bool is_auto = wanted == "auto";
  if (wanted == "off") return none;
  const std::vector<const MappedFile*> sources = files.weights->files();
  const bool is_divided = platform.devices.size() > 1 || platform.nodes != nullptr ||
                          platform.replica.size > 1 || !is_on_one_node(platform.threads);
  if (sources.empty() || is_divided) {
    if (!is_auto) {
      log_warning("[weights] {} has no effect, because {}", SettingName{"packed_weights"},
                  is_divided ? "several ranks, replicas or NUMA nodes pack what each multiplies"
                             : "the weights are not in files");
    }
    return none;
  }
  uint64_t num_bytes = 0;
  for (const MappedFile* file : sources) num_bytes += file->bytes().size();
  if (is_auto && num_bytes < kMinBytes) return none;
  const fs::path chosen = is_auto ? cache_directory() : fs::path(wanted);
  if (chosen.empty()) return none;
  const fs::path directory = canonical_path(is_auto ? chosen / "packed" : chosen);
  std::error_code error;
  if (!is_auto && fs::exists(directory, error) && !fs::is_directory(directory, error)) {
    return invalid_argument(
        fmt::format("[engine] packed_weights: must be auto, off or a directory, got the file {}",
                    directory.string()));
  }
  if (is_on_tmpfs(directory)) {
    log(is_auto ? LogLevel::kInfo : LogLevel::kWarning,
        "[weights] the directory for packed weights, {}, is in memory (tmpfs){}; set "
        "`packed_weights` to a directory on a disk, or to off",
        directory.string(),
        is_auto ? ", so that none are kept"
                : fmt::format(": a file there takes {} MiB of it", num_bytes >> 20));
    if (is_auto) return none;
  }
  const std::string layout = cpu_weight_layout();
  const std::string name = packed_name(files.name, canonical_path(sources.front()->path()), layout);
  return std::make_shared<PackedWeights>(
      PackedWeights::Config{.file = directory / name,
                            .sources = sources,
                            .layout = layout,
                            .free_sizes = is_auto ? kFreeSizes : 1,
                            .is_automatic = is_auto,
                            .waits = config.waits_for_packed_weights});
}

}  // namespace quire
