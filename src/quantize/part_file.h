// A file that is written from its beginning to its end, and that another run may continue. Until it
// is complete, it is called NAME.part, and NAME.part.state beside it has the fingerprint of what is
// being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/locked_file.h"
#include "quire/status.h"

namespace quire {

class PartFile {
 public:
  // Continues the file if its fingerprint is `fingerprint`, otherwise begins it. `file_bytes` is
  // its final size, which must fit the disk. Fails if another process writes it, and if NAME.part
  // has bytes but no state: it is then another program's.
  static Result<PartFile> open(const std::filesystem::path& path, std::string_view fingerprint,
                               uint64_t file_bytes);

  uint64_t size() const { return size_; }
  // Drops all bytes from `size` on.
  Status truncate(uint64_t size);
  Status append(std::span<const std::byte> bytes);
  // Appends zeros up to `size`.
  Status pad(uint64_t size);
  // Waits until the disk has all bytes. PlanWriter calls it after each tensor, so that all tensors
  // but the last one in the file are complete after a crash.
  Status sync();
  // Removes the file and its state, so that no other run continues it.
  Status discard();
  // Removes the state, and gives the file its name. Replaces another file of this name only with
  // `replaces`.
  Status finish(bool replaces);

 private:
  PartFile(std::filesystem::path path, LockedFile file);
  // Whether the state exists and is `fingerprint`.
  Result<bool> has_fingerprint(std::string_view fingerprint) const;
  Status error(std::string_view action) const;
  Status check_space(uint64_t file_bytes) const;

  std::filesystem::path path_;
  std::filesystem::path part_;
  std::filesystem::path state_;
  LockedFile file_;
  uint64_t size_ = 0;
};

// Gives `part` the name `out`. If `out` exists, fails, or with `replaces` replaces it in one step.
// A replaced directory is then called `part`.
Status give_name(const std::filesystem::path& part, const std::filesystem::path& out,
                 bool replaces);

}  // namespace quire
