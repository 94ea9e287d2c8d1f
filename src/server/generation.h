// A running generation request: forwards the engine's outputs to one client.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "server/answer_writer.h"
#include "server/engine_api.h"
#include "server/gate.h"
#include "server/http/http.h"
#include "server/metrics/server_metrics.h"
#include "server/request_log.h"
#include "server/workers.h"

namespace quire::server {

class Generation;

// All running generations, so that a shutdown can cancel them. Thread-safe.
class Generations {
 public:
  // Cancels all generations, including those that start later. Each client gets an error.
  void cancel();
  bool is_cancelled() const;

 private:
  friend class Generation;
  void add(const std::shared_ptr<Generation>& generation);
  void remove(const Generation* generation);

  mutable std::mutex mutex_;
  std::unordered_map<const Generation*, std::weak_ptr<Generation>> in_work_;
  bool is_cancelled_ = false;
};

// The error of calls that a shutdown cancels.
Status shutting_down();

// The objects that a generation uses; they outlive every generation.
struct GenerationTools {
  EngineApi& engine;
  WorkerPool& workers;
  ServerMetrics& metrics;
  Generations& generations;
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Parts {
    std::vector<Request> requests;  // one per prompt, each with prompt_token_ids
    std::unique_ptr<AnswerWriter> writer;
    bool is_stream = false;
    Ticket ticket;
    RequestLog log;
    http::Headers headers;  // of the response
    std::shared_ptr<http::Exchange> exchange;
  };

  // Submits the requests. The generation then lives until its last output has come. The client gets
  // an error if the engine refuses one of the requests. Runs on a worker thread.
  static void start(const GenerationTools& tools, Parts parts);
  ~Generation();

 private:
  friend class Generations;
  using Clock = RequestLog::Clock;
  struct Arrival {
    int choice_idx = 0;
    Output output;
  };
  struct ChoiceTimes {
    Clock::time_point first_token;
    Clock::time_point last_token;
    int num_tokens = 0;
  };
  struct PromptState {
    int64_t num_waiting_tokens = 0;  // 0 once its first sequence has started
    int num_unfinished = 0;
    int max_tokens = 0;  // limit per sequence
    int longest = 0;     // tokens of the longest ended sequence
  };

  Generation(const GenerationTools& tools, Parts parts);
  void submit_all();
  void submit_requests();
  // Cancels all submitted requests. Their last outputs come with the next step.
  void cancel_all();
  // Cancels the requests because the server shuts down; the client gets an error. Any thread may
  // call it.
  void shut_down();

  // Called on the engine's thread: records the time, queues the output and wakes a worker.
  void on_output(int choice_idx, Output&& output);
  void observe(int choice_idx, const Output& output);
  void observe_end(int choice_idx, const Output& output, Clock::time_point now);
  void wake(std::unique_lock<std::mutex>& lock);

  // Run by one worker at a time.
  void work();
  void work_off();
  void give_up() noexcept;
  void take(Arrival&& arrival, std::string& piece);
  void send(std::string&& piece);
  void start_stream();
  void fail(const Status& error, std::string&& piece);
  void end(int http_status, std::string_view outcome);

  const GenerationTools tools_;
  const int num_answers_;  // per prompt
  Parts parts_;

  // Used only on the engine's thread.
  std::vector<ChoiceTimes> times_;
  std::vector<PromptState> prompts_;

  std::mutex mutex_;
  std::vector<RequestId> ids_;
  std::deque<Arrival> arrivals_;
  bool is_submitted_ = false;  // no worker takes outputs before this is set
  bool is_working_ = false;
  bool is_shut_down_ = false;

  // Used by one worker at a time.
  int num_unfinished_ = 0;
  bool has_started_stream_ = false;
  bool has_ended_ = false;  // the response has ended; later outputs are dropped
};

}  // namespace quire::server
