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
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "base/build_info.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "base/setting_name.h"
#include "tensor/packed_header.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

// Bytes per write. With this size, a file system that has large folios keeps the file in huge
// pages, and the mapping then has them.
constexpr size_t kWriteBytes = 4 * kHugePage;
constexpr std::string_view kPartialEnd = ".partial";
// A writer that is asked to end may first have to wait until this much is on the disk.
constexpr size_t kSyncBytes = 4 * kWriteBytes;

// Ages at which a file is removed. Another machine may still have a model that is gone on this one.
constexpr std::chrono::days kMaxAge{30};
constexpr std::chrono::days kMaxAgeWithoutModel{1};
constexpr std::chrono::days kMaxAgeOfPartialFile{1};  // where files cannot be locked

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

// Prevents other users from choosing the weights, or from ending this process by truncating the
// file.
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

// A line of the origin. The number of the path's bytes precedes it, because a path may have any
// byte but 0. FileIdentity::changed_ns is left out, because copies of a model change it.
std::string describe_source(const fs::path& path, const FileIdentity& identity,
                            const Sha256Digest& samples) {
  const std::string& name = path.native();
  return fmt::format("{}:{}, {} bytes, written {}, samples {}\n", name.size(), name,
                     identity.num_bytes, identity.written_ns, to_hexadecimal(samples));
}

// The path in the second line of the origin; empty: an older version of Quire wrote it.
fs::path first_source(std::string_view origin) {
  origin.remove_prefix(origin.find('\n') + 1);
  size_t num_bytes = 0;
  const char* const end = origin.data() + origin.size();
  const auto [after, error] = std::from_chars(origin.data(), end, num_bytes);
  if (error != std::errc() || after == end || *after != ':') return {};
  origin.remove_prefix(static_cast<size_t>(after + 1 - origin.data()));
  return num_bytes <= origin.size() ? origin.substr(0, num_bytes) : std::string_view();
}

// Digests samples of a file: the first 64 KiB, where the names and offsets of tensors begin, pages
// at equal distances, and the last page. Models of one shape may have the same size and time, for
// example from archives or by `cp --preserve`, but their samples differ. Reading whole files would
// take longer than packing them.
Sha256Digest digest_of_samples(std::span<const std::byte> file, uint64_t distance) {
  constexpr size_t kHeadBytes = size_t{64} << 10;
  constexpr size_t kSampleBytes = 4096;
  std::vector<std::span<const std::byte>> samples;
  samples.push_back(file.first(std::min(kHeadBytes, file.size())));
  for (uint64_t at = distance; at < file.size(); at += distance) {
    samples.push_back(file.subspan(at, std::min(kSampleBytes, file.size() - at)));
  }
  samples.push_back(file.last(std::min(kSampleBytes, file.size())));
  for (const std::span<const std::byte> sample : samples) {  // reads them from the disk at once
    ::madvise(const_cast<std::byte*>(sample.data()), sample.size(), MADV_WILLNEED);
  }
  std::string bytes;
  for (const std::span<const std::byte> sample : samples) {
    bytes.append(reinterpret_cast<const char*>(sample.data()), sample.size());
  }
  return sha256_of(bytes);
}

std::vector<fs::path> list_directory(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path());
  }
  return paths;
}

// The time since a file was written or used; 0: unknown.
fs::file_time_type::duration age_of(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  if (error) return {};
  return fs::file_time_type::clock::now() - written;
}

// An unfinished file beside the final one, under a name of its own. The process that writes it
// locks it. It is removed unless it is renamed.
class PartialFile {
 public:
  PartialFile() = default;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (fd_ < 0) return;
    if (!path_.empty()) ::unlink(path_.c_str());
    ::close(fd_);
  }

  Status create(const fs::path& file) {
    constexpr int kMaxAttempts = 10;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      std::string path = file.native() + ".XXXXXX" + std::string(kPartialEnd);
      fd_ = ::mkostemps(path.data(), static_cast<int>(kPartialEnd.size()), O_CLOEXEC);
      if (fd_ < 0) return failed_to("create", path);
      path_ = path;
      // Before the lock, another process may have removed the file as one without a writer. Some
      // file systems have no locks.
      struct stat info = {};
      const bool is_taken = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
      if (!is_taken && ::fstat(fd_, &info) == 0 && info.st_nlink == 1) return {};
      ::unlink(path_.c_str());
      ::close(std::exchange(fd_, -1));
    }
    return unavailable("other processes remove the unfinished file");
  }
  Status rename_to(const fs::path& file) {
    if (::rename(path_.c_str(), file.c_str()) != 0) return failed_to("rename", path_);
    path_.clear();
    return {};
  }
  int fd() const { return fd_; }

  static bool is_name_of(std::string_view name, std::string_view extension) {
    const size_t end_bytes = kPartialEnd.size() + std::string_view(".XXXXXX").size();
    return name.size() > end_bytes && name.ends_with(kPartialEnd) &&
           name.substr(0, name.size() - end_bytes).ends_with(extension);
  }

  enum class Writer { kRuns, kHasEnded, kIsOfAnotherUser };
  // Removes the file if its writer has ended.
  static Writer remove_without_writer(const fs::path& path) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.fd < 0 || !check_is_own(file.fd, path).ok()) return Writer::kIsOfAnotherUser;
    if (::flock(file.fd, LOCK_EX | LOCK_NB) != 0) {
      const bool has_locks = errno == EWOULDBLOCK;
      if (has_locks || age_of(path) < kMaxAgeOfPartialFile) return Writer::kRuns;
    }
    ::unlink(path.c_str());
    return Writer::kHasEnded;
  }

 private:
  int fd_ = -1;
  fs::path path_;  // empty: it is renamed
};

