#include "hub/cache/model_folder.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hub/cache/model_cache.h"
#include "support/scratch_directory.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sets or removes a variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> old_;
};

TEST(ModelFolder, IsNamedByVariables) {
  const Variable home("HOME", "/home/u");
  {
    const Variable models("QUIRE_MODELS", "/m");
    const Variable data("XDG_DATA_HOME", "/d");
    EXPECT_EQ(*models_directory(), "/m");
    const Variable tilde("QUIRE_MODELS", "~/m");
    EXPECT_EQ(*models_directory(), "/home/u/m");
    const Variable empty("QUIRE_MODELS", "");
    EXPECT_EQ(*models_directory(), "/d/quire/models");
  }
  const Variable models("QUIRE_MODELS", std::nullopt);
  const Variable data("XDG_DATA_HOME", std::nullopt);
  EXPECT_EQ(*models_directory(), "/home/u/.local/share/quire/models");
  const Variable none("HOME", std::nullopt);
  EXPECT_THAT(models_directory().status().message(), HasSubstr("expected one of them"));
  EXPECT_EQ(local_model_file("smollm2"), "");
}

TEST(ModelFolder, NamesArePlain) {
  for (const char* name : {"smollm2", "a.b_c-d", "A"}) EXPECT_TRUE(can_name_local_model(name));
  for (const char* name :
       {"", ".", "..", ".incomplete", "a/b", "../a", "a@b", "embedded", "a b", "-a", "a\n"}) {
    EXPECT_FALSE(can_name_local_model(name)) << name;
  }
}

TEST(ModelFolder, NamesMayHaveOllamasForm) {
  EXPECT_EQ(local_model_name("a:latest"), "a");
  EXPECT_EQ(local_model_name("SmolLM2:latest"), "smollm2");
  for (const char* name : {"a", "A", "a:1b", "a/b:latest"}) EXPECT_EQ(local_model_name(name), name);
}

class ModelFolderTest : public ::testing::Test {
 protected:
  void add(const std::string& name, const ModelSource& source) const {
    fs::create_directories(models_ / name);
    directory_.write(name + "/" + name + ".gguf", "GGUF");
    directory_.write(name + "/source.json", source_json(source));
  }

  testing::ScratchDirectory directory_;
  fs::path models_ = directory_.path();
  Variable variable_{"QUIRE_MODELS", directory_.path().string()};
};

TEST_F(ModelFolderTest, ListsModelsByName) {
  EXPECT_TRUE(list_local_models(models_ / "none").empty());
  add("b", {.origin = "pypi:b", .version = "1", .sha256 = "aa", .size = 4});
  add("a", {});
  directory_.write("a/source.json", "{");
  directory_.write("file", "no folder");
  fs::create_directories(models_ / ".incomplete");
  const std::vector<LocalModel> models = list_local_models(models_);
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[0].source.origin, "");
  EXPECT_EQ(models[1].name, "b");
  EXPECT_EQ(models[1].source.origin, "pypi:b");
  EXPECT_EQ(models[1].source.version, "1");
  EXPECT_EQ(models[1].source.size, 4);
  EXPECT_EQ(models[1].directory, models_ / "b");
}

TEST_F(ModelFolderTest, FindsAModelByNameUnlessThereIsSuchAPath) {
  add("quire-test-model", {});
  const fs::path file = models_ / "quire-test-model" / "quire-test-model.gguf";
  for (const Needs needs : {Needs::kTokenizer, Needs::kConfig, Needs::kWeights}) {
    const auto found = find_model("quire-test-model", needs);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->directory, file);
    EXPECT_EQ(found->name, "quire-test-model");
  }
  EXPECT_EQ(find_model("quire-test-model:latest", Needs::kWeights)->name, "quire-test-model");
  EXPECT_FALSE(find_model("quire-test-model:1b", Needs::kWeights).ok());
  add("smollm2", {});
  EXPECT_EQ(find_model("SmolLM2", Needs::kWeights)->name, "smollm2");
  EXPECT_EQ(local_model_file(models_, "SmolLM2:latest"), models_ / "smollm2" / "smollm2.gguf");
  const fs::path before = fs::current_path();
  fs::current_path(models_);  // where the model's folder is a path
  const auto path = find_model("quire-test-model", Needs::kWeights);
  fs::current_path(before);
  EXPECT_EQ(path->directory, "quire-test-model");
  EXPECT_EQ(path->name, "");
  EXPECT_EQ(local_model_file("../" + models_.filename().string()), "");
  fs::remove(file);
  EXPECT_THAT(find_model("quire-test-model", Needs::kWeights).status().message(),
              HasSubstr("or in the model folder, " + models_.string()));
}

TEST_F(ModelFolderTest, AnUnknownNameNamesTheCommandThatHelps) {
  EXPECT_THAT(find_model("smollm2", Needs::kWeights).status().message(),
              HasSubstr("`quire pull smollm2` downloads it"));
  EXPECT_THAT(find_model("SmolLM2:latest", Needs::kWeights).status().message(),
              HasSubstr("`quire pull smollm2` downloads it"));
  EXPECT_THAT(find_model("smolm", Needs::kWeights).status().message(),
              HasSubstr("`quire pull smollm2` downloads a small model, and `quire pull ORG/NAME`"));
}

TEST_F(ModelFolderTest, RemovesAFolderAndFollowsNoLink) {
  const fs::path outside = models_ / "outside";
  fs::create_directories(outside);
  directory_.write("outside/kept", "12345");
  add("a", {});
  const int64_t size = tree_bytes(models_ / "a");
  EXPECT_GT(size, 4);
  fs::create_symlink(outside, models_ / "a" / "folder");
  fs::create_symlink(outside / "kept", models_ / "a" / "file");
  EXPECT_EQ(tree_bytes(models_ / "a"), size);
  EXPECT_EQ(*remove_tree(models_ / "a"), size);
  EXPECT_FALSE(fs::exists(models_ / "a"));
  fs::create_symlink(outside, models_ / "link");
  EXPECT_EQ(*remove_tree(models_ / "link"), 0);
  EXPECT_FALSE(fs::is_symlink(models_ / "link"));
  EXPECT_TRUE(fs::exists(outside / "kept"));
  EXPECT_EQ(*remove_tree(models_ / "none"), 0);
}

TEST_F(ModelFolderTest, ListsTheModelsOfTheCache) {
  for (const char* folder : {"models--org--name", "models--gpt2", "models--a--b--c", "models--",
                             "datasets--org--x", ".locks"}) {
    fs::create_directories(models_ / folder);
  }
  std::vector<std::string> names;
  for (const auto& [name, folder] : list_repositories(models_)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("gpt2", "org/name"));
}

}  // namespace
}  // namespace quire::hub
