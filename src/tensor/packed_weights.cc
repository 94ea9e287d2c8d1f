#include "tensor/packed_weights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "base/numbers.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kAlign = 4096;  // of a matrix in the file
// A file system that has large folios then keeps the file in huge pages, and the mapping has them.
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr size_t kWriteBytes = 4 * kHugePage;
constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;
constexpr std::array<char, 16> kMagic = {"quire packed 1\n"};

// The file begins with a Head, the text of the sources, and the entries.
struct Head {
  std::array<char, 16> magic = kMagic;
  uint64_t header_bytes = 0;  // with the text and the entries
  uint64_t file_bytes = 0;
  uint64_t sources_bytes = 0;
  uint64_t num_entries = 0;
  Sha256Digest digest = {};  // of the header, with zeros here
};

struct Entry {
  Sha256Digest key = {};
  uint64_t offset = 0;
  uint64_t num_bytes = 0;
  uint64_t form = 0;
};

struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

Status failed_to(std::string_view action, const fs::path& path) {
  const int code = errno;
  const std::string message =
      fmt::format("cannot {} {}; {}", action, path.string(), std::strerror(code));
  return code == ENOENT ? not_found(message) : internal_error(message);
}

// Other users could otherwise choose the weights, or end this process by truncating the file.
Status check_is_own(int fd, const fs::path& path) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return failed_to("stat", path);
  if (!S_ISREG(info.st_mode)) return invalid_argument("it is not a regular file");
  if (info.st_uid != ::geteuid()) {
    return invalid_argument(
        fmt::format("it belongs to user {}, expected {}", info.st_uid, ::geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return invalid_argument(fmt::format("other users may write it; got mode {:o}, expected 600",
                                        info.st_mode & 07777U));
  }
  if (info.st_nlink > 1) return invalid_argument("it has other names (hard links)");
  return {};
}

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T>
T read_at(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Sha256Digest header_digest(std::string header) {
  std::memset(header.data() + offsetof(Head, digest), 0, sizeof(Sha256Digest));
  return sha256_of(header);
}

std::string make_header(std::string_view sources, std::span<const Entry> entries,
                        uint64_t file_bytes) {
  Head head;
  head.header_bytes = sizeof head + sources.size() + entries.size_bytes();
  head.file_bytes = file_bytes;
  head.sources_bytes = sources.size();
  head.num_entries = entries.size();
  std::string header(bytes_of(head));
  header += sources;
  header.append(reinterpret_cast<const char*>(entries.data()), entries.size_bytes());
  const Sha256Digest digest = header_digest(header);
  std::memcpy(header.data() + offsetof(Head, digest), digest.data(), digest.size());
  return header;
}

Status damaged(std::string_view what) {
  return invalid_argument(fmt::format("it is damaged: {}", what));
}

struct Header {
  std::string sources;
  std::vector<Entry> entries;
};

// Reads and checks the header. Every number may be wrong until it is checked.
Result<Header> read_header(std::span<const std::byte> file) {
  if (file.size() < sizeof(Head)) {
    return damaged(fmt::format("got {} bytes, expected at least {}", file.size(), sizeof(Head)));
  }
  const Head head = read_at<Head>(file, 0);
  if (head.magic != kMagic) return damaged("it does not begin as such files do");
  if (head.file_bytes != file.size()) {
    return damaged(fmt::format("got {} bytes, expected {}", file.size(), head.file_bytes));
  }
  const bool is_possible =
      head.header_bytes >= sizeof(Head) &&
      head.header_bytes <= std::min<uint64_t>(file.size(), kMaxHeaderBytes) &&
      head.sources_bytes <= head.header_bytes - sizeof(Head) &&
      head.num_entries <= head.header_bytes / sizeof(Entry) &&
      head.header_bytes == sizeof(Head) + head.sources_bytes + head.num_entries * sizeof(Entry);
  if (!is_possible) return damaged("the sizes in its header contradict each other");
  std::string header(reinterpret_cast<const char*>(file.data()), head.header_bytes);
  if (header_digest(header) != head.digest) return damaged("its header has another digest");
  std::vector<Entry> entries(head.num_entries);
  if (!entries.empty()) {
    std::memcpy(entries.data(), header.data() + sizeof(Head) + head.sources_bytes,
                entries.size() * sizeof(Entry));
  }
  for (const Entry& entry : entries) {
    const bool is_inside = entry.offset % kAlign == 0 && entry.offset >= head.header_bytes &&
                           entry.offset <= file.size() &&
                           entry.num_bytes <= file.size() - entry.offset;
    if (!is_inside) return damaged("a matrix lies outside the file");
  }
  return Header{header.substr(sizeof(Head), head.sources_bytes), std::move(entries)};
}

// The path in the second line of PackedWeights::describe().
fs::path first_source(std::string_view sources) {
  const size_t begin = sources.find('\n') + 1;
  return sources.substr(begin, sources.find(": device ", begin) - begin);
}

// Writes long pieces that begin at multiples of their length.
class PieceWriter {
 public:
  explicit PieceWriter(int fd) : fd_(fd) { piece_.reserve(kWriteBytes); }

  Status append(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), kWriteBytes - piece_.size());
      piece_ += bytes.substr(0, count);
      bytes.remove_prefix(count);
      num_bytes_ += count;
      if (piece_.size() == kWriteBytes) QUIRE_RETURN_IF_ERROR(flush());
    }
    return {};
  }
  Status pad_to(uint64_t size) { return append(std::string(size - num_bytes_, '\0')); }
  Status flush() {
    for (std::string_view left = piece_; !left.empty();) {
      const ssize_t put = ::write(fd_, left.data(), left.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return unavailable(std::strerror(errno));
      left.remove_prefix(static_cast<size_t>(put));
    }
    piece_.clear();
    return {};
  }

 private:
  int fd_;
  std::string piece_;
  uint64_t num_bytes_ = 0;
};

