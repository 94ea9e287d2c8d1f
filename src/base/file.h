// Reads files safely: they may be missing, huge, or of a wrong size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire {

// Returns whether a file or folder exists. Fails if that is unknown, for example in a folder that
// may not be searched. Also fails for a symbolic link without a target, because an optional file
// that exists but cannot be opened must not count as absent.
Result<bool> path_exists(const std::filesystem::path& path);

// The absolute path without symbolic links, dots and double separators, so that each file has one
// name. It need not exist.
std::filesystem::path canonical_path(const std::filesystem::path& path);

// All functions that read fail on a file that git-lfs has not fetched.

// Reads a whole regular file. Fails above max_bytes, before any allocation if the file's size is
// known.
Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes);
// Reads a file or a pipe (`<(command)`, a FIFO), and waits for the pipe's writer.
Result<std::string> read_file_or_pipe(const std::filesystem::path& path, size_t max_bytes);
// Reads until the end of the file. `name` appears in errors.
Result<std::string> read_to_end(int fd, std::string_view name, size_t max_bytes);

// Creates or replaces a file, and creates the folders of its path. Readers see the old or the new
// content, never a part: the text is written to a file beside it, which is then renamed.
Status replace_file(const std::filesystem::path& path, std::string_view text);

// The properties that change when a file is written or replaced. Device and inode numbers are left
// out, because network and overlay file systems may change them.
struct FileIdentity {
  uint64_t num_bytes = 0;
  int64_t written_ns = 0;  // mtime, since 1970
  int64_t changed_ns = 0;  // ctime

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
Result<FileIdentity> identity_of(const std::filesystem::path& path);

// A read-only private mapping of a whole regular file; an empty file maps to an empty span. If the
// file shrinks while it is mapped, reads raise SIGBUS, which cannot be reported.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // The identity of the file when it was opened.
  const FileIdentity& identity() const { return identity_; }
  // Tells the kernel that it may drop these bytes from memory; they can be read again.
  void drop_pages(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;

  std::span<const std::byte> bytes_;
  std::filesystem::path path_;
  FileIdentity identity_;
};

}  // namespace quire
