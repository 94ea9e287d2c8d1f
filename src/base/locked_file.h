// An open file or directory that one process holds at a time.
#pragma once

#include <filesystem>
#include <string_view>

#include "quire/status.h"

namespace quire {

class LockedFile {
 public:
  // Opens the path with open()'s `flags`, and locks it until this object is destroyed. Fails if
  // another process has it. Also fails for a symbolic link and for a file with several hard links,
  // because writing it would change another file. `area` ("quantize") starts the errors.
  static Result<LockedFile> open(const std::filesystem::path& path, int flags,
                                 std::string_view area);
  LockedFile(LockedFile&& other) noexcept;
  LockedFile& operator=(LockedFile&& other) noexcept;
  ~LockedFile();

  int fd() const { return fd_; }

 private:
  LockedFile() = default;

  int fd_ = -1;
};

}  // namespace quire
