// Tests the supervisor with real processes that stand in for models.
#include "supervisor/supervisor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/json.h"
#include "server/access_control.h"
#include "support/eventually.h"
#include "support/http_client.h"
#include "support/scratch_directory.h"

namespace quire::supervisor {
namespace {

using quire::testing::eventually;
using quire::testing::HttpAnswer;
using quire::testing::HttpClient;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

struct Options {
  std::vector<ModelEntry> models = {
      {.name = "a", .aliases = {"first"}}, {.name = "b"}, {.name = "c"}};
  int max_loaded = 0;
  milliseconds start_timeout{20'000};
  milliseconds probe_period{10'000};
  milliseconds sleep_idle{0};
  int64_t free_bytes = 1 << 30;
  std::function<int64_t()> free_host_bytes = {};  // empty: free_bytes
  std::vector<std::string> keys = {};
};

std::string post_text(const std::string& path, const std::string& body,
                      const std::string& more = "") {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n"
      "\r\n{}",
      path, more, body.size(), body);
}

class TestSupervisor {
 public:
  explicit TestSupervisor(Options options = {}) {
    SupervisorConfig config;
    config.pool.program = QUIRE_FAKE_MODEL_PROCESS;
    config.pool.models = std::move(options.models);
    config.pool.directory = scratch_.path();
    config.pool.max_loaded = options.max_loaded;
    config.pool.start_timeout = options.start_timeout;
    config.pool.probe_period = options.probe_period;
    config.pool.sleep_idle = options.sleep_idle;
    config.pool.free_host_bytes = options.free_host_bytes;
    if (!options.free_host_bytes) {
      config.pool.free_host_bytes = [bytes = options.free_bytes] { return bytes; };
    }
    if (!options.keys.empty()) {
      config.service.keys = server::ApiKeys::create(options.keys, "").value();
      for (size_t i = 0; i < options.keys.size(); ++i) {
        config.process_keys.push_back("process-key-" + std::to_string(i));
      }
    }
    supervisor_ = std::make_unique<Supervisor>(std::move(config));
    http::ServerConfig transport;
    transport.port = 0;
    transport_ = http::Server::start(
                     transport,
                     [this](http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
                       supervisor_->handle(std::move(request), std::move(exchange));
                     },
                     supervisor_->hooks())
                     .value();
  }
  ~TestSupervisor() {
    supervisor_->close();
    supervisor_->cancel();
    supervisor_->stop();
    transport_.reset();
  }

  Supervisor& supervisor() { return *supervisor_; }
  int port() const { return transport_->port(); }
  HttpClient connect() const { return HttpClient::tcp(transport_->port()); }
  HttpAnswer get(const std::string& path) const { return connect().get(path); }
  HttpAnswer post(const std::string& path, const std::string& body,
                  const std::string& more = "") const {
    return connect().post(path, body, more);
  }
  HttpAnswer complete(const std::string& model, const std::string& more = "") const {
    return post("/v1/completions", fmt::format(R"({{"model":"{}"{}}})", model, more));
  }
  // Sends a request without waiting for its response.
  HttpClient begin(const std::string& model, const std::string& more = "") const {
    HttpClient client = connect();
    client.send(post_text("/v1/completions", fmt::format(R"({{"model":"{}"{}}})", model, more)));
    return client;
  }
  std::string state(const std::string& model) const {
    const std::string body = get("/v1/models/" + model).body;
    return json_of(body, "value");
  }
  bool becomes(const std::string& model, const std::string& wanted) const {
    return eventually([&] { return state(model) == wanted; });
  }
  double metric(const std::string& name, const std::string& model) const {
    const std::string text = get("/metrics").body;
    const std::string mark = fmt::format("\n{}{{model_name=\"{}\"}} ", name, model);
    const size_t at = text.find(mark);
    return at == std::string::npos ? -1 : std::atof(text.c_str() + at + mark.size());
  }
  static std::string json_of(const std::string& body, const std::string& key) {
    const std::string mark = "\"" + key + "\":\"";
    const size_t at = body.find(mark);
    if (at == std::string::npos) return "";
    return body.substr(at + mark.size(), body.find('"', at + mark.size()) - at - mark.size());
  }

