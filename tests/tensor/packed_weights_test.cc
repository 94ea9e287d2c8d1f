// Packed weights are read back as they were written, and a file that is damaged, stale or not the
// user's own is refused with its reason and replaced.
#include "tensor/packed_weights.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "base/log.h"
#include "support/scratch_directory.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ScratchDirectory;

// The parts of the file's header (packed_weights.cc).
constexpr size_t kHeaderBytesAt = 16;
constexpr size_t kDigestAt = 48;
constexpr size_t kTextAt = kDigestAt + sizeof(Sha256Digest);

constexpr size_t kMatrixBytes = 10'000;  // no multiple of a page

constexpr std::chrono::hours kHour{1};
constexpr std::chrono::hours kDay{24};

std::byte byte_of(char key, size_t i) {
  return static_cast<std::byte>(static_cast<size_t>(key) * 31 + i * 7);
}

class PackedWeightsTest : public ::testing::Test {
 protected:
  PackedWeightsTest() { write_source("the model"); }

  void write_source(std::string_view text) {
    source_.reset();
    source_ = MappedFile::open(scratch_.write("model.gguf", text)).value();
  }
  // Opens the file that has replaced the one at its path.
  void write_source_again() { source_ = MappedFile::open(fs::path(source_->path())).value(); }
  PackedWeights::Config config() const {
    return {.file = file_, .sources = {&*source_}, .layout = "test"};
  }
  static PackedWeights::Config automatic(PackedWeights::Config config) {
    config.is_automatic = true;
    return config;
  }

  struct Start {
    int num_packed = 0;
    std::string log;
  };
  // A start that makes a matrix per letter of `keys`, and waits until they are kept.
  Start start(const PackedWeights::Config& config, std::string_view keys = "abc") const {
    Start start;
    ::testing::internal::CaptureStderr();
    {
      PackedWeights weights(config);
      std::vector<PackedWeights::Matrix> matrices;
      for (const char key : keys) {
        const auto pack = [&](std::byte* out) {
          for (size_t i = 0; i < kMatrixBytes; ++i) out[i] = byte_of(key, i);
          ++start.num_packed;
          return static_cast<uint32_t>(key);
        };
        matrices.push_back(weights.get(std::string(1, key), kMatrixBytes, pack).value());
      }
      weights.save();
      for (size_t m = 0; m < keys.size(); ++m) check(matrices[m], keys[m]);
    }
    start.log = ::testing::internal::GetCapturedStderr();
    return start;
  }
  Start start() const { return start(config()); }

  static void check(const PackedWeights::Matrix& matrix, char key) {
    EXPECT_EQ(matrix.form, static_cast<uint32_t>(key));
    ASSERT_EQ(matrix.bytes.num_bytes(), kMatrixBytes);
    const auto* bytes = static_cast<const std::byte*>(matrix.bytes.data());
    for (size_t i = 0; i < kMatrixBytes; ++i) ASSERT_EQ(bytes[i], byte_of(key, i)) << i;
  }

  std::string read() const { return read_file(file_, 1 << 20).value(); }
  // Replaces the file's bytes; the file stays the user's own.
  void write(std::string_view bytes) const {
    scratch_.write("cache/m.packed", bytes);
    ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  }
  // Gives a changed header the digest that it should have.
  static void seal(std::string& file) {
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data() + kHeaderBytesAt, sizeof header_bytes);
    std::memset(file.data() + kDigestAt, 0, sizeof(Sha256Digest));
    const Sha256Digest digest = sha256_of(std::string_view(file).substr(0, header_bytes));
    std::memcpy(file.data() + kDigestAt, digest.data(), digest.size());
  }
  // The next start refuses the file, and the one after it uses the new file.
  void expect_refused(const std::string& reason) const {
    const Start refused = start();
    EXPECT_EQ(refused.num_packed, 3);
    EXPECT_THAT(refused.log, AllOf(HasSubstr("is not used"), HasSubstr(reason)));
    EXPECT_EQ(start().num_packed, 0) << reason;
  }

  std::vector<std::string> kept_names() const {
    std::vector<std::string> names;
    for (const auto& found : fs::directory_iterator(file_.parent_path())) {
      names.push_back(found.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  static void make_older(const fs::path& file, std::chrono::hours age) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - age);
  }

  ScratchDirectory scratch_;
  fs::path file_ = scratch_.path() / "cache" / "m.packed";
  std::optional<MappedFile> source_;
};

