// Tests every route over a fake engine, whose outputs the test sends.
#include "server/service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <semaphore>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/log.h"
#include "grammar/check_spec.h"
#include "jinja/chat_template.h"
#include "server/fake_engine.h"
#include "server/request_context.h"
#include "server/service_fixture.h"
#include "server/tools/response_template.h"
#include "support/eventually.h"
#include "support/value_of.h"

namespace quire::server {
namespace {

using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ServiceTest, RespondsToACompletion) {
  const auto exchange = complete(R"({"prompt":"hi","max_tokens":4})", {{"x-request-id", "mine-1"}});
  const Request request = engine_.wait_for(1);
  EXPECT_THAT(request.prompt_token_ids, ElementsAre('h', 'i'));
  EXPECT_EQ(request.sampling.max_tokens, 4);
  engine_.say(1, "ab");
  engine_.say(1, "c", FinishReason::kStop);
  const http::Response response = exchange->wait(200);
  EXPECT_EQ(header(response, "x-request-id"), "mine-1");
  EXPECT_THAT(response.body, HasSubstr(R"("text":"abc")"));
  EXPECT_THAT(response.body, HasSubstr(R"("finish_reason":"stop")"));
  EXPECT_THAT(response.body, HasSubstr(R"("prompt_tokens":2)"));
  EXPECT_THAT(response.body, HasSubstr(R"("completion_tokens":3)"));
}

TEST_F(ServiceTest, StreamsOutputsAndEndsWithDone) {
  const auto exchange =
      complete(R"({"prompt":"hi","stream":true,"stream_options":{"include_usage":true}})");
  engine_.wait_for(1);
  engine_.say(1, "ab");
  exchange->wait_for(R"("text":"ab")");
  engine_.say(1, "c", FinishReason::kLength);
  const http::Response response = exchange->wait();
  EXPECT_THAT(response.content_type, HasSubstr("text/event-stream"));
  EXPECT_THAT(response.body, HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(response.body, HasSubstr(R"("total_tokens":5)"));
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(ServiceTest, PutsSeveralPromptsAndAnswersIntoOrder) {
  const auto exchange = complete(R"({"prompt":["a","b"],"n":2})");
  engine_.wait_for(2);
  engine_.expect_answers(1, 2);
  engine_.expect_answers(2, 2);
  engine_.say(2, "x", FinishReason::kStop, 1);
  engine_.say(1, "y", FinishReason::kStop, 0);
  engine_.say(2, "z", FinishReason::kStop, 0);
  engine_.say(1, "w", FinishReason::kStop, 1);
  const http::Response response = exchange->wait();
  const auto document = testing::value_of(JsonDocument::parse(response.body, "body"));
  std::string texts;
  simdjson::dom::array choices;
  ASSERT_EQ(document.root()["choices"].get(choices), simdjson::SUCCESS);
  for (const simdjson::dom::element choice : choices) {
    std::string_view text;
    ASSERT_EQ(choice["text"].get(text), simdjson::SUCCESS);
    texts += text;
  }
  EXPECT_EQ(texts, "ywzx");
}

TEST_F(ServiceTest, ChatsThroughTheTemplate) {
  const auto exchange = call("POST", "/v1/chat/completions",
                             R"({"model":"alias","messages":[{"role":"user","content":"q"}]})");
  const Request request = engine_.wait_for(1);
  EXPECT_EQ(request.sampling.max_tokens, 64 - static_cast<int>(request.prompt_token_ids.size()));
  engine_.say(1, "hello", FinishReason::kStop);
  EXPECT_THAT(exchange->wait().body, HasSubstr(R"("content":"hello")"));
}

TEST_F(ServiceTest, ADisconnectCancelsTheRequest) {
  const auto exchange = complete(R"({"prompt":"hi","stream":true})");
  engine_.wait_for(1);
  engine_.say(1, "a");
  exchange->close();
  EXPECT_FALSE(engine_.is_running(1));
  EXPECT_THAT(get("/metrics").body, HasSubstr("quire_requests_cancelled_total"));
}

TEST_F(ServiceTest, AnErrorOfTheEngineIsTheCallsOwn) {
  const auto whole = complete(R"({"prompt":"a"})");
  engine_.wait_for(1);
  engine_.fail(1);
  EXPECT_EQ(whole->wait().status, 500);

  const auto stream = complete(R"({"prompt":"a","stream":true})");
  engine_.wait_for(2);
  engine_.say(2, "a");
  engine_.fail(2);
  const http::Response response = stream->wait();
  EXPECT_THAT(response.body, HasSubstr(R"("text":"a")"));
  EXPECT_THAT(response.body, HasSubstr(R"({"error":)"));
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

// Captures the log at a level that omits the line per request.
template <typename Act>
std::string warnings_of(Act act) {
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kWarning);
  act();
  set_log_level(LogLevel::kInfo);
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(ServiceTest, ServerErrorsAreLoggedWithTheRequestsId) {
  const auto ask = [&](const char* id, const char* body) {
    return complete(body, {{"x-request-id", id}});
  };
  std::vector<http::Response> answers;
  const std::string log = warnings_of([&] {
    engine_.refusal_ = internal_error("[engine] no submitting");
    answers.push_back(ask("refused", R"({"prompt":"a"})")->wait());
    engine_.refusal_ = {};
    const auto failing = ask("failing", R"({"prompt":"a","stream":true})");
    engine_.wait_for(1);
    engine_.say(1, "a");
    engine_.fail(1);
    answers.push_back(failing->wait());
    engine_.encode_error_ = internal_error("[tokenizer] no encoding");
    answers.push_back(ask("unread", R"({"prompt":"a"})")->wait());
    const http::Request head{.method = "GET",
                             .path = "/x",
                             .query = "",
                             .headers = {{"x-request-id", "lost"}},
                             .body = "",
                             .peer = ""};
    answers.push_back(service_->hooks().write_refusal(
        head, {.status = 500, .code = "internal_error", .message = "Left unanswered."}));
    end();
  });
  for (const http::Response& answer : answers) {
    EXPECT_THAT(answer.body, Not(HasSubstr("[engine]")));
    EXPECT_THAT(answer.body, Not(HasSubstr("NaN")));
  }
  for (const char* line : {
           R"(request_id=refused method=POST path=/v1/completions cause="[engine] no submitting")",
           R"(request_id=failing method=POST path=/v1/completions cause="[sample] NaN logits")",
           R"(request_id=unread method=POST path=/v1/completions cause="[tokenizer] no encoding")",
           R"(request_id=lost method=GET path=/x cause="Left unanswered.")",
       }) {
    EXPECT_THAT(log, HasSubstr(line));
  }
  EXPECT_EQ(std::ranges::count(log, '\n'), 4) << log;
}

TEST_F(ServiceTest, ClientErrorsAreNotLoggedAsErrors) {
  const std::string log = warnings_of([&] {
    EXPECT_EQ(complete("{}")->wait().status, 400);
    EXPECT_EQ(get("/nothing").status, 404);
  });
  EXPECT_EQ(log, "");
}

TEST_F(ServiceTest, ARefusalOfOnePromptCancelsTheOthers) {
  engine_.refusal_ = invalid_argument("[request] no");
  const auto exchange = complete(R"({"prompt":["a","b"]})");
  EXPECT_EQ(exchange->wait().status, 400);
}

// A client that sends its next request as soon as the first one is refused.
class Insistent final : public http::Exchange {
 public:
  explicit Insistent(std::function<void()> again) : again_(std::move(again)) {}
  bool respond(http::Response response) override {
    again_();
    status_.set_value(response.status);
    return true;
  }
  void start_stream(int, std::string, http::Headers) override {}
  void write(std::string) override {}
  void end_stream() override {}
  void on_closed(std::function<void()>) override {}
  std::future<int> status() { return status_.get_future(); }

 private:
  const std::function<void()> again_;
  std::promise<int> status_;
};

TEST_F(ServiceTest, ARequestThatTheEngineRefusesReleasesItsCapacityBeforeTheResponse) {
  start({.admission = {.max_num_seqs = 1, .max_num_queued_reqs = 0}});
  engine_.refusal_ = invalid_argument("[request] no");
  std::shared_ptr<FakeExchange> second;
  const auto first = std::make_shared<Insistent>([&] { second = complete(R"({"prompt":"a"})"); });
  std::future<int> status = first->status();
  service_->handle({.method = "POST",
                    .path = "/v1/completions",
                    .query = "",
                    .headers = {{"content-type", "application/json"}},
                    .body = R"({"prompt":"a"})",
                    .peer = ""},
                   first);
  EXPECT_EQ(status.get(), 400);
  EXPECT_EQ(second->wait().status, 400) << "and not 429";
}

TEST_F(ServiceTest, RefusesRequestsThatCanNeverFitWithTheNumbers) {
  const std::string body = R"({"prompt":")" + std::string(64, 'x') + R"("})";
  const http::Response response = complete(body)->wait(400);
  EXPECT_THAT(response.body, HasSubstr("context_length_exceeded"));
  EXPECT_THAT(response.body, HasSubstr("64 tokens"));
  // Clients recognise the error by these words.
  EXPECT_THAT(response.body, HasSubstr("prompt is too long"));
  EXPECT_THAT(response.body, HasSubstr("this model's maximum context length is 64 tokens"));
}

TEST_F(ServiceTest, SaysWhichOfSeveralPromptsIsWrong) {
  const auto refusal = [&](const std::string& prompt) {
    const http::Response response = complete(R"({"prompt":)" + prompt + "}")->wait(400);
    return response.body;
  };
  const std::string text(64, 'x');
  EXPECT_THAT(refusal(R"(["a",")" + text + "\"]"),
              AllOf(HasSubstr(R"("message":"prompt[1]: the prompt is too long: got 64 tokens)"),
                    HasSubstr(R"("param":"prompt[1]")")));
  EXPECT_THAT(refusal(R"(["a","b",""])"),
              AllOf(HasSubstr("prompt[2]: the prompt is empty"), HasSubstr(R"("prompt[2]")")));
  EXPECT_THAT(refusal("[[1],[1,1000000]]"),
              HasSubstr("prompt[1]: the prompt has the token id 1000000"));
  EXPECT_THAT(refusal("\"\""), AllOf(HasSubstr(R"("message":"the prompt is empty")"),
                                     HasSubstr(R"("param":"prompt")")));
  engine_.encode_error_ = invalid_argument("[tokenizer] the text is too hard");
  EXPECT_THAT(refusal(R"(["a","b"])"),
              AllOf(HasSubstr("prompt[0]: "), HasSubstr("the text is too hard"),
                    HasSubstr(R"("param":"prompt[0]")")));
}

TEST_F(ServiceTest, TooManyIsFourTwentyNineWithAHint) {
  start({.admission = {.max_num_seqs = 1, .max_num_queued_reqs = 0}});
  const auto first = complete(R"({"prompt":"a"})");
  engine_.wait_for(1);
  const http::Response refused = complete(R"({"prompt":"a"})")->wait(429);
  EXPECT_EQ(header(refused, "retry-after"), "1");
  engine_.say(1, "a", FinishReason::kStop);
  first->wait();
  const auto second = complete(R"({"prompt":"a"})");
  engine_.wait_for(2);
  engine_.say(2, "a", FinishReason::kStop);
  EXPECT_EQ(second->wait().status, 200);
}

TEST_F(ServiceTest, EachPromptWaitsUntilItsOwnFirstToken) {
  start({.admission = {.max_num_queued_tokens = 8}});
  complete(R"({"prompt":["aaaa","bbbb"]})");
  engine_.wait_for(2);
  engine_.say(1, "x");
  const auto status_of = [&](const char* body) { return complete(body)->wait().status; };
  EXPECT_EQ(status_of(R"({"prompt":"ccccc"})"), 429) << "bbbb has not prompt_started";
  const auto fits = complete(R"({"prompt":"cccc"})");
  engine_.wait_for(3);
  engine_.say(3, "", FinishReason::kStop);
  EXPECT_EQ(fits->wait().status, 200);
  engine_.say(2, "x");
  const auto alone = complete(R"({"prompt":"ccccccccccccc"})");
  engine_.wait_for(4);
  engine_.say(4, "x", FinishReason::kStop);
  EXPECT_EQ(alone->wait().status, 200);
}

TEST_F(ServiceTest, ADrainingServerIsHealthyNotReadyAndRefuses) {
  start();
  EXPECT_EQ(get("/ready").status, 200);
  service_->close();
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ready").status, 503);
  EXPECT_EQ(complete(R"({"prompt":"a"})")->wait().status, 503);
}

TEST_F(ServiceTest, RunningRequestsGetAnErrorAtTheEnd) {
  const auto whole = complete(R"({"prompt":"hi"})");
  engine_.wait_for(1);
  const auto stream = complete(R"({"prompt":"hi","stream":true})");
  engine_.wait_for(2);
  engine_.say(2, "a");
  stream->wait_for("\"a\"");
  service_->close();
  service_->cancel();
  EXPECT_EQ(whole->wait().status, 503);
  EXPECT_THAT(whole->wait().body, HasSubstr("shutting down"));
  EXPECT_THAT(stream->wait().body, HasSubstr("shutting down"));
  EXPECT_TRUE(stream->wait().body.ends_with("data: [DONE]\n\n"));
}

TEST_F(ServiceTest, CodedBodiesAreRefused) {
  const auto exchange = complete("\x1f\x8b", {{"content-encoding", "gzip"}});
  EXPECT_EQ(exchange->wait().status, 415);
  EXPECT_THAT(exchange->wait().body, HasSubstr("Content-Encoding"));
  EXPECT_EQ(complete("{", {{"content-encoding", "Identity"}})->wait().status, 400);
}

TEST_F(ServiceTest, AnUnhealthyEngineShows) {
  engine_.health_ = unavailable("[cuda] fault at x.cu:7");
  for (const char* path : {"/health", "/ready"}) {
    const http::Response response = get(path);
    EXPECT_EQ(response.status, 503);
    EXPECT_THAT(response.body, Not(HasSubstr("cuda"))) << "the route needs no key";
  }
}

// Proxies repeat requests that got 503: those that were refused, but not those that may have broken
// the engine.
TEST_F(ServiceTest, AFailedEngineRefusesRequestsAndFailsThoseThatItHad) {
  const auto whole = complete(R"({"prompt":"a"})");
  engine_.wait_for(1);
  const auto stream = call("POST", "/v1/messages", R"({"max_tokens":5,"stream":true,
                           "messages":[{"role":"user","content":"a"}]})");
  engine_.wait_for(2);
  const Status error = resource_exhausted("[engine] a step failed; std::bad_alloc");
  engine_.health_ = unavailable(error.message());
  engine_.fail(1, error);
  engine_.fail(2, error);
  const http::Response later = complete(R"({"prompt":"a"})")->wait(503);
  for (const http::Response& response : {whole->wait(), stream->wait()}) {
    EXPECT_EQ(response.status, 500);
    EXPECT_EQ(header(response, "retry-after"), "");
    EXPECT_THAT(response.body, HasSubstr("the engine has failed"));
  }
  EXPECT_THAT(stream->wait().body, HasSubstr("api_error"));
  for (const http::Response& response : {whole->wait(), stream->wait(), later}) {
    EXPECT_THAT(response.body, Not(HasSubstr("bad_alloc")));
  }
}

TEST_F(ServiceTest, WithKeysOnlyHealthReadyAndThePagesFilesAreOpen) {
  Result<ApiKeys> keys = ApiKeys::create({"secret"}, "");
  start({.keys = std::move(*keys)});
  for (const char* path : {"/health", "/ready", "/", "/page/chat.js"}) {
    EXPECT_EQ(get(path).status, 200) << path;
  }
  for (const char* path :
       {"/version", "/metrics", "/v1/models", "/openapi.json", "/tokenizer_info"}) {
    const http::Response refused = get(path);
    EXPECT_EQ(refused.status, 401) << path;
    // With Basic a browser would ask for a user and a password instead of the page's key field.
    EXPECT_EQ(header(refused, "www-authenticate"), "Bearer") << path;
    EXPECT_EQ(get(path, {{"authorization", "Bearer secret"}}).status, 200) << path;
    EXPECT_EQ(get(path, {{"authorization", "Bearer wrong"}}).status, 401) << path;
  }
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"}) {
    EXPECT_EQ(call("POST", path, "{}")->wait().status, 401) << path;
  }
}

TEST_F(ServiceTest, KeysDoNotShareCachedPrefixes) {
  Result<ApiKeys> keys = ApiKeys::create({"one", "two"}, "");
  start({.keys = std::move(*keys)});
  complete(R"({"prompt":"a"})", {{"authorization", "Bearer one"}});
  const std::string first = engine_.wait_for(1).cache_salt;
  complete(R"({"prompt":"a"})", {{"authorization", "Bearer two"}});
  EXPECT_NE(engine_.wait_for(2).cache_salt, first);
  EXPECT_NE(first, "");
}

TEST_F(ServiceTest, APriorityIsUsedOnlyIfTheOperatorAllowsIt) {
  const std::string chat = R"({"messages":[{"role":"user","content":"q"}],"priority":-7})";
  complete(R"({"prompt":"a","priority":-7})");
  EXPECT_EQ(engine_.wait_for(1).priority, 0);
  call("POST", "/v1/chat/completions", chat);
  EXPECT_EQ(engine_.wait_for(2).priority, 0);
  EXPECT_EQ(complete(R"({"prompt":"a","priority":"x"})")->wait().status, 400);
  end();
  start({.allow_request_priority = true});
  complete(R"({"prompt":"a","priority":-7})");
  EXPECT_EQ(engine_.wait_for(3).priority, -7);
  call("POST", "/v1/chat/completions", chat);
  EXPECT_EQ(engine_.wait_for(4).priority, -7);
}

TEST_F(ServiceTest, RefusesUnknownPathsMethodsModelsAndTypes) {
  EXPECT_EQ(get("/nothing").status, 404);
  const http::Response wrong_method = get("/v1/completions");
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_EQ(header(wrong_method, "allow"), "POST");
  EXPECT_EQ(call("DELETE", "/v1/models")->wait().status, 405);
  const http::Response wrong_model = complete(R"({"model":"gpt","prompt":"a"})")->wait(404);
  EXPECT_THAT(wrong_model.body,
              HasSubstr("the model 'gpt' is not served; expected 'fake', 'alias'"));
  auto exchange = std::make_shared<FakeExchange>();
  service_->handle({.method = "POST",
                    .path = "/v1/completions",
                    .query = "",
                    .headers = {{"content-type", "text/plain"}},
                    .body = "{}",
                    .peer = ""},
                   exchange);
  EXPECT_EQ(exchange->wait().status, 415);
  EXPECT_EQ(complete("{")->wait().status, 400);
  EXPECT_THAT(complete("")->wait().body, HasSubstr("the body is empty; expected a JSON object"));
}

TEST_F(ServiceTest, TheLogNamesTheFaultAndQuotesNoCall) {
  const auto refuse = [this](const char* path, const char* body) {
    ::testing::internal::CaptureStderr();
    const http::Response response = call("POST", path, body)->wait();
    end();  // the log has its line after this
    EXPECT_EQ(response.status, 400);
    EXPECT_THAT(response.body, HasSubstr("my secret"));
    return ::testing::internal::GetCapturedStderr();
  };
  constexpr const char* kChat = "/v1/chat/completions";
  std::string log = refuse(kChat, R"({"messages":"my secret diary"})");
  EXPECT_THAT(log, HasSubstr(R"(status=400)"));
  EXPECT_THAT(log, HasSubstr(R"(outcome="invalid_request_error messages")"));
  EXPECT_THAT(log, Not(HasSubstr("secret")));

  engine_.template_fault_ = invalid_argument("[template] line 1: no role 'my secret'");
  log = refuse(kChat, R"({"messages":[{"role":"user","content":"a"}]})");
  EXPECT_THAT(log, HasSubstr("outcome=template_error"));
  EXPECT_THAT(log, Not(HasSubstr("secret")));

  engine_.refusal_ = invalid_argument("[request] bad_words: got 'my secret'");
  log = refuse("/v1/completions", R"({"prompt":"a","bad_words":["my secret"]})");
  EXPECT_THAT(log, HasSubstr("outcome=invalid_request_error"));
  EXPECT_THAT(log, Not(HasSubstr("secret")));
}

TEST_F(ServiceTest, AcceptsTheModelsPathAsItsNameAndNeverShowsIt) {
  start({.model_path = "/srv/models/fake"});
  const auto exchange = complete(R"({"model":"/srv/models/fake","prompt":"a"})");
  engine_.wait_for(1);
  engine_.say(1, "b", FinishReason::kStop);
  EXPECT_THAT(exchange->wait().body, HasSubstr(R"("model":"fake")"));
  EXPECT_EQ(get("/v1/models//srv/models/fake").status, 200);
  EXPECT_THAT(get("/v1/models").body, Not(HasSubstr("srv")));
  EXPECT_THAT(get("/v1/models/other").body, Not(HasSubstr("srv")));
  EXPECT_THAT(get("/metrics").body, Not(HasSubstr("srv")));
}

TEST_F(ServiceTest, FingerprintsAreThoseOfTheBuildAndTheConfiguration) {
  RequestId id = 0;
  const auto fingerprint = [&](ServiceConfig config, bool is_stream) {
    start(std::move(config));
    const std::string body =
        std::string(R"({"prompt":"a","stream":)") + (is_stream ? "true" : "false") + "}";
    const auto exchange = complete(body);
    engine_.wait_for(++id);
    engine_.say(id, "b", FinishReason::kStop);
    const std::string answer = exchange->wait().body;
    end();
    const size_t at = answer.find(R"("system_fingerprint":"fp_)");
    return at == std::string::npos ? "none" : answer.substr(at, 42);
  };
  const std::string first = fingerprint({.build = "1 GCC"}, false);
  EXPECT_NE(first, "none");
  EXPECT_EQ(fingerprint({.build = "1 GCC"}, false), first);
  EXPECT_EQ(fingerprint({.build = "1 GCC"}, true), first);
  EXPECT_NE(fingerprint({.build = "2 GCC"}, false), first);
  EXPECT_NE(fingerprint({.reasoning_parser = "think", .build = "1 GCC"}, false), first);
  const auto own = [&](std::string_view text) {
    const auto read = std::make_shared<const ResponseTemplate>(*parse_response_template(
        fmt::format(R"({{"fields":{{"content":{{"close":"{}"}}}}}})", text), "a test"));
    return fingerprint({.call_template = read, .build = "1 GCC"}, false);
  };
  EXPECT_NE(own("a"), first);
  EXPECT_NE(own("a"), own("b"));
  EXPECT_EQ(own("a"), own("a"));
}

TEST_F(ServiceTest, ModelsStateTheSamplingDefaults) {
  EXPECT_THAT(
      get("/v1/models").body,
      HasSubstr(R"("sampling_defaults":{"temperature":0.8,"top_p":0.95,"top_k":0,"min_p":0,)"
                R"("repetition_penalty":1,"source":"test"})"));
}

TEST_F(ServiceTest, FindsAModelByItsName) {
  EXPECT_THAT(get("/v1/models/alias").body, HasSubstr(R"("id":"alias","object":"model")"));
  for (const char* path : {"/v1/models/gpt", "/v1/models/fake/more"}) {
    const http::Response unknown = get(path);
    EXPECT_EQ(unknown.status, 404) << path;
    EXPECT_THAT(unknown.body, HasSubstr(R"("param":"model")")) << path;
  }
  EXPECT_EQ(call("DELETE", "/v1/models/fake")->wait().status, 405);
}

TEST_F(ServiceTest, FindsRoutesWithoutVersionAndWithATrailingSlash) {
  const std::string models = get("/v1/models").body;
  for (const char* path : {"/models", "/models/", "/v1/models/"}) {
    EXPECT_EQ(get(path).body, models) << path;
  }
  for (const char* path : {"/models/alias/", "/v1/models/alias/"}) {
    EXPECT_EQ(get(path).status, 200) << path;
  }
  EXPECT_EQ(get("/ping").body, get("/health").body);
  for (const char* path : {"/completions", "/completions/", "/v1/completions/"}) {
    EXPECT_EQ(call("POST", path, "{}")->wait().status, 400) << path;
  }
  EXPECT_EQ(call("POST", "/chat/completions", "{}")->wait().status, 400);
  const auto exchange = call("POST", "/completions", R"({"prompt":"a"})");
  engine_.wait_for(1);
  engine_.say(1, "b", FinishReason::kStop);
  EXPECT_EQ(exchange->wait().status, 200);
}

TEST_F(ServiceTest, ARouteThatIsNotServedNamesAnother) {
  const std::vector<std::pair<std::string, std::string>> replacements = {
      {"/v1/audio/speech", "this server generates text; use POST /v1/chat/completions"},
      {"/images/generations", "this server generates text; use POST /v1/chat/completions"},
      {"/v1/assistants", "use POST /v1/responses"},
      {"/v1/v1/chat/completions", "the client's base URL has /v1 once too often; remove it"},
      {"/v1/chat", "use POST /v1/chat/completions"},
      {"/generate", "use POST /v1/completions"},
      {"/api/create", "the server makes no models; run 'quire pull NAME' on its machine"},
      {"/api/blobs/sha256:0", "the server makes no models"},
      {"/api/copy", "the server copies no models; its operator gives a model further names"},
      {"/api/push", "the server uploads no models"},
      {"/api/delete", "run 'quire rm NAME' on the server's machine"},
      {"/infill", "use POST /v1/completions"},
      {"/slots", "use GET /metrics"},
      {"/v1/imagesque", "GET /openapi.json lists all routes"},
  };
  for (const auto& [path, replacement] : replacements) {
    const http::Response response = call("POST", path, "{}")->wait(404);
    EXPECT_THAT(response.body, HasSubstr("there is no route " + path + "; " + replacement));
  }
}

TEST_F(ServiceTest, TakesTheKeyFromEitherHeader) {
  Result<ApiKeys> keys = ApiKeys::create({"first", "second"}, "");
  start({.keys = std::move(*keys)});
  EXPECT_EQ(get("/v1/models", {{"x-api-key", "second"}}).status, 200);
  EXPECT_EQ(get("/v1/models", {{"authorization", "Bearer no"}, {"x-api-key", "first"}}).status,
            200);
  EXPECT_EQ(get("/v1/models", {{"x-api-key", "Bearer first"}}).status, 401);
  EXPECT_EQ(get("/v1/models", {{"x-api-key", ""}}).status, 401);
}

TEST_F(ServiceTest, SaysWhichTokensBeginAndEnd) {
  engine_.info_.bos_token_id = 'B';
  engine_.info_.eos_token_ids = {'E', 'F'};
  const http::Response info = get("/tokenizer_info");
  EXPECT_THAT(info.body, HasSubstr(R"("bos_token":"B","bos_token_id":66,"eos_token":"E",)"
                                   R"("eos_token_ids":[69,70])"));
  engine_.info_.bos_token_id.reset();
  EXPECT_THAT(get("/tokenizer_info").body, HasSubstr(R"("bos_token":null,"bos_token_id":null)"));
}

TEST_F(ServiceTest, AHeadWithoutAKeyIsRefusedBeforeItsBody) {
  Result<ApiKeys> keys = ApiKeys::create({"secret"}, "");
  start({.keys = std::move(*keys)});
  const http::Hooks hooks = service_->hooks();
  http::Request head = {.method = "POST",
                        .path = "/v1/completions",
                        .query = "",
                        .headers = {{"x-request-id", "mine-2"}},
                        .body = "",
                        .peer = ""};
  const auto refused = hooks.check_head(head);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(header(*refused, "x-request-id"), "mine-2");
  head.path = "/nothing";
  EXPECT_EQ(hooks.check_head(head)->status, 404);
  head.headers.emplace_back("authorization", "Bearer secret");
  head.path = "/v1/completions";
  EXPECT_FALSE(hooks.check_head(head).has_value());
}

TEST_F(ServiceTest, AnAnswerWithoutRoomIsRefusedWithItsOwnHeadAndCountedOnce) {
  start({.allowed_origins = {"https://a.example"}});
  const http::Headers from = {{"x-request-id", "mine"}, {"origin", "https://a.example"}};
  constexpr size_t kRoom = 200;
  const auto expect_refusal = [&](const http::Response& response) {
    EXPECT_EQ(response.status, 503);
    EXPECT_THAT(response.body, HasSubstr("responses_too_large"));
    EXPECT_EQ(header(response, "x-request-id"), "mine");
    EXPECT_EQ(header(response, "access-control-allow-origin"), "https://a.example");
    EXPECT_EQ(header(response, "retry-after"), "1");
  };
  expect_refusal(call("GET", "/openapi.json", "", from, kRoom)->wait());
  const std::string metrics = get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("code=\"503\"} 1\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("code=\"200\"")));
  const auto generated = complete(R"({"prompt":"a"})", from, kRoom);
  engine_.wait_for(1);
  engine_.say(1, "a", FinishReason::kStop);
  expect_refusal(generated->wait());
}