 private:
  quire::testing::ScratchDirectory scratch_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<http::Server> transport_;
};

TEST(Supervisor, SendsEachRequestToTheModelThatItNames) {
  const TestSupervisor supervisor;
  EXPECT_THAT(supervisor.complete("a").body, HasSubstr(R"("by":"a")"));
  EXPECT_THAT(supervisor.complete("b").body, HasSubstr(R"("by":"b")"));
  EXPECT_THAT(supervisor.complete("first").body, HasSubstr(R"("by":"a")"));
  EXPECT_THAT(supervisor.complete("B:latest").body, HasSubstr(R"("by":"b")"));
  EXPECT_THAT(supervisor.post("/api/show", R"({"name":"b"})").body, HasSubstr(R"("by":"b")"));
  EXPECT_THAT(supervisor.get("/tokenizer_info?model=%62").body, HasSubstr(R"("by":"b")"));
  const HttpAnswer unknown = supervisor.complete("x");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("model_not_found"));
  const HttpAnswer none = supervisor.post("/v1/completions", "{}");
  EXPECT_EQ(none.status, 400);
  EXPECT_THAT(none.body, HasSubstr("one of 'a', 'b', 'c'"));
  EXPECT_EQ(supervisor.post("/v1/completions", "not JSON").status, 400);
  EXPECT_EQ(supervisor.get("/nowhere").status, 404);
  EXPECT_EQ(supervisor.get("/v1/completions").status, 405);
  EXPECT_EQ(supervisor.post("/health", "{}").header("allow"), "GET, HEAD");
  EXPECT_EQ(supervisor.get("/models/load").header("allow"), "POST") << "no model's name";
  EXPECT_EQ(supervisor.state("c"), "unloaded");
  EXPECT_EQ(supervisor.metric("quire_supervisor_starts_total", "a"), 1);
}

TEST(Supervisor, DescribesItsOwnRoutes) {
  const TestSupervisor supervisor;
  const auto description =
      JsonDocument::parse(supervisor.get("/openapi.json").body, "/openapi.json");
  ASSERT_TRUE(description.ok());
  for (const std::string path : {"~1models~1load", "~1models~1unload", "~1v1~1models"}) {
    const auto methods = description->root().at_pointer("/paths/" + path);
    ASSERT_EQ(methods.error(), simdjson::SUCCESS) << path;
    EXPECT_THAT(simdjson::minify(methods), HasSubstr(R"("responses":{"200":)")) << path;
  }
}

TEST(Supervisor, AServedModelIsPulledWithoutAStart) {
  const TestSupervisor supervisor;
  const HttpAnswer pulled = supervisor.post("/api/pull", R"({"model":"first:latest"})");
  EXPECT_EQ(pulled.status, 200);
  EXPECT_THAT(pulled.body, HasSubstr("{\"status\":\"success\"}\n"));
  EXPECT_EQ(supervisor.post("/api/pull", R"({"name":"b","stream":false})").body,
            R"({"status":"success"})");
  EXPECT_EQ(supervisor.post("/api/pull", R"({"model":"b","name":"x"})").status, 200);
  const HttpAnswer none = supervisor.post("/api/pull", R"({"name":""})");
  EXPECT_EQ(none.status, 400);
  EXPECT_THAT(none.body, HasSubstr("got no model"));
  EXPECT_EQ(supervisor.state("a"), "unloaded");
  const HttpAnswer unknown = supervisor.post("/api/pull", R"({"model":"x"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("run 'quire pull NAME' on its machine"));
}

TEST(Supervisor, ListsAliasesAsOllamasModels) {
  const TestSupervisor supervisor;
  const std::string tags = supervisor.get("/api/tags").body;
  EXPECT_THAT(tags, HasSubstr(R"("name":"a:latest","model":"a:latest")"));
  EXPECT_THAT(tags, HasSubstr(R"("name":"first:latest","model":"first:latest")"));
  EXPECT_THAT(tags, Not(HasSubstr(R"("family")"))) << "not known before the first load";
  EXPECT_THAT(tags, HasSubstr(R"("modified_at":"1970-01-01T)")) << "the start: there are no files";
  const auto digest_after = [&](const std::string& name) {
    return TestSupervisor::json_of(tags.substr(tags.find("\"" + name + ":latest\"")), "digest");
  };
  EXPECT_EQ(digest_after("a"), digest_after("first"));
  EXPECT_NE(digest_after("a"), digest_after("b"));
}

TEST(Supervisor, ReportsTheTimeThatARequestWaitedForItsModel) {
  const TestSupervisor supervisor({.models = {{.name = "a", .arguments = {"--start-ms=300"}}}});
  const auto load_ms = [&](const std::string& more) {
    const std::string body = supervisor.post("/api/chat", R"({"model":"a"})", more).body;
    return std::atoll(TestSupervisor::json_of(body, "load_ns").c_str()) / 1'000'000;
  };
  EXPECT_GE(load_ms(""), 300);
  EXPECT_LT(load_ms("x-quire-load-ns: 900000000000\r\n"), 300) << "a client cannot set it";
}

TEST(Supervisor, HasADefaultModel) {
  const TestSupervisor marked({.models = {{.name = "a"}, {.name = "b", .is_default = true}}});
  EXPECT_THAT(marked.post("/v1/completions", "{}").body, HasSubstr(R"("by":"b")"));
  const TestSupervisor single({.models = {{.name = "only", .loads_at_start = true}}});
  EXPECT_TRUE(single.becomes("only", "loaded"));
  EXPECT_THAT(single.post("/v1/completions", R"({"model":null})").body,
              HasSubstr(R"("by":"only")"));
}

TEST(Supervisor, PassesHeadersAndBodiesOn) {
  const TestSupervisor supervisor;
  const HttpAnswer answer =
      supervisor.post("/v1/completions", R"({"model":"a"})",
                      "x-request-id: my-id\r\nx-custom: kept\r\nauthorization: Bearer z\r\n");
  EXPECT_THAT(answer.body,
              HasSubstr(R"("id":"my-id","authorization":"","x_api_key":"","custom":"kept")"));
  EXPECT_EQ(answer.header("x-request-id"), "my-id");
  EXPECT_EQ(answer.header("x-fake"), "yes");
  EXPECT_EQ(answer.header("content-type"), "application/json");
  const std::string own = supervisor.complete("a").header("x-request-id");
  EXPECT_EQ(own.size(), 24u);
  // Large bodies in both directions, and a reader that begins late.
  const std::string large =
      R"({"model":"a","pad":6000000,"x":")" + std::string(5'000'000, 'x') + "\"}";
  HttpClient slow = HttpClient::tcp(supervisor.port(), "127.0.0.1", 4096);
  slow.send(post_text("/v1/completions", large));
  std::this_thread::sleep_for(milliseconds(300));
  const HttpAnswer padded = slow.receive();
  EXPECT_TRUE(padded.is_whole);
  EXPECT_GT(padded.body.size(), 6'000'000u);
  EXPECT_THAT(padded.body, HasSubstr(fmt::format("\"body_bytes\":{}", large.size())));
  HttpClient head = supervisor.connect();
  head.send("HEAD /tokenizer_info?model=a HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(head.receive(true).status, 200);
}

TEST(Supervisor, ConcurrentRequestsStartAModelOnce) {
  const TestSupervisor supervisor({.models = {{.name = "a", .arguments = {"--start-ms=300"}}}});
  std::vector<HttpClient> clients;
  for (int i = 0; i < 30; ++i) clients.push_back(supervisor.begin("a"));
  EXPECT_TRUE(supervisor.becomes("a", "loading"));
  EXPECT_THAT(supervisor.get("/health?model=a").body, HasSubstr("is loading, expected loaded"));
  for (HttpClient& client : clients) EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(supervisor.metric("quire_supervisor_starts_total", "a"), 1);
  EXPECT_EQ(supervisor.metric("quire_supervisor_requests_total", "a"), 30);
  EXPECT_EQ(supervisor.metric("fake_total", "a"), 30);
  EXPECT_THAT(supervisor.get("/health?model=a").body, HasSubstr("ok of a"));
  EXPECT_THAT(supervisor.get("/v1/models").body, HasSubstr(R"("max_model_len":77)"));
}

TEST(Supervisor, StreamsAtOnce) {
  const TestSupervisor supervisor;
  HttpClient client = supervisor.begin("a", R"(,"stream":true,"events":0)");
  const auto head = client.receive_head();
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->header("content-type"), "text/event-stream");
  EXPECT_EQ(head->header("x-fake"), "yes");
  EXPECT_THAT(client.receive_until("\n\n"), HasSubstr("first")) << "the stream has not ended";
  const HttpAnswer whole = supervisor.complete("a", R"(,"stream":true,"events":3)");
  EXPECT_TRUE(whole.is_whole);
  EXPECT_THAT(whole.body, HasSubstr(R"({"text":"2"})"));
}

TEST(Supervisor, AClientThatLeavesEndsItsRequest) {
  const TestSupervisor supervisor;
  HttpClient client = supervisor.begin("a", R"(,"stream":true)");
  ASSERT_TRUE(client.receive_head().has_value());
  EXPECT_EQ(supervisor.metric("quire_supervisor_requests_running", "a"), 1);
  client.close();
  EXPECT_TRUE(
      eventually([&] { return supervisor.get("/v1/loads?model=a").body == "{\"left\":1}"; }));
  EXPECT_TRUE(
      eventually([&] { return supervisor.metric("quire_supervisor_requests_running", "a") == 0; }));
}

TEST(Supervisor, AProcessThatHangsDelaysProbesByTwoSeconds) {
  const TestSupervisor supervisor;
  EXPECT_EQ(supervisor.complete("a", R"(,"hang":true)").status, 200);
  EXPECT_EQ(supervisor.complete("b").status, 200);
  const HttpAnswer health = supervisor.get("/health?model=a");
  EXPECT_EQ(health.status, 503);
  EXPECT_THAT(health.body, HasSubstr("does not respond"));
  EXPECT_EQ(supervisor.get("/health").status, 200);
  EXPECT_EQ(supervisor.metric("fake_total", "b"), 1);
  EXPECT_EQ(supervisor.metric("fake_total", "a"), -1);
}

// --- Memory ---

TEST(Supervisor, UnloadsTheLeastRecentlyUsedModel) {
  const TestSupervisor supervisor({.max_loaded = 2});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.complete("b").status, 200);
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.complete("c").status, 200);
  EXPECT_EQ(supervisor.state("a"), "loaded");
  EXPECT_EQ(supervisor.state("b"), "unloaded");
  EXPECT_EQ(supervisor.metric("quire_supervisor_unloads_total", "b"), 1);
}

TEST(Supervisor, PlansTheMemoryBeforeAStart) {
  const std::vector<std::string> large = {"--plan-bytes=600"};
  const TestSupervisor supervisor({.models = {{.name = "a", .arguments = large},
                                              {.name = "b", .arguments = large},
                                              {.name = "c", .arguments = {"--plan-bytes=300"}}},
                                   .free_bytes = 1000});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.complete("c").status, 200);
  EXPECT_EQ(supervisor.state("a"), "loaded") << "both fit";
  EXPECT_EQ(supervisor.complete("b").status, 200);
  EXPECT_EQ(supervisor.state("a"), "unloaded");
  EXPECT_EQ(supervisor.state("c"), "loaded") << "its memory was not needed";
  EXPECT_EQ(supervisor.metric("quire_supervisor_planned_bytes", "b"), 600);
}

