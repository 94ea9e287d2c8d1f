// Tests which chat template serves, and the error that clients get if there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "server/e2e/served.h"
#include "support/shared_data.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using ::testing::Not;
using testing::Served;
using testing::shared_data_path;
using testing::string_at;

constexpr const char* kHello =
    R"({"messages": [{"role": "user", "content": "Once"}], "max_tokens": 2, "temperature": 0})";

TEST(ChatTemplate, WithoutOneACallNamesTheRemedyAndNoPath) {
  const fs::path model = shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(model);
  Served server({"--model", model.string()});
  ASSERT_TRUE(server.is_up());
  const HttpAnswer answer = server.post({"/v1/chat/completions", kHello});
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_EQ(string_at(answer.body, "/error/type"), "invalid_request_error");
  EXPECT_THAT(string_at(answer.body, "/error/message"),
              AllOf(HasSubstr("the operator can give it one (`chat_template`)"), Not(HasSubstr("/"))));
}

TEST(ChatTemplate, TheOperatorGivesOne) {
  const fs::path model = shared_data_path("models/stories15M");
  QUIRE_REQUIRE_SHARED(model);
  const fs::path file = fs::path(::testing::TempDir()) / "quire_served.jinja";
  std::ofstream(file) << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
  Served server({"--model", model.string(), "--chat-template", file.string()});
  ASSERT_TRUE(server.is_up());
  const HttpAnswer answer = server.post({"/v1/chat/completions", kHello});
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(string_at(server.get("/tokenizer_info").body, "/chat_template"),
            "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
}

}  // namespace
}  // namespace quire