TEST_F(PackedWeightsTest, LaterStartsDoNotPack) {
  EXPECT_EQ(start().num_packed, 3);
  struct stat info = {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_THAT(kept_names(), ElementsAre("m.packed"));
  const Start second = start();
  EXPECT_EQ(second.num_packed, 0);
  EXPECT_THAT(second.log, HasSubstr("packed weights are mapped from"));
  EXPECT_EQ(start(config(), "c").num_packed, 0);
}

TEST_F(PackedWeightsTest, OutliveTheirObject) {
  start();
  std::optional<PackedWeights::Matrix> matrix;
  {
    PackedWeights weights(config());
    matrix = weights.get("b", kMatrixBytes, [](std::byte*) { return 0U; }).value();
  }
  fs::remove(file_);
  check(*matrix, 'b');
}

TEST_F(PackedWeightsTest, AMissingMatrixIsAdded) {
  EXPECT_EQ(start(config(), "ab").num_packed, 2);
  EXPECT_EQ(start(config(), "abc").num_packed, 1);
  EXPECT_EQ(start(config(), "aabc").num_packed, 0);
}

TEST_F(PackedWeightsTest, TheSizeOfAMatrixIsCompared) {
  start();
  PackedWeights weights(config());
  int num_packed = 0;
  const auto pack = [&](std::byte*) { return static_cast<uint32_t>(++num_packed); };
  EXPECT_EQ(weights.get("a", kMatrixBytes + 1, pack).value().bytes.num_bytes(), kMatrixBytes + 1);
  EXPECT_EQ(num_packed, 1);
}

TEST_F(PackedWeightsTest, AChangedModelIsPackedAgain) {
  start();
  write_source("another");
  expect_refused("the model's files or Quire's version have changed");
  // "another" and "a third" have equal sizes.
  write_source("a third");
  expect_refused("have changed");
}

// `cp --preserve`, archives and some network file systems give a file the size and time of another.
TEST_F(PackedWeightsTest, AChangeOfTheSameSizeAndTimeIsFound) {
  constexpr size_t kBytes = size_t{40} << 20;  // more than is sampled
  std::string model(kBytes, 'w');
  write_source(model);
  const fs::path path = source_->path();
  const fs::file_time_type written = fs::last_write_time(path);
  start();
  std::string changed = model;
  for (size_t at = 0; at < kBytes; at += size_t{100} << 10) changed[at] = 'x';
  for (const std::string& text :
       {changed, std::string(1, 'x') + model.substr(1), model.substr(0, kBytes - 1) + 'x'}) {
    write_source(text);
    fs::last_write_time(path, written);
    write_source_again();
    expect_refused("the model's files or Quire's version have changed");
  }
}

// Restarts, containers and network file systems change inodes, devices and the time of the inode.
TEST_F(PackedWeightsTest, ACopyInTheSamePlaceIsTheSameModel) {
  start();
  const fs::path path = source_->path();
  const fs::file_time_type written = fs::last_write_time(path);
  fs::copy_file(path, scratch_.path() / "copy");
  fs::rename(scratch_.path() / "copy", path);
  fs::last_write_time(path, written);
  write_source_again();
  EXPECT_EQ(start().num_packed, 0);
}

TEST_F(PackedWeightsTest, AllWaysToAModelAreOne) {
  start();
  fs::create_directories(scratch_.path() / "folder");
  fs::create_directory_symlink(scratch_.path(), scratch_.path() / "folder" / "link");
  for (const fs::path& way : {scratch_.path() / "folder" / ".." / "." / "model.gguf",
                              scratch_.path() / "folder" / "link" / "model.gguf",
                              fs::relative(scratch_.path() / "model.gguf", fs::current_path())}) {
    source_ = MappedFile::open(way).value();
    EXPECT_EQ(start().num_packed, 0) << way;
  }
}

TEST_F(PackedWeightsTest, APathMayHaveAnyByte) {
  for (const std::string name : {"a: device 1, inode 2", "3:abc, 5 bytes\nQuire", "line\n\nbreak",
                                 "\"quotes' %41 {}", "not utf-8 \xff\xfe", "1"}) {
    SCOPED_TRACE(name);
    source_ = MappedFile::open(scratch_.write(name, "odd")).value();
    EXPECT_EQ(start().num_packed, 3);
    EXPECT_EQ(start().num_packed, 0);
    // The path is read from the file when another is written.
    const fs::path of_odd = file_.parent_path() / "odd.packed";
    fs::rename(file_, of_odd);
    make_older(of_odd, kDay + kHour);
    write_source("the model");
    start();
    EXPECT_TRUE(fs::exists(of_odd));
    fs::remove(scratch_.path() / name);
    fs::remove(file_);
    EXPECT_THAT(start().log, AllOf(HasSubstr("odd.packed"), HasSubstr("is gone")));
    EXPECT_FALSE(fs::exists(of_odd));
    fs::remove(file_);
  }
}

TEST_F(PackedWeightsTest, AModelThatChangesMeanwhileIsNotKept) {
  const PackedWeights::Config opened = config();
  scratch_.write("model.gguf", "another model");
  const Start changed = start(opened);
  EXPECT_THAT(changed.log, AllOf(HasSubstr("cannot be kept"), HasSubstr("changed while it was")));
  EXPECT_THAT(kept_names(), IsEmpty());
}

TEST_F(PackedWeightsTest, TheFileOfOtherKernelsIsNotUsed) {
  start();
  PackedWeights::Config other = config();
  other.layout = "test-amx";
  EXPECT_EQ(start(other).num_packed, 3);
}

TEST_F(PackedWeightsTest, AnotherVersionIsNotUsed) {
  start();
  std::string file = read();
  const std::string layout = fmt::format("layout {}", kPackedLayoutVersion);
  file.replace(file.find(layout), layout.size(),
               fmt::format("layout {}", kPackedLayoutVersion + 1));
  seal(file);
  write(file);
  expect_refused("Quire's version have changed");
}

TEST_F(PackedWeightsTest, ATruncatedFileIsNotUsed) {
  start();
  const std::string file = read();
  for (const size_t size : {size_t{0}, size_t{1}, kTextAt - 1, kTextAt, file.size() / 2,
                            file.size() - 1, file.size() + 1}) {
    SCOPED_TRACE(size);
    std::string cut = file;
    cut.resize(size);
    write(cut);
    expect_refused("it is damaged");
  }
}

TEST_F(PackedWeightsTest, AnyChangedByteOfTheHeaderIsFound) {
  start();
  const std::string file = read();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data() + kHeaderBytesAt, sizeof header_bytes);
  ASSERT_LT(header_bytes, 4096U);
  for (size_t i = 0; i < header_bytes; ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    write(changed);
    ::testing::internal::CaptureStderr();
    PackedWeights weights(config());
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("it is damaged")) << i;
  }
}

