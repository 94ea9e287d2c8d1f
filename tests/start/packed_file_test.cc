// The choice of the file that has a model's packed weights.
#include "start/packed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/setting_name.h"
#include "start/model_files.h"
#include "support/scratch_directory.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScratchDirectory;
using ::testing::StartsWith;

// Weights without tensors, in one file or in none.
class FileWeights final : public WeightSource {
 public:
  explicit FileWeights(const std::string& file) {
    if (!file.empty()) files_.push_back(MappedFile::open(file).value());
  }
  Result<TensorView> tensor(std::string_view /*name*/, const Shape& /*expected*/) override {
    return not_found("there is no tensor");
  }
  bool has(std::string_view /*name*/) const override { return false; }
  std::optional<DType> dtype_of(std::string_view /*name*/) const override { return std::nullopt; }
  void release(std::string_view /*name*/) override {}
  std::vector<std::string> names() const override { return {}; }
  std::vector<const MappedFile*> files() const override {
    std::vector<const MappedFile*> all;
    for (const MappedFile& file : files_) all.push_back(&file);
    return all;
  }

 private:
  std::vector<MappedFile> files_;
};

class KeptPackedWeights : public ::testing::Test {
 protected:
  KeptPackedWeights() {
    constexpr uint64_t kBytes = uint64_t{257} << 20;
    const std::string model = scratch_.write("model.gguf", "the model");
    fs::resize_file(model, kBytes);  // a hole, which takes no space
    files_.name = "Model 1/8B";
    files_.weights = std::make_unique<FileWeights>(model);
    config_.packed_weights = scratch_.path() / "kept";
    ::setenv("XDG_CACHE_HOME", (scratch_.path() / "cache").c_str(), 1);
  }
  ~KeptPackedWeights() override { ::unsetenv("XDG_CACHE_HOME"); }

  struct Opened {
    bool is_kept = false;
    std::string log;
    std::vector<std::string> files;  // in the directory
  };
  // Opens the packed weights, and keeps one matrix.
  Opened open(const PlatformConfig& platform = {}) const {
    Opened opened;
    ::testing::internal::CaptureStderr();
    {
      const auto weights = open_packed_weights(config_, files_, platform).value();
      opened.is_kept = weights != nullptr;
      if (weights != nullptr) {
        const auto matrix = weights->get("a", 100, [](std::byte*) { return 0U; });
        EXPECT_TRUE(matrix.ok());
        weights->save();
      }
    }
    opened.log = ::testing::internal::GetCapturedStderr();
    const bool is_auto = config_.packed_weights == "auto";
    const fs::path directory =
        is_auto ? scratch_.path() / "cache" / "quire" / "packed" : fs::path(config_.packed_weights);
    std::error_code error;
    for (const auto& found : fs::directory_iterator(directory, error)) {
      opened.files.push_back(found.path().filename());
    }
    return opened;
  }

  ScratchDirectory scratch_;
  ModelFiles files_;
  EngineConfig config_;
};

// A directory may be shared by machines with other kernels.
TEST_F(KeptPackedWeights, HaveTheModelAndTheMachineInTheirName) {
  utsname system = {};
  ASSERT_EQ(::uname(&system), 0);
  std::string machine = system.machine;
  for (char& c : machine) c = c == '_' ? '-' : c;
  for (const char* const directory : {"kept", "auto"}) {
    config_.packed_weights = directory;
    if (config_.packed_weights != "auto") config_.packed_weights = scratch_.path() / directory;
    const Opened opened = open();
    EXPECT_THAT(opened.log, HasSubstr("MiB of packed weights to"));
    ASSERT_EQ(opened.files.size(), 1U);
    EXPECT_THAT(opened.files.front(), StartsWith("Model-1-8B-" + machine + "-"));
  }
}

TEST_F(KeptPackedWeights, OfALongNameHaveAShortOne) {
  files_.name = std::string(250, 'n');
  EXPECT_EQ(open().files.size(), 1U);
  EXPECT_THAT(open().log, HasSubstr("are mapped from"));
}

TEST_F(KeptPackedWeights, AreFoundFromEveryDirectory) {
  open();
  config_.packed_weights = fs::relative(scratch_.path() / "kept", fs::current_path());
  EXPECT_THAT(open().log, HasSubstr("are mapped from"));
}

TEST_F(KeptPackedWeights, NeedADirectory) {
  config_.packed_weights = scratch_.write("kept", "a file");
  EXPECT_THAT(open_packed_weights(config_, files_, {}).status().message(),
              AllOf(HasSubstr("must be auto, off or a directory"), HasSubstr("/kept")));
}

TEST_F(KeptPackedWeights, TakeNoMemoryUnlessTheUserSaysSo) {
  struct statfs info = {};
  if (::statfs("/dev/shm", &info) != 0 || info.f_type != TMPFS_MAGIC) {
    GTEST_SKIP() << "/dev/shm is no tmpfs";
  }
  ::setenv("XDG_CACHE_HOME", "/dev/shm/quire_test", 1);
  config_.packed_weights = "auto";
  const Opened automatic = open();
  EXPECT_FALSE(automatic.is_kept);
  EXPECT_THAT(automatic.log, AllOf(HasSubstr(" I [weights]"), HasSubstr("/dev/shm/quire_test"),
                                   HasSubstr("is in memory (tmpfs or ramfs)")));
  EXPECT_FALSE(fs::exists("/dev/shm/quire_test"));
  config_.packed_weights = "/dev/shm/" + scratch_.path().filename().string();
  spells_settings_as_flags = true;
  const Opened named = open();
  spells_settings_as_flags = false;
  fs::remove_all(config_.packed_weights);
  EXPECT_EQ(named.files.size(), 1U);
  EXPECT_THAT(named.log, AllOf(HasSubstr(" W [weights]"), HasSubstr("takes 257 MiB of memory"),
                               HasSubstr("set --packed-weights to a directory on a disk")));
}

TEST_F(KeptPackedWeights, AreOfOneRankAndNode) {
  PlatformConfig ranks;
  ranks.devices = {0, 1};
  PlatformConfig nodes;
  nodes.threads.places = {{{}, 0}, {{}, 1}};
  for (const PlatformConfig& platform : {ranks, nodes}) {
    const Opened named = open(platform);
    EXPECT_FALSE(named.is_kept);
    EXPECT_THAT(named.log, AllOf(HasSubstr(" W [weights] `packed_weights` has no effect"),
                                 HasSubstr("several ranks, replicas or nodes")));
  }
  config_.packed_weights = "auto";
  EXPECT_THAT(open(ranks).log, IsEmpty());
  nodes.threads.places = {{{}, 1}, {{}, 1}};
  EXPECT_TRUE(open(nodes).is_kept);
}

TEST_F(KeptPackedWeights, AreOfWeightsInFiles) {
  files_.weights = std::make_unique<FileWeights>("");
  EXPECT_THAT(open().log, HasSubstr("the weights are not in files"));
  config_.packed_weights = "auto";
  EXPECT_THAT(open().log, IsEmpty());
}

}  // namespace
}  // namespace quire
