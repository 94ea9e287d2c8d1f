// One model on several processes of this machine: they answer as one process with as many ranks
// does, and all end when one of them does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "support/eventually.h"
#include "support/free_port.h"
#include "support/http_client.h"
#include "support/process.h"
#include "support/scratch_directory.h"

namespace quire::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRankTimeout = 3;  // seconds
// Time in which all must end: the timeout, and what a machine with other work needs.
constexpr auto kDeadline = 25s;

// A server whose ranks are in several processes; node 0 listens at a Unix socket.
class Cluster {
 public:
  enum class Wait { kUntilServing, kNot };
  // num_started: the first nodes; -1: all.
  Cluster(int num_nodes, int num_ranks, const Words& flags = {}, Wait wait = Wait::kUntilServing,
          int num_started = -1)
      : socket_((scratch_.path() / "socket").string()) {
    for (int node = 0; node < (num_started < 0 ? num_nodes : num_started); ++node) {
      Words all = fmt::format(
          "serve --device cpu --threads {} --cpu-pinning off --kv-cache-memory 16M "
          "-tp {} --rank-timeout {}",
          num_ranks / num_nodes, num_ranks, kRankTimeout);
      if (node == 0) all = all + Words{"--uds", socket_};
      if (num_nodes > 1) {
        all = all + fmt::format(
                        "--nnodes {} --node-rank {} --master-addr 127.0.0.1 "
                        "--master-port {}",
                        num_nodes, node, port_);
      }
      logs_.push_back(scratch_.write(fmt::format("log{}", node), ""));
      nodes_.push_back(std::make_unique<Process>(all + flags, "", logs_.back()));
    }
    if (wait == Wait::kNot) return;
    EXPECT_THAT(nodes_.front()->read_out("serving"), HasSubstr("serving")) << log(0);
  }