TEST(Supervisor, ABusyModelIsNotUnloadedAndDoesNotStarveOthers) {
  const TestSupervisor supervisor({.max_loaded = 1});
  HttpClient busy = supervisor.begin("a", R"(,"stream":true,"events":30)");
  ASSERT_TRUE(busy.receive_head().has_value());
  HttpClient waits = supervisor.begin("b");
  EXPECT_TRUE(supervisor.becomes("a", "unloading")) << "held for b";
  // A later request for the busy model waits until the other model was served.
  HttpClient later = supervisor.begin("a");
  EXPECT_TRUE(
      eventually([&] { return supervisor.metric("quire_supervisor_requests_waiting", "a") == 1; }));
  EXPECT_THAT(busy.receive_until("\"29\""), HasSubstr("\"29\"")) << "the stream was cut";
  EXPECT_EQ(waits.receive().status, 200);
  EXPECT_EQ(later.receive().status, 200);
  EXPECT_EQ(supervisor.metric("quire_supervisor_starts_total", "a"), 2);
}

TEST(Supervisor, FiftyConcurrentRequestsForThreeModelsThatSwap) {
  const TestSupervisor supervisor({.max_loaded = 1});
  std::vector<HttpClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(
        supervisor.begin(std::string(1, static_cast<char>('a' + i % 3)),
                         i % 2 == 0 ? R"(,"sleep_ms":20)" : R"(,"stream":true,"events":2)"));
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    const HttpAnswer answer = clients[i].receive();
    EXPECT_EQ(answer.status, 200) << i << answer.body;
    EXPECT_TRUE(answer.is_whole) << i;
  }
}

