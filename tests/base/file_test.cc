#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "support/scratch_directory.h"
#include "support/value_of.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) const {
    return scratch_.write("file", text);
  }

  const testing::ScratchDirectory scratch_;
  const std::filesystem::path dir_ = scratch_.path();
};

TEST_F(FileTest, ReadsAndMapsTheSameBytes) {
  const std::string text("a\0b\xFF", 4);
  const auto path = write(text);
  EXPECT_EQ(*read_file(path, 4), text);
  const auto mapped = testing::value_of(MappedFile::open(path));
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()),
      text);
}

TEST_F(FileTest, ABrokenLinkIsNotAbsent) {
  EXPECT_TRUE(*path_exists(write("a")));
  EXPECT_TRUE(*path_exists(dir_));
  EXPECT_FALSE(*path_exists(dir_ / "none"));
  EXPECT_FALSE(*path_exists(dir_ / "file" / "none"));
  const auto link = dir_ / "link";
  std::filesystem::create_symlink("nowhere", link);
  const std::string expected = link.string() +
                               " exists but cannot be opened: it is a symbolic "
                               "link to nowhere";
  EXPECT_THAT(path_exists(link).status().message(), HasSubstr(expected));
  const Status read = read_file(link, 4).status();
  EXPECT_THAT(read.message(), HasSubstr(expected));
  EXPECT_NE(read.code(), StatusCode::kNotFound);
  std::filesystem::create_symlink("circle", dir_ / "circle");
  EXPECT_FALSE(path_exists(dir_ / "circle").ok());
}

TEST_F(FileTest, AFolderThatCannotBeSearchedIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may search every folder";
  std::filesystem::create_directories(dir_ / "closed");
  std::filesystem::permissions(dir_ / "closed", std::filesystem::perms::none);
  EXPECT_THAT(path_exists(dir_ / "closed" / "a").status().message(),
              HasSubstr("cannot be opened: Permission denied"));
}

TEST_F(FileTest, EmptyFileMapsToNothing) {
  const auto mapped = testing::value_of(MappedFile::open(write("")));
  EXPECT_TRUE(mapped.bytes().empty());
}

TEST_F(FileTest, RefusesLargeFilesBeforeReading) {
  const auto text = read_file(write("12345"), 4);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.status().message(), HasSubstr("got 5 bytes, expected at most 4"));
}

TEST_F(FileTest, RefusesGitLfsPointers) {
  const auto path = write(
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n");
  EXPECT_THAT(read_file(path, 1000).status().message(), HasSubstr("git lfs pull"));
  EXPECT_THAT(MappedFile::open(path).status().message(), HasSubstr("git lfs pull"));
}

TEST_F(FileTest, ReplacesAFileAndMakesItsFolders) {
  const auto path = dir_ / "new" / "folder" / "file";
  ASSERT_TRUE(replace_file(path, "one").ok());
  ASSERT_TRUE(replace_file(path, "two").ok());
  EXPECT_EQ(*read_file(path, 10), "two");
  const std::filesystem::directory_iterator files(path.parent_path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "no file is left beside it";
  EXPECT_FALSE(replace_file(path / "below", "three").ok()) << "a file is no folder";
}

TEST_F(FileTest, ReplacesAFileOfTheWorkingDirectory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir_);
  EXPECT_TRUE(replace_file("file", "one").ok());
  std::filesystem::current_path(before);
  EXPECT_EQ(*read_file(dir_ / "file", 10), "one");
}

TEST_F(FileTest, RefusesOtherThanRegularFiles) {
  EXPECT_EQ(read_file(dir_ / "absent", 4).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(read_file(dir_, 4).status().message(),
              HasSubstr("not a regular file; got a directory, expected the path of a file"));
  const auto fifo = dir_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(fifo).status().message(), HasSubstr("; got a FIFO, expected"))
      << "and does not wait for a writer";
}

TEST_F(FileTest, ReadsAPipeToItsEnd) {
  const auto fifo = dir_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string text(300'000, 'x');
  const auto read = [&](size_t max_bytes) {
    std::thread writer([&] { std::ofstream(fifo, std::ios::binary) << text; });
    const auto result = read_file_or_pipe(fifo, max_bytes);
    writer.join();
    return result;
  };
  ::signal(SIGPIPE, SIG_IGN);  // the reader stops early
  EXPECT_EQ(*read(text.size()), text);
  EXPECT_THAT(read(text.size() - 1).status().message(), HasSubstr("too large"));
  EXPECT_FALSE(read_file(fifo, text.size()).ok());
  EXPECT_THAT(read_file_or_pipe(dir_, 4).status().message(), HasSubstr("or a pipe"));
}

TEST_F(FileTest, ReadsFilesWithoutASize) {
  const auto text = testing::value_of(read_file("/proc/self/status", 1 << 20));
  EXPECT_THAT(text, HasSubstr("Pid:"));
}

TEST_F(FileTest, DroppedPagesCanBeReadAgain) {
  const std::string text(100'000, 'x');
  const auto mapped = testing::value_of(MappedFile::open(write(text)));
  mapped.drop_pages(mapped.bytes());
  EXPECT_EQ(static_cast<char>(mapped.bytes()[50'000]), 'x');
}

}  // namespace
}  // namespace quire
