// Files, read as what they are: things that may be missing, huge or lying.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "quire/status.h"

namespace quire {

// The whole of a regular file; refused above max_bytes before anything is allocated.
Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes);

// A read-only private mapping of a whole regular file; an empty file maps to an empty span.
// A file that shrinks while it is mapped is the one fault mmap cannot report: SIGBUS.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Tells the kernel that these bytes are no longer needed in memory; they can be read again.
  void drop_pages(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;

  std::span<const std::byte> bytes_;
};

}  // namespace quire
