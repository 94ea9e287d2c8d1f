// A file with a model's matrices as the CPU's kernels stream them. Packing takes most of a start: 3
// to 4 s for 4.6 GiB on two cores. The first start packs the matrices and writes the file, and
// later starts map it instead of packing. The file is a cache: it is used only if it was made from
// the model's present files, and may be deleted at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

// Raised whenever the packed bytes of a matrix change: a file with another version is not used.
inline constexpr int kPackedLayoutVersion = 1;

class PackedWeights {
 public:
  struct Config {
    std::filesystem::path file;
    std::vector<const MappedFile*> sources;  // the model's files, mapped until save() is called
    std::string layout = {};                 // names the machine's kernels; a file has one layout
    // The file is written only if the disk has free_sizes times its size free.
    uint64_t free_sizes = 1;
    // The user has named no directory. Then a failure is one informational line per start, and
    // files in the directory that no start has used for 30 days are removed.
    bool is_automatic = false;
    // The destructor waits until the file is written. Otherwise it stops the thread that writes,
    // which removes its unfinished file.
    bool waits = true;
  };
  // Maps the file if it exists. A file that is damaged, stale or of another user is not used: the
  // log says why, and save() replaces it.
  explicit PackedWeights(const Config& config);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // The place of these bytes in the model's files; absent if they are in other memory. A matrix
  // that is converted at load is in other memory, and is packed at every start.
  std::optional<std::string> place_of(const void* data, size_t num_bytes) const;

  struct Matrix {
    Buffer bytes;       // valid without this object, too; read-only if the file has the matrix
    uint32_t form = 0;  // the result of pack()
  };
  // The matrix from the file, or the matrix that pack() writes to zeroed memory. `key` identifies
  // the numbers and their order.
  Result<Matrix> get(std::string_view key, size_t num_bytes,
                     const std::function<uint32_t(std::byte*)>& pack);

  // Called once all matrices are made. If the file lacks one of them, a thread writes a new file.
  // Failures are logged, and the next start packs again.
  void save();

 private:
  class Mapping;
  struct Source {
    std::filesystem::path path;  // absolute, without symbolic links
    FileIdentity identity;
    std::span<const std::byte> bytes;  // empty once save() is called
  };
  struct Place {
    uint64_t offset = 0;
    uint64_t num_bytes = 0;
    uint64_t form = 0;
  };
  struct Made {
    Sha256Digest key = {};
    uint64_t form = 0;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  // of the bytes
  };

  Status map_file();
  void run_writer();
  Status write_file();
  // Removes the unfinished files of processes that have ended. Returns whether a process of this
  // user is writing the same file.
  bool clear_partial_files() const;
  // Removes the files in the directory that no start will use.
  void remove_unused() const;

  // The origin of the matrices, which must equal the file's.
  std::string describe_origin() const;
  // Fails if one of the model's files has changed since it was opened.
  Status check_unchanged() const;

  Config config_;  // without the sources
  std::vector<Source> sources_;
  std::string origin_;   // of describe_origin()
  std::string refusal_;  // why the existing file is not used
  std::shared_ptr<const Mapping> mapping_;
  std::map<Sha256Digest, Place> in_file_;
  std::vector<Made> made_;
  bool file_lacks_some_ = false;
  std::future<void> writer_;
  std::atomic<bool> is_cancelled_ = false;  // asks the writer to end
};

}  // namespace quire
