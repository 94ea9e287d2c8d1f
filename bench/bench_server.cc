// Measures the server itself: CPU time per request and per streamed token on loopback, for the real
// service and transport over an engine that computes nothing. The client is another process; all
// threads of this process count, the null engine's included.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/server_load.h"
#include "server/http/server.h"
#include "server/service.h"

namespace {

using namespace quire;
using std::chrono::steady_clock;

constexpr int kNumStreams = 64;

// Sends one token per request and step, as fast as it can or with one step per `pace`.
class NullEngine final : public server::EngineApi {
 public:
  explicit NullEngine(std::chrono::microseconds pace) : pace_(pace) {
    info_.name = "null";
    info_.vocab_size = 1000;
    info_.max_model_len = 1 << 20;
    info_.max_num_seqs = 1024;
    thread_ = std::thread([this] { run(); });
  }
  ~NullEngine() override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<RequestId> submit(Request request, Engine::OutputCallback on_output) override {
    const std::lock_guard lock(mutex_);
    const RequestId id = next_id_++;
    running_.emplace(id, Running{request.sampling.max_tokens, std::move(on_output)});
    changed_.notify_all();
    return id;
  }
  void cancel(RequestId id) override {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found != running_.end()) found->second.is_cancelled = true;
  }
  Result<RenderedChat> render_chat(const jinja::Value&) const override {
    return RenderedChat{{"a", {}}};
  }
  std::string_view chat_template() const override { return ""; }
  Result<std::vector<int32_t>> encode(std::string_view text, bool,
                                      const ByteSpans&) const override {
    return std::vector<int32_t>(text.begin(), text.end());
  }
  std::string decode(const std::vector<int32_t>& ids, bool) const override {
    return std::string(ids.size(), 'a');
  }
  std::string token_bytes(int32_t) const override { return " token"; }
  bool is_added_token(int32_t /*id*/) const override { return false; }
  SamplingDefaults sampling_defaults(SamplingFallback /*fallback*/) const override { return {}; }
  const ModelInfo& model_info() const override { return info_; }
  EngineStats stats() const override { return {}; }
  std::vector<ReplicaState> replicas() const override { return {ReplicaState{}}; }
  Status health() const override { return {}; }

 private:
  struct Running {
    int num_left = 0;
    Engine::OutputCallback on_output;
    bool is_cancelled = false;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_over_ || !running_.empty(); });
      if (is_over_) return;
      const auto next_step = steady_clock::now() + pace_;
      std::vector<std::pair<Engine::OutputCallback, Output>> outputs = step();
      lock.unlock();
      for (auto& [on_output, output] : outputs) on_output(std::move(output));
      if (pace_.count() > 0) std::this_thread::sleep_until(next_step);
      lock.lock();
    }
  }

  std::vector<std::pair<Engine::OutputCallback, Output>> step() {
    std::vector<std::pair<Engine::OutputCallback, Output>> outputs;
    for (auto entry = running_.begin(); entry != running_.end();) {
      Running& running = entry->second;
      Output output;
      output.text = " token";
      output.token_ids = {17};
      if (--running.num_left <= 0) output.finish_reason = FinishReason::kLength;
      if (running.is_cancelled) output.finish_reason = FinishReason::kCancelled;
      const bool is_last = output.finish_reason.has_value();
      outputs.emplace_back(running.on_output, std::move(output));
      entry = is_last ? running_.erase(entry) : std::next(entry);
    }
    return outputs;
  }

  const std::chrono::microseconds pace_;
  ModelInfo info_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Running> running_;
  RequestId next_id_ = 1;
  bool is_over_ = false;
  std::thread thread_;
};

// A command to the client's process; port 0 ends it.
struct Order {
  int port = 0;
  int num_requests = 0;
  int num_tokens = 0;
};
struct Done {
  int num_completed = 0;
  double duration_s = 0.0;
};

