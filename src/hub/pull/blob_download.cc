#include "hub/pull/blob_download.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "hub/pull/local_files.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

// Begins the hash that names a blob: SHA-256 for a large file, and git's SHA-1 for a small file,
// which also covers the file's size.
void begin_hash(const RepositoryFile& file, Hasher& hash) {
  hash.restart();
  if (file.is_large) return;
  const std::string head = fmt::format("blob {}", file.size);
  hash.add({head.c_str(), head.size() + 1});
}

// Appends the content to the partial file and hashes it.
class PartialBlob : public Receiver {
 public:
  PartialBlob(const RepositoryFile& file, fs::path path, Descriptor descriptor,
              std::atomic<int64_t>& num_bytes)
      : file_(file),
        path_(std::move(path)),
        descriptor_(std::move(descriptor)),
        num_bytes_(num_bytes),
        hash_(file.is_large ? Hasher::Kind::kSha256 : Hasher::Kind::kSha1) {
    begin_hash(file_, hash_);
  }

  // Hashes the bytes that an earlier download left, which bytes_in_cache() has counted.
  Status resume(const std::function<bool()>& interrupted) {
    struct stat info = {};
    if (::fstat(descriptor_.get(), &info) != 0) return write_error(path_, kCacheVariable, errno);
    if (info.st_size > file_.size) return truncate();
    std::vector<char> buffer(size_t{1} << 20);
    while (size_ < info.st_size) {
      if (interrupted()) return cancelled("[hub] interrupted");
      const ssize_t got = ::pread(descriptor_.get(), buffer.data(), buffer.size(), size_);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return write_error(path_, kCacheVariable, got < 0 ? errno : EIO);
      hash_.add({buffer.data(), static_cast<size_t>(got)});
      size_ += got;
    }
    return {};
  }

  int64_t size() const override { return size_; }
  bool is_complete() const override { return size_ == file_.size; }

  Status begin(const Reply& head) override {
    const bool is_part = head.status == 206;
    if (is_part && head.range_begin != size_) {
      return unavailable(fmt::format("[hub] the hub sent {} from byte {}; expected byte {}",
                                     file_.name, head.range_begin, size_));
    }
    return is_part || size_ == 0 ? Status() : restart();  // 200: the server ignores ranges
  }

  Status receive(std::string_view bytes) override {
    if (static_cast<int64_t>(bytes.size()) > file_.size - size_) {
      is_too_long_ = true;
      return unavailable(fmt::format(
          "[hub] the hub sends more of {} than the {} bytes that it lists; deleted; try again",
          file_.name, file_.size));
    }
    hash_.add(bytes);
    while (!bytes.empty()) {
      const ssize_t num = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), size_);
      if (num < 0 && errno == EINTR) continue;
      if (num < 0) return write_error(path_, kCacheVariable, errno);
      size_ += num;
      num_bytes_ += num;
      bytes.remove_prefix(static_cast<size_t>(num));
    }
    return {};
  }

  Status restart() {
    num_bytes_ -= size_;
    size_ = 0;
    begin_hash(file_, hash_);
    return truncate();
  }

  // Returns whether the content is longer than in the hub's list, and therefore wrong.
  bool is_too_long() const { return is_too_long_; }
  bool has_right_hash() { return hash_.finish_hexadecimal() == file_.hash; }

  // Renames the complete file to `blob`. The content must be on the disk before the name, because
  // later runs trust a blob with a name.
  Status finish(const fs::path& blob) {
    if (::fdatasync(descriptor_.get()) != 0 || ::rename(path_.c_str(), blob.c_str()) != 0) {
      return write_error(blob, kCacheVariable, errno);
    }
    return {};
  }

  void remove() {
    num_bytes_ -= size_;
    ::unlink(path_.c_str());
  }

 private:
  Status truncate() {
    return ::ftruncate(descriptor_.get(), 0) == 0 ? Status()
                                                  : write_error(path_, kCacheVariable, errno);
  }

  const RepositoryFile& file_;
  fs::path path_;
  Descriptor descriptor_;
  std::atomic<int64_t>& num_bytes_;
  Hasher hash_;
  int64_t size_ = 0;
  bool is_too_long_ = false;
};

int64_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

fs::path partial_path(const fs::path& blob) {
  return blob.string() + ".incomplete";
}

// Downloads the rest of the partial blob.
Status complete(HubClient& client, std::string_view commit, const RepositoryFile& file,
                PartialBlob& blob) {
  if (blob.is_complete()) return {};
  const Status status = client.get_file(commit, file.name, blob);
  if (blob.is_too_long()) blob.remove();
  return status;
}

}  // namespace

bool has_blob(const RepositoryFile& file, const BlobFolders& folders) {
  const fs::path blob = folders.blobs / file.hash;
  std::error_code error;
  return fs::is_regular_file(blob, error) && size_or_zero(blob) == file.size;
}

int64_t bytes_in_cache(const RepositoryFile& file, const BlobFolders& folders) {
  if (has_blob(file, folders)) return file.size;
  const int64_t size = size_or_zero(partial_path(folders.blobs / file.hash));
  return size <= file.size ? size : 0;
}

Status download_blob(HubClient& client, std::string_view commit, const RepositoryFile& file,
                     const BlobFolders& folders, std::atomic<int64_t>& num_bytes) {
  const fs::path path = folders.blobs / file.hash;
  if (has_blob(file, folders)) return {};
  const PullState& state = client.state();
  QUIRE_ASSIGN_OR_RETURN(const Descriptor lock, lock_file(folders.locks / (file.hash + ".lock"),
                                                          kCacheVariable, state, file.name));
  if (has_blob(file, folders)) return {};
  QUIRE_ASSIGN_OR_RETURN(Descriptor partial, open_for_update(partial_path(path), kCacheVariable));
  PartialBlob blob(file, partial_path(path), std::move(partial), num_bytes);
  QUIRE_RETURN_IF_ERROR(blob.resume(state.interrupted));
  const bool was_resumed = blob.size() > 0;
  QUIRE_RETURN_IF_ERROR(complete(client, commit, file, blob));
  bool is_right = blob.has_right_hash();
  if (!is_right && was_resumed) {  // the part that an earlier download left may be damaged
    state.note(
        fmt::format("{}: the part that was in the cache is damaged; starting again", file.name));
    QUIRE_RETURN_IF_ERROR(blob.restart());
    QUIRE_RETURN_IF_ERROR(complete(client, commit, file, blob));
    is_right = blob.has_right_hash();
  }
  if (is_right) {
    QUIRE_RETURN_IF_ERROR(blob.finish(path));
    if (file.is_large) state.note(fmt::format("{}: {}", file.name, bytes_text(file.size)));
    return {};
  }
  blob.remove();
  return unavailable(fmt::format(
      "[hub] the content of {} does not have the hash that the hub lists ({}), so it was deleted; "
      "try again, or check the proxy and HF_ENDPOINT",
      file.name, file.hash));
}

}  // namespace quire::hub