TEST(Supervisor, AShortPlanUnloadsNothingIfTheMachineIsTooSmall) {
  std::atomic<int64_t> free_bytes = 1000;
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--plan-bytes=600"}},
                  {.name = "b", .arguments = {"--plan-least-free=601"}}},
       .free_host_bytes = [&] { return free_bytes.load(); }});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  free_bytes = 300;
  EXPECT_EQ(supervisor.complete("b").status, 503);
  EXPECT_THAT(supervisor.get("/v1/models/b").body, HasSubstr("[memory] the machine is too small"));
  EXPECT_EQ(supervisor.state("a"), "loaded") << "b does not fit even without a";
}

TEST(Supervisor, AShortPlanUnloadsAnotherModelAndIsMadeAgain) {
  std::atomic<int64_t> free_bytes = 1000;
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--plan-bytes=600"}},
                  {.name = "b", .arguments = {"--plan-least-free=500"}}},
       .free_host_bytes = [&] { return free_bytes.load(); }});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  free_bytes = 300;
  HttpClient waits = supervisor.begin("b");
  EXPECT_TRUE(supervisor.becomes("a", "unloaded"));
  EXPECT_EQ(waits.receive().status, 503) << "the memory did not become free";
}

TEST(Supervisor, ALoadMakesAShortPlanAgain) {
  quire::testing::ScratchDirectory scratch;
  const std::string mark = scratch.write("short", std::string_view(""));
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--plan-short-while=" + mark}}}});
  EXPECT_EQ(supervisor.complete("a").status, 503);
  std::filesystem::remove(mark);
  EXPECT_EQ(supervisor.post("/models/load", R"({"model":"a"})").body, R"({"success":true})");
  EXPECT_TRUE(supervisor.becomes("a", "loaded"));
}

TEST(Supervisor, UnloadsNothingForAModelThatDoesNotStart) {
  quire::testing::ScratchDirectory scratch;
  const std::string mark = (scratch.path() / "deleted").string();
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--plan-bytes=600"}},
                  {.name = "b", .arguments = {"--plan-bytes=600", "--plan-fails-while=" + mark}},
                  {.name = "large", .arguments = {"--plan-bytes=1200"}}},
       .free_bytes = 1000});
  EXPECT_EQ(supervisor.complete("b").status, 200);
  EXPECT_EQ(supervisor.complete("a").status, 200);
  scratch.write("deleted", std::string_view(""));
  EXPECT_EQ(supervisor.complete("b").status, 503);
  EXPECT_THAT(supervisor.get("/v1/models/b").body, HasSubstr("[fake] no file"));
  EXPECT_EQ(supervisor.complete("large").status, 503);
  EXPECT_THAT(supervisor.get("/v1/models/large").body, HasSubstr("exceeds the memory"));
  EXPECT_EQ(supervisor.state("a"), "loaded");
  EXPECT_EQ(supervisor.metric("quire_supervisor_unloads_total", "a"), 0);
}

TEST(Supervisor, StartsAProcessWhileAnotherEnds) {
  const quire::testing::ScratchDirectory scratch;
  const std::string waits = (scratch.path() / "waits").string();
  const std::string ended = (scratch.path() / "ended").string();
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--ends-after=" + waits, "--ended=" + ended}},
                  {.name = "b", .arguments = {"--waits=" + waits, "--needs=" + ended}}},
       .max_loaded = 1});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.complete("b").status, 200);
  EXPECT_EQ(supervisor.state("a"), "unloaded");
}

