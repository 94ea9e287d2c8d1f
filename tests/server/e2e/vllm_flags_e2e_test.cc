// A server started with a command line that was written for vLLM.
#include <gtest/gtest.h>

#include <filesystem>

#include "server/e2e/served.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

TEST(VllmFlags, StartTheServer) {
  const std::filesystem::path model = shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(model);
  Served server({model.string(), "--served-model-name", "stories", "small", "-tp", "1",
                 "--max-model-len", "256", "--enable-prefix-caching", "--enable-chunked-prefill",
                 "--kv-cache-memory-bytes", "64M", "--max-num-batched-tokens", "1K"});
  ASSERT_TRUE(server.is_up());
  const std::string models = server.get("/v1/models").body;
  EXPECT_EQ(string_at(models, "/data/0/id"), "stories");
  EXPECT_EQ(string_at(models, "/data/1/id"), "small");
  EXPECT_EQ(
      server.post({"/v1/completions", R"({"model": "small", "prompt": "a", "max_tokens": 1})"})
          .status,
      200);
  EXPECT_EQ(server.stop(), 0);
}

TEST(VllmFlags, CallsMayNameTheModelByItsPathWhichIsListedNowhere) {
  const std::filesystem::path model = shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(model);
  Served server({model.string(), "--max-model-len", "256", "--kv-cache-memory-bytes", "64M"});
  ASSERT_TRUE(server.is_up());
  const std::string models = server.get("/v1/models").body;
  EXPECT_EQ(string_at(models, "/data/0/id"), "stories15M");
  EXPECT_EQ(models.find(model.parent_path().string()), std::string::npos) << models;
  const std::string call =
      R"({"model": ")" + model.string() + R"(", "prompt": "a", "max_tokens": 1})";
  const HttpAnswer answer = server.post({"/v1/completions", call});
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(string_at(answer.body, "/model"), "stories15M");
  EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace quire::testing