Status check_space(int fd, uint64_t file_bytes, uint64_t free_sizes) {
  struct statvfs disk = {};
  if (::fstatvfs(fd, &disk) == 0) {
    const uint64_t free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free_bytes / free_sizes < file_bytes) {
      return unavailable(fmt::format("the disk has {} MiB free, expected {}", free_bytes >> 20,
                                     file_bytes * free_sizes >> 20));
    }
  }
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < file_bytes) {
    return unavailable(fmt::format("files may have {} MiB (ulimit -f), expected {}",
                                   limit.rlim_cur >> 20, file_bytes >> 20));
  }
  return {};
}

}  // namespace

// A read-only mapping that begins at a huge page.
class PackedWeights::Mapping {
 public:
  static Result<std::shared_ptr<const Mapping>> open(const fs::path& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.fd < 0) return failed_to("open", path);
    QUIRE_RETURN_IF_ERROR(check_is_own(file.fd, path));
    struct stat info = {};
    if (::fstat(file.fd, &info) != 0) return failed_to("stat", path);
    const auto size = static_cast<size_t>(info.st_size);
    if (size == 0) return damaged("it is empty");
    auto mapping = std::make_shared<Mapping>();
    mapping->reserved_bytes_ = size + kHugePage;
    mapping->reserved_ = ::mmap(nullptr, mapping->reserved_bytes_, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping->reserved_ == MAP_FAILED) return failed_to("map", path);
    auto* const begin = reinterpret_cast<std::byte*>(
        round_up(reinterpret_cast<uintptr_t>(mapping->reserved_), uintptr_t{kHugePage}));
    if (::mmap(begin, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd, 0) == MAP_FAILED) {
      return failed_to("map", path);
    }
    ::madvise(begin, size, MADV_HUGEPAGE);
    mapping->bytes_ = {begin, size};
    return std::shared_ptr<const Mapping>(std::move(mapping));
  }
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (reserved_ != MAP_FAILED) ::munmap(reserved_, reserved_bytes_);
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void* reserved_ = MAP_FAILED;
  size_t reserved_bytes_ = 0;
  std::span<const std::byte> bytes_;
};