// The client leaves while the process waits for the memory of another model.
TEST(Supervisor, EndsAProcessThatWaitsForNoRequest) {
  const quire::testing::ScratchDirectory scratch;
  const std::string waits = (scratch.path() / "waits").string();
  const std::string mark = (scratch.path() / "mark").string();
  const TestSupervisor supervisor({.models = {{.name = "a", .arguments = {"--ends-after=" + mark}},
                                              {.name = "b", .arguments = {"--waits=" + waits}}},
                                   .max_loaded = 1});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  {
    const HttpClient leaves = supervisor.begin("b");
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(waits); }));
  }
  EXPECT_TRUE(supervisor.becomes("b", "unloaded"));
  EXPECT_EQ(supervisor.state("a"), "unloading");
  scratch.write("mark", std::string_view(""));
  EXPECT_EQ(supervisor.complete("b").status, 200);
}

// The processes that this program has started and not yet waited for.
int num_children() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(entry.path() / "children");
    for (int pid; children >> pid;) ++count;
  }
  return count;
}

// Another program takes the memory while the process waits for it.
TEST(Supervisor, EndsAProcessThatWaitsForTooMuchMemory) {
  const quire::testing::ScratchDirectory scratch;
  const std::string waits = (scratch.path() / "waits").string();
  const std::string mark = (scratch.path() / "mark").string();
  std::atomic<int64_t> free_bytes = 1000;
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--plan-bytes=600", "--ends-after=" + mark}},
                  {.name = "b", .arguments = {"--plan-bytes=600", "--waits=" + waits}}},
       .free_host_bytes = [&] { return free_bytes.load(); }});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  free_bytes = 400;
  const HttpClient refused = supervisor.begin("b");
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(waits); }));
  free_bytes = -200;
  EXPECT_TRUE(supervisor.becomes("b", "failed"));
  EXPECT_TRUE(eventually([] { return num_children() == 1; }));
  EXPECT_EQ(supervisor.state("a"), "unloading") << "the child is that of a";
  free_bytes = 1000;
  scratch.write("mark", std::string_view(""));
  EXPECT_TRUE(eventually([&] { return supervisor.complete("b").status == 200; }));
}

// Two models that do not fit together, with files and a log of their plans.
struct PlannedModels {
  PlannedModels() {
    files.write("x.gguf", std::string_view("weights"));
    std::filesystem::create_directory(files.path() / "folder");
    files.write("folder/y", std::string_view("weights"));
  }
  std::vector<ModelEntry> entries() const {
    const std::string log = "--plan-log=" + (files.path() / "plans").string();
    const std::string mark = "--plan-fails-while=" + (files.path() / "fails").string();
    return {{.name = "a",
             .arguments = {"--plan-bytes=600", "--plan-states-least=500", log, mark},
             .files = files.path() / "folder"},
            {.name = "b", .arguments = {"--plan-bytes=600"}, .files = files.path() / "x.gguf"}};
  }
  // The plans of the model a.
  int num_plans() const {
    std::ifstream log(files.path() / "plans.log");
    int count = 0;
    for (std::string line; std::getline(log, line);) ++count;
    return count;
  }
  // Loads b and then a.
  static void swap(const TestSupervisor& supervisor) {
    EXPECT_EQ(supervisor.complete("b").status, 200);
    EXPECT_EQ(supervisor.complete("a").status, 200);
  }

  quire::testing::ScratchDirectory files;
};

TEST(KeptPlan, HoldsAsLongAsTheFilesAreTheSame) {
  const PlannedModels models;
  const TestSupervisor supervisor({.models = models.entries(), .free_bytes = 1000});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  PlannedModels::swap(supervisor);
  PlannedModels::swap(supervisor);
  EXPECT_EQ(supervisor.metric("quire_supervisor_starts_total", "a"), 3);
  EXPECT_EQ(models.num_plans(), 1);
  models.files.write("folder/y", std::string_view("other weights"));
  PlannedModels::swap(supervisor);
  PlannedModels::swap(supervisor);
  EXPECT_EQ(models.num_plans(), 2);
}

TEST(KeptPlan, EndsWithAFailedStart) {
  const PlannedModels models;
  const TestSupervisor supervisor({.models = models.entries(), .free_bytes = 1000});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.complete("b").status, 200);
  models.files.write("folder/y", std::string_view("other weights"));
  models.files.write("fails", std::string_view(""));
  EXPECT_EQ(supervisor.complete("a").status, 503);
  EXPECT_EQ(models.num_plans(), 2);
  EXPECT_EQ(supervisor.state("b"), "loaded");
  std::filesystem::remove(models.files.path() / "fails");
  supervisor.post("/models/load", R"({"model":"a"})");
  EXPECT_TRUE(supervisor.becomes("a", "loaded"));
  EXPECT_EQ(models.num_plans(), 3) << "a plan that failed holds for no later start";
}