TEST_F(ServiceTest, RefusalsOfTheTransportLookLikeOtherErrors) {
  start({.allowed_origins = {"https://a.example"}});
  const http::Hooks hooks = service_->hooks();
  const http::Request head = {
      .method = "POST",
      .path = "/v1/completions",
      .query = "",
      .headers = {{"x-request-id", "mine-3"}, {"origin", "https://a.example"}},
      .body = "",
      .peer = ""};
  const http::Response large =
      hooks.write_refusal(head, {.status = 413, .code = "body_too_large", .message = "Too large."});
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.body, R"({"error":{"message":"Too large.","type":"invalid_request_error",)"
                        R"("param":null,"code":"body_too_large"}})");
  EXPECT_EQ(header(large, "x-request-id"), "mine-3");
  EXPECT_EQ(header(large, "access-control-allow-origin"), "https://a.example");
  const http::Response full = hooks.write_refusal({}, {.status = 503, .code = "", .message = ""});
  EXPECT_EQ(header(full, "retry-after"), "1");
  EXPECT_EQ(header(full, "x-request-id").size(), 24U);
  EXPECT_THAT(get("/metrics").body, HasSubstr("code=\"413\"} 1\n"));
}

TEST_F(ServiceTest, LogsRequestsThatCannotBeReadButNotAFloodOfThem) {
  start();
  const http::Hooks hooks = service_->hooks();
  http::Request head;
  head.peer = "10.0.0.1:5";
  head.began = std::chrono::steady_clock::now() - std::chrono::seconds(60);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) {
    hooks.write_refusal(head, {.status = 408, .code = "request_timeout", .message = ""});
  }
  // Requests that could be read are all logged.
  head.method = "POST";
  head.path = "/v1/completions";
  for (int i = 0; i < 100; ++i) {
    hooks.write_refusal(head, {.status = 413, .code = "body_too_large", .message = ""});
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("peer=10.0.0.1:5 method=- path=- status=408 ms=600"));
  std::istringstream lines(log);
  int num_unread = 0;
  int num_read = 0;
  for (std::string line; std::getline(lines, line);) {
    num_unread += line.find("status=408") != std::string::npos ? 1 : 0;
    num_read += line.find("path=/v1/completions status=413") != std::string::npos ? 1 : 0;
  }
  EXPECT_LE(num_unread, 10 * LogThrottle::kMaxLinesPerSecond);
  EXPECT_EQ(num_read, 100);
}

