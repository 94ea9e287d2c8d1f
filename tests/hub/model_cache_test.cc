#include "hub/cache/model_cache.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "support/scratch_directory.h"
#include "support/value_of.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kCommit(40, 'c');

TEST(ModelName, HasARepositoryAndARevision) {
  const auto name = parse_model_name("Qwen/Qwen3-0.6B");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->repository, "Qwen/Qwen3-0.6B");
  EXPECT_EQ(name->revision, "main");
  EXPECT_EQ(name->text(), "Qwen/Qwen3-0.6B");
  const auto revised = parse_model_name("gpt2@refs/pr/1");
  ASSERT_TRUE(revised);
  EXPECT_EQ(revised->repository, "gpt2");
  EXPECT_EQ(revised->revision, "refs/pr/1");
  EXPECT_EQ(revised->text(), "gpt2@refs/pr/1");
}

TEST(ModelName, IsNotAPath) {
  for (const char* text :
       {"",      "/",        "/a",         "a/",        "./a",      "../a",     "~/a",
        "a/b/c", "a//b",     "a/..",       "a/.b",      "a b",      "a:b",      "a/b@",
        "a/b@/", "a/b@../c", "a/b@c/../d", "a/b@.c",    "a/b@c//d", "a/b@c/.d", "a--b",
        "-a",    "a/b@c@d",  "a/b@c\nd",   "\xC3\xA4/b"}) {
    EXPECT_FALSE(parse_model_name(text)) << text;
  }
  EXPECT_FALSE(parse_model_name(std::string(97, 'a')));
  EXPECT_FALSE(parse_model_name(std::string("a\0b", 3)));
}

// Sets the variables that name the cache for the duration of a test.
class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}) {
      ::unsetenv(name);
    }
    ::setenv("HF_HUB_CACHE", dir_.c_str(), 1);
  }

  void write(const fs::path& relative, std::string_view text = "{}") const {
    const fs::path path = dir_ / "models--org--name" / relative;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  // A file of the snapshot, as a link to a blob.
  void link(const std::string& name) const {
    write(fs::path("blobs") / name);
    const fs::path snapshot = dir_ / "models--org--name" / "snapshots" / kCommit;
    fs::create_directories(snapshot);
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  }
  static std::string error(const std::string& model, Needs needs = Needs::kWeights) {
    const auto found = find_model(model, needs);
    EXPECT_EQ(found.status().code(), StatusCode::kNotFound) << found.status().message();
    return found.status().message();
  }

  const testing::ScratchDirectory scratch_;
  const fs::path dir_ = scratch_.path();
};

TEST_F(CacheTest, TheVariablesHaveAnOrder) {
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(*cache_directory(), dir_);
  ::unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(*cache_directory(), "/home/me/.cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(*cache_directory(), "/caches/huggingface/hub");
  ::setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(*cache_directory(), "/home/me/hf/hub");
  EXPECT_EQ(*hub_home(), "/home/me/hf");
  ::unsetenv("HF_HOME");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_THAT(cache_directory().status().message(), HasSubstr("HF_HOME"));
}

TEST_F(CacheTest, FindsTheSnapshotOfARevision) {
  write("refs/main", kCommit + "\n");
  link("config.json");
  link("model.safetensors");
  const fs::path snapshot = dir_ / "models--org--name" / "snapshots" / kCommit;
  for (const std::string& model : {std::string("org/name"), "org/name@" + kCommit}) {
    const auto found = testing::value_of(find_model(model, Needs::kWeights));
    EXPECT_EQ(found.directory, snapshot);
    EXPECT_EQ(found.name, "org/name");
  }
  EXPECT_THAT(error("org/name@other"),
              AllOf(HasSubstr("but not its revision other (it has main, " + kCommit + ")"),
                    HasSubstr("`quire pull org/name@other`")));
}

TEST_F(CacheTest, APathWins) {
  const fs::path path = dir_ / "folder";
  fs::create_directories(path);
  const auto found = testing::value_of(find_model(path.string(), Needs::kWeights));
  EXPECT_EQ(found.directory, path);
  EXPECT_EQ(found.name, "");
}

TEST_F(CacheTest, TheErrorDistinguishesTheCases) {
  EXPECT_THAT(error("/no/such"), AllOf(HasSubstr("does not exist; expected a directory"),
                                       Not(HasSubstr("quire pull"))));
  EXPECT_THAT(error("org/name"),
              AllOf(HasSubstr("neither a directory nor a model in the hub's cache"),
                    HasSubstr("`quire pull org/name` downloads it")));
  EXPECT_THAT(error("org/name", Needs::kTokenizer), HasSubstr("[tokenizer] tokenizer: org/name"));
  write("refs/main", kCommit);
  EXPECT_THAT(error("Org/Name"), HasSubstr("which has org/name"));
  EXPECT_THAT(error("org/name"), HasSubstr("but not its revision main; `quire pull"));
  link("config.json");
  EXPECT_TRUE(find_model("org/name", Needs::kConfig).ok());
  EXPECT_THAT(error("org/name"),
              AllOf(HasSubstr("only partly in the hub's cache"),
                    HasSubstr("lacks model.safetensors; `quire pull org/name`")));
  EXPECT_THAT(error("org/name", Needs::kTokenizer), HasSubstr("lacks tokenizer.json"));
  link("tiktoken.model");
  EXPECT_TRUE(find_model("org/name", Needs::kTokenizer).ok());
}

TEST_F(CacheTest, ALinkWithoutABlobIsMissing) {
  write("refs/main", kCommit);
  link("config.json");
  link("a.safetensors");
  link("b.safetensors");
  write(fs::path("snapshots") / kCommit / "model.safetensors.index.json",
        R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  EXPECT_TRUE(find_model("org/name", Needs::kWeights).ok());
  fs::remove(dir_ / "models--org--name" / "blobs" / "b.safetensors");
  EXPECT_THAT(error("org/name"), HasSubstr("lacks b.safetensors;"));
}

TEST_F(CacheTest, ARefMustBeACommit) {
  write("refs/main", "../../../etc");
  const auto found = find_model("org/name", Needs::kWeights);
  EXPECT_THAT(found.status().message(), HasSubstr("expected 40 hexadecimal digits"));
}

}  // namespace
}  // namespace quire::hub
