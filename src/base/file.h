// Files, read as what they are: things that may be missing, huge or lying.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire {

// All of them refuse what stands in for a file that git-lfs has not fetched.

// The whole of a regular file; refused above max_bytes, where its size tells before anything is
// allocated.
Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes);
// The same of a file or a pipe (`<(command)`, a FIFO), which waits for its writer.
Result<std::string> read_file_or_pipe(const std::filesystem::path& path, size_t max_bytes);
// All that comes until the end. `name`: in errors.
Result<std::string> read_to_end(int fd, std::string_view name, size_t max_bytes);

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