// The digest is no protection from someone who computes it.
TEST_F(PackedWeightsTest, HostileSizesAreRefused) {
  start();
  const std::string file = read();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data() + kHeaderBytesAt, sizeof header_bytes);
  constexpr size_t kEntryBytes = sizeof(Sha256Digest) + 3 * sizeof(uint64_t);
  const size_t offset_at = header_bytes - kEntryBytes + sizeof(Sha256Digest);
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  // header_bytes, file_bytes, sources_bytes, num_entries, then an entry's offset and size.
  for (const size_t at : {kHeaderBytesAt, kHeaderBytesAt + 8, kHeaderBytesAt + 16,
                          kHeaderBytesAt + 24, offset_at, offset_at + 8}) {
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{8}, uint64_t{1} << 62, kHuge - 4095, kHuge}) {
      if (at == offset_at + 8 && value < kMatrixBytes) continue;  // possible; get() compares it
      SCOPED_TRACE(fmt::format("{} at {}", value, at));
      std::string changed = file;
      std::memcpy(changed.data() + at, &value, sizeof value);
      if (at > kHeaderBytesAt) seal(changed);
      write(changed);
      expect_refused("it is damaged");
    }
  }
}

TEST_F(PackedWeightsTest, OnlyTheUsersOwnFileIsUsed) {
  start();
  ASSERT_EQ(::chmod(file_.c_str(), 0620), 0);
  expect_refused("other users may write it; got mode 620");
  fs::create_hard_link(file_, scratch_.path() / "link");
  expect_refused("hard links");
  const fs::path moved = scratch_.path() / "moved";
  fs::rename(file_, moved);
  fs::create_symlink(moved, file_);
  expect_refused("cannot open");
  EXPECT_TRUE(fs::exists(moved));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_EQ(::chown(file_.c_str(), 12345, 12345), 0);
  expect_refused("it belongs to user 12345");
}

