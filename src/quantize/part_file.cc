#include "quantize/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxStateBytes = 4096;

}  // namespace

PartFile::PartFile(fs::path path)
    : path_(std::move(path)), part_(path_.string() + ".part"), state_(part_.string() + ".state") {}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::move(other.part_)),
      state_(std::move(other.state_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      is_continued_(other.is_continued_) {}

PartFile::~PartFile() {
  if (fd_ >= 0) ::close(fd_);
}

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
          fmt::format("[quantize] the disk of {} is too small; got {} bytes of room, expected {}",
                      part_.string(), space.available, file_bytes - size_)};
}

Result<PartFile> PartFile::open(const fs::path& path, std::string_view fingerprint,
                                uint64_t file_bytes) {
  PartFile file(path);
  file.fd_ = ::open(file.part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return file.error("create");
  if (::flock(file.fd_, LOCK_EX | LOCK_NB) != 0) {
    return unavailable(fmt::format(
        "[quantize] {} is being written by another process; expected none: wait for it, or choose "
        "another output",
        file.part_.string()));
  }
  struct stat info = {};
  if (::fstat(file.fd_, &info) != 0) return file.error("read");
  const Result<std::string> state = read_file(file.state_, kMaxStateBytes);
  const bool is_same = state.ok() && *state == fingerprint;
  if (info.st_size > 0 && is_same) {
    file.size_ = std::min(static_cast<uint64_t>(info.st_size), file_bytes);
    file.is_continued_ = true;
  } else if (info.st_size > 0) {
    log_info("[quantize] {} was made from another source or with other options; starting anew",
             file.part_.string());
  }
  QUIRE_RETURN_IF_ERROR(file.truncate(file.size_));
  QUIRE_RETURN_IF_ERROR(file.check_space(file_bytes));
  if (!is_same) QUIRE_RETURN_IF_ERROR(replace_file(file.state_, fingerprint));
  return file;
}

Status PartFile::truncate(uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return error("truncate");
  if (::lseek(fd_, static_cast<off_t>(size), SEEK_SET) < 0) return error("write");
  size_ = size;
  return {};
}

Status PartFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
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
  return ::fdatasync(fd_) == 0 ? Status() : error("write");
}

Status PartFile::finish() {
  QUIRE_RETURN_IF_ERROR(sync());
  if (::rename(part_.c_str(), path_.c_str()) != 0) return error("rename");
  ::unlink(state_.c_str());
  return {};
}

}  // namespace quire