PackedWeights::PackedWeights(const Config& config)
    : file_(config.file), free_sizes_(config.free_sizes) {
  for (const MappedFile* file : config.sources) {
    sources_.push_back({fs::absolute(file->path()), file->identity(), file->bytes()});
  }
  description_ = describe(sources_);
  const Status mapped = map_file();
  if (mapped.ok()) {
    log_info("[weights] packed weights are mapped from {}", file_.string());
  } else if (mapped.code() != StatusCode::kNotFound) {
    const bool is_stale = mapped.code() == StatusCode::kUnavailable;
    log(is_stale ? LogLevel::kInfo : LogLevel::kWarning,
        "[weights] {} is not used, so the weights are packed again: {}", file_.string(),
        mapped.message());
  }
}

PackedWeights::~PackedWeights() {
  if (!writer_.joinable()) return;
  if (!is_written_) {
    log_warning(
        "[weights] waiting until {} is written, which makes the next start faster; "
        "`packed_weights` off keeps no such file",
        file_.string());
  }
  writer_.join();
}

void PackedWeights::remove_orphans() const {
  std::error_code error;
  for (const auto& found : fs::directory_iterator(file_.parent_path(), error)) {
    if (found.path().extension() != file_.extension()) continue;
    const auto mapping = Mapping::open(found.path());
    if (!mapping.ok()) continue;
    const Result<Header> header = read_header((*mapping)->bytes());
    if (!header.ok()) continue;
    // Without the directory, a disk or a container's volume may only be away.
    const fs::path model = first_source(header->sources);
    if (fs::exists(model, error) || error) continue;
    if (!fs::exists(model.parent_path(), error) || error) continue;
    log_info("[weights] removing {}, because its model {} is gone", found.path().string(),
             first_source(header->sources).string());
    fs::remove(found.path(), error);
  }
}

std::string PackedWeights::describe(std::span<const Source> sources) {
  std::string text = fmt::format("Quire {}, layout {}\n", QUIRE_VERSION, kPackedLayoutVersion);
  for (const Source& source : sources) {
    const FileIdentity& is = source.identity;
    text += fmt::format("{}: device {}, inode {}, {} bytes, written {}, changed {}\n",
                        source.path.string(), is.device, is.inode, is.num_bytes, is.written_ns,
                        is.changed_ns);
  }
  return text;
}

Status PackedWeights::check_unchanged() const {
  for (const Source& source : sources_) {
    QUIRE_ASSIGN_OR_RETURN(const FileIdentity now, identity_of(source.path));
    if (now == source.identity) continue;
    return unavailable(fmt::format("{} changed while it was read", source.path.string()));
  }
  return {};
}

Status PackedWeights::map_file() {
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const Mapping> mapping, Mapping::open(file_));
  QUIRE_ASSIGN_OR_RETURN(const Header header, read_header(mapping->bytes()));
  if (header.sources != description_) {
    return unavailable("the model's files or Quire's version have changed");
  }
  for (const Entry& entry : header.entries) {
    in_file_[entry.key] = {entry.offset, entry.num_bytes, entry.form};
  }
  mapping_ = std::move(mapping);
  return {};
}

std::optional<std::string> PackedWeights::place_of(const void* data, size_t num_bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  for (size_t i = 0; i < sources_.size(); ++i) {
    const std::span<const std::byte> file = sources_[i].bytes;
    const uintptr_t offset = begin - reinterpret_cast<uintptr_t>(file.data());
    if (offset > file.size() || num_bytes > file.size() - offset) continue;
    return fmt::format("file {} {}+{}", i, offset, num_bytes);
  }
  return std::nullopt;
}