// Writes long pieces that begin at multiples of their length, until it is cancelled.
class PieceWriter {
 public:
  PieceWriter(int fd, const std::atomic<bool>& is_cancelled)
      : fd_(fd), is_cancelled_(is_cancelled) {
    piece_.reserve(kWriteBytes);
  }

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
    if (is_cancelled_) return cancelled("the engine ends");
    for (std::string_view left = piece_; !left.empty();) {
      const ssize_t put = ::write(fd_, left.data(), left.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return unavailable(std::strerror(errno));
      left.remove_prefix(static_cast<size_t>(put));
    }
    num_unsynced_bytes_ += piece_.size();
    piece_.clear();
    return num_unsynced_bytes_ < kSyncBytes ? Status() : sync();
  }
  Status sync() {
    if (::fdatasync(fd_) != 0) return unavailable(std::strerror(errno));
    num_unsynced_bytes_ = 0;
    return {};
  }

 private:
  int fd_;
  const std::atomic<bool>& is_cancelled_;
  std::string piece_;
  size_t num_unsynced_bytes_ = 0;
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
    if (size == 0) return invalid_argument("it is damaged: it is empty");
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

PackedWeights::PackedWeights(const Config& config) : config_(config) {
  for (const MappedFile* file : config.sources) {
    sources_.push_back({canonical_path(file->path()), file->identity(), file->bytes()});
  }
  config_.sources.clear();
  origin_ = describe_origin();
  const Status mapped = map_file();
  if (mapped.ok()) {
    log_info("[weights] packed weights are mapped from {}", config_.file.string());
  } else if (mapped.code() != StatusCode::kNotFound) {
    refusal_ = mapped.message();
    const bool is_stale = mapped.code() == StatusCode::kUnavailable;
    log(config_.is_automatic ? LogLevel::kDebug
        : is_stale           ? LogLevel::kInfo
                             : LogLevel::kWarning,
        "[weights] {} is not used, so the weights are packed again: {}", config_.file.string(),
        refusal_);
  }
}

PackedWeights::~PackedWeights() {
  if (!writer_.valid()) return;
  if (!config_.waits) {
    is_cancelled_ = true;
  } else if (writer_.wait_for(std::chrono::seconds(1)) == std::future_status::timeout) {
    log_warning(
        "[weights] waiting until {} is written, which makes the next start faster; "
        "{} off keeps no such file",
        config_.file.string(), SettingName{"packed_weights"});
  }
  writer_.wait();
}

bool PackedWeights::clear_partial_files() const {
  const std::string own_names = config_.file.filename().native() + ".";
  bool is_being_written = false;
  for (const fs::path& path : list_directory(config_.file.parent_path())) {
    const std::string name = path.filename();
    if (!PartialFile::is_name_of(name, config_.file.extension().native())) continue;
    const auto writer = PartialFile::remove_without_writer(path);
    if (writer == PartialFile::Writer::kHasEnded) {
      log_debug("[weights] removed {}, whose writer has ended", path.string());
    }
    is_being_written |= writer == PartialFile::Writer::kRuns && name.starts_with(own_names);
  }
  return is_being_written;
}

void PackedWeights::remove_unused() const {
  for (const fs::path& path : list_directory(config_.file.parent_path())) {
    if (path.extension() != config_.file.extension() || path == config_.file) continue;
    const auto age = age_of(path);
    if (age < kMaxAgeWithoutModel) continue;
    const auto mapping = Mapping::open(path);
    if (!mapping.ok()) continue;
    const Result<PackedHeader> header = read_packed_header((*mapping)->bytes());
    if (!header.ok()) continue;
    // A model is gone only if its directory exists. Otherwise, its volume may be unmounted.
    const fs::path model = first_source(header->origin);
    const Result<bool> has_model = path_exists(model);
    std::error_code error;
    const bool is_gone =
        has_model.ok() && !*has_model && fs::exists(model.parent_path(), error) && !error;
    const bool is_old = config_.is_automatic && age >= kMaxAge;
    if (!is_gone && !is_old) continue;
    log_info("[weights] removing {}, because {}", path.string(),
             is_gone ? fmt::format("its model {} is gone", model.string())
                     : fmt::format("no start has used it for {} days", kMaxAge.count()));
    fs::remove(path, error);
  }
}

std::string PackedWeights::describe_origin() const {
  constexpr uint64_t kNumSamples = 256;
  constexpr uint64_t kAlignOfSamples = uint64_t{64} << 10;  // a multiple of every page size
  uint64_t num_bytes = 0;
  for (const Source& source : sources_) num_bytes += source.bytes.size();
  const uint64_t distance =
      round_up(std::max<uint64_t>(num_bytes / kNumSamples, 1), kAlignOfSamples);
  std::string text =
      fmt::format("Quire {}, layout {} for {}\n", version(), kPackedLayoutVersion, config_.layout);
  for (const Source& source : sources_) {
    text +=
        describe_source(source.path, source.identity, digest_of_samples(source.bytes, distance));
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
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const Mapping> mapping, Mapping::open(config_.file));
  QUIRE_ASSIGN_OR_RETURN(const PackedHeader header, read_packed_header(mapping->bytes()));
  if (header.origin != origin_) {
    return unavailable("the model's files or Quire's version have changed");
  }
  // Records the use for remove_unused(). Fails on a read-only disk, where no file is removed.
  ::utimensat(AT_FDCWD, config_.file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  for (const PackedEntry& entry : header.entries) {
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
  constexpr const char* kFailure = "[weights] packed weights cannot be kept";
  const auto write = [this] {
    run_guarded(kFailure, [this] { run_writer(); });
    made_.clear();
  };
  // The system may start no more threads.
  run_guarded(kFailure, [&] { writer_ = std::async(std::launch::async, write); });
  if (!writer_.valid()) made_.clear();
}

void PackedWeights::run_writer() {
  const Status written = write_file();
  if (written.ok()) return;
  if (written.code() == StatusCode::kCancelled) {
    return log_info(
        "[weights] {} is not written, because the engine ends before; the next start "
        "packs the weights again",
        config_.file.string());
  }
  log(config_.is_automatic ? LogLevel::kInfo : LogLevel::kWarning,
      "[weights] packed weights cannot be kept in {}, so the next start packs them again: {}; set "
      "{} "
      "to a directory on a disk with enough space, which this user may write, or to off",
      config_.file.string(), written.message(), SettingName{"packed_weights"});
}

Status PackedWeights::write_file() {
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // of this thread
  std::set<Sha256Digest> keys;  // tied matrices are made twice
  std::erase_if(made_, [&keys](const Made& made) { return !keys.insert(made.key).second; });
  std::vector<PackedEntry> entries;
  for (const Made& made : made_) entries.push_back({.key = made.key, .form = made.form});
  uint64_t end = round_up(make_packed_header(origin_, entries, 0).size(), kPackedAlign);
  for (size_t i = 0; i < made_.size(); ++i) {
    entries[i].offset = end;
    entries[i].num_bytes = made_[i].bytes.size();
    end = round_up(end + entries[i].num_bytes, kPackedAlign);
  }
  std::error_code error;
  fs::create_directories(config_.file.parent_path(), error);
  if (error) return unavailable(error.message());
  if (clear_partial_files()) {
    log_info("[weights] another process is writing {}", config_.file.string());
    return {};
  }
  PartialFile partial;
  QUIRE_RETURN_IF_ERROR(partial.create(config_.file));
  QUIRE_RETURN_IF_ERROR(check_space(partial.fd(), end, config_.free_sizes));
  log_info("[weights] writing {} MiB of packed weights to {} for later starts{}", end >> 20,
           config_.file.string(),
           refusal_.empty() ? "" : fmt::format(" instead of one that is not used: {}", refusal_));
  PieceWriter writer(partial.fd(), is_cancelled_);
  QUIRE_RETURN_IF_ERROR(writer.append(make_packed_header(origin_, entries, end)));
  for (size_t i = 0; i < made_.size(); ++i) {
    QUIRE_RETURN_IF_ERROR(writer.pad_to(entries[i].offset));
    const std::span<const std::byte> bytes = made_[i].bytes;
    QUIRE_RETURN_IF_ERROR(
        writer.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  QUIRE_RETURN_IF_ERROR(writer.pad_to(end));
  QUIRE_RETURN_IF_ERROR(writer.flush());
  QUIRE_RETURN_IF_ERROR(writer.sync());
  QUIRE_RETURN_IF_ERROR(check_unchanged());
  QUIRE_RETURN_IF_ERROR(partial.rename_to(config_.file));
  remove_unused();
  return {};
}

}  // namespace quire