TEST(KeptPlan, IsMadeAgainIfTheFreeMemoryIsLess) {
  const PlannedModels models;
  std::atomic<int64_t> free_bytes = 1000;
  const TestSupervisor supervisor(
      {.models = models.entries(), .free_host_bytes = [&] { return free_bytes.load(); }});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.complete("b").status, 200);
  free_bytes = 300;  // b has taken 600, and another program 100
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(models.num_plans(), 1) << "300 and 600 are enough";
  supervisor.post("/models/unload", R"({"model":"a"})");
  EXPECT_TRUE(supervisor.becomes("a", "unloaded"));
  free_bytes = 1000;
  EXPECT_EQ(supervisor.complete("b").status, 200);
  free_bytes = -200;  // b has taken 600, and another program 600
  EXPECT_EQ(supervisor.complete("a").status, 503);
  EXPECT_EQ(models.num_plans(), 2);
  EXPECT_EQ(supervisor.state("b"), "loaded");
}

// --- Faults ---

TEST(Supervisor, ACrashEndsTheRequestsOfOneModel) {
  const TestSupervisor supervisor;
  HttpClient stream = supervisor.begin("a", R"(,"stream":true)");
  ASSERT_TRUE(stream.receive_head().has_value());
  EXPECT_THAT(stream.receive_until("first\"}\n\n"), HasSubstr("first"));
  HttpClient whole = supervisor.begin("a", R"(,"sleep_ms":60000)");
  HttpClient other = supervisor.begin("b", R"(,"stream":true,"events":20)");
  ASSERT_TRUE(other.receive_head().has_value());
  EXPECT_TRUE(
      eventually([&] { return supervisor.metric("quire_supervisor_requests_running", "a") == 2; }));
  ::testing::internal::CaptureStderr();
  const HttpAnswer crash = supervisor.complete("a", R"(,"crash":true)");
  EXPECT_TRUE(supervisor.becomes("a", "failed"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the process of a ended with signal 9 (Killed); the next"));
  EXPECT_EQ(crash.status, 502);
  EXPECT_THAT(crash.body, HasSubstr("model_process_ended"));
  EXPECT_THAT(stream.receive_until("[DONE]\n\n"),
              HasSubstr("data: {\"error\":{\"message\":\"[supervisor] the model's process ended"));
  EXPECT_EQ(whole.receive().status, 502);
  EXPECT_THAT(other.receive_until("\"19\""), HasSubstr("\"19\""));
  EXPECT_EQ(supervisor.state("a"), "failed");
  EXPECT_THAT(supervisor.get("/v1/models/a").body, HasSubstr("signal 9 (Killed)"));
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.state("a"), "loaded");
  EXPECT_EQ(supervisor.metric("quire_supervisor_crashes_total", "a"), 1);
  EXPECT_EQ(supervisor.metric("quire_supervisor_starts_total", "b"), 1);
}

TEST(Supervisor, AStreamThatACrashCutsEndsInTheFormOfItsApi) {
  const std::vector<std::pair<std::string, std::string>> forms = {
      {"/v1/messages", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""},
      {"/v1/responses", "event: error\ndata: {\"type\":\"error\",\"code\":\"model_process_ended\""},
      {"/v1/chat/completions", "\ndata: {\"error\":{\"message\""}};
  const TestSupervisor supervisor;
  for (const auto& [path, form] : forms) {
    HttpClient stream = supervisor.connect();
    stream.send(post_text(path, R"({"model":"a","stream":true})"));
    ASSERT_TRUE(stream.receive_head().has_value()) << path;
    EXPECT_EQ(supervisor.complete("a", R"(,"crash":true)").status, 502);
    const std::string events =
        stream.receive_until("}\n\n", 2000) + stream.receive_until("}\n\n", 2000);
    EXPECT_THAT(events, HasSubstr(form)) << path;
    EXPECT_TRUE(supervisor.becomes("a", "failed")) << path;
  }
}

TEST(Supervisor, AFailedStartHidesTheReasonAndBacksOff) {
  quire::testing::ScratchDirectory scratch;
  const std::string mark = scratch.write("fails", std::string_view(""));
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--fails-while=" + mark}}}});
  const HttpAnswer first = supervisor.complete("a");
  EXPECT_EQ(first.status, 503);
  EXPECT_THAT(first.body,
              HasSubstr("the model 'a' does not start; the server's log has the reason"));
  EXPECT_THAT(first.body, Not(HasSubstr("not yet")));
  EXPECT_THAT(supervisor.get("/v1/models/a").body, HasSubstr(R"("error":"[fake] not yet")"));
  EXPECT_EQ(first.header("retry-after"), "1");
  EXPECT_EQ(supervisor.complete("a").status, 503);
  EXPECT_EQ(supervisor.metric("quire_supervisor_failed_starts_total", "a"), 1)
      << "the second did not start it";
  EXPECT_EQ(supervisor.state("a"), "failed");
  EXPECT_TRUE(eventually([&] { return supervisor.complete("a").header("retry-after") == "2"; }))
      << "the pause grows";
  std::filesystem::remove(mark);
  supervisor.post("/models/load", R"({"model":"a"})");
  EXPECT_TRUE(supervisor.becomes("a", "loaded"));
}

TEST(Supervisor, AWaitingRequestEndsAtItsLimitOrWithItsClient) {
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--start-ms=100000"}}, {.name = "b"}},
       .max_loaded = 1,
       .start_timeout = milliseconds(1500)});
  HttpClient leaves = supervisor.begin("b", R"(,"stream":true)");
  ASSERT_TRUE(leaves.receive_head().has_value());
  const HttpAnswer no_room = supervisor.complete("a");
  EXPECT_EQ(no_room.status, 503);
  EXPECT_THAT(no_room.body, HasSubstr("the model 'a' got no room within 1 s, because other models "
                                      "were busy: 'b'"));
  HttpClient gone = supervisor.begin("a");
  EXPECT_TRUE(
      eventually([&] { return supervisor.metric("quire_supervisor_requests_waiting", "a") == 1; }));
  gone.close();
  EXPECT_TRUE(
      eventually([&] { return supervisor.metric("quire_supervisor_requests_waiting", "a") == 0; }));
  leaves.close();
  EXPECT_EQ(supervisor.complete("b").status, 200) << "no request wants the other model any more";
  EXPECT_EQ(supervisor.metric("quire_supervisor_starts_total", "a"), 0);
  const HttpAnswer late = supervisor.complete("a");
  EXPECT_EQ(late.status, 503);
  EXPECT_THAT(late.body, HasSubstr("did not start within 1 s"));
  EXPECT_EQ(late.header("retry-after"), "5");
  EXPECT_EQ(supervisor.state("a"), "loading");
  supervisor.post("/models/unload", R"({"model":"a"})");
  EXPECT_TRUE(supervisor.becomes("a", "unloaded")) << "an unload ends a start";
}