Done carry_out(const Order& order) {
  http_client::ClientConfig config;
  config.url = {.is_tls = false, .host = "127.0.0.1", .port = order.port, .path = ""};
  auto client = http_client::Client::create(std::move(config));
  if (!client.ok()) return {};
  const bench::DatasetRequest request = {.token_ids = {},
                                         .text = "Once upon a time there was a",
                                         .output_len = order.num_tokens,
                                         .arrival_s = {}};
  const std::string body =
      bench::request_body(request, {.model = "null", .is_chat = false, .ignore_eos = true});
  const std::vector<bench::TimedRequest> requests(static_cast<size_t>(order.num_requests),
                                                  {.body = body});
  const bench::LoadConfig load = {.target = "/v1/completions", .max_concurrency = kNumStreams};
  const bench::LoadResult result = bench::run_load(**client, requests, load, {});
  Done done = {.num_completed = 0, .duration_s = result.duration_s};
  for (const bench::ServedResponse& response : result.responses) {
    const bool is_whole = response.end == bench::ServedResponse::End::kOk &&
                          response.num_output_tokens == order.num_tokens;
    done.num_completed += is_whole ? 1 : 0;
  }
  return done;
}

// Runs in the client's process.
int serve_orders(int orders, int answers) {
  Order order;
  while (::read(orders, &order, sizeof(order)) == sizeof(order) && order.port != 0) {
    const Done done = carry_out(order);
    if (::write(answers, &done, sizeof(done)) != sizeof(done)) return 1;
  }
  return 0;
}

double cpu_us() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

// Returns the CPU time of this process for these requests in µs, or < 0 if some failed.
double measure(int to_client, int from_client, const Order& order, Done& done) {
  const double before = cpu_us();
  if (::write(to_client, &order, sizeof(order)) != sizeof(order)) return -1;
  if (::read(from_client, &done, sizeof(done)) != sizeof(done)) return -1;
  return done.num_completed == order.num_requests ? cpu_us() - before : -1;
}

int measure_server(const char* name, std::chrono::microseconds pace, int to_client,
                   int from_client) {
  NullEngine engine(pace);
  server::ServiceConfig config;
  config.model_names = {"null"};
  config.admission.max_num_seqs = engine.model_info().max_num_running();
  server::Service service(engine, config);
  http::ServerConfig transport_config;
  transport_config.port = 0;
  auto transport = http::Server::start(
      transport_config,
      [&](http::Request&& request, std::shared_ptr<http::Exchange> exchange) {
        service.handle(std::move(request), std::move(exchange));
      },
      service.hooks());
  if (!transport.ok()) return 1;
  const int port = (*transport)->port();
  constexpr int kNumShort = 20000;
  constexpr int kNumLong = 1280;
  constexpr int kNumTokens = 257;
  Done done;
  const bool is_warm = measure(to_client, from_client, {port, 2000, 2}, done) >= 0;
  const double short_us = measure(to_client, from_client, {port, kNumShort, 1}, done);
  const double short_s = done.duration_s;
  const double long_us = measure(to_client, from_client, {port, kNumLong, kNumTokens}, done);
  if (!is_warm || short_us < 0 || long_us < 0) return 1;
  const double request_us = short_us / kNumShort;
  const double token_us = (long_us - kNumLong * request_us) / (kNumLong * (kNumTokens - 1.0));
  fmt::print(
      "{}: {:.1f} us per request of one token ({:.0f} requests/s), {:.2f} us per further "
      "streamed token ({:.0f} tokens/s)\n",
      name, request_us, kNumShort / short_s, token_us, kNumLong * kNumTokens / done.duration_s);
  std::fflush(stdout);
  service.close();
  (*transport)->drain(std::chrono::seconds(5));
  transport->reset();
  service.stop();
  return 0;
}

}  // namespace

int main() {
  int orders[2];
  int answers[2];
  if (::pipe(orders) != 0 || ::pipe(answers) != 0) return 1;
  const pid_t client = ::fork();  // before any thread starts
  if (client == 0) return serve_orders(orders[0], answers[1]);
  int failures =
      measure_server("tokens at once", std::chrono::microseconds(0), orders[1], answers[0]);
  failures += measure_server("a step of 64 tokens every 5 ms", std::chrono::milliseconds(5),
                             orders[1], answers[0]);
  const Order end;
  failures += ::write(orders[1], &end, sizeof(end)) == sizeof(end) ? 0 : 1;
  ::waitpid(client, nullptr, 0);
  if (failures > 0) fmt::print(stderr, "bench_server: some requests failed\n");
  return failures > 0 ? 1 : 0;
}
