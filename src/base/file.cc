#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace quire {
namespace {

struct Descriptor {
  int fd = -1;
  size_t size = 0;

  Descriptor() = default;
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)), size(other.size) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Status errno_status(const std::filesystem::path& path, const char* what) {
  const std::string message =
      fmt::format("[file] cannot {} {}; {}", what, path.string(), std::strerror(errno));
  return errno == ENOENT ? not_found(message) : invalid_argument(message);
}

Result<Descriptor> open_regular(const std::filesystem::path& path) {
  Descriptor file;
  // O_NONBLOCK: opening a FIFO must not wait for a writer that never comes.
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0) return errno_status(path, "open");
  struct stat info = {};
  if (::fstat(file.fd, &info) != 0) return errno_status(path, "stat");
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument(fmt::format("[file] {} is not a regular file", path.string()));
  }
  file.size = static_cast<size_t>(info.st_size);
  return file;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const Descriptor file, open_regular(path));
  if (file.size > max_bytes) {
    return invalid_argument(fmt::format("[file] {} is too large; got {} bytes, expected at most {}",
                                        path.string(), file.size, max_bytes));
  }
  std::string text(file.size, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(path, "read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const Descriptor file, open_regular(path));
  MappedFile mapped;
  if (file.size == 0) return mapped;
  void* address = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) return errno_status(path, "map");
  mapped.bytes_ = {static_cast<const std::byte*>(address), file.size};
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::drop_pages(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace quire