TEST(LogThrottle, SaysHowManyLinesItLeftOut) {
  LogThrottle throttle;
  const auto now = LogThrottle::Clock::now();
  for (int i = 0; i < LogThrottle::kMaxLinesPerSecond; ++i) EXPECT_EQ(throttle.take(now), 0);
  EXPECT_EQ(throttle.take(now), std::nullopt);
  EXPECT_EQ(throttle.take(now), std::nullopt);
  EXPECT_EQ(throttle.take(now + std::chrono::seconds(1)), 2);
  EXPECT_EQ(throttle.take(now + std::chrono::seconds(1)), 0);
}

// A transport whose statistics take long to read.
class SlowTransport final : public http::Server {
 public:
  int port() const override { return 0; }
  bool drain(std::chrono::milliseconds) override { return true; }
  http::ServerStats stats() const override {
    asked_.set_value();
    answer_.get_future().wait();
    return {.num_accepted = 77};
  }
  mutable std::promise<void> asked_;
  mutable std::promise<void> answer_;
};

TEST_F(ServiceTest, OnceStoppedNothingAsksTheTransport) {
  start();
  SlowTransport transport;
  service_->set_transport(&transport);
  const auto metrics = call("GET", "/metrics");
  transport.asked_.get_future().wait();
  std::future<void> stopped = std::async(std::launch::async, [&] { service_->stop(); });
  EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  transport.answer_.set_value();
  stopped.wait();
  EXPECT_THAT(metrics->wait().body, HasSubstr(" 77\n"));
}