  Process& node(int number) { return *nodes_[static_cast<size_t>(number)]; }
  std::string log(int number) const {
    std::ifstream file(logs_[static_cast<size_t>(number)]);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Waits until the node's log has this text.
  void await_log(int number, const std::string& text) const {
    const auto has_text = [&] { return log(number).find(text) != std::string::npos; };
    ASSERT_TRUE(eventually(has_text, kDeadline)) << text << " is not in " << log(number);
  }
  HttpAnswer post(const std::string& body) const {
    return HttpClient::unix_socket(socket_).post("/v1/completions", body);
  }
  std::string health_text() const { return HttpClient::unix_socket(socket_).get("/health").body; }
  int num_running() const {
    const std::string metrics = HttpClient::unix_socket(socket_).get("/metrics").body;
    const size_t at = metrics.find("\nvllm:num_requests_running{");
    return at == std::string::npos ? -1 : std::atoi(metrics.c_str() + metrics.find("} ", at) + 2);
  }
  int health() const { return HttpClient::unix_socket(socket_).get("/health").status; }
  // Waits until /health reports an error; returns whether it does so in time.
  bool becomes_unhealthy() const {
    return eventually([this] { return health() == 503; }, kDeadline);
  }

 private:
  const ScratchDirectory scratch_;
  const std::string socket_;
  const int port_ = free_port();
  std::vector<std::string> logs_;
  std::vector<std::unique_ptr<Process>> nodes_;
};

std::vector<std::string> calls() {
  std::vector<std::string> all;
  for (const char* sampling :
       {R"("temperature": 0)", R"("temperature": 1, "seed": 5)",
        R"("temperature": 0.8, "seed": 9, "top_p": 0.9, "repetition_penalty": 1.1, "n": 2)",
        R"("temperature": 0, "structured_outputs": {"regex": "[0-9]{3,5}"})"}) {
    all.push_back(fmt::format(
        R"({{"model": "quire-abacus", "prompt": "<|user|>What is 17 + 25?<|end|><|assistant|>",)"
        R"( "max_tokens": 24, "logprobs": 2, {}}})",
        sampling));
  }
  return all;
}

// The choices of a response, without its id and time.
std::string choices_of(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  const size_t begin = answer.body.find("\"choices\"");
  return begin == std::string::npos ? answer.body : answer.body.substr(begin);
}

struct Division {
  const char* name;
  int num_nodes;
  int num_ranks;
  Words flags;
};

class Divisions : public ::testing::TestWithParam<Division> {};

// The bits of log probabilities are in the texts.
TEST_P(Divisions, AnswerAsOneProcess) {
  const Division& division = GetParam();
  std::vector<std::string> expected;
  {
    Cluster one(1, division.num_ranks, division.flags);
    for (const std::string& call : calls()) expected.push_back(choices_of(one.post(call)));
  }
  Cluster several(division.num_nodes, division.num_ranks, division.flags);
  std::vector<std::string> got;
  for (const std::string& call : calls()) got.push_back(choices_of(several.post(call)));
  EXPECT_EQ(got, expected);
  several.node(0).kill(SIGTERM);
  EXPECT_EQ(several.node(0).wait(), 0) << several.log(0);
  for (int node = 1; node < division.num_nodes; ++node) {
    EXPECT_EQ(several.node(node).wait(), 0) << several.log(node);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Divisions,
    ::testing::Values(Division{"TwoNodes", 2, 2, {}}, Division{"TwoNodesOfTwoRanks", 2, 4, {}},
                      Division{"FourNodes", 4, 4, {"--quantization", "fp8"}},
                      Division{"Drafts",
                               2,
                               2,
                               {"--speculative-config",
                                R"({"method": "ngram", "num_speculative_tokens": 3})"}}),
    [](const auto& division) { return std::string(division.param.name); });

// ---- Starts

// A model of random weights, which two ranks take about a second to load.
class SlowModel {
 public:
  Words flags() const {
    return {"--model", scratch_.path(), "--load-format", "dummy", "--max-model-len", "256"};
  }

 private:
  const ScratchDirectory scratch_;
  const std::string config_ = scratch_.write("config.json", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024,
      "intermediate_size": 4096, "num_hidden_layers": 16, "num_attention_heads": 8,
      "num_key_value_heads": 8, "vocab_size": 1000, "max_position_embeddings": 512,
      "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true, "bos_token_id": 1,
      "eos_token_id": 2, "torch_dtype": "bfloat16"})");
};

// ---- Failures

struct Failure {
  const char* name;
  int signal;
  const char* message;
};

class Failures : public ::testing::TestWithParam<Failure> {};

TEST_P(Failures, OfAnIdleNodeEndTheEngine) {
  Cluster cluster(4, 4);
  ASSERT_EQ(cluster.health(), 200);
  cluster.node(2).kill(GetParam().signal);
  EXPECT_TRUE(cluster.becomes_unhealthy());
  EXPECT_THAT(cluster.log(0), HasSubstr("[nodes] node 2 ("));
  EXPECT_THAT(cluster.log(0), HasSubstr(GetParam().message));
  for (const int node : {1, 3}) {
    EXPECT_EQ(cluster.node(node).wait(), 1);
    EXPECT_THAT(cluster.log(node), HasSubstr("[nodes] node 2 ("));
  }
}

TEST_P(Failures, OfARunningNodeEndItsRequests) {
  Cluster cluster(2, 2);
  ASSERT_EQ(cluster.health(), 200);
  auto answer = std::async(std::launch::async, [&] {
    return cluster.post(
        R"({"model": "quire-abacus", "prompt": "1", "max_tokens": 400, "ignore_eos": true})");
  });
  EXPECT_TRUE(eventually([&] { return cluster.num_running() == 1; }));
  const auto start = std::chrono::steady_clock::now();
  cluster.node(1).kill(GetParam().signal);
  // Clients learn no names of machines; the log has them.
  const HttpAnswer failed = answer.get();
  EXPECT_THAT(failed.status, AnyOf(500, 503));  // 503: it came after the failure
  EXPECT_THAT(failed.body, Not(HasSubstr("node")));
  EXPECT_TRUE(cluster.becomes_unhealthy());
  EXPECT_THAT(cluster.health_text(), HasSubstr("the server's log has the details"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, kDeadline);
  EXPECT_THAT(cluster.log(0), HasSubstr("[nodes] node 1 ("));
  // The step may notice before the signs of life do.
  EXPECT_THAT(cluster.log(0),
              AnyOf(HasSubstr(GetParam().message), HasSubstr("node 0 waits for node 1 (")));
}

TEST_P(Failures, OfANodeThatLoadsEndTheStart) {
  for (const int ended : {0, 1}) {
    SCOPED_TRACE(ended);
    const SlowModel model;
    Cluster cluster(2, 2, model.flags(), Cluster::Wait::kNot);
    cluster.await_log(0, "[nodes] node 1 (");
    cluster.await_log(1, "share the model");
    const auto start = std::chrono::steady_clock::now();
    cluster.node(ended).kill(GetParam().signal);
    EXPECT_EQ(cluster.node(1 - ended).wait(), 1);
    EXPECT_LT(std::chrono::steady_clock::now() - start, kDeadline);
    EXPECT_THAT(cluster.log(1 - ended), HasSubstr(fmt::format("[nodes] node {} (", ended)));
    EXPECT_THAT(cluster.log(1 - ended), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Failures,
                         ::testing::Values(Failure{"Killed", SIGKILL, "its process has ended"},
                                           Failure{"Stopped", SIGSTOP, "is silent for"}),
                         [](const auto& failure) { return std::string(failure.param.name); });

TEST(Cluster, ANodeThatWaitsForOthersNoticesThatNode0Hangs) {
  Cluster cluster(4, 4, {}, Cluster::Wait::kNot, 2);
  cluster.await_log(0, "node 1 (");
  const auto start = std::chrono::steady_clock::now();
  cluster.node(0).kill(SIGSTOP);
  EXPECT_EQ(cluster.node(1).wait(), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kDeadline);
  EXPECT_THAT(cluster.log(1), HasSubstr("[nodes] node 0 at 127.0.0.1 port "));
  EXPECT_THAT(cluster.log(1), HasSubstr(" is silent for "));
}

TEST(Cluster, ASignalEndsANodeThatWaitsForOthers) {
  Cluster cluster(4, 4, {}, Cluster::Wait::kNot, 2);
  cluster.await_log(0, "node 1 (");
  for (const int node : {1, 0}) {
    const auto start = std::chrono::steady_clock::now();
    cluster.node(node).kill(SIGTERM);
    EXPECT_EQ(cluster.node(node).wait(), 128 + SIGTERM);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  }
}

TEST(Cluster, ASignalEndsANodeThatLoads) {
  for (const int ended : {0, 1}) {
    SCOPED_TRACE(ended);
    const SlowModel model;
    Cluster cluster(2, 2, model.flags(), Cluster::Wait::kNot);
    cluster.await_log(ended, "share the model");
    const auto start = std::chrono::steady_clock::now();
    cluster.node(ended).kill(SIGTERM);
    EXPECT_EQ(cluster.node(ended).wait(), 128 + SIGTERM);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
    EXPECT_EQ(cluster.node(1 - ended).wait(), 1);
    EXPECT_THAT(cluster.log(1 - ended), HasSubstr(fmt::format("[nodes] node {} (", ended)));
  }
}

TEST(Cluster, TheEndOfNode0EndsTheOthers) {
  Cluster cluster(2, 2);
  cluster.node(0).kill(SIGKILL);
  EXPECT_EQ(cluster.node(1).wait(), 1);
  EXPECT_THAT(cluster.log(1), HasSubstr("node 0 ("));
}

// It is stopped for longer than the timeout, and goes on.
TEST(Cluster, ANodeThatWasStoppedBlamesNoOther) {
  for (const int stopped : {0, 1}) {
    SCOPED_TRACE(stopped);
    Cluster cluster(2, 2);
    cluster.node(stopped).kill(SIGSTOP);
    if (stopped == 0) {
      EXPECT_EQ(cluster.node(1).wait(), 1);
    } else {
      EXPECT_TRUE(cluster.becomes_unhealthy());
    }
    cluster.node(stopped).kill(SIGCONT);
    const std::string expected =
        fmt::format("E [nodes] node {} was stopped, or had no CPU time, for ", stopped);
    cluster.await_log(stopped, expected);
    EXPECT_THAT(cluster.log(stopped),
                Not(HasSubstr(fmt::format("E [nodes] node {} ", 1 - stopped))));
    if (stopped == 1) {
      EXPECT_EQ(cluster.node(1).wait(), 1);
    }
  }
}

}  // namespace
}  // namespace quire::testing
