// One client connection: reads a request, calls the handler, writes the response, and repeats.
// Everything except wake() and send_now() runs on one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/http/answer.h"
#include "server/http/body_budget.h"
#include "server/http/http.h"
#include "server/http/read_buffer.h"
#include "server/http/request_parser.h"
#include "server/http/server.h"
#include "server/http/stream.h"

namespace quire::http {

struct Counters {
  std::atomic<int> num_open = 0;
  std::atomic<int64_t> num_accepted = 0;
  std::atomic<int64_t> num_refused = 0;
  std::atomic<int64_t> num_timeouts = 0;
  std::atomic<int64_t> num_slow_readers = 0;
  std::atomic<int64_t> num_bad_requests = 0;
};

// Data that all connections of a server share; outlives them.
struct Service {
  Limits limits;
  Handler handler;
  Hooks hooks = {};
  std::shared_ptr<BodyBudget> bodies = std::make_shared<BodyBudget>(limits.max_total_body_bytes);
  std::shared_ptr<BodyBudget> answers = std::make_shared<BodyBudget>(limits.max_total_answer_bytes);
  Counters counters = {};
};

class Connection final : public StreamUser,
                         public Waker,
                         public std::enable_shared_from_this<Connection> {
 public:
  // Calls `on_gone` once, when the connection is closed.
  Connection(Service& service, std::unique_ptr<Stream> stream,
             std::function<void(Connection*)> on_gone);

  void start();
  void drain();  // closes now, or after the current response
  void close();  // at once

  void wake() noexcept override { stream_->wake(); }
  size_t send_now(std::string_view bytes) override { return stream_->send_now(bytes); }

 private:
  enum class Phase {
    kOpening,
    kIdle,       // no byte of a request has arrived
    kHead,       // a part of a head has arrived
    kBody,       // a part of a body has arrived
    kAnswering,  // also reads ahead, to notice a disconnect; the next request waits
    kClosing,    // everything is sent; waits for the client to read it
    kClosed,
  };

  void on_open(bool ok) override;
  void on_read(size_t num_bytes) override;
  void on_written(size_t num_bytes) override;
  void on_deadline() override;
  void on_wake() override;

  template <typename Step>
  void guard(const Step& step);
  void open_up(bool ok);
  void take_input(size_t num_bytes);
  void count_written(size_t num_bytes);
  void run_out();
  void look_at_answer();
  void wind_up();
  void tell_that_client_left() noexcept;

  bool is_reading() const;
  void enter(Phase phase, std::chrono::milliseconds limit);
  void read_on();
  void parse();
  void await_more();
  void dispatch();
  void begin_answer(bool keep_alive);
  void refuse(Refusal refusal);
  // Calls the hook before the body is read. Returns false if it has refused the request.
  bool check_head();
  // Charges the body to the budget; false: no room.
  bool charge_body();
  void on_input_end();
  void flush();
  void write_on();
  void finish_answer();
  void end();

  Service& service_;
  const Limits& limits_;
  const std::unique_ptr<Stream> stream_;
  const std::function<void(Connection*)> on_gone_;

  Phase phase_ = Phase::kOpening;
  bool is_draining_ = false;

  RequestParser parser_;
  ReadBuffer in_;
  bool is_read_pending_ = false;
  bool input_ended_ = false;
  bool discards_input_ = false;
  std::shared_ptr<BodyShare> body_share_;

  std::shared_ptr<Answer> answer_;
  std::string out_;  // bytes that are being written
  size_t num_written_ = 0;
  std::chrono::steady_clock::time_point write_end_;  // deadline for all of out_
  Answer::Progress after_write_ = Answer::Progress::kOpen;
};

}  // namespace quire::http
