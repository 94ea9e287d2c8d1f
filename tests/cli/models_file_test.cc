#include "cli/models_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/scratch_directory.h"

namespace quire::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads the models of a file with this text.
class ModelsFile : public ::testing::Test {
 protected:
  Result<std::vector<supervisor::ModelEntry>> read(const std::string& text) {
    options_.models_file = scratch_.write("models.ini", text);
    return read_models(options_);
  }
  // The arguments of the first model.
  std::vector<std::string> arguments(const std::string& text) {
    const auto models = read(text);
    EXPECT_TRUE(models.ok()) << models.status().message();
    return models.ok() ? models->front().arguments : std::vector<std::string>();
  }
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  quire::testing::ScratchDirectory scratch_;
  ModelsOptions options_;
};

TEST_F(ModelsFile, APathIsRelativeToItsFolder) {
  const std::string model = "[a]\nmodel = embedded\n";
  struct Case {
    std::string key;
    std::string argument;
  };
  const char* const home = std::getenv("HOME");
  ASSERT_NE(home, nullptr);
  for (const Case& c : std::vector<Case>{
           {"chat-template = t.jinja", "--chat-template=" + path("t.jinja")},  // does not exist
           {"chat-template = sub/t.jinja", "--chat-template=" + path("sub/t.jinja")},
           {"chat-template = /t.jinja", "--chat-template=/t.jinja"},
           {"chat-template = ~/t.jinja", std::string("--chat-template=") + home + "/t.jinja"},
           {"packed-weights = packed", "--packed-weights=" + path("packed")},
           {"tuning-table = t.json", "--tuning-table=" + path("t.json")},
       }) {
    EXPECT_THAT(arguments(model + c.key + "\n"), Contains(c.argument));
  }
}

TEST_F(ModelsFile, AReservedWordIsNoPath) {
  for (const char* const name : {"off", "auto", "builtin", "measured"}) {
    std::filesystem::create_directory(path(name));
  }
  for (const std::string flag : {"packed-weights=off", "packed-weights=auto",
                                 "tuning-table=builtin", "tuning-table=measured"}) {
    EXPECT_THAT(arguments("[a]\nmodel = embedded\n" + flag + "\n"), Contains("--" + flag));
  }
  EXPECT_THAT(arguments("[a]\nmodel = embedded\npacked-weights = ./off\n"),
              Contains(HasSubstr("--packed-weights=" + scratch_.path().string())));
}

TEST_F(ModelsFile, AModelIsAPathOrAName) {
  std::filesystem::create_directory(path("here"));
  EXPECT_THAT(arguments("[a]\nmodel = here\n"), ElementsAre("--model=" + path("here")));
  EXPECT_THAT(arguments("[here]\n"), ElementsAre("--model=" + path("here")));
  EXPECT_THAT(arguments("[a]\nmodel = org/name\n"), ElementsAre("--model=org/name"));
  EXPECT_THAT(arguments("[a]\nmodel = org/name:x.gguf\n"), ElementsAre("--model=org/name:x.gguf"));
  EXPECT_THAT(arguments("[a]\nmodel = x.gguf\n"), ElementsAre("--model=" + path("x.gguf")));
  EXPECT_THAT(arguments("[a]\nmodel = here\ntokenizer = org/name\n"),
              Contains("--tokenizer=org/name"));
}

TEST_F(ModelsFile, OnlyFlagsOfAModelReachIt) {
  options_.given = {{"--port", "80"},         {"--max-connections", "9"},   {"--api-key", "k"},
                    {"--headless", "true"},   {"--plan-only", "true"},      {"--max-num-seqs", "8"},
                    {"--allowed-hosts", "a"}, {"--max-request-bytes", "9"}, {"--uds", "socket"}};
  EXPECT_THAT(arguments("[a]\nmodel = embedded\nmax-num-seqs = 4\n"),
              ElementsAre("--model=embedded", "--max-num-seqs=8", "--max-request-bytes=9"));
}

TEST_F(ModelsFile, KeysOfOneModelAreNotForAll) {
  for (const std::string key : {"alias", "default", "model"}) {
    EXPECT_THAT(read("[*]\n" + key + " = true\n[a]\nmodel = embedded\n").status().message(),
                HasSubstr("key '" + key + "': is a key of one model, expected it in a section"));
  }
  EXPECT_TRUE(read("[*]\nload-on-startup = true\n[a]\nmodel = embedded\n")->front().loads_at_start);
  EXPECT_THAT(read("[a]\naliass = b\n").status().message(), HasSubstr("did you mean alias?"));
}

}  // namespace
}  // namespace quire::cli