// --- Unloading ---

TEST(Supervisor, UnloadsWhenAskedOnceIdle) {
  const TestSupervisor supervisor;
  HttpClient busy = supervisor.begin("a", R"(,"stream":true,"events":20)");
  ASSERT_TRUE(busy.receive_head().has_value());
  EXPECT_EQ(supervisor.post("/models/unload", R"({"model":"a"})").status, 200);
  EXPECT_EQ(supervisor.state("a"), "unloading");
  EXPECT_THAT(busy.receive_until("\"19\""), HasSubstr("\"19\""));
  EXPECT_TRUE(supervisor.becomes("a", "unloaded"));
  EXPECT_EQ(supervisor.post("/models/unload", R"({"model":"zz"})").status, 404);
  const HttpAnswer unnamed = supervisor.post("/models/load", "{}");
  EXPECT_EQ(unnamed.status, 400);
  EXPECT_THAT(
      unnamed.body,
      HasSubstr("names no model, and there is no default; expected `model` to be one of 'a', "
                "'b', 'c'"));
  const HttpAnswer wrong = supervisor.get("/models/load");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST");
  EXPECT_EQ(supervisor.post("/models", "{}").header("allow"), "GET, HEAD");
}

TEST(Supervisor, SleepsWhenIdle) {
  const TestSupervisor supervisor({.sleep_idle = milliseconds(200)});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_TRUE(supervisor.becomes("a", "unloaded"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("unloading a, which had no"));
  EXPECT_EQ(supervisor.complete("a").status, 200);
}

TEST(Supervisor, HonoursKeepAlive) {
  const TestSupervisor supervisor({.sleep_idle = milliseconds(150)});
  const auto chat = [&](const std::string& model, const std::string& keep_alive) {
    return supervisor.post(
        "/api/chat",
        fmt::format(R"({{"model":"{}","messages":[{{}}],"keep_alive":{}}})", model, keep_alive));
  };
  EXPECT_EQ(chat("a", "-1").status, 200);
  EXPECT_EQ(chat("b", "\"1h\"").status, 200);
  std::this_thread::sleep_for(milliseconds(400));
  const std::string ps = supervisor.get("/api/ps").body;
  EXPECT_THAT(ps, HasSubstr(R"("name":"a:latest")"));
  EXPECT_THAT(ps, HasSubstr("2300-01-01"));
  EXPECT_THAT(ps, HasSubstr(R"("name":"b:latest")"));
  EXPECT_THAT(ps, HasSubstr(R"("digest":"d1","details":{"family":"fake"})"));
  EXPECT_THAT(supervisor.get("/api/tags").body, HasSubstr(R"("name":"c:latest")"));
  EXPECT_EQ(chat("b", "0").status, 200);
  EXPECT_TRUE(supervisor.becomes("b", "unloaded"));
  const HttpAnswer unload = supervisor.post("/api/generate", R"({"model":"first","keep_alive":0})");
  EXPECT_THAT(unload.body, HasSubstr(R"("model":"first")"));
  EXPECT_THAT(unload.body, HasSubstr(R"("done_reason":"unload")"));
  EXPECT_TRUE(supervisor.becomes("a", "unloaded"));
  EXPECT_EQ(supervisor.metric("quire_supervisor_starts_total", "a"), 1)
      << "an unload starts nothing";
}

TEST(Supervisor, KillsAProcessThatHangs) {
  const TestSupervisor supervisor({.probe_period = milliseconds(100)});
  EXPECT_EQ(supervisor.complete("a").status, 200);
  EXPECT_EQ(supervisor.complete("b", R"(,"hang":true)").status, 200);
  EXPECT_TRUE(
      eventually([&] { return supervisor.metric("quire_supervisor_crashes_total", "b") == 1; }));
  EXPECT_EQ(supervisor.complete("b").status, 200) << "the next request starts it again";
  EXPECT_EQ(supervisor.metric("quire_supervisor_crashes_total", "a"), 0);
}

TEST(Supervisor, APlanThatHangsDoesNotStopOtherStarts) {
  const TestSupervisor supervisor(
      {.models = {{.name = "a", .arguments = {"--plan-hangs"}}, {.name = "b"}},
       .start_timeout = milliseconds(1500)});
  supervisor.post("/models/load", R"({"model":"a"})");
  EXPECT_TRUE(supervisor.becomes("a", "failed"));
  EXPECT_THAT(supervisor.get("/v1/models/a").body, HasSubstr("its plan took more than 1 s"));
  EXPECT_EQ(supervisor.complete("b").status, 200);
}

TEST(Supervisor, IsReadyAfterTheFirstLoads) {
  const TestSupervisor supervisor(
      {.models = {{.name = "slow", .loads_at_start = true, .arguments = {"--start-ms=500"}},
                  {.name = "broken", .loads_at_start = true, .arguments = {"--fails=no"}},
                  {.name = "other"}}});
  const HttpAnswer early = supervisor.get("/ready");
  EXPECT_EQ(early.status, 503);
  EXPECT_THAT(early.body, HasSubstr("the server loads slow"));
  EXPECT_TRUE(eventually([&] { return supervisor.get("/ready").status == 200; }));
  EXPECT_EQ(supervisor.state("slow"), "loaded");
  EXPECT_EQ(supervisor.state("broken"), "failed");
}

TEST(Supervisor, CountsItsOwnResponses) {
  const TestSupervisor supervisor;
  EXPECT_EQ(supervisor.complete("unknown").status, 404);
  EXPECT_EQ(supervisor.complete("a").status, 200);
  const std::string text = supervisor.get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("\nquire_http_responses_total{code=\"404\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nquire_http_responses_total{code=\"200\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_open_fds "));
  EXPECT_THAT(text, Not(HasSubstr("vllm:"))) << "the supervisor has no engine";
}

