// A file that is written from its beginning to its end and that another run may continue: until it
// is complete it is called NAME.part, beside NAME.part.state with the fingerprint of what is being
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire {

class PartFile {
 public:
  // Continues the file if its fingerprint is `fingerprint`, otherwise begins it. `file_bytes` is
  // its final size, which must fit the disk. Fails if another process writes it.
  static Result<PartFile> open(const std::filesystem::path& path, std::string_view fingerprint,
                               uint64_t file_bytes);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) = delete;
  ~PartFile();

  uint64_t size() const { return size_; }
  // Whether the file began before this process.
  bool is_continued() const { return is_continued_; }
  // Drops all bytes from `size` on.
  Status truncate(uint64_t size);
  Status append(std::span<const std::byte> bytes);
  // Appends zeros up to `size`.
  Status pad(uint64_t size);
  // Waits until the disk has all bytes.
  Status sync();
  // Gives the file its name, and removes the state.
  Status finish();

 private:
  explicit PartFile(std::filesystem::path path);
  Status error(std::string_view action) const;
  Status check_space(uint64_t file_bytes) const;

  std::filesystem::path path_;
  std::filesystem::path part_;
  std::filesystem::path state_;
  int fd_ = -1;
  uint64_t size_ = 0;
  bool is_continued_ = false;
};

}  // namespace quire
