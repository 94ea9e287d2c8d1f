#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/numbers.h"

namespace quire {
namespace {

FileIdentity identity_of(const struct stat& info) {
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.num_bytes = static_cast<uint64_t>(info.st_size),
          .written_ns = nanoseconds(info.st_mtim),
          .changed_ns = nanoseconds(info.st_ctim)};
}

struct Descriptor {
  int fd = -1;
  size_t size = 0;
  FileIdentity identity;

  Descriptor() = default;
  Descriptor(Descriptor&& other) noexcept
      : fd(std::exchange(other.fd, -1)), size(other.size), identity(other.identity) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Status errno_status(std::string_view name, const char* what) {
  const std::string message =
      fmt::format("[file] cannot {} {}; {}", what, name, std::strerror(errno));
  return errno == ENOENT ? not_found(message) : invalid_argument(message);
}

std::string link_target(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::read_symlink(path, ignored).string();
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Waits until a pipe, which was opened with O_NONBLOCK, has bytes or has lost its writer.
Status wait_for_writer(int fd, std::string_view name) {
  constexpr int kQuietMs = 1000;
  pollfd pipe = {.fd = fd, .events = POLLIN, .revents = 0};
  for (int timeout_ms = kQuietMs;;) {
    const int num_ready = ::poll(&pipe, 1, timeout_ms);
    if (num_ready > 0) break;
    if (num_ready < 0 && errno != EINTR) return errno_status(name, "read");
    if (num_ready == 0) {
      log_info("[file] {} is a FIFO, and nothing is written to it yet; waiting", name);
      timeout_ms = -1;
    }
  }
  return ::fcntl(fd, F_SETFL, O_RDONLY) == 0 ? Status() : errno_status(name, "read");
}

enum class Kinds { kRegular, kRegularOrPipe };

Result<Descriptor> open_file(const std::filesystem::path& path, Kinds kinds) {
  const bool pipes = kinds == Kinds::kRegularOrPipe;
  Descriptor file;
  // O_NONBLOCK: when pipes are not accepted, opening one must not wait for a writer.
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0) {
    const Status failed = errno_status(path.string(), "open");
    QUIRE_RETURN_IF_ERROR(path_exists(path).status());
    return failed;
  }
  struct stat info = {};
  if (::fstat(file.fd, &info) != 0) return errno_status(path.string(), "stat");
  if (!S_ISREG(info.st_mode) && !(pipes && S_ISFIFO(info.st_mode))) {
    return invalid_argument(
        fmt::format("[file] {} is not a regular file{}; got {}, expected the path of a file",
                    path.string(), pipes ? " or a pipe" : "", kind_of(info.st_mode)));
  }
  if (S_ISFIFO(info.st_mode)) QUIRE_RETURN_IF_ERROR(wait_for_writer(file.fd, path.string()));
  file.size = static_cast<size_t>(info.st_size);
  file.identity = identity_of(info);
  return file;
}

// Detects the pointer file that a clone without git-lfs has in place of a large file.
Status check_fetched(std::string_view name, std::string_view text) {
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return {};
  return invalid_argument(fmt::format(
      "[file] {} is a git-lfs pointer, not the file; git lfs pull, run in its folder, fetches it",
      name));
}

Status write_all(int fd, std::string_view name, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_status(name, "write");
    text.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

// The size is only a hint: a file in /proc reports 0, and other files may grow.
Result<std::string> read_to_end(int fd, std::string_view name, size_t max_bytes, size_t size) {
  constexpr size_t kMinRoom = size_t{1} << 16;
  const auto too_large = [&](const std::string& got) {
    return invalid_argument(fmt::format("[file] {} is too large; got {} bytes, expected at most {}",
                                        name, got, max_bytes));
  };
  if (size > max_bytes) return too_large(std::to_string(size));
  std::string text(size + 1, '\0');  // one byte more, to detect the end
  for (size_t done = 0;;) {
    if (done > max_bytes) return too_large("more");
    if (done == text.size()) text.resize(done + std::max(done / 2, kMinRoom));
    const ssize_t got = ::read(fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(name, "read");
    if (got == 0) {
      text.resize(done);
      QUIRE_RETURN_IF_ERROR(check_fetched(name, text));
      return text;
    }
    done += static_cast<size_t>(got);
  }
}

}  // namespace

Result<bool> path_exists(const std::filesystem::path& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) return true;
  const int reason = errno;
  const bool is_absent = reason == ENOENT || reason == ENOTDIR;
  if (is_absent && ::lstat(path.c_str(), &info) != 0) return false;
  if (is_absent) {
    return invalid_argument(
        fmt::format("[file] {} exists but cannot be opened: it is a symbolic link to {}, which "
                    "does not exist",
                    path.string(), link_target(path)));
  }
  return invalid_argument(
      fmt::format("[file] {} cannot be opened: {}", path.string(), std::strerror(reason)));
}

std::filesystem::path canonical_path(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  return error ? std::filesystem::absolute(path, error).lexically_normal() : canonical;
}

Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const Descriptor file, open_file(path, Kinds::kRegular));
  return read_to_end(file.fd, path.string(), max_bytes, file.size);
}

Result<std::string> read_file_or_pipe(const std::filesystem::path& path, size_t max_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const Descriptor file, open_file(path, Kinds::kRegularOrPipe));
  return read_to_end(file.fd, path.string(), max_bytes, file.size);
}

Result<std::string> read_to_end(int fd, std::string_view name, size_t max_bytes) {
  return read_to_end(fd, name, max_bytes, 0);
}

Status replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path folder = path.parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    return invalid_argument(
        fmt::format("[file] cannot create the folder {}; {}", folder.string(), error.message()));
  }
  std::string beside = path.string() + ".XXXXXX";
  Descriptor file;
  file.fd = ::mkstemp(beside.data());
  if (file.fd < 0) return errno_status(beside, "create");
  Status status = write_all(file.fd, beside, text);
  if (status.ok() && ::rename(beside.c_str(), path.c_str()) != 0) {
    status = errno_status(path.string(), "replace");
  }
  if (!status.ok()) ::unlink(beside.c_str());
  return status;
}

Result<FileIdentity> identity_of(const std::filesystem::path& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return errno_status(path.string(), "stat");
  return identity_of(info);
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const Descriptor file, open_file(path, Kinds::kRegular));
  MappedFile mapped;
  mapped.path_ = path;
  mapped.identity_ = file.identity;
  if (file.size == 0) return mapped;
  void* address = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) return errno_status(path.string(), "map");
  mapped.bytes_ = {static_cast<const std::byte*>(address), file.size};
  QUIRE_RETURN_IF_ERROR(
      check_fetched(path.string(), {static_cast<const char*>(address), file.size}));
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      path_(std::move(other.path_)),
      identity_(other.identity_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(path_, other.path_);
  std::swap(identity_, other.identity_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::drop_pages(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = round_up(begin, page);
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace quire
