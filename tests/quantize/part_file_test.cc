#include "quantize/part_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/locked_file.h"
#include "support/scratch_directory.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ScratchDirectory;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(PartFile, GetsItsNameAtTheEnd) {
  const ScratchDirectory scratch;
  const fs::path path = scratch.path() / "out";
  PartFile file = PartFile::open(path, "a", 6).value();
  EXPECT_EQ(file.size(), 0U);
  ASSERT_TRUE(file.append(bytes_of("abc")).ok());
  ASSERT_TRUE(file.pad(6).ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(file.finish(false).ok());
  EXPECT_EQ(read_file(path, 100).value(), std::string("abc\0\0\0", 6));
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()), 1);
}

TEST(PartFile, LeavesNothingOnceItIsDiscarded) {
  const ScratchDirectory scratch;
  PartFile file = PartFile::open(scratch.path() / "out", "a", 6).value();
  ASSERT_TRUE(file.append(bytes_of("abc")).ok());
  EXPECT_TRUE(file.discard().ok());
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(PartFile, ContinuesOnlyTheSameContent) {
  const ScratchDirectory scratch;
  const fs::path path = scratch.path() / "out";
  {
    PartFile file = PartFile::open(path, "a", 100).value();
    ASSERT_TRUE(file.append(bytes_of("abc")).ok());
  }
  {
    PartFile file = PartFile::open(path, "a", 100).value();
    EXPECT_EQ(file.size(), 3U);
    ASSERT_TRUE(file.truncate(2).ok());
    ASSERT_TRUE(file.append(bytes_of("XY")).ok());
  }
  EXPECT_EQ(read_file(path.string() + ".part", 100).value(), "abXY");
  const PartFile other = PartFile::open(path, "b", 100).value();
  EXPECT_EQ(other.size(), 0U);
}

TEST(PartFile, HasOneWriter) {
  const ScratchDirectory scratch;
  const PartFile file = PartFile::open(scratch.path() / "out", "a", 1).value();
  EXPECT_THAT(PartFile::open(scratch.path() / "out", "a", 1).status().message(),
              HasSubstr("is being written by another process"));
}

TEST(PartFile, OfAnotherProgramIsKept) {
  const ScratchDirectory scratch;
  const std::string part = scratch.write("out.part", "foreign");
  EXPECT_THAT(PartFile::open(scratch.path() / "out", "a", 1).status().message(),
              AllOf(HasSubstr("out.part has 7 bytes"), HasSubstr("out.part.state does not exist"),
                    HasSubstr("remove or rename")));
  EXPECT_EQ(read_file(part, 100).value(), "foreign");
}

TEST(PartFile, ReplacesAnotherFileOnlyIfAsked) {
  const ScratchDirectory scratch;
  const fs::path path = scratch.path() / "out";
  {
    PartFile file = PartFile::open(path, "a", 3).value();
    ASSERT_TRUE(file.append(bytes_of("new")).ok());
    scratch.write("out", "old");
    EXPECT_THAT(file.finish(false).message(),
                AllOf(HasSubstr("cannot rename"), HasSubstr("out; File exists")));
  }
  EXPECT_EQ(read_file(path, 100).value(), "old");
  EXPECT_EQ(read_file(path.string() + ".part", 100).value(), "new");
  fs::remove(path.string() + ".part");
  PartFile file = PartFile::open(path, "a", 3).value();
  ASSERT_TRUE(file.append(bytes_of("new")).ok());
  ASSERT_TRUE(file.finish(true).ok());
  EXPECT_EQ(read_file(path, 100).value(), "new");
}

TEST(PartFile, RefusedPathsAreNamed) {
  const ScratchDirectory scratch;
  EXPECT_THAT(PartFile::open(scratch.path() / "none" / "out", "a", 1).status().message(),
              AllOf(HasSubstr("cannot open"), HasSubstr("none/out.part; No such file")));
  EXPECT_THAT(PartFile::open("/proc/quire_out", "a", 1).status().message(),
              HasSubstr("cannot open /proc/quire_out.part"));
  EXPECT_THAT(PartFile::open(scratch.path() / "out", "a", uint64_t{1} << 60).status().message(),
              AllOf(HasSubstr("is too small"), HasSubstr("expected 1152921504606846976: make room"),
                    HasSubstr("another disk")));
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(PartFile, LeavesOtherFilesAsTheyAre) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "out";
  const fs::path part = scratch.path() / "out.part";
  const std::string other = scratch.write("other", "foreign");
  scratch.write("out.part.state", "");
  fs::create_hard_link(other, part);
  EXPECT_THAT(PartFile::open(out, "a", 1).status().message(),
              AllOf(HasSubstr("out.part has 2 names (hard links)"), HasSubstr("remove or rename")));
  fs::remove(part);
  fs::create_symlink(other, part);
  EXPECT_THAT(PartFile::open(out, "a", 1).status().message(),
              HasSubstr("out.part is a symbolic link; expected"));
  EXPECT_EQ(read_file(other, 100).value(), "foreign");
  fs::remove(part);
  ASSERT_EQ(::mkfifo(part.c_str(), 0600), 0);
  EXPECT_THAT(PartFile::open(out, "a", 1).status().message(),
              HasSubstr("out.part is a FIFO, a socket or a device; expected"));
  fs::remove(part);
  fs::create_directory(part);
  EXPECT_THAT(PartFile::open(out, "a", 1).status().message(),
              HasSubstr("out.part is a directory; expected none, or a file: choose another output, "
                        "or remove it if an interrupted run has left it"));
}

// A limit of the file's size fails writes as a full disk does.
TEST(PartFile, AFailedWriteIsNamedAndCanBeContinued) {
  const ScratchDirectory scratch;
  struct rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status;
  {
    PartFile file = PartFile::open(scratch.path() / "out", "a", 2000).value();
    status = file.pad(2000);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cannot write"), HasSubstr("out.part; File too"),
                                      HasSubstr("the same command continues")));
  PartFile file = PartFile::open(scratch.path() / "out", "a", 2000).value();
  EXPECT_EQ(file.size(), 1000U);
  ASSERT_TRUE(file.pad(2000).ok());
  ASSERT_TRUE(file.finish(false).ok());
  EXPECT_EQ(fs::file_size(scratch.path() / "out"), 2000U);
}

}  // namespace
}  // namespace quire
