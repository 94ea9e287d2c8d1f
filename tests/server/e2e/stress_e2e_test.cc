// Clients of the real binary connect and disconnect while slots and KV blocks are exhausted, with
// all kinds of requests at once. Each response equals the response to the same request alone, and
// at the end every slot and block is free.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "support/eventually.h"
#include "support/http_client.h"
#include "support/process.h"
#include "support/scratch_directory.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kNumClients = 24;
constexpr int kNumKinds = 16;
constexpr int kPercentLeaving = 35;
constexpr int kMinCallsPerClient = 3;
constexpr std::chrono::seconds kStressTime(4);
constexpr int kPatienceMs = 200'000;  // per response; below CTest's limit
constexpr int kIdlePatienceMs = 60'000;

// A request without its last fields, which do not change the output.
std::string call_of_kind(int kind) {
  std::string prompt;
  for (int i = 0; i < 1 + kind % 4 * 5; ++i) {
    prompt += fmt::format("Tom has {} apples and buys {} more. ", kind + i, 2 * kind + 1);
  }
  std::string call = fmt::format(R"({{"prompt":"{}","max_tokens":{},"temperature":0,"n":{})",
                                 prompt, 16 + kind % 6 * 12, kind % 5 == 0 ? 2 : 1);
  if (kind % 4 == 1) call += R"(,"prompt_logprobs":1,"ignore_eos":true)";
  if (kind % 4 == 2) call += R"(,"response_format":{"type":"json_object"})";
  if (kind % 4 == 3) call += R"(,"ignore_eos":true,"logprobs":2)";
  return call;
}