TEST_F(PackedWeightsTest, ADirectoryThatCannotBeWrittenIsAWarning) {
  scratch_.write("cache", "a file in its place");
  const Start first = start();
  EXPECT_EQ(first.num_packed, 3);
  EXPECT_THAT(first.log,
              AllOf(HasSubstr(" W [weights]"), HasSubstr("so the next start packs them again"),
                    HasSubstr("set `packed_weights` to a directory on a disk")));
}

TEST_F(PackedWeightsTest, ADiskWithoutSpaceIsAWarning) {
  PackedWeights::Config wanting = config();
  wanting.free_sizes = uint64_t{1} << 40;
  EXPECT_THAT(start(wanting).log, AllOf(HasSubstr(" W [weights]"), HasSubstr("the disk has")));
  EXPECT_THAT(kept_names(), IsEmpty());
}

TEST_F(PackedWeightsTest, AutomaticOnesCannotBeKeptInOneLineWithoutWarning) {
  const auto expect_one_line = [&](const PackedWeights::Config& config, const std::string& reason) {
    for (int i = 0; i < 2; ++i) {
      const std::string log = start(automatic(config)).log;
      EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
      EXPECT_THAT(log, AllOf(Not(HasSubstr(" W [weights]")), HasSubstr(reason)));
    }
  };
  PackedWeights::Config wanting = config();
  wanting.free_sizes = uint64_t{1} << 40;
  expect_one_line(wanting, "the disk has");
  start();
  write_source("another");
  wanting.sources = {&*source_};
  expect_one_line(wanting, "the disk has");
  const std::string log = start(automatic(config())).log;
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  EXPECT_THAT(log, AllOf(HasSubstr("writing"), HasSubstr("have changed")));
  fs::remove_all(file_.parent_path());
  scratch_.write("cache", "a file in its place");
  expect_one_line(config(), "cannot be kept");
}

TEST_F(PackedWeightsTest, FilesOfModelsThatAreGoneAreRemoved) {
  start();
  const fs::path other = scratch_.path() / "other.gguf";
  fs::rename(scratch_.path() / "model.gguf", other);
  const MappedFile moved = MappedFile::open(other).value();
  const fs::path of_moved = file_.parent_path() / "other.packed";
  const auto start_other = [&] {
    fs::remove(of_moved);
    return start({.file = of_moved, .sources = {&moved}}).log;
  };
  start_other();
  EXPECT_TRUE(fs::exists(file_)) << "another machine has used it today";
  make_older(file_, kDay + kHour);
  EXPECT_THAT(start_other(), AllOf(HasSubstr("model.gguf is gone"), HasSubstr("m.packed")));
  EXPECT_THAT(kept_names(), ElementsAre("other.packed"));
}

TEST_F(PackedWeightsTest, UnusedAutomaticFilesAreRemoved) {
  start();
  const fs::path of_other = file_.parent_path() / "other.packed";
  const auto start_other = [&](bool is_automatic) {
    fs::remove(of_other);
    PackedWeights::Config other = config();
    other.file = of_other;
    other.is_automatic = is_automatic;
    return start(other).log;
  };
  make_older(file_, 30 * kDay + kHour);
  start_other(false);
  EXPECT_TRUE(fs::exists(file_)) << "the user manages a directory that they have named";
  EXPECT_EQ(start().num_packed, 0);
  start_other(true);
  EXPECT_TRUE(fs::exists(file_)) << "a start has used it";
  make_older(file_, 30 * kDay + kHour);
  EXPECT_THAT(start_other(true), HasSubstr("no start has used it for 30 days"));
  EXPECT_THAT(kept_names(), ElementsAre("other.packed"));
}

TEST_F(PackedWeightsTest, UnfinishedFilesOfEndedProcessesAreRemoved) {
  fs::create_directories(file_.parent_path());
  for (const char* const name :
       {"m.packed.a1B2c3.partial", "other.packed.a1B2c3.partial", "m.packed.foreign.partial",
        "download.partial", "m.packed.partial"}) {
    scratch_.write(std::string("cache/") + name, std::string(1 << 20, 'x'));
    ASSERT_EQ(::chmod((file_.parent_path() / name).c_str(), 0600), 0);
  }
  start();
  EXPECT_LT(fs::file_size(file_), size_t{1} << 20);
  EXPECT_THAT(kept_names(), ElementsAre("download.partial", "m.packed", "m.packed.foreign.partial",
                                        "m.packed.partial"));
  EXPECT_EQ(start().num_packed, 0);
}