Result<PackedWeights::Matrix> PackedWeights::get(std::string_view key, size_t num_bytes,
                                                 const std::function<uint32_t(std::byte*)>& pack) {
  const Sha256Digest digest = sha256_of(key);
  const auto found = in_file_.find(digest);
  Made made;
  made.key = digest;
  if (found != in_file_.end() && found->second.num_bytes == num_bytes) {
    made.form = found->second.form;
    made.bytes = mapping_->bytes().subspan(found->second.offset, num_bytes);
    made.owner = mapping_;
  } else {
    QUIRE_ASSIGN_OR_RETURN(Buffer buffer, Buffer::host(num_bytes));
    made.form = pack(static_cast<std::byte*>(buffer.data()));
    made.bytes = {static_cast<const std::byte*>(buffer.data()), num_bytes};
    made.owner = std::make_shared<const Buffer>(std::move(buffer));
    file_lacks_some_ = true;
  }
  made_.push_back(made);
  return Matrix{Buffer(const_cast<std::byte*>(made.bytes.data()), num_bytes,
                       [owner = made.owner](void*, size_t) {}),
                static_cast<uint32_t>(made.form)};
}

void PackedWeights::save() {
  for (Source& source : sources_) source.bytes = {};  // other memory may take its place
  if (!file_lacks_some_) return made_.clear();
  is_written_ = false;
  writer_ = std::thread([this] {
    run_guarded("[weights] packed weights cannot be kept", [this] {
      const Status written = write_file();
      if (!written.ok()) {
        log_warning(
            "[weights] packed weights cannot be kept in {}, so the next start packs them again: {}",
            file_.string(), written.message());
      }
    });
    made_.clear();
    is_written_ = true;
  });
}

// Between the opening and the lock, the process that had the lock may have given the file its final
// name; others then have it mapped.
Status PackedWeights::write_file() {
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // of this thread
  std::set<Sha256Digest> keys;  // tied matrices are made twice
  std::erase_if(made_, [&keys](const Made& made) { return !keys.insert(made.key).second; });
  std::vector<Entry> entries;
  for (const Made& made : made_) entries.push_back({.key = made.key, .form = made.form});
  uint64_t end = round_up(make_header(description_, entries, 0).size(), kAlign);
  for (size_t i = 0; i < made_.size(); ++i) {
    entries[i].offset = end;
    entries[i].num_bytes = made_[i].bytes.size();
    end = round_up(end + entries[i].num_bytes, kAlign);
  }
  const fs::path partial = file_.string() + ".partial";
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  if (error) return unavailable(error.message());
  const Descriptor file(
      ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (file.fd < 0) return failed_to("create", partial);
  if (::flock(file.fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed_to("lock", partial);
    log_info("[weights] another process is writing {}", partial.string());
    return {};
  }
  QUIRE_RETURN_IF_ERROR(check_is_own(file.fd, partial));
  struct stat own = {};
  struct stat named = {};
  if (::fstat(file.fd, &own) != 0 || ::lstat(partial.c_str(), &named) != 0 ||
      own.st_ino != named.st_ino || own.st_dev != named.st_dev) {
    return unavailable("another process has just written it");
  }
  const auto fill = [&]() -> Status {
    if (::ftruncate(file.fd, 0) != 0) return failed_to("empty", partial);
    QUIRE_RETURN_IF_ERROR(check_space(file.fd, end, free_sizes_));
    log_info("[weights] writing {} MiB of packed weights to {} for later starts", end >> 20,
             file_.string());
    PieceWriter writer(file.fd);
    QUIRE_RETURN_IF_ERROR(writer.append(make_header(description_, entries, end)));
    for (size_t i = 0; i < made_.size(); ++i) {
      QUIRE_RETURN_IF_ERROR(writer.pad_to(entries[i].offset));
      const std::span<const std::byte> bytes = made_[i].bytes;
      QUIRE_RETURN_IF_ERROR(
          writer.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    }
    QUIRE_RETURN_IF_ERROR(writer.pad_to(end));
    QUIRE_RETURN_IF_ERROR(writer.flush());
    if (::fdatasync(file.fd) != 0) return failed_to("sync", partial);
    QUIRE_RETURN_IF_ERROR(check_unchanged());
    if (::rename(partial.c_str(), file_.c_str()) != 0) return failed_to("rename", partial);
    remove_orphans();
    return {};
  };
  const Status status = fill();
  if (!status.ok()) ::unlink(partial.c_str());
  return status;
}

}  // namespace quire
