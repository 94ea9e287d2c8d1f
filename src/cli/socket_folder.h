// The folder of the sockets at which the processes of a server of several models listen.
#pragma once

#include <filesystem>
#include <memory>

#include "quire/status.h"

namespace quire::cli {

// The file of the processes' keys in the folder.
inline constexpr const char* kKeysFile = "keys";

// Only this user may enter the folder. The destructor deletes it.
class SocketFolder {
 public:
  // Creates the folder, and removes those of servers that were killed.
  static Result<std::unique_ptr<SocketFolder>> create();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  // The lock of a folder of this user. It ends with the process, however that ends.
  class Lock {
   public:
    explicit Lock(const std::filesystem::path& path);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    bool is_held() const { return is_held_; }

   private:
    const int fd_;
    bool is_held_ = false;
  };

  explicit SocketFolder(std::filesystem::path path);
  static void remove_stale(const std::filesystem::path& parent);

  const std::filesystem::path path_;
  const Lock lock_;
};

}  // namespace quire::cli