TEST_F(PackedWeightsTest, TheUnfinishedFileOfARunningProcessIsLeft) {
  fs::create_directories(file_.parent_path());
  const fs::path partial = file_.string() + ".a1B2c3.partial";
  scratch_.write("cache/m.packed.a1B2c3.partial", "x");
  ASSERT_EQ(::chmod(partial.c_str(), 0600), 0);
  std::FILE* const writer = std::fopen(partial.c_str(), "r+");
  ASSERT_NE(writer, nullptr);
  ASSERT_EQ(::flock(::fileno(writer), LOCK_EX), 0);
  EXPECT_THAT(start().log, HasSubstr("another process is writing"));
  EXPECT_THAT(kept_names(), ElementsAre("m.packed.a1B2c3.partial"));
  // Another model's writer is no reason to wait.
  PackedWeights::Config other = config();
  other.file = file_.parent_path() / "other.packed";
  start(other);
  EXPECT_THAT(kept_names(), ElementsAre("m.packed.a1B2c3.partial", "other.packed"));
  std::fclose(writer);
  start();
  EXPECT_THAT(kept_names(), ElementsAre("m.packed", "other.packed"));
}

TEST_F(PackedWeightsTest, TheUnfinishedFileOfAnotherUserIsNoObstacle) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  fs::create_directories(file_.parent_path());
  const fs::path partial = file_.string() + ".a1B2c3.partial";
  scratch_.write("cache/m.packed.a1B2c3.partial", "x");
  ASSERT_EQ(::chown(partial.c_str(), 12345, 12345), 0);
  start();
  EXPECT_THAT(kept_names(), ElementsAre("m.packed", "m.packed.a1B2c3.partial"));
}

// The writer may be done before the destructor runs, if the machine is busy.
TEST_F(PackedWeightsTest, WritingCanBeCancelled) {
  constexpr size_t kBytes = size_t{256} << 20;
  constexpr int kMaxAttempts = 5;
  PackedWeights::Config impatient = config();
  impatient.waits = false;
  std::string log;
  for (int i = 0; i < kMaxAttempts && log.find("is not written") == std::string::npos; ++i) {
    fs::remove(file_);
    ::testing::internal::CaptureStderr();
    {
      PackedWeights weights(impatient);
      const auto matrix = weights.get("a", kBytes, [](std::byte*) { return 0U; });
      ASSERT_TRUE(matrix.ok());
      weights.save();
    }
    log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, Not(HasSubstr(" W [weights]")));
  }
  EXPECT_THAT(log, HasSubstr("is not written, because the engine ends before"));
  EXPECT_THAT(kept_names(), IsEmpty());
}

TEST_F(PackedWeightsTest, ProcessesMayWriteAtOnce) {
  set_log_level(LogLevel::kOff);
  for (int round = 0; round < 20; ++round) {
    fs::remove(file_);
    std::vector<std::thread> processes;
    for (int i = 0; i < 4; ++i) {
      processes.emplace_back([&] {
        PackedWeights weights(config());
        const auto pack = [&](std::byte* out) {
          for (size_t k = 0; k < kMatrixBytes; ++k) out[k] = byte_of('a', k);
          return uint32_t{'a'};
        };
        const PackedWeights::Matrix matrix = weights.get("a", kMatrixBytes, pack).value();
        weights.save();
        check(matrix, 'a');
      });
    }
    for (std::thread& process : processes) process.join();
    set_log_level(LogLevel::kInfo);
    EXPECT_EQ(start(config(), "a").num_packed, 0);
    set_log_level(LogLevel::kOff);
  }
  set_log_level(LogLevel::kInfo);
}

TEST_F(PackedWeightsTest, PlacesLieInTheModelsFiles) {
  const PackedWeights weights(config());
  const std::byte* const bytes = source_->bytes().data();
  EXPECT_EQ(weights.place_of(bytes + 1, 3), "file 0 1+3");
  EXPECT_EQ(weights.place_of(bytes, source_->bytes().size() + 1), std::nullopt);
  EXPECT_EQ(weights.place_of(bytes - 1, 1), std::nullopt);
  EXPECT_EQ(weights.place_of(&weights, 1), std::nullopt);
}

}  // namespace
}  // namespace quire
