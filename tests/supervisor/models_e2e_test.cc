// The real server with several real models.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "server/e2e/served.h"
#include "support/eventually.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kQuestion = "Question: What is 12 * 8?\\nAnswer:";

class SeveralModels : public ::testing::Test {
 protected:
  // A server that is killed leaves its folder of sockets, so all servers make theirs in this one.
  static void SetUpTestSuite() {
    static const ScratchDirectory servers;
    ::unsetenv("XDG_RUNTIME_DIR");
    ::setenv("TMPDIR", servers.path().c_str(), 1);
  }

  std::string write_models(const std::string& more = "") const {
    const auto link = scratch_.path() / "latent";
    if (!std::filesystem::exists(link)) {
      std::filesystem::create_directory_symlink(source_path("models/quire-abacus-deepseek"), link);
    }
    return scratch_.write(
        "models.ini",
        fmt::format(
            "[*]\nkv-cache-memory = 64M\n[abacus]\nmodel = embedded\nalias = math\n{}"
            "[twin]\nmodel = embedded\nmax-model-len = 2048\n[latent]\nmodel = \"./latent\"\n",
            more));
  }
  static JsonCall call(const std::string& model, int max_tokens, const std::string& more = "") {
    return {"/v1/completions",
            fmt::format(R"({{"model":"{}","prompt":"{}","max_tokens":{},"temperature":0)"
                        R"(,"ignore_eos":true{}}})",
                        model, kQuestion, max_tokens, more)};
  }

  ScratchDirectory scratch_;
};