TEST_F(ServiceTest, TokenizingHoldsUpNoStream) {
  std::promise<void> may_end;
  engine_.on_encode_ = [end =
                            std::shared_future<void>(may_end.get_future())](std::string_view text) {
    if (text.starts_with("slow")) end.wait();
  };
  start({.num_workers = 1});
  const auto stream = complete(R"({"prompt":"hi","stream":true})");
  engine_.wait_for(1);
  const auto text = call("POST", "/tokenize", R"({"prompt":"slow"})");
  const auto beside = complete(R"({"prompt":"hi"})");
  engine_.wait_for(2);
  const auto prompt = complete(R"({"prompt":"slow"})");
  engine_.say(1, "ab");
  stream->wait_for(R"("text":"ab")");
  may_end.set_value();
  EXPECT_EQ(text->wait().status, 200);
  engine_.wait_for(3);
  for (const RequestId id : {1, 2, 3}) engine_.say(id, "c", FinishReason::kStop);
  for (const auto& exchange : {stream, beside, prompt}) EXPECT_EQ(exchange->wait().status, 200);
}

TEST_F(ServiceTest, TextsThatWaitToBeTokenizedAreBounded) {
  std::promise<void> may_end;
  std::binary_semaphore has_begun(0);
  std::once_flag begun;
  engine_.on_encode_ = [&, end = std::shared_future<void>(may_end.get_future())](std::string_view) {
    std::call_once(begun, [&] { has_begun.release(); });
    end.wait();
  };
  const auto first = call("POST", "/tokenize", R"({"prompt":"a"})");
  has_begun.acquire();  // from now on, 64 others may wait
  std::vector<std::shared_ptr<FakeExchange>> calls;
  for (int i = 0; i < 65; ++i) calls.push_back(call("POST", "/tokenize", R"({"prompt":"a"})"));
  EXPECT_EQ(calls.back()->wait().status, 429);
  may_end.set_value();
  EXPECT_EQ(first->wait().status, 200);
  EXPECT_EQ(calls[63]->wait().status, 200);
  EXPECT_EQ(call("POST", "/tokenize", R"({"prompt":"a"})")->wait().status, 200);
}

TEST_F(ServiceTest, TextThatCannotFitIsNotTokenized) {
  std::atomic<int> num_encoded = 0;
  engine_.on_encode_ = [&](std::string_view) { ++num_encoded; };
  const std::string text(65, 'x');  // one byte per token, and 64 fit
  const http::Response response = complete(R"({"prompt":")" + text + R"("})")->wait(400);
  EXPECT_THAT(response.body, HasSubstr("context_length_exceeded"));
  EXPECT_THAT(response.body, HasSubstr("65 bytes"));
  end();
  start({.admission = {.max_num_seqs = 1, .max_num_queued_reqs = 1}});
  complete(R"({"prompt":"a"})");
  engine_.wait_for(1);
  EXPECT_EQ(num_encoded, 1);
  EXPECT_EQ(complete(R"({"prompt":["a","b"]})")->wait().status, 429);
  EXPECT_EQ(num_encoded, 1);
}

TEST_F(ServiceTest, TokenizesAndBack) {
  EXPECT_THAT(call("POST", "/tokenize", R"({"prompt":"ab"})")->wait().body,
              HasSubstr(R"("tokens":[97,98])"));
  EXPECT_THAT(call("POST", "/detokenize", R"({"tokens":[97,98]})")->wait().body,
              HasSubstr(R"("prompt":"ab")"));
  EXPECT_EQ(call("POST", "/detokenize", R"({"tokens":[97,256]})")->wait().status, 400);
}

