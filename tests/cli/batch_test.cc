#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"
#include "cli/batch_file.h"
#include "support/scratch_directory.h"

namespace quire::cli {
namespace {

using quire::testing::ScratchDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTwoRequests =
    R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"x"}})"
    "\n"
    R"({"custom_id":"b","method":"POST","url":"/v1/completions","body":{"prompt":"y"}})"
    "\n";

BatchRequest read_one(const std::string& line) {
  return BatchReader(line, "in.jsonl").next();
}

std::string text_of(const std::string& path) {
  return read_file(path, 1 << 20).value();
}

std::string answer(size_t number, std::string_view id) {
  return batch_response_line(number, id, {.status = 200, .body = R"({"ok":true})"});
}

TEST(BatchReader, ReadsARequest) {
  const BatchRequest request = read_one(
      R"({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x"}})");
  ASSERT_TRUE(request.error.ok()) << request.error.message();
  EXPECT_EQ(request.custom_id, "a");
  EXPECT_EQ(request.request.method, "POST");
  EXPECT_EQ(request.request.path, "/v1/completions");
  EXPECT_EQ(request.request.body, R"({"prompt":"x"})");
  EXPECT_EQ(request.request.header("content-type"), "application/json");
  EXPECT_EQ(request.request.header("x-request-id"), "a");
}

TEST(BatchReader, NamesTheFaultOfALine) {
  const struct {
    const char* line;
    const char* message;
  } cases[] = {
      {"{", "in.jsonl:1: got '{', expected an object with custom_id"},
      {"[]", "in.jsonl:1: expected an object with custom_id"},
      {R"({"method":"POST","url":"/v1/completions","body":{}})", "field 'custom_id'"},
      {R"({"custom_id":7,"method":"POST","url":"/v1/completions","body":{}})", "field 'custom_id'"},
      {R"({"custom_id":"","method":"POST","url":"/v1/completions","body":{}})",
       "field 'custom_id'"},
      {R"({"custom_id":"a","method":"GET","url":"/v1/models","body":{}})",
       "field 'method': got 'GET', expected POST"},
      {R"({"custom_id":"a","method":"POST","url":"/metrics","body":{}})", "field 'url'"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/completions?a=b","body":{}})", "field 'url'"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":[]})", "field 'body'"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"stream":true}})",
       "field 'body.stream'"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{},"x":1})", "field 'x'"},
      {R"({"custom_id":"a","custom_id":"a","method":"POST","url":"/v1/x","body":{}})", "twice"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(read_one(c.line).error.message(),
                AllOf(HasSubstr("in.jsonl:1"), HasSubstr(c.message)))
        << c.line;
  }
}

TEST(BatchReader, RefusesAnIdThatAnEarlierLineHas) {
  const std::string text = std::string(kTwoRequests) + kTwoRequests;
  BatchReader reader(text, "in.jsonl");
  ASSERT_EQ(reader.num_requests(), 4U);
  EXPECT_TRUE(reader.next().error.ok());
  EXPECT_TRUE(reader.next().error.ok());
  EXPECT_THAT(reader.next().error.message(), HasSubstr("got 'a', which line 1 has too"));
}

TEST(BatchLines, HaveTheFormatOfTheApi) {
  EXPECT_EQ(batch_response_line(3, "a \"quoted\" id",
                                {.status = 404,
                                 .headers = {{"x-request-id", "r"}},
                                 .body = R"({"error":{"message":"m"}})"}),
            R"({"id":"batch_req_3","custom_id":"a \"quoted\" id","response":{"status_code":404,)"
            R"("request_id":"r","body":{"error":{"message":"m"}}},"error":null})"
            "\n");
  EXPECT_EQ(batch_error_line(1, "", invalid_argument("bad")),
            R"({"id":"batch_req_1","custom_id":null,"response":null,)"
            R"("error":{"code":"invalid_request","message":"bad"}})"
            "\n");
}

