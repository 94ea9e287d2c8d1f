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

TEST(ModelName, MayHaveATagAndAHost) {
  for (const char* text : {"a/b:Q4_K_M", "hf.co/a/b:Q4_K_M", "huggingface.co/a/b:Q4_K_M",
                           "https://hf.co/a/b:Q4_K_M", "https://huggingface.co/a/b:Q4_K_M"}) {
    const auto name = parse_model_name(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(name->repository, "a/b");
    EXPECT_EQ(name->gguf_tag, "Q4_K_M");
    EXPECT_EQ(name->text(), "a/b:Q4_K_M");
  }
  EXPECT_EQ(parse_model_name("a/b@refs/pr/1:sub/x-00001-of-00002.gguf")->text(),
            "a/b@refs/pr/1:sub/x-00001-of-00002.gguf");
  EXPECT_EQ(parse_model_name("hf.co/a/b:latest")->text(), "a/b");
  for (const char* text : {"hf.co/b", "https://hf.co/b", "https://hf.co/hf.co/b", "https://b/c"}) {
    EXPECT_FALSE(parse_model_name(text)) << text;
  }
}

TEST(ModelName, IsNotAPath) {
  for (const char* text : {"",
                           "/",
                           "/a",
                           "a/",
                           "./a",
                           "../a",
                           "~/a",
                           "a/b/c",
                           "a//b",
                           "a/..",
                           "a/.b",
                           "a b",
                           "a:b",
                           "a/b@",
                           "a/b@/",
                           "a/b@../c",
                           "a/b@c/../d",
                           "a/b@.c",
                           "a/b@c//d",
                           "a/b@c/.d",
                           "a--b",
                           "a/b:",
                           "a/b:../c",
                           "a/b:/c",
                           "a/b:c d",
                           "a/b:c:d",
                           "a/b:c@d",
                           "hf.co/a/b/c",
                           "hf.co/hf.co/a/b",
                           "hf.co/hf.co/a",
                           "-a",
                           "a/b@c@d",
                           "a/b@c\nd",
                           "\xC3\xA4/b"}) {
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

TEST_F(CacheTest, FindsTheGgufFileOfATag) {
  write("refs/main", kCommit);
  link("mmproj-F16.gguf");
  link("m-Q8_0.gguf");
  link("m-F16-00001-of-00002.gguf");
  const fs::path snapshot = dir_ / "models--org--name" / "snapshots" / kCommit;
  for (const std::string tag : {"q8_0", "m-Q8_0.gguf"}) {
    const auto found = testing::value_of(find_model("hf.co/org/name:" + tag, Needs::kTokenizer));
    EXPECT_EQ(found.directory, snapshot / "m-Q8_0.gguf");
    EXPECT_EQ(found.name, "org/name:" + tag);
  }
  EXPECT_EQ(find_model("org/name", Needs::kWeights)->directory, snapshot / "m-Q8_0.gguf");
  EXPECT_THAT(error("org/name:F16"),
              AllOf(HasSubstr("has 1 of 2 files"), HasSubstr("`quire pull org/name:F16`")));
  EXPECT_THAT(error("org/name:Q2_K"),
              AllOf(HasSubstr("no GGUF file Q2_K of org/name (it has F16, Q8_0)"),
                    HasSubstr("`quire pull org/name:Q2_K` downloads it")));
  link("m-F16-00002-of-00002.gguf");
  EXPECT_EQ(find_model("org/name:F16", Needs::kWeights)->directory,
            snapshot / "m-F16-00001-of-00002.gguf");
  // Safetensors take precedence if the name has no tag.
  link("config.json");
  link("model.safetensors");
  EXPECT_EQ(find_model("org/name", Needs::kWeights)->directory, snapshot);
  fs::remove(dir_ / "models--org--name" / "blobs" / "m-Q8_0.gguf");
  EXPECT_THAT(error("org/name:Q8_0"), HasSubstr("(it has F16)"));
  EXPECT_THAT(error("x.gguf"), HasSubstr("the file x.gguf does not exist"));
}

TEST_F(CacheTest, ARefMustBeACommit) {
  write("refs/main", "../../../etc");
  const auto found = find_model("org/name", Needs::kWeights);
  EXPECT_THAT(found.status().message(), HasSubstr("expected 40 hexadecimal digits"));
}

}  // namespace
}  // namespace quire::hub
