// A running generation request: forwards the engine's outputs to one client.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "server/admission_control.h"
#include "server/engine_api.h"
#include "server/http/http.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/response_writer.h"
#include "server/request_context.h"
#include "server/workers.h"

namespace quire::server {

class Generation;

// All running generations, so that a shutdown can cancel them. Thread-safe.
class Generations {
 public:
  // Cancels all generations, including those that start later. Each client gets an error.
  void cancel();
  bool is_cancelled() const;
  int num_running() const;

 private:
  friend class Generation;
  void add(const std::shared_ptr<Generation>& generation);
  void remove(const Generation* generation);

  mutable std::mutex mutex_;
  std::unordered_map<const Generation*, std::weak_ptr<Generation>> running_;
  bool is_cancelled_ = false;
};

// The objects that a generation uses; they outlive every generation.
struct GenerationServices {
  EngineApi& engine;
  WorkerPool& writers;
  ServerMetrics& metrics;
  Generations& generations;
};

// Three kinds of threads use a generation, and each has members of its own:
//
//   request worker         engine thread             writer worker (one at a time)
//   ──────────────         ─────────────             ─────────────────────────────
//   start()                on_output()               drain()
//     submit_requests()      observe()                 process_arrival(): formats
//                            queues an Arrival ──────▶ send(): one write per drain
//   parts_.requests        timings_, prompts_        the rest of parts_, num_unfinished_, response_
//
// parts_.ticket belongs to the engine thread until the last output is queued, then to the writer.
// `mutex_` guards the shared members ids_, arrivals_, delivery_ and is_shut_down_. Other threads
// only cancel: the transport by cancel_all() when the client disconnects, the shutdown by
// shut_down().
//
// delivery_ determines which thread may use the writer worker's members:
//   kSubmitting ──(all submitted)──▶ kIdle ──(an output arrives)──▶ kDraining
//                                      ▲───────(no outputs left)────────┘
// Before kIdle, the request worker uses them to respond to errors of submission; outputs that
// arrive meanwhile wait in arrivals_. In kDraining, the posted worker uses them.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Parts {
    std::vector<Request> requests;  // one per prompt, each with prompt_token_ids
    std::unique_ptr<ResponseWriter> writer;
    bool is_stream = false;
    AdmissionTicket ticket;
    RequestLog log;
    http::Headers headers;  // of the response
    ErrorShape error_shape = ErrorShape::kOpenAi;
    std::shared_ptr<http::Exchange> exchange;
  };

  // Submits the requests. The generation then exists until its last output has arrived. If the
  // engine refuses a request, the client gets an error. Runs on a worker thread.
  static void start(const GenerationServices& services, Parts parts);
  ~Generation();

 private:
  friend class Generations;
  using Clock = RequestLog::Clock;
  enum class Delivery {
    kSubmitting,  // no worker takes outputs yet
    kIdle,        // the next output posts a worker
    kDraining,    // a worker is posted or running; it takes all outputs that arrive
  };
  enum class ResponseState {
    kNotStarted,  // a failure can still set the HTTP status
    kStreaming,   // the head is sent; a failure becomes an event of the stream
    kEnded,       // complete or aborted; later outputs are dropped
  };
  struct Arrival {
    int choice_idx = 0;
    Output output;
  };
  struct ChoiceTiming {
    Clock::time_point first_token;
    Clock::time_point last_token;
    int num_tokens = 0;
  };
  struct PromptState {
    int64_t num_queued_tokens = 0;  // 0 once its first sequence has started
    int num_unfinished = 0;
    int max_tokens = 0;  // limit per sequence
    int longest = 0;     // tokens of the longest ended sequence
  };

  Generation(const GenerationServices& services, Parts parts);

  // --- On the request worker ---
  void submit();
  void submit_requests();
  Status submit_each();
  bool has_submitted() const;  // whether the engine has accepted a request

  // --- On any thread ---
  // Cancels all submitted requests. Their last outputs arrive with the next step.
  void cancel_all();
  // Cancels the requests because the server shuts down; the client gets an error.
  void shut_down();

  // --- On the engine's thread ---
  // Records the time, queues the output and posts a worker if none is posted.
  void on_output(int choice_idx, Output&& output);
  void observe(int choice_idx, const Output& output);
  void observe_prompt(const Output& output);  // `output` is the first of a sequence
  void observe_end(int choice_idx, const Output& output, Clock::time_point now);

  // Posts a worker that runs drain(). The lock is held at the call and released at the return.
  void post_drain(std::unique_lock<std::mutex>& lock);

  // --- On the writer worker, or before kIdle on the request worker ---
  void drain();
  void drain_arrivals();
  void process_arrival(Arrival&& arrival, std::string& piece);
  void send(std::string&& piece);
  void write(std::string&& piece);  // of a stream
  void respond_with(const ApiError& error);
  void start_stream();
  void fail(const Status& error, std::string&& piece);
  void end(int http_status, std::string_view outcome);
  // Ends the request after an exception. The connection then responds by itself.
  void abort_request() noexcept;

  const GenerationServices services_;
  const int num_per_prompt_;  // sequences
  Parts parts_;

  // Used by the engine's thread.
  std::vector<ChoiceTiming> timings_;
  std::vector<PromptState> prompts_;

  mutable std::mutex mutex_;
  std::vector<RequestId> ids_;
  std::deque<Arrival> arrivals_;
  Delivery delivery_ = Delivery::kSubmitting;
  bool is_shut_down_ = false;

  // Used by the writer worker, or before kIdle by the request worker.
  int num_unfinished_ = 0;  // sequences
  ResponseState response_ = ResponseState::kNotStarted;
};

}  // namespace quire::server