TEST(BatchLines, HaveNoLineEndsInside) {
  const http::Response response = {.status = 200,
                                   .headers = {{"x-quire-ignored", "wat"}},
                                   .body = "{\"input\":{\n  \"a\": 1,\r\n  \"a\": 1\n}}"};
  const std::string line = batch_response_line(1, "a", response);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_THAT(line, HasSubstr(R"("ignored":"wat")"));
  const ScratchDirectory directory;
  const std::string path = directory.write("out.jsonl", line);
  BatchReader reader(kTwoRequests, "in.jsonl");
  EXPECT_TRUE(BatchOutput::open(path, reader).ok()) << "a model may write a key twice";
}

TEST(BatchOutput, FailsIfTheFileIsRemoved) {
  const ScratchDirectory directory;
  const std::string path = directory.path() / "out.jsonl";
  BatchReader reader(kTwoRequests, "in.jsonl");
  auto output = BatchOutput::open(path, reader);
  ASSERT_TRUE(output.ok()) << output.status().message();
  ASSERT_TRUE(output->append(answer(1, "a"), true).ok());
  std::filesystem::remove(path);
  EXPECT_THAT(output->append(answer(2, "b"), true).message(), HasSubstr("was removed"));
}

TEST(BatchOutput, ContinuesAfterItsLines) {
  const ScratchDirectory directory;
  const std::string path = directory.path() / "out.jsonl";
  const std::string first = answer(1, "a");
  {
    BatchReader reader(kTwoRequests, "in.jsonl");
    auto output = BatchOutput::open(path, reader);
    ASSERT_TRUE(output.ok()) << output.status().message();
    EXPECT_EQ(reader.num_read(), 0U);
    ASSERT_TRUE(output->append(first, true).ok());
    ASSERT_TRUE(output->append(R"({"id":"batch_req_2","cust)", true).ok());  // as after a kill
  }
  BatchReader reader(kTwoRequests, "in.jsonl");
  auto output = BatchOutput::open(path, reader);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(reader.num_read(), 1U);
  EXPECT_EQ(output->num_failed(), 0U);
  EXPECT_EQ(text_of(path), first);
  ASSERT_TRUE(output->append(batch_error_line(2, "b", invalid_argument("bad")), false).ok());
  EXPECT_EQ(output->num_failed(), 1U);

  EXPECT_THAT(BatchOutput::open(path, reader).status().message(), HasSubstr("another process"));
}

TEST(BatchOutput, CountsTheFailuresOfAnEarlierRun) {
  const ScratchDirectory directory;
  const std::string path = directory.write(
      "out.jsonl", answer(1, "a") + batch_response_line(2, "b", {.status = 404, .body = "{}"}));
  BatchReader reader(kTwoRequests, "in.jsonl");
  const auto output = BatchOutput::open(path, reader);
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(reader.num_read(), 2U);
  EXPECT_EQ(output->num_failed(), 1U);
}

TEST(BatchOutput, RefusesAFileThatIsNotOfThisBatch) {
  const ScratchDirectory directory;
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {answer(1, "z"), "out.jsonl:1: got the custom_id 'z', expected 'a'"},
      {answer(1, "a") + answer(2, "b") + answer(3, "c"), "more lines than the 2 requests"},
      {"my notes", "got 'my notes', expected a line that quire batch has written"},
      {answer(1, "a") + "my notes", "got 'my notes', expected a line that quire batch has written"},
      {"my notes\n", "out.jsonl:1: got 'my notes', expected a line that quire batch has written"},
      {"{\"custom_id\":\"a\"}\n", "expected a line that quire batch has written"},
      {"[]\n", "expected a line that quire batch has written"},
  };
  for (const auto& c : cases) {
    const std::string path = directory.write("out.jsonl", c.text);
    BatchReader reader(kTwoRequests, "in.jsonl");
    EXPECT_THAT(BatchOutput::open(path, reader).status().message(), HasSubstr(c.message));
    EXPECT_EQ(text_of(path), c.text) << "the file stays as it is";
  }
}

TEST(BatchOutput, RefusesADevice) {
  BatchReader reader(kTwoRequests, "in.jsonl");
  EXPECT_THAT(BatchOutput::open("/dev/null", reader).status().message(),
              HasSubstr("is a FIFO, a socket or a device"));
}

}  // namespace
}  // namespace quire::cli
