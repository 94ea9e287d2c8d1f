// Checks the binary's resident memory, the time until its first byte, and its CPU time while it is
// idle.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.h"
#include "support/http_client.h"
#include "support/process.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using quire::testing::HttpClient;
using quire::testing::Process;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// No output contains this byte, so that reading continues to the end.
const std::string kEndOfStream(1, '\0');

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the number after `name` in the memory plan's line, in bytes.
double planned_bytes(const std::string& log, const std::string& name) {
  const size_t at = log.find(name + " ");
  EXPECT_NE(at, std::string::npos) << log;
  if (at == std::string::npos) return 0;
  return std::strtod(log.c_str() + at + name.size(), nullptr) * (1 << 20);
}

// Runs to the end, and returns the seconds until the first byte of output.
double generate(Process& process, Clock::time_point start, std::string& log) {
  process.close_input();  // it has no message
  EXPECT_THAT(process.read_out(""), Not(IsEmpty()));
  const double first_byte_s = seconds_since(start);
  EXPECT_THAT(process.read_out(kEndOfStream), HasSubstr("#### 12"));
  log = process.read_err(kEndOfStream);
  EXPECT_EQ(process.wait(), 0) << log;
  return first_byte_s;
}

TEST(Footprint, ResidentMemoryIsWeightsKvAnd60MB) {
  // A small KV cache bounds the part of it that is touched, also with huge pages.
  const auto start = Clock::now();
  // The level `info` logs the memory plan.
  Process process("generate --max-model-len 512 --kv-cache-memory 5M --log-level info");
  std::string log;
  const double first_byte_s = generate(process, start, log);
  const double weights = planned_bytes(log, "weights");
  const double kv = planned_bytes(log, "KV cache");
  EXPECT_GT(weights, 14e6);
  EXPECT_LE(process.max_rss_bytes(), weights + kv + 60e6) << log;
  // It takes 0.1 s. The bound leaves room for the machine's other load.
  EXPECT_LT(first_byte_s, 5.0) << log;
  std::printf("resident %.1f MB: weights %.1f, KV at most %.1f; first byte after %.3f s\n",
              process.max_rss_bytes() / 1e6, weights / 1e6, kv / 1e6, first_byte_s);
}

// Returns the CPU time of two seconds as a share of one core.
double idle_load(const Process& process) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the workers stop spinning
  const double before = process.cpu_s();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the time that is measured
  return (process.cpu_s() - before) / seconds_since(start);
}

TEST(Footprint, AnIdleChatSleeps) {
  Process process("chat --temperature 0 --log-level info");
  EXPECT_THAT(process.read_err("[engine]"), HasSubstr("[engine]"));
  const double fresh = idle_load(process);
  process.write(
      "Zoe sleeps 7 hours a day, works 6 hours and travels 2 hours. How many free hours is that in "
      "5 days?\n");
  EXPECT_THAT(process.read_out("= 45\n"), HasSubstr("9 * 5 = 45\n"));
  EXPECT_GT(process.cpu_s(), 0.0);  // the right process is measured
  const double after_answer = idle_load(process);
  process.close_input();
  EXPECT_EQ(process.wait(), 0);
  std::printf("idle: %.2f %% of a core, after an answer %.2f %%\n", 100 * fresh,
              100 * after_answer);
  EXPECT_LT(fresh, 0.02);
  EXPECT_LT(after_answer, 0.02);
}

double resident_bytes(int port) {
  const std::string metrics = HttpClient::tcp(port).get("/metrics").body;
  const std::string name = "\nprocess_resident_memory_bytes ";
  const size_t at = metrics.find(name);
  EXPECT_NE(at, std::string::npos) << metrics.substr(0, 200);
  return at == std::string::npos ? 0 : std::strtod(metrics.c_str() + at + name.size(), nullptr);
}

// Sends half of this many bodies, waits until the server has them, and disconnects. Returns the
// server's resident memory before that.
double flood(int port, int num_bodies, size_t body_bytes) {
  const std::string post =
      "POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body_bytes) + "\r\n\r\n" + std::string(body_bytes / 2, 'a');
  std::vector<HttpClient> clients;
  for (int i = 0; i < num_bodies; ++i) {
    clients.push_back(HttpClient::tcp(port));
    clients.back().send(post);  // refused ones fail
  }
  return resident_bytes(port);
}

TEST(Footprint, AFloodOfBodiesIsBoundedAndGoesBack) {
  Process process("serve --port 0 --allowed-hosts test --log-level error");
  const std::string announced = process.read_out("\n");
  const int port = std::atoi(announced.c_str() + announced.rfind(':') + 1);
  ASSERT_GT(port, 0) << announced;
  ASSERT_EQ(HttpClient::tcp(port).post("/v1/completions", R"({"prompt":"a"})").status, 200);
  const double before = resident_bytes(port);
  struct Flood {
    int num_bodies;
    size_t body_bytes;
  };
  for (const Flood& bodies : {Flood{200, 30'000'000}, Flood{800, 400'000}}) {
    const double during = flood(port, bodies.num_bodies, bodies.body_bytes);
    EXPECT_GT(during, before + 100e6) << "otherwise nothing is tested";
    EXPECT_LT(during, before + 600e6) << "the budget of bodies is 512 MiB";
    double after = during;
    EXPECT_TRUE(testing::eventually(
        [&] {
          after = resident_bytes(port);
          return after <= 1.3 * before;
        },
        std::chrono::seconds(60)));
    std::printf("%d bodies of %.1f MB: resident %.0f MB, then %.0f, at last %.0f\n",
                bodies.num_bodies, static_cast<double>(bodies.body_bytes) / 1e6, before / 1e6,
                during / 1e6, after / 1e6);
  }
}

}  // namespace
}  // namespace quire