std::vector<int> children_of(int pid) {
  std::vector<int> children;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::ifstream file(task.path() / "children");
    for (int child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

std::string essence(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  return string_at(answer.body, "/choices/0/text");
}

TEST_F(SeveralModels, AnswerAsAloneWhileTheySwap) {
  Served server({"--models", write_models(), "--max-loaded-models", "2"});
  ASSERT_TRUE(server.is_up());
  std::vector<std::string> alone;
  const std::vector<std::string> names = {"abacus", "twin", "latent", "math"};
  for (const std::string& name : names) alone.push_back(essence(server.post(call(name, 16))));
  EXPECT_EQ(alone[0], alone[1]);
  EXPECT_EQ(alone[0], alone[3]);
  EXPECT_NE(alone[0], alone[2]);
  std::vector<JsonCall> calls;
  for (size_t i = 0; i < 50; ++i) calls.push_back(call(names[i % names.size()], 16));
  const std::vector<HttpAnswer> answers = server.post_all(calls);
  for (size_t i = 0; i < answers.size(); ++i)
    EXPECT_EQ(essence(answers[i]), alone[i % names.size()]);
  const std::string models = server.get("/models").body;
  EXPECT_THAT(models, HasSubstr(R"("value":"unloaded")"));
  EXPECT_THAT(models, HasSubstr(R"("max_model_len":2048)"));
  const std::string metrics = server.get("/metrics").body;
  EXPECT_NE(metrics.find("\nvllm:prompt_tokens_total{model_name="), std::string::npos);
  EXPECT_NE(metrics.find("\nprocess_cpu_seconds_total{model_name="), std::string::npos);
  EXPECT_EQ(server.stop(), 0);
}

TEST_F(SeveralModels, EveryApiReachesItsModel) {
  Served server({"--models", write_models("default = true\n"), "--max-stored-responses", "9"});
  ASSERT_TRUE(server.is_up());
  const std::string chat =
      R"({"model":"twin","max_tokens":8,"messages":[{"role":"user","content":"What is 2 + 2?"}]})";
  EXPECT_EQ(server.post({"/v1/chat/completions", chat}).status, 200);
  EXPECT_EQ(server.post({"/v1/messages", chat}).status, 200);
  const HttpAnswer stored =
      server.post({"/v1/responses", R"({"model":"twin","input":"2 + 2","max_output_tokens":8})"});
  EXPECT_EQ(stored.status, 200) << stored.body;
  // The default model does not have the response.
  const std::string id = string_at(stored.body, "/id");
  EXPECT_EQ(server.get("/v1/responses/" + id).status, 200);
  EXPECT_EQ(server.get("/v1/responses/resp_unknown").status, 404);
  EXPECT_EQ(server.post({"/tokenize", R"({"model":"twin","prompt":"2 + 2"})"}).status, 200);
  EXPECT_THAT(server.post({"/api/chat", chat}).body, HasSubstr(R"("model":"twin")"));
  EXPECT_EQ(server.post({"/api/generate", R"({"prompt":"2 + 2","stream":false})"}).status, 200);
  EXPECT_THAT(server.post({"/v1/chat/completions", R"({"model":"none","messages":[]})"}).body,
              HasSubstr("expected one of 'abacus', 'twin', 'latent'"));
  EXPECT_THAT(server.get("/api/ps").body, HasSubstr(R"("family":"llama")"));
  EXPECT_THAT(server.get("/").body, HasSubstr("<html"));
  EXPECT_EQ(server.get("/health?model=twin").status, 200);
  EXPECT_EQ(server.get("/health?model=latent").status, 503);
  EXPECT_EQ(server.stop(), 0);
}

TEST_F(SeveralModels, AKilledProcessEndsOnlyItsOwnRequests) {
  Served server({"--models", write_models()});
  ASSERT_TRUE(server.is_up());
  HttpClient other = server.connect();
  const auto begin = [&](HttpClient& client, const std::string& model) {
    const JsonCall stream = call(model, 1500, R"(,"stream":true)");
    client.send(
        fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    stream.path, stream.body.size(), stream.body));
    ASSERT_TRUE(client.receive_head().has_value());
    EXPECT_THAT(client.receive_until("\n\n"), HasSubstr("data: "));
  };
  HttpClient victim = server.connect();
  begin(victim, "latent");
  const std::vector<int> first = children_of(server.pid());
  ASSERT_EQ(first.size(), 1u);
  begin(other, "abacus");
  ::kill(first.front(), SIGKILL);
  EXPECT_THAT(victim.receive_until("[DONE]\n\n"), HasSubstr("the model's process ended"));
  EXPECT_THAT(other.receive_until("[DONE]\n\n", 60'000), ::testing::Not(HasSubstr("error")));
  EXPECT_EQ(server.post(call("latent", 4)).status, 200) << "started again";
  // The server itself is killed: no process is left.
  const std::vector<int> all = children_of(server.pid());
  EXPECT_EQ(all.size(), 2u);
  ::kill(server.pid(), SIGKILL);
  for (const int child : all) {
    EXPECT_TRUE(eventually([&] {
      std::ifstream stat(fmt::format("/proc/{}/stat", child));
      std::string text;
      std::getline(stat, text);
      return text.empty() || text.find(") Z ") != std::string::npos;
    })) << child;
  }
}

TEST_F(SeveralModels, AStartRemovesTheFoldersOfKilledServers) {
  const std::filesystem::path parent = std::getenv("TMPDIR");
  for (const char* const name : {"quire-serve-oldold", "quire-serve-young1", "quire-serve-results",
                                 "quire-serve-mine00", "other"}) {
    std::filesystem::create_directory(parent / name);
    std::filesystem::permissions(parent / name, std::filesystem::perms::owner_all);
    std::ofstream(parent / name / "keys") << "key";
    if (std::string_view(name).ends_with("mine00")) std::ofstream(parent / name / "notes") << "x";
    if (name != std::string_view("quire-serve-young1")) {
      std::filesystem::last_write_time(
          parent / name, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    }
  }
  Served server({"--models", write_models()});
  ASSERT_TRUE(server.is_up());
  EXPECT_FALSE(std::filesystem::exists(parent / "quire-serve-oldold"));
  EXPECT_TRUE(std::filesystem::exists(parent / "quire-serve-young1" / "keys"));
  for (const char* const mine : {"quire-serve-results", "quire-serve-mine00", "other"}) {
    EXPECT_TRUE(std::filesystem::exists(parent / mine / "keys")) << mine;
  }
  EXPECT_EQ(server.stop(), 0);
}

TEST_F(SeveralModels, AFailedStartReportsTheReason) {
  const std::string path =
      scratch_.write("bad.ini", fmt::format("[bad]\nmodel = {}\n[good]\nmodel = embedded\n",
                                            scratch_.write("config.json", std::string_view("{}"))));
  Served server({"--models", path});
  ASSERT_TRUE(server.is_up());
  const HttpAnswer bad = server.post(call("bad", 1));
  EXPECT_EQ(bad.status, 503);
  EXPECT_THAT(bad.body, HasSubstr("the model 'bad' does not start; "));
  EXPECT_EQ(server.post(call("good", 1)).status, 200);
  EXPECT_THAT(server.get("/v1/models").body, HasSubstr(R"("value":"failed")"));
  EXPECT_THAT(server.get("/v1/models").body, HasSubstr(R"("error":"[)"));
}

TEST_F(SeveralModels, MistakesEndTheStart) {
  const auto fails = [&](const std::string& text, const std::vector<std::string>& says) {
    const std::string path = scratch_.write("m.ini", text);
    const SpawnResult result = run_quire(Words{"serve", "--port", "0", "--models", path});
    EXPECT_EQ(result.exit_code, 1) << text;
    for (const std::string& line : says) EXPECT_THAT(result.err, HasSubstr(line)) << text;
  };
  fails("[a]\nmax-model-lem = 5\n",
        {"m.ini:2: section [a], key 'max-model-lem': is no flag of quire "
         "serve; did you mean max-model-len?"});
  fails("[a]\nmax-model-len = x\n", {"m.ini:2: section [a], key 'max-model-len': got 'x'"});
  fails("[a]\nport = 1\n", {"key 'port': is a flag of the supervisor"});
  fails("[a]\nenable-prefix-caching = maybe\n", {"expected true or false"});
  fails("[a]\nalias = b\n[b]\n", {"got the name 'b' twice"});
  fails("[*]\nx = 1\n[a]\n", {"section [*], key 'x'"});
  fails("[a]\nctx-size = 4096\nx = 1\n[b]\nLLAMA_ARG_CTX_SIZE = 1\nngl = 9\n",
        {"m.ini:2: section [a], key 'ctx-size': is max-model-len here\n",
         "m.ini:5: section [b], key 'LLAMA_ARG_CTX_SIZE': is max-model-len here\n",
         "m.ini:6: section [b], key 'ngl': is not needed"});
  fails("[*]\n", {"got no section"});
  fails("", {"got no section"});
  fails("[a\n", {"m.ini:1:"});
  const auto refused = [](const std::string& flags, const std::string& says) {
    const SpawnResult result = run_quire("serve --port 0 " + flags);
    EXPECT_EQ(result.exit_code, 2) << flags;
    EXPECT_THAT(result.err, HasSubstr(says));
  };
  const SpawnResult folder =
      run_quire(Words{"serve", "--port", "0", "--models", scratch_.path().string()});
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_THAT(folder.err, HasSubstr("--models takes an INI file with a section [NAME] per model, "
                                    "--models-dir DIR serves the models in a folder"));
  refused("--models a.ini --models-dir .", "not both");
  refused("embedded --models-dir .", "or one model, got embedded as well");
  refused("--models-dir . --served-model-name x",
          "--served-model-name: expected it with one model");
  refused("--models-dir . --plan-only --plan-freed-bytes 1M",
          "--plan-freed-bytes: expected it with one model");
  refused("embedded --sleep-idle-seconds 5", "expected --models-dir or --models with them");
}

TEST_F(SeveralModels, KeysSeparateCallersAndFlagsReachTheModels) {
  const std::string keys = scratch_.write("keys", std::string_view("one\ntwo\n"));
  Served server({"--models", write_models(), "--api-key-file", keys, "--max-concurrency-per-key",
                 "1", "--max-model-len", "512"});
  ASSERT_TRUE(server.is_up());
  EXPECT_EQ(server.post(call("abacus", 1)).status, 401);
  const JsonCall one = call("abacus", 1);
  EXPECT_EQ(server.connect().post(one.path, one.body, "authorization: Bearer one\r\n").status, 200);
  const std::string two = R"({"model":"abacus","prompt":"a","max_tokens":1,"n":2,"temperature":1})";
  EXPECT_THAT(server.connect().post(one.path, two, "x-api-key: two\r\n").body,
              HasSubstr("at most 1 per API key"));
  EXPECT_TRUE(eventually([&] {
    HttpClient client = server.connect();
    client.send("GET /v1/models/abacus HTTP/1.1\r\nHost: a\r\nx-api-key: two\r\n\r\n");
    return client.receive().body.find(R"("max_model_len":512)") != std::string::npos;
  }));
}

TEST_F(SeveralModels, AFolderIsServedByItsNames) {
  std::filesystem::create_symlink(source_path("models/quire-abacus-deepseek"),
                                  scratch_.path() / "latent");
  std::filesystem::create_symlink(source_path("models/quire-abacus/model.gguf"),
                                  scratch_.path() / "abacus.gguf");
  Served server(
      {"--models-dir", scratch_.path(), "--kv-cache-memory", "64M", "--sleep-idle-seconds", "1"});
  ASSERT_TRUE(server.is_up());
  EXPECT_THAT(server.get("/api/tags").body, HasSubstr(R"("name":"abacus:latest")"));
  EXPECT_EQ(server.post(call("latent", 2)).status, 200);
  EXPECT_EQ(server.post({"/tokenize", R"({"model":"abacus","prompt":"2 + 2"})"}).status, 200);
  EXPECT_TRUE(eventually([&] { return children_of(server.pid()).empty(); })) << "sleeps";
  EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace quire::testing
