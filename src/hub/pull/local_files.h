// The files that a download writes: locks between programs, free space, and errors. `variable` is
// the setting for another folder, which errors name as the remedy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "hub/pull/hub_client.h"
#include "quire/status.h"

namespace quire::hub {

inline constexpr std::string_view kCacheVariable = "HF_HUB_CACHE";

// An open file, closed at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }

 private:
  int fd_;
};

// Opens or creates a file. Follows no link: if other users may write in the folder, a link could
// lead to a file outside of it.
Result<Descriptor> open_for_update(const std::filesystem::path& path, std::string_view variable);

// Writes all bytes at the file's position. `path` appears in errors.
Status write_bytes(const Descriptor& file, std::string_view bytes,
                   const std::filesystem::path& path, std::string_view variable);

// Waits for the lock of a file; closing the file releases it. `what` names the download in
// messages.
Result<Descriptor> lock_file(const std::filesystem::path& path, std::string_view variable,
                             const PullState& state, std::string_view what);

// Does the same without waiting: nullopt if another program has the lock, or the file cannot be
// opened.
std::optional<Descriptor> try_lock_file(const std::filesystem::path& path);

Status make_folder(const std::filesystem::path& path, std::string_view variable);

// Fails if the disk of `folder` has less space than `needed` bytes.
Status check_disk(int64_t needed, const std::filesystem::path& folder, std::string_view variable);

// Returns the error "cannot write PATH: …", with a remedy for a full disk.
Status write_error(const std::filesystem::path& path, std::string_view variable, int error_number);

}  // namespace quire::hub