TEST_F(ServiceTest, ATextIsMeasuredBeforeAllOtherWorkOnIt) {
  std::atomic<int> num_encoded = 0;
  engine_.on_encode_ = [&](std::string_view) { ++num_encoded; };
  start({.max_tokenize_bytes = 32});
  const auto refused = [&](const char* path, const std::string& body, const char* message) {
    const http::Response response = call("POST", path, body)->wait(400);
    EXPECT_THAT(response.body, HasSubstr(message));
  };
  const auto text = [](size_t size) { return R"({"prompt":")" + std::string(size, 'x') + R"("})"; };
  refused("/tokenize", text(33), "got a text of 33 bytes, expected at most 32 bytes and 64 tokens");
  EXPECT_EQ(num_encoded, 0);
  EXPECT_EQ(call("POST", "/tokenize", text(32))->wait().status, 200);
  EXPECT_EQ(num_encoded, 1);

  // The template drops the message. A text that is too long is not searched for it.
  constexpr const char* kContinue = R"({"messages":[{"role":"assistant","content":"absent"}],)"
                                    R"("continue_final_message":true})";
  refused("/tokenize", kContinue, "the template changes or drops the last message");
  refused("/v1/chat/completions", kContinue, "the template changes or drops the last message");
  refused("/v1/chat/completions", kContinue, R"("param":"messages")");
  engine_.chat_suffix_ = std::string(64, 'x');
  refused("/tokenize", kContinue, R"("param":"messages")");
  refused("/tokenize", kContinue, "got a rendered prompt of 86 bytes");
  refused("/v1/chat/completions", kContinue, "86 bytes");
  EXPECT_EQ(num_encoded, 1);
}

TEST_F(ServiceTest, ContinuesTheLastMessageWhereItStands) {
  const auto chat_template = testing::value_of(ChatTemplate::parse(
      "{% for m in messages %}{{ '<|im_start|>' + m.content + '<|im_end|>' }}{% endfor %}"));
  engine_.render_ = [&](const jinja::Value& variables) { return chat_template.render(variables); };
  RequestId id = 0;
  for (const std::string text : {"end", "im", "i", ">", "<"}) {
    const std::string body = R"({"messages":[{"role":"assistant","content":")" + text +
                             R"("}],"continue_final_message":true,"return_token_strs":true})";
    const std::string prompt = "<|im_start|>" + text;
    EXPECT_THAT(call("POST", "/tokenize", body)->wait().body,
                HasSubstr(fmt::format("{{\"count\":{},", prompt.size())));
    const auto exchange = call("POST", "/v1/chat/completions", body);
    const Request request = engine_.wait_for(++id);
    EXPECT_EQ(engine_.decode(request.prompt_token_ids, false), prompt);
    engine_.say(id, "a", FinishReason::kStop);
    EXPECT_EQ(exchange->wait().status, 200);
  }
}

TEST_F(ServiceTest, TokensThatATokenizerAddsAreBoundedToo) {
  start({.max_tokenize_bytes = 4});
  engine_.num_ids_per_byte_ = 2;
  EXPECT_EQ(call("POST", "/tokenize", R"({"prompt":"abcd"})")->wait().status, 200);
  engine_.num_ids_per_byte_ = 3;
  const auto refused = call("POST", "/tokenize", R"({"prompt":"abcd"})")->wait();
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("got 12 tokens, expected at most 4 bytes and 8 tokens"));
}

TEST_F(ServiceTest, TheTextOfTokensIsMeasuredBeforeItIsMade) {
  start({.max_tokenize_bytes = 4});
  EXPECT_EQ(call("POST", "/detokenize", R"({"tokens":[97,98,99,100]})")->wait().status, 200);
  EXPECT_EQ(engine_.num_decodes_, 1);
  const auto refused = [&](const char* body, const char* message) {
    const http::Response response = call("POST", "/detokenize", body)->wait(400);
    EXPECT_THAT(response.body, HasSubstr(message));
  };
  refused(R"({"tokens":[97,98,99,100,101]})",
          "[request] tokens; got tokens of 5 bytes, expected at most 4 bytes and 8 tokens; "
          "send a shorter text");
  refused(R"({"tokens":[1,2,3,4,5,6,7,8,9]})", "got 9 tokens, expected at most 4 bytes");
  EXPECT_EQ(engine_.num_decodes_, 1);
}

TEST_F(ServiceTest, TheTextsOfSingleTokensTakeNoDecoder) {
  const auto body = [&](const char* text) {
    return call("POST", "/tokenize",
                std::string(R"({"return_token_strs":true,"prompt":")") + text + "\"}")
        ->wait()
        .body;
  };
  EXPECT_EQ(body("a\\\"\xc3\xa9"), R"({"count":4,"max_model_len":64,"tokens":[97,34,-61,-87],)"
                                   "\"token_strs\":[\"a\",\"\\\"\",\"\uFFFD\",\"\uFFFD\"]}");
  EXPECT_EQ(body(""), R"({"count":0,"max_model_len":64,"tokens":[],"token_strs":[]})");
  EXPECT_EQ(engine_.num_decodes_, 0);
}

// Control characters are the worst case, because JSON writes them as six bytes.
TEST_F(ServiceTest, TheResponseToATextIsBoundedByTheText) {
  constexpr size_t kMaxBytes = 10'000;
  start({.max_tokenize_bytes = kMaxBytes});
  std::string text;
  for (size_t i = 0; i < kMaxBytes; ++i) text += "\\u0001";
  const std::string body = R"({"return_token_strs":true,"prompt":")" + text + R"("})";
  const http::Response response = call("POST", "/tokenize", body)->wait(200);
  EXPECT_LT(response.body.size(), 20 * kMaxBytes);
}

// Clients' texts can occupy the only tokenizing thread; a restart would not help.
TEST_F(ServiceTest, TokenizingDoesNotAffectHealth) {
  std::promise<void> may_end;
  engine_.on_encode_ = [end = std::shared_future<void>(may_end.get_future())](std::string_view) {
    end.wait();
  };
  constexpr std::chrono::seconds kStallTimeout(1);
  constexpr std::chrono::milliseconds kLonger(1100);  // than it
  start({.num_workers = 1, .stall_timeout = kStallTimeout});
  const auto text = call("POST", "/tokenize", R"({"prompt":"a"})");
  EXPECT_EQ(get("/health").status, 200);
  std::this_thread::sleep_for(kLonger);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ready").status, 200);
  const auto prompt = complete(R"({"prompt":"a"})");
  EXPECT_EQ(get("/health").status, 200);
  std::this_thread::sleep_for(kLonger);
  EXPECT_EQ(get("/health").status, 503) << "responses are delayed";
  may_end.set_value();
  EXPECT_EQ(text->wait().status, 200);
  engine_.wait_for(1);
  engine_.say(1, "b", FinishReason::kStop);
  EXPECT_EQ(prompt->wait().status, 200);
}

TEST_F(ServiceTest, AChatBeyondTheCapacityIsNotTokenized) {
  std::atomic<int> num_encoded = 0;
  engine_.on_encode_ = [&](std::string_view) { ++num_encoded; };
  start({.admission = {.max_num_seqs = 1, .max_num_queued_reqs = 1}});
  complete(R"({"prompt":"a"})");
  engine_.wait_for(1);
  EXPECT_EQ(num_encoded, 1);
  const auto refused =
      call("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"q"}],"n":2})");
  EXPECT_EQ(refused->wait().status, 429);
  EXPECT_EQ(num_encoded, 1);
}

TEST_F(ServiceTest, EveryRequestIsLoggedButSuccessfulPolls) {
  start({.allowed_origins = {"https://a.example"}});
  ::testing::internal::CaptureStderr();
  get("/v1/models");
  get("/health");
  get("/metrics");
  call("OPTIONS", "/v1/models", "",
       {{"origin", "https://a.example"}, {"access-control-request-method", "POST"}})
      ->wait();
  end();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("method=GET path=/v1/models status=200"));
  EXPECT_THAT(log, HasSubstr("method=OPTIONS path=/v1/models status=204"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
}

TEST_F(ServiceTest, AFailedStreamIsLoggedWithAllItsBytes) {
  ::testing::internal::CaptureStderr();
  const auto exchange = complete(R"({"prompt":"a","stream":true})");
  engine_.wait_for(1);
  engine_.say(1, "b");
  exchange->wait_for("b");
  engine_.fail(1);
  const size_t num_bytes = exchange->wait().body.size();
  end();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(fmt::format(" response_bytes={} ", num_bytes)));
}