// --- Access, and the end ---

TEST(Supervisor, ChecksKeysAndGivesTheProcessItsOwn) {
  const TestSupervisor supervisor({.keys = {"one", "two"}});
  EXPECT_EQ(supervisor.complete("a").status, 401);
  EXPECT_EQ(supervisor.get("/v1/models").status, 401);
  EXPECT_EQ(supervisor.post("/models/load", R"({"model":"a"})").status, 401);
  EXPECT_EQ(supervisor.get("/metrics").status, 401);
  EXPECT_EQ(supervisor.get("/health").status, 200);
  const std::string body = R"({"model":"a"})";
  const auto with = [&](const std::string& header) {
    return supervisor.post("/v1/completions", body, header + "\r\n").body;
  };
  EXPECT_THAT(with("authorization: Bearer two"),
              HasSubstr("\"authorization\":\"Bearer process-key-1\""));
  EXPECT_THAT(with("x-api-key: one"), HasSubstr("process-key-0\",\"x_api_key\":\"\""));
  EXPECT_EQ(
      supervisor.post("/v1/completions", body, "authorization: Bearer process-key-0\r\n").status,
      401);
}

TEST(Supervisor, RefusesFormsOfOtherSitesBeforeAModelStarts) {
  const TestSupervisor supervisor;
  HttpClient client = supervisor.connect();
  client.send(
      "POST /models/load HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: "
      "13\r\n\r\n"
      "{\"model\":\"a\"}");
  EXPECT_EQ(client.receive().status, 415);
  HttpClient page = supervisor.connect();
  page.send(
      "POST /api/chat HTTP/1.1\r\nHost: a\r\nOrigin: null\r\nContent-Length: 13\r\n\r\n"
      "{\"model\":\"a\"}");
  EXPECT_EQ(page.receive().status, 415);
  EXPECT_EQ(supervisor.state("a"), "unloaded");
  HttpClient untyped = supervisor.connect();
  untyped.send("POST /api/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\n\r\n{\"model\":\"a\"}");
  EXPECT_EQ(untyped.receive().status, 200);
}

TEST(Supervisor, DrainsCancelsAndLeavesNoProcess) {
  auto supervisor = std::make_unique<TestSupervisor>(Options{.max_loaded = 1});
  HttpClient running = supervisor->begin("a", R"(,"stream":true)");
  ASSERT_TRUE(running.receive_head().has_value());
  HttpClient waiting = supervisor->begin("b");
  EXPECT_TRUE(eventually(
      [&] { return supervisor->metric("quire_supervisor_requests_waiting", "b") == 1; }));
  supervisor->supervisor().close();
  EXPECT_EQ(waiting.receive().status, 503);
  EXPECT_EQ(supervisor->complete("a").status, 503);
  EXPECT_EQ(supervisor->get("/ready").status, 503);
  EXPECT_EQ(supervisor->get("/health").status, 200);
  EXPECT_EQ(supervisor->supervisor().num_running(), 1);
  supervisor->supervisor().cancel();
  EXPECT_THAT(running.receive_until("[DONE]\n\n"), HasSubstr("shutting down"));
  EXPECT_TRUE(eventually([&] { return supervisor->supervisor().num_running() == 0; }));
  supervisor.reset();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
}

}  // namespace
}  // namespace quire::supervisor