std::string post_text(const std::string& body) {
  return "POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

struct Expected {
  std::string choices;  // of a response that is not streamed, all fields
  std::map<int64_t, std::string> texts;
};

void add_texts(std::string_view json, std::map<int64_t, std::string>& texts) {
  const auto document = JsonDocument::parse(json, "answer");
  simdjson::dom::array choices;
  if (!document.ok() || document->root()["choices"].get(choices) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element choice : choices) {
    texts[choice["index"].get_int64()] += std::string_view(choice["text"].get_string());
  }
}

Expected read_whole(const std::string& body) {
  Expected expected;
  const auto document = JsonDocument::parse(body, "answer");
  simdjson::dom::element choices;
  if (!document.ok() || document->root()["choices"].get(choices) != simdjson::SUCCESS) {
    return expected;
  }
  expected.choices = simdjson::to_string(choices);
  add_texts(body, expected.texts);
  return expected;
}

std::map<int64_t, std::string> read_stream(std::string_view events) {
  constexpr std::string_view kPrefix = "data: ";
  std::map<int64_t, std::string> texts;
  while (!events.empty()) {
    const size_t end = std::min(events.find("\n\n"), events.size());
    const std::string_view event = events.substr(0, end);
    if (event.starts_with(kPrefix)) add_texts(event.substr(kPrefix.size()), texts);
    events.remove_prefix(std::min(end + 2, events.size()));
  }
  return texts;
}

class Stress : public ::testing::TestWithParam<Words> {
 protected:
  Stress() {
    const Words serve = fmt::format(
        "serve --port 0 --log-level error --max-num-seqs 12 --max-model-len 512 "
        "--kv-cache-memory {} --allow-request-priority --allowed-hosts *",
        72 * kBlockBytes);
    server_ = std::make_unique<Process>(serve + GetParam(), "", log_path_);
    const std::string said = server_->read_out("\n");
    const size_t colon = said.rfind(':');
    if (colon != std::string::npos) port_ = std::atoi(said.c_str() + colon + 1);
  }

  HttpAnswer call(const std::string& body) const {
    HttpClient client = HttpClient::tcp(port_);
    client.send(post_text(body));
    return client.receive(false, kPatienceMs);
  }

  void be_client(int idx, std::chrono::steady_clock::time_point end);
  void check(int kind, bool is_stream, const HttpAnswer& answer);
  double metric(const std::string& name) const;
  bool becomes_idle() const;

  // Bytes of one block of the embedded model: keys and values of 16 tokens in 8 layers of 4 heads
  // of 64, BF16.
  static constexpr int kBlockBytes = 16 * 2 * 8 * 4 * 64 * 2;

  const ScratchDirectory scratch_;
  const std::string log_path_ = scratch_.write("log", "");
  std::unique_ptr<Process> server_;
  int port_ = 0;
  std::vector<Expected> expected_;
  std::atomic<int> num_answered_ = 0;
  std::atomic<int> num_left_ = 0;
};

void Stress::check(int kind, bool is_stream, const HttpAnswer& answer) {
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_TRUE(answer.is_whole) << "kind " << kind;
  const Expected& expected = expected_[static_cast<size_t>(kind)];
  if (is_stream) {
    EXPECT_EQ(read_stream(answer.body), expected.texts) << "kind " << kind;
  } else {
    EXPECT_EQ(read_whole(answer.body).choices, expected.choices) << "kind " << kind;
  }
  ++num_answered_;
}

void Stress::be_client(int idx, std::chrono::steady_clock::time_point end) {
  std::mt19937 rng(static_cast<unsigned>(idx));
  const auto below = [&](uint32_t n) { return static_cast<int>(rng() % n); };
  for (int i = 0; i < kMinCallsPerClient || std::chrono::steady_clock::now() < end; ++i) {
    const int kind = below(kNumKinds);
    const bool is_stream = below(2) == 0;
    const std::string body = call_of_kind(kind) + fmt::format(R"(,"priority":{},"stream":{}}})",
                                                              below(3) - 1, is_stream);
    if (below(100) >= kPercentLeaving) {
      check(kind, is_stream, call(body));
      continue;
    }
    HttpClient leaving = HttpClient::tcp(port_);
    leaving.send(post_text(body));
    std::this_thread::sleep_for(milliseconds(below(200)));  // to any moment
    below(2) == 0 ? leaving.close() : leaving.reset();
    ++num_left_;
  }
}

double Stress::metric(const std::string& name) const {
  const std::string text = HttpClient::tcp(port_).get("/metrics").body;
  const size_t at = text.find("\n" + name + "{");
  EXPECT_NE(at, std::string::npos) << name << " is not among: " << text;
  if (at == std::string::npos) return -1;
  return std::atof(text.c_str() + text.find("} ", at) + 2);
}

// The last clients disconnected without waiting, so the engine may need a moment.
bool Stress::becomes_idle() const {
  const auto is_idle = [this] {
    return metric("vllm:num_requests_running") == 0 && metric("vllm:num_requests_waiting") == 0 &&
           metric("quire_grammar_queue") == 0;
  };
  return eventually(is_idle, milliseconds(kIdlePatienceMs));
}

TEST_P(Stress, ResponsesEqualThoseOfARequestAloneAndAllIsFreed) {
  ASSERT_GT(port_, 0);
  for (int kind = 0; kind < kNumKinds; ++kind) {
    const HttpAnswer alone = call(call_of_kind(kind) + "}");
    ASSERT_EQ(alone.status, 200) << alone.body;
    expected_.push_back(read_whole(alone.body));
    ASSERT_FALSE(expected_.back().choices.empty());
  }
  const auto end = std::chrono::steady_clock::now() + kStressTime;
  std::vector<std::thread> clients;
  for (int i = 0; i < kNumClients; ++i) clients.emplace_back([&, i] { be_client(i, end); });
  for (std::thread& client : clients) client.join();

  ASSERT_TRUE(becomes_idle()) << metric("vllm:num_requests_running") << " run, "
                              << metric("vllm:num_requests_waiting") << " wait";
  EXPECT_EQ(metric("quire_kv_blocks"), 71);
  EXPECT_EQ(metric("quire_kv_blocks_free"), 71);
  const double num_preemptions = metric("vllm:num_preemptions_total");
  fmt::print("{} answers, {} clients left early, {} preemptions\n", num_answered_.load(),
             num_left_.load(), num_preemptions);
  EXPECT_GT(num_preemptions, 0) << "the test does not reach its case";
  EXPECT_EQ(HttpClient::tcp(port_).get("/health").status, 200);
  server_->kill(SIGTERM);
  EXPECT_EQ(server_->wait(), 0);
  EXPECT_EQ(*read_file(log_path_, size_t{1} << 20), "") << "an error, or a sanitizer's finding";
}

INSTANTIATE_TEST_SUITE_P(
    Chunking, Stress,
    ::testing::Values(Words("--max-num-batched-tokens 64"),
                      Words("--no-enable-chunked-prefill --max-num-batched-tokens 512")));

}  // namespace
}  // namespace quire::testing