TEST_F(ServiceTest, OtherSitesMayCallOnlyIfTheOperatorAllowsThem) {
  const http::Headers from = {{"origin", "https://a.example"},
                              {"access-control-request-method", "POST"}};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(call("OPTIONS", "/v1/models", "", from)->wait().status, 403);
  end();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the Origin 'https://a.example' is not allowed; --allowed-origins allows"));
  EXPECT_EQ(header(get("/v1/models", from), "access-control-allow-origin"), "");
  end();
  start({.allowed_origins = {"https://a.example"}});
  const http::Response preflight = call("OPTIONS", "/v1/models", "", from)->wait(204);
  EXPECT_EQ(header(preflight, "access-control-allow-headers"), "authorization, *");
  EXPECT_EQ(header(get("/v1/models", from), "access-control-allow-origin"), "https://a.example");
  for (const http::Headers& headers : {http::Headers{{"origin", "https://b.example"}}, {}}) {
    const http::Response response = get("/v1/models", headers);
    EXPECT_EQ(header(response, "access-control-allow-origin"), "");
    EXPECT_EQ(header(response, "vary"), "Origin") << "a cache could serve it to an allowed origin";
  }
}

TEST_F(ServiceTest, ANameThatIsNotTheServersIsRefusedBeforeItsBody) {
  start({.checks_host = true, .allowed_hosts = {"quire.example"}});
  for (const char* path : {"/", "/health", "/v1/models", "/metrics"}) {
    EXPECT_EQ(get(path, {{"host", "127.0.0.1:8000"}}).status, 200) << path;
    EXPECT_EQ(get(path, {{"host", "quire.example"}}).status, 200) << path;
    EXPECT_EQ(get(path, {{"host", "evil.example:8000"}}).status, 403) << path;
  }
  const auto refused = service_->hooks().check_head({.method = "POST",
                                                     .path = "/v1/completions",
                                                     .query = "",
                                                     .headers = {{"host", "evil.example"}},
                                                     .body = "",
                                                     .peer = ""});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 403);
  EXPECT_THAT(refused->body, Not(HasSubstr("--"))) << "clients do not set flags";
  ::testing::internal::CaptureStderr();
  get("/v1/models", {{"host", "evil.example"}});
  end();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("--allowed-hosts allows names"));
  start();
  EXPECT_EQ(get("/v1/models", {{"host", "any.example"}}).status, 200) << "the host is not checked";
}

TEST_F(ServiceTest, ThePageLoadsNothingFromElsewhere) {
  const http::Response page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(header(page, "content-security-policy"), HasSubstr("default-src 'none'"));
  EXPECT_THAT(page.body, Not(HasSubstr("http://")));
  EXPECT_THAT(page.body, Not(HasSubstr("https://")));
}

class AnyToken final : public TokenConstraint {
 public:
  std::vector<uint32_t> allowed_tokens() override { return std::vector<uint32_t>(8, ~0U); }
  bool accept(int32_t) override { return true; }
};

Result<ConstraintFactory> any_token() {
  return ConstraintFactory([] { return std::make_unique<AnyToken>(); });
}

TEST_F(ServiceTest, GrammarsThatWaitTakeFewPlacesAndGiveThemBack) {
  std::promise<void> may_end;
  std::shared_future<void> end_wait(may_end.get_future());
  std::promise<void> prompt_started;
  ServiceConfig config;
  config.admission = {.max_num_seqs = 1, .max_num_queued_reqs = 3};
  config.num_grammar_threads = 1;
  config.grammar_queue = {.max_requests = 2, .max_sequences = 9};
  config.constraints.compile = [&prompt_started, end_wait](const GrammarSpec& wanted) {
    if (wanted.text == "0") prompt_started.set_value();
    end_wait.wait();
    return any_token();
  };
  start(std::move(config));
  const auto ask = [&](const std::string& regex) {
    return complete(R"({"prompt":"a","guided_regex":")" + regex + "\"}");
  };
  const auto metric = [&](const std::string& line) {
    EXPECT_TRUE(eventually([&] { return get("/metrics").body.find(line) != std::string::npos; }));
  };
  const auto compiling = ask("0");
  prompt_started.get_future().wait();
  const auto second = ask("1");
  const auto third = ask("2");
  metric(R"(quire_grammar_queue{model_name="fake"} 2)");
  const http::Response full = ask("3")->wait(429);
  EXPECT_EQ(header(full, "retry-after"), "1");
  EXPECT_THAT(full.body, HasSubstr("2 requests wait for their grammars"));
  // When a client disconnects, its place in the queue and its capacity are released at once.
  second->close();
  metric(R"(quire_grammar_queue{model_name="fake"} 1)");
  const auto fourth = ask("4");
  metric(R"(quire_grammar_queue{model_name="fake"} 2)");
  const auto free_call = complete(R"({"prompt":"b"})");
  EXPECT_FALSE(engine_.wait_for(1).make_constraint);
  engine_.say(1, "b", FinishReason::kStop);
  EXPECT_EQ(free_call->wait().status, 200);
  may_end.set_value();
  for (const RequestId id : {2, 3, 4}) {
    EXPECT_TRUE(engine_.wait_for(id).make_constraint);
    engine_.say(id, "a", FinishReason::kStop);
  }
  for (const auto& exchange : {compiling, third, fourth}) EXPECT_EQ(exchange->wait().status, 200);
}

TEST_F(ServiceTest, ASlowGrammarDelaysNoOtherRequest) {
  std::promise<void> may_end;
  std::shared_future<void> end(may_end.get_future());
  ServiceConfig config;
  config.num_workers = 1;
  config.num_grammar_threads = 1;
  config.constraints.compile = [end](const GrammarSpec& wanted) {
    EXPECT_EQ(wanted.text, "a+");
    end.wait();
    return any_token();
  };
  config.constraints.find =
      [](const GrammarSpec& wanted) -> std::optional<Result<ConstraintFactory>> {
    if (wanted.text != "known") return std::nullopt;
    return any_token();
  };
  start(std::move(config));
  const auto slow = complete(R"({"prompt":["a","b"],"guided_regex":"a+"})");
  const auto quick = complete(R"({"prompt":"b"})");
  EXPECT_FALSE(engine_.wait_for(1).make_constraint);
  engine_.say(1, "b", FinishReason::kStop);
  EXPECT_EQ(quick->wait().status, 200);
  const auto known = complete(R"({"prompt":"c","guided_regex":"known"})");
  EXPECT_TRUE(engine_.wait_for(2).make_constraint);
  engine_.say(2, "c", FinishReason::kStop);
  EXPECT_EQ(known->wait().status, 200);
  may_end.set_value();
  for (const RequestId id : {3, 4}) {
    EXPECT_TRUE(engine_.wait_for(id).make_constraint);
    engine_.say(id, "a", FinishReason::kStop);
  }
  EXPECT_EQ(slow->wait().status, 200);
}

TEST_F(ServiceTest, RequestsThatWaitForTheirGrammarGet503AtShutdown) {
  std::promise<void> prompt_started;
  std::promise<void> stopped;
  ServiceConfig config;
  config.num_grammar_threads = 1;
  config.constraints.compile = [&](const GrammarSpec&) -> Result<ConstraintFactory> {
    prompt_started.set_value();  // of the first request only
    stopped.get_future().wait();
    return invalid_argument("[grammar] stopped");
  };
  config.constraints.stop = [&] { stopped.set_value(); };
  start(std::move(config));
  std::vector<std::shared_ptr<FakeExchange>> calls;
  for (const char* pattern : {"a", "b", "c"}) {
    calls.push_back(complete(
        fmt::format(R"({{"prompt":"x","structured_outputs":{{"regex":"{}"}}}})", pattern)));
  }
  prompt_started.get_future().wait();
  constexpr const char* kTwoWait = R"(quire_grammar_queue{model_name="fake"} 2)";
  EXPECT_TRUE(eventually([&] { return get("/metrics").body.find(kTwoWait) != std::string::npos; }));
  service_->close();
  service_->cancel();
  for (const auto& exchange : calls) {
    const http::Response answer = exchange->wait(503);
    EXPECT_THAT(answer.body, HasSubstr("shutting down"));
    EXPECT_THAT(answer.body, HasSubstr(R"("param":null)"));
  }
}

TEST_F(ServiceTest, AWrongGrammarReleasesItsCapacityAndNamesItsField) {
  ServiceConfig config;
  config.admission = {.max_num_seqs = 1, .max_num_queued_reqs = 0};
  config.constraints.compile = [](const GrammarSpec&) -> Result<ConstraintFactory> {
    return invalid_argument("[grammar] is none");
  };
  start(std::move(config));
  for (int i = 0; i < 2; ++i) {
    const http::Response refused =
        complete(R"({"prompt":"a","structured_outputs":{"regex":"("}})")->wait(400);
    EXPECT_THAT(refused.body, HasSubstr(R"("message":"[grammar] is none")"));
    EXPECT_THAT(refused.body, HasSubstr(R"("param":"structured_outputs.regex")"));
  }
}

// The grammar's errors name the tool by these places.
TEST_F(ServiceTest, AForcedCallsGrammarHasThePlacesOfItsTools) {
  ServiceConfig config;
  config.constraints.compile = [](const GrammarSpec& wanted) -> Result<ConstraintFactory> {
    const Result<std::string> schema = grammar::plain_schema(wanted.text, {}, wanted.tools);
    if (!schema.ok()) return schema.status();
    return any_token();
  };
  start(std::move(config));
  const auto ask = [&](const std::string& choice) {
    return call("POST", "/v1/chat/completions",
                R"({"messages":[{"role":"user","content":"q"}],"tools":[
                    {"type":"function","function":{"name":"look"}},
                    {"type":"function","function":{"name":"book","parameters":{"type":"object",
                     "properties":{"a":{"type":"array","uniqueItems":true}}}}}],"tool_choice":)" +
                    choice + "}")
        ->wait();
  };
  for (const char* choice :
       {R"("required")", R"({"type":"function","function":{"name":"book"}})"}) {
    const http::Response refused = ask(choice);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr(R"(tool \"book\", #/properties/a: the JSON schema has)"))
        << choice;
  }
}

