#include "quantize/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxStateBytes = 4096;

// Returns 0, or the number of the error.
int rename_to_new(const fs::path& part, const fs::path& out) {
  if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, out.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL) return errno;
  // Some file systems, such as NFS, support no flags.
  std::error_code ignored;
  if (fs::exists(out, ignored)) return EEXIST;
  return ::rename(part.c_str(), out.c_str()) == 0 ? 0 : errno;
}

}  // namespace

PartFile::PartFile(fs::path path, LockedFile file)
    : path_(std::move(path)),
      part_(path_.string() + ".part"),
      state_(part_.string() + ".state"),
      file_(std::move(file)) {}

Status PartFile::error(std::string_view action) const {
  const int code = errno;
  return {StatusCode::kInternal,
          fmt::format("[quantize] cannot {} {}; {}{}", action, part_.string(), std::strerror(code),
                      code == ENOSPC || code == EDQUOT || code == EFBIG
                          ? ": after making room, the same command continues"
                          : "")};
}

Status PartFile::check_space(uint64_t file_bytes) const {
  std::error_code failed;
  const fs::space_info space = fs::space(part_, failed);
  if (failed || size_ >= file_bytes || space.available >= file_bytes - size_) return {};
  return {StatusCode::kInternal,
          fmt::format("[quantize] the disk of {} is too small; got {} bytes free, expected {}: "
                      "make room, or choose an output on another disk",
                      part_.string(), space.available, file_bytes - size_)};
}

Result<bool> PartFile::has_fingerprint(std::string_view fingerprint) const {
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(state_));
  if (exists) {
    QUIRE_ASSIGN_OR_RETURN(const std::string state, read_file(state_, kMaxStateBytes));
    if (size_ > 0 && state != fingerprint) {
      log_info("[quantize] {} was made from another source or with other options; starting anew",
               part_.string());
    }
    return state == fingerprint;
  }
  if (size_ == 0) return false;
  return invalid_argument(
      fmt::format("[quantize] {} has {} bytes, but {} does not exist; expected both or neither: "
                  "remove or rename {}, or choose another output",
                  part_.string(), size_, state_.string(), part_.string()));
}

Result<PartFile> PartFile::open(const fs::path& path, std::string_view fingerprint,
                                uint64_t file_bytes) {
  QUIRE_ASSIGN_OR_RETURN(LockedFile locked,
                         LockedFile::open(path.string() + ".part", O_RDWR | O_CREAT, "quantize"));
  PartFile file(path, std::move(locked));
  struct stat info = {};
  if (::fstat(file.file_.fd(), &info) != 0) return file.error("read");
  file.size_ = static_cast<uint64_t>(info.st_size);
  QUIRE_ASSIGN_OR_RETURN(const bool is_same, file.has_fingerprint(fingerprint));
  QUIRE_RETURN_IF_ERROR(file.truncate(is_same ? std::min(file.size_, file_bytes) : 0));
  if (Status status = file.check_space(file_bytes); !status.ok()) {
    if (file.size_ == 0) QUIRE_RETURN_IF_ERROR(file.discard());  // nothing to continue
    return status;
  }
  if (!is_same) QUIRE_RETURN_IF_ERROR(replace_file(file.state_, fingerprint));
  return file;
}

Status PartFile::truncate(uint64_t size) {
  if (::ftruncate(file_.fd(), static_cast<off_t>(size)) != 0) return error("truncate");
  if (::lseek(file_.fd(), static_cast<off_t>(size), SEEK_SET) < 0) return error("write");
  size_ = size;
  return {};
}

Status PartFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.fd(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return error("write");
    size_ += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status PartFile::pad(uint64_t size) {
  constexpr std::array<std::byte, 256> kZeros = {};
  while (size_ < size) {
    const auto count = std::min<uint64_t>(kZeros.size(), size - size_);
    QUIRE_RETURN_IF_ERROR(append(std::span(kZeros).first(static_cast<size_t>(count))));
  }
  return {};
}

Status PartFile::sync() {
  return ::fdatasync(file_.fd()) == 0 ? Status() : error("write");
}

Status PartFile::discard() {
  for (const fs::path* path : {&state_, &part_}) {
    if (::unlink(path->c_str()) != 0 && errno != ENOENT) return error("remove");
  }
  return {};
}

// Removes the state first: after the rename, the state may be another process's, for the next file.
Status PartFile::finish(bool replaces) {
  QUIRE_RETURN_IF_ERROR(sync());
  if (::unlink(state_.c_str()) != 0 && errno != ENOENT) return error("remove the state of");
  return give_name(part_, path_, replaces);
}

Status give_name(const fs::path& part, const fs::path& out, bool replaces) {
  std::error_code ignored;
  const bool exchanges = replaces && fs::is_directory(part, ignored) && fs::exists(out, ignored);
  int code = 0;
  if (!replaces) {
    code = rename_to_new(part, out);
  } else if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, out.c_str(),
                         exchanges ? RENAME_EXCHANGE : 0) != 0) {
    code = errno;
  }
  if (code == 0) return {};
  return {
      StatusCode::kInternal,
      fmt::format("[quantize] cannot rename {} to {}; {}: the output is complete, so remove {} "
                  "if it is there and not needed, and rename {} yourself",
                  part.string(), out.string(), std::strerror(code), out.string(), part.string())};
}

}  // namespace quire
