// The folder of the sockets on which the processes of a supervisor listen.
#pragma once

#include <filesystem>
#include <memory>

#include "quire/status.h"

namespace quire::cli {

// The name of the file in the folder that has the keys of the processes.
inline constexpr const char* kKeysFile = "keys";

// Only this user may enter the folder. The destructor deletes it.
class SocketFolder {
 public:
  // Creates the folder, and removes the folders of servers that were killed.
  static Result<std::unique_ptr<SocketFolder>> create();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  // Locks a folder of this user. The system releases the lock when the process ends in any way.
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