TEST_F(ServiceTest, AFormBeginsBehindAReasoningBlockThatThePromptOpens) {
  ServiceConfig config;
  config.reasoning_parser = "think";
  config.constraints.compile = [](const GrammarSpec&) { return any_token(); };
  start(std::move(config));
  engine_.chat_suffix_ = "<think>\n";
  const std::string body =
      R"({"messages":[{"role":"user","content":"q"}],"response_format":{"type":"json_object"}})";
  const auto reasons = call("POST", "/v1/chat/completions", body);
  const auto constraint = engine_.wait_for(1).make_constraint();
  EXPECT_EQ(dynamic_cast<AnyToken*>(constraint.get()), nullptr) << "it waits for the block's end";
  engine_.say(1, "hm</think>{}", FinishReason::kStop);
  const http::Response reasoned = reasons->wait();
  EXPECT_THAT(reasoned.body, HasSubstr(R"("content":"{}")"));
  EXPECT_THAT(reasoned.body, HasSubstr(R"("reasoning_content":"hm")"));
  engine_.chat_suffix_ = "";
  const auto formed = call("POST", "/v1/chat/completions", body);
  EXPECT_NE(dynamic_cast<AnyToken*>(engine_.wait_for(2).make_constraint().get()), nullptr);
  engine_.say(2, "{}", FinishReason::kStop);
  EXPECT_THAT(formed->wait().body, HasSubstr(R"("content":"{}")"));
}

TEST_F(ServiceTest, CountsAreVllmsAndSayTheModel) {
  const auto exchange = complete(R"({"prompt":"a"})");
  engine_.wait_for(1);
  engine_.say(1, "a");
  engine_.say(1, "b", FinishReason::kStop);
  exchange->wait();
  const std::string text = get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("# TYPE vllm:time_to_first_token_seconds histogram\n"));
  EXPECT_THAT(
      text,
      HasSubstr("vllm:time_to_first_token_seconds_count{model_name=\"fake\",engine=\"0\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("vllm:inter_token_latency_seconds_count{model_name=\"fake\",engine=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_success_total{model_name=\"fake\",engine=\"0\","
                              "finished_reason=\"stop\"} 1\n"));
}

// Routers and gateways poll these, each in the form of the server that it was written for.
TEST_F(ServiceTest, ReportsItsLoadAsRoutersPollIt) {
  engine_.info_.max_num_seqs = 8;
  engine_.info_.block_size = 16;
  start();
  const auto number = [&](const std::string& path, const std::string& pointer) {
    const http::Response response = get(path);
    EXPECT_EQ(response.status, 200);
    const auto document = JsonDocument::parse(response.body, "body");
    double value = -1;
    EXPECT_TRUE(document.ok() &&
                document->root().at_pointer(pointer).get(value) == simdjson::SUCCESS)
        << pointer << " in " << response.body;
    return value;
  };
  EXPECT_EQ(number("/load", "/server_load"), 0);
  const auto exchange = complete(R"({"prompt":"abc"})");
  engine_.wait_for(1);
  EXPECT_EQ(number("/load", "/server_load"), 1);
  EXPECT_EQ(number("/get_load", "/load"), 1);
  engine_.stats_ = {.num_running = 2,
                    .num_waiting = 3,
                    .num_free_blocks = 75,
                    .num_total_blocks = 100,
                    .kv_cache_usage = 0.25,
                    .num_generated_tokens = 100,
                    .prefix_cache_queries = 10,
                    .prefix_cache_hits = 4};
  const auto load = [&](const std::string& field) {
    return number("/v1/loads", "/loads/0/" + field);
  };
  EXPECT_EQ(number("/v1/loads", "/dp_rank_count"), 1);
  EXPECT_EQ(load("dp_rank"), 0);
  EXPECT_EQ(load("num_running_reqs"), 2);
  EXPECT_EQ(load("num_waiting_reqs"), 3);
  EXPECT_EQ(load("num_total_reqs"), 5);
  EXPECT_EQ(load("num_used_tokens"), 25 * 16);
  EXPECT_EQ(load("num_total_tokens"), 25 * 16 + 3) << "and the prompt that waits";
  EXPECT_EQ(load("max_total_num_tokens"), 1600);
  EXPECT_EQ(load("token_usage"), 0.25);
  EXPECT_EQ(load("cache_hit_rate"), 0.4);
  EXPECT_EQ(load("utilization"), 0.25);
  EXPECT_EQ(load("max_running_requests"), 8);
  EXPECT_EQ(number("/v1/loads", "/aggregate/total_reqs"), 5);
}

TEST_F(ServiceTest, DescribesItselfAsRoutersAsk) {
  engine_.info_.block_size = 16;
  engine_.stats_ = {.num_total_blocks = 100};
  start({.tensor_parallel_size = 2});
  const http::Response response = get("/server_info");
  EXPECT_EQ(get("/get_server_info").body, response.body);
  for (const char* field :
       {R"("version":"1.2.3")", R"("model_path":"fake")", R"("served_model_name":"fake")",
        R"("tp_size":2)", R"("pp_size":1)", R"("dp_size":1)", R"("context_length":64)",
        R"("max_running_requests":4)", R"("max_total_num_tokens":1600)", R"("page_size":16)"}) {
    EXPECT_THAT(response.body, HasSubstr(field));
  }
}

TEST_F(ServiceTest, NamesTheSourcesOfKvEvents) {
  EXPECT_EQ(get("/kv_event_sources").body, "{}");
  end();
  start({.kv_event_sources = {{.enable_kv_cache_events = true,
                               .publisher = "zmq",
                               .endpoint = "tcp://*:5557",
                               .topic = "kv"}}});
  EXPECT_EQ(get("/kv_event_sources").body,
            R"({"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",)"
            R"("replay_endpoint":null,"buffer_steps":10000,"hwm":100000,"max_queue_size":100000,)"
            R"("topic":"kv"}})");
}

TEST_F(ServiceTest, RendersPromptsWithoutGenerating) {
  const http::Response one =
      call("POST", "/v1/completions/render",
           R"({"prompt":"ab","max_tokens":3,"temperature":0.5,"seed":7,"stop":["x"],)"
           R"("cache_salt":"s","stream":true})",
           {{"x-request-id", "gateway:1"}})
          ->wait(200);
  for (const char* field :
       {R"([{"request_id":"cmpl-gateway:1","token_ids":[97,98],"sampling_params":{"n":1,)",
        R"("temperature":0.5)", R"("seed":7,"stop":["x"])", R"("max_tokens":3)",
        R"("model":"fake")", R"("cache_salt":"s")", R"("stream":true)",
        R"("stream_options":{"include_usage":false)", R"("features":null)"}) {
    EXPECT_THAT(one.body, HasSubstr(field));
  }
  const std::string two =
      call("POST", "/v1/completions/render", R"({"prompt":["a","b"]})", {{"x-request-id", "r"}})
          ->wait()
          .body;
  EXPECT_THAT(two, HasSubstr(R"("request_id":"cmpl-r-0","token_ids":[97])"));
  EXPECT_THAT(two, HasSubstr(R"("request_id":"cmpl-r-1","token_ids":[98])"));
  engine_.chat_suffix_ = "";
  engine_.render_ = [](const jinja::Value&) -> Result<MarkedText> { return MarkedText{"hi", {}}; };
  const std::string chat =
      call("POST", "/v1/chat/completions/render", R"({"messages":[{"role":"user","content":"q"}]})",
           {{"x-request-id", "r"}})
          ->wait()
          .body;
  EXPECT_THAT(chat, ::testing::StartsWith(R"({"request_id":"chatcmpl-r","token_ids":[104,105])"));
  EXPECT_THAT(chat, HasSubstr(R"("max_tokens":62)")) << "the rest of the context";
  EXPECT_FALSE(engine_.is_running(1));
}

TEST_F(ServiceTest, RefusesToRenderInvalidRequests) {
  for (const char* body : {"{}", R"({"prompt":""})", R"({"prompt":"a","n":1000})",
                           R"({"prompt":"a","model":"other"})"}) {
    EXPECT_EQ(call("POST", "/v1/completions/render", body)->wait().status,
              complete(body)->wait().status)
        << body;
  }
}

