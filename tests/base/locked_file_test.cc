// A file that one process holds at a time.
#include "base/locked_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "support/scratch_directory.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using testing::ScratchDirectory;

// Writers that rename the file while others wait between the opening and the lock.
TEST(LockedFile, IsTheFileThatHasTheName) {
  const ScratchDirectory scratch;
  const fs::path path = scratch.path() / "part";
  std::atomic<int> num_locked = 0;
  std::atomic<int> num_renamed_before = 0;
  const auto write = [&] {
    for (int i = 0; i < 3000; ++i) {
      const Result<LockedFile> file = LockedFile::open(path, O_RDWR | O_CREAT, "test");
      if (!file.ok()) continue;
      ++num_locked;
      struct stat own = {};
      struct stat named = {};
      const bool is_there = ::fstat(file->fd(), &own) == 0 && ::stat(path.c_str(), &named) == 0;
      if (!is_there || own.st_ino != named.st_ino) ++num_renamed_before;
      ::rename(path.c_str(), (scratch.path() / "out").c_str());
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(write);
  threads.clear();
  EXPECT_GT(num_locked, 0);
  EXPECT_EQ(num_renamed_before, 0);
}

}  // namespace
}  // namespace quire