TEST_F(ServiceTest, ReportsWhyPrefixesMissed) {
  const auto exchange = complete(R"({"prompt":["a","b"]})");
  for (const RequestId id : {1, 2}) {
    engine_.wait_for(id);
    Output output;
    output.finish_reason = FinishReason::kStop;
    output.num_cached_tokens = id == 1 ? 16 : 0;
    output.cache_miss = id == 1 ? CacheMiss::kNone : CacheMiss::kEvicted;
    engine_.send(id, std::move(output));
  }
  EXPECT_THAT(exchange->wait().body, HasSubstr(R"("prompt_tokens_details":{"cached_tokens":16,)"
                                               R"("cache_miss_cause":"evicted"})"));
  engine_.stats_.cache_misses[static_cast<size_t>(CacheMiss::kEvicted)] = 5;
  engine_.stats_.num_kv_batches_dropped = 2;
  const std::string metrics = get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("quire_prefix_cache_misses_total{model_name=\"fake\",engine=\"0\","
                                 "cause=\"evicted\"} 5\n"));
  EXPECT_THAT(metrics, HasSubstr("quire_kv_event_batches_dropped_total{model_name=\"fake\","
                                 "engine=\"0\"} 2\n"));
}

// Fields that gateways add to requests.
TEST_F(ServiceTest, ToleratesTheHeadersOfGateways) {
  const auto exchange = complete(R"({"prompt":"a"})", {{"x-forwarded-for", "10.0.0.1"},
                                                       {"x-gateway-model-name", "fake"},
                                                       {"x-session-id", "s"},
                                                       {"x-smg-routing-key", "k"},
                                                       {"traceparent", "00-1-2-01"},
                                                       {"x-request-id", "chatcmpl-1"}});
  engine_.wait_for(1);
  engine_.say(1, "a", FinishReason::kStop);
  const http::Response response = exchange->wait();
  EXPECT_EQ(header(response, "x-request-id"), "chatcmpl-1");
  EXPECT_THAT(response.body, HasSubstr(R"("id":"cmpl-chatcmpl-1")"));
}

TEST_F(ServiceTest, ReportsTheLoadOfEveryReplica) {
  engine_.info_.data_parallel_size = 2;
  engine_.info_.block_size = 16;
  engine_.stats_ = {.num_running = 5, .num_free_blocks = 10, .num_total_blocks = 30};
  engine_.replicas_ = {{.stats = {.num_running = 2, .num_free_blocks = 10, .num_total_blocks = 10}},
                       {.stats = {.num_running = 3, .num_free_blocks = 0, .num_total_blocks = 20}}};
  const std::string loads = get("/v1/loads").body;
  EXPECT_THAT(loads, HasSubstr(R"("dp_rank_count":2)"));
  EXPECT_THAT(loads, HasSubstr(R"("dp_rank":0,"num_running_reqs":2)"));
  EXPECT_THAT(loads, HasSubstr(R"("dp_rank":1,"num_running_reqs":3)"));
  EXPECT_THAT(loads, HasSubstr(R"("num_used_tokens":320)"));
  EXPECT_THAT(loads, HasSubstr(R"("total_running_reqs":5)"));
  const std::string metrics = get("/metrics").body;
  EXPECT_THAT(metrics,
              HasSubstr("vllm:num_requests_running{model_name=\"fake\",engine=\"1\"} 3\n"));
}

TEST_F(ServiceTest, ObservesARequestInTheMetricsOfItsReplica) {
  engine_.info_.data_parallel_size = 2;
  engine_.replicas_.resize(2);
  const auto exchange = complete(R"({"prompt":"a"})");
  engine_.wait_for(1);
  Output output;
  output.token_ids = {97};
  output.finish_reason = FinishReason::kStop;
  output.data_parallel_rank = 1;
  engine_.send(1, std::move(output));
  exchange->wait();
  const std::string text = get("/metrics").body;
  for (const int engine : {0, 1}) {
    const std::string labels = fmt::format("{{model_name=\"fake\",engine=\"{}\"", engine);
    EXPECT_THAT(text, HasSubstr(fmt::format("vllm:time_to_first_token_seconds_count{}}} {}\n",
                                            labels, engine)));
    EXPECT_THAT(text, HasSubstr(fmt::format("vllm:request_success_total{},finished_reason="
                                            "\"stop\"}} {}\n",
                                            labels, engine)));
  }
}

TEST_F(ServiceTest, HeadersChooseTheReplica) {
  engine_.info_.data_parallel_size = 3;
  for (const char* rank : {"0", "2"}) {
    const auto exchange = complete(R"({"prompt":["a","b"]})",
                                   {{"x-data-parallel-rank", rank}, {"x-session-id", "me"}});
    for (const RequestId of : {1, 2}) {
      const RequestId id = of + (*rank == '2' ? 2 : 0);
      const Request request = engine_.wait_for(id);
      EXPECT_EQ(request.data_parallel_rank, *rank - '0');
      EXPECT_EQ(request.session_id, "me");
      engine_.say(id, "x", FinishReason::kStop);
    }
    EXPECT_EQ(exchange->wait().status, 200);
  }
  for (const char* rank : {"", "3", "-1", "1x", "first", "99999999999999999999"}) {
    for (const char* path : {"/v1/completions", "/v1/chat/completions", "/v1/messages"}) {
      const http::Response refused =
          call("POST", path, "{}", {{"x-data-parallel-rank", rank}})->wait(400);
      EXPECT_THAT(refused.body, HasSubstr(fmt::format("got '{}', expected 0 to 2", rank)));
    }
  }
}

TEST_F(ServiceTest, ARepeatedHeaderNamesOneReplica) {
  engine_.info_.data_parallel_size = 3;
  const auto refused =
      complete("{}",
               {{"x-data-parallel-rank", "1"}, {"X-Other", "2"}, {"x-data-parallel-rank", "2"}})
          ->wait();
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("is repeated: got '1' and '2'"));
  const auto exchange =
      complete(R"({"prompt":"a"})", {{"x-data-parallel-rank", "1"}, {"x-data-parallel-rank", "1"}});
  EXPECT_EQ(engine_.wait_for(1).data_parallel_rank, 1);
  engine_.say(1, "x", FinishReason::kStop);
  EXPECT_EQ(exchange->wait().status, 200);
}

TEST_F(ServiceTest, RenderRoutesCheckTheReplicaToo) {
  engine_.info_.data_parallel_size = 2;
  for (const char* path : {"/v1/completions/render", "/v1/chat/completions/render"}) {
    const http::Response refused =
        call("POST", path, "{}", {{"x-data-parallel-rank", "2"}})->wait(400);
    EXPECT_THAT(refused.body, HasSubstr("got '2', expected 0 to 1"));
  }
  EXPECT_EQ(
      call("POST", "/v1/completions/render", R"({"prompt":"a"})", {{"x-data-parallel-rank", "1"}})
          ->wait()
          .status,
      200);
}

TEST_F(ServiceTest, LeavesTheLogLineOfAFailedEngineToTheEngine) {
  start();
  engine_.health_ = unavailable("[cuda] secret");
  engine_.replicas_ = {{.health = engine_.health_}};
  EXPECT_EQ(warnings_of([&] { service_->check_progress(); }), "");
}

TEST_F(ServiceTest, TheLogNamesTheReplicaThatFailed) {
  engine_.info_.data_parallel_size = 2;
  start();
  engine_.replicas_ = {{}, {.health = unavailable("[cuda] secret")}};
  EXPECT_THAT(warnings_of([&] { service_->check_progress(); }),
              HasSubstr("[server] replica 1: [cuda] secret"));
}

TEST_F(ServiceTest, HealthNamesTheReplicaThatFailed) {
  engine_.info_.data_parallel_size = 2;
  engine_.health_ = unavailable("[engine] replica 1 has failed: [cuda] secret");
  engine_.replicas_ = {{}, {.health = unavailable("[cuda] secret")}};
  const http::Response health = get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_THAT(health.body, HasSubstr("replica 1 of the engine has failed"));
  EXPECT_THAT(health.body, Not(HasSubstr("secret")));
  EXPECT_EQ(complete("{}")->wait().status, 503);
}

// vLLM's own dashboard shows these metrics.
TEST_F(ServiceTest, MeasuresThePhasesOfARequest) {
  const auto exchange = complete(R"({"prompt":"a","n":2,"max_tokens":7})");
  engine_.wait_for(1);
  engine_.expect_answers(1, 2);
  engine_.say(1, "a", FinishReason::kStop, 0);
  engine_.say(1, "abc", FinishReason::kStop, 1);
  exchange->wait();
  const std::string text = get("/metrics").body;
  const auto sample = [](std::string_view name, int value) {
    return HasSubstr(fmt::format("vllm:{}{{model_name=\"fake\",engine=\"0\"}} {}\n", name, value));
  };
  for (const char* phase : {"queue", "prefill", "decode", "inference"}) {
    EXPECT_THAT(text, sample(fmt::format("request_{}_time_seconds_count", phase), 2));
  }
  EXPECT_THAT(text, sample("request_max_num_generation_tokens_count", 1));
  EXPECT_THAT(text, sample("request_max_num_generation_tokens_sum", 3));
  EXPECT_THAT(text, sample("request_params_n_sum", 2));
  EXPECT_THAT(text, sample("request_params_max_tokens_sum", 7));
}

TEST_F(ServiceTest, OddRequestIdsAreReplaced) {
  for (const char* id : {"", "has space", "line\nbreak", "quote\""}) {
    const std::string given = header(get("/version", {{"x-request-id", id}}), "x-request-id");
    EXPECT_EQ(given.size(), 24U) << id;
  }
}

}  // namespace
}  // namespace quire::server
