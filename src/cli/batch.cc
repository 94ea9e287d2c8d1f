// `quire batch` runs the requests of a file through the server's routes, without a server.
#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/waiting_queue.h"
#include "cli/batch_file.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/model_service.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/serve_flags.h"
#include "cli/serve_steps.h"
#include "server/service.h"

namespace quire::cli {
namespace {

using namespace std::chrono_literals;

// The run reacts to an interrupt within this time. It also waits for this time before it sends a
// request again that the server refused because its queues are full or it is unavailable.
constexpr auto kTick = 100ms;
// The output has the order of the input, so a slow request holds back the lines of later requests.
// While this many lines are held back, no further request starts.
constexpr size_t kMaxHeldBack = 4096;

struct BatchOptions {
  ServeOptions serve;
  std::vector<std::string> files;
};

struct FinishedRequest {
  size_t number = 0;  // the position in the input, from 1
  http::Response response;
};

// Passes responses from the server's threads to the main thread.
using FinishedQueue = WaitingQueue<FinishedRequest>;

// Collects the response to one request. The destructor delivers it, because the service drops the
// exchange after its last call.
class BatchExchange final : public http::Exchange {
 public:
  BatchExchange(size_t number, std::shared_ptr<FinishedQueue> finished)
      : finished_(std::move(finished)), request_{.number = number, .response = {}} {
    request_.response.status = 500;
    request_.response.body = R"({"error":{"message":"the request got no response"}})";
  }
  ~BatchExchange() override { finished_->push(std::move(request_)); }

  bool respond(http::Response response) override {
    request_.response = std::move(response);
    return true;
  }
  void start_stream(int status, std::string content_type, http::Headers headers) override {
    request_.response = {status, std::move(content_type), std::move(headers), ""};
  }
  void write(std::string piece) override { request_.response.body += piece; }
  void end_stream() override {}
  void on_closed(std::function<void()> /*callback*/) override {
  }  // a batch has no client that could disconnect

 private:
  std::shared_ptr<FinishedQueue> finished_;
  FinishedRequest request_;
};

class BatchRun {
 public:
  BatchRun(const server::EngineApi& engine, server::Service& service, BatchReader& requests,
           BatchOutput& output)
      : engine_(engine),
        service_(service),
        requests_(requests),
        output_(output),
        // Enough requests to fill every step while the next ones are tokenized.
        max_running_(2 * static_cast<size_t>(engine.model_info().max_num_running())),
        num_written_(requests.num_read()) {}

  // Returns when all lines are written, or at an interrupt.
  Status run() {
    while (num_written_ < requests_.num_requests()) {
      while (can_begin()) begin_next();
      QUIRE_RETURN_IF_ERROR(write_lines());
      if (CancelScope::interrupted()) {
        return cancelled(
            fmt::format("[batch] interrupted after {} of {} requests; the same command continues",
                        num_written_, requests_.num_requests()));
      }
      if (running_.empty()) continue;
      if (const auto finished = finished_->pop(kTick)) QUIRE_RETURN_IF_ERROR(take(*finished));
      progress_.update(num_written_ + lines_.size(), requests_.num_requests(), note_);
    }
    return {};
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct HeldLine {
    std::string text;
    bool has_succeeded = false;
  };

  bool can_begin() const {
    if (Clock::now() < pause_end_) return false;
    if (!refused_.empty()) return true;
    return running_.size() < max_running_ && lines_.size() < kMaxHeldBack &&
           requests_.num_read() < requests_.num_requests();
  }

  void begin_next() {
    if (!refused_.empty()) {
      send(refused_.front());
      return refused_.pop_front();
    }
    BatchRequest next = requests_.next();
    const size_t number = requests_.num_read();
    if (!next.error.ok()) {
      lines_[number] = {batch_error_line(number, next.custom_id, next.error), false};
      return;
    }
    running_.emplace(number, std::move(next));
    send(number);
  }

  void send(size_t number) {
    service_.handle(http::Request(running_.at(number).request),
                    std::make_shared<BatchExchange>(number, finished_));
  }

  Status take(const FinishedRequest& finished) {
    constexpr int kTooMany = 429;
    constexpr int kFirstServerError = 500;
    constexpr int kUnavailable = 503;
    const http::Response& response = finished.response;
    // If the engine has failed, the response gets no line, so that the next run sends the request
    // again.
    if (response.status >= kFirstServerError) QUIRE_RETURN_IF_ERROR(engine_.health());
    if (response.status == kTooMany || response.status == kUnavailable) {
      refused_.push_back(finished.number);
      pause_end_ = Clock::now() + kTick;
      return {};
    }
    const auto request = running_.find(finished.number);
    lines_[finished.number] = {
        batch_response_line(finished.number, request->second.custom_id, response),
        response.status == 200};
    running_.erase(request);
    return {};
  }

  // Writes the held lines up to the first missing one.
  Status write_lines() {
    while (!lines_.empty() && lines_.begin()->first == num_written_ + 1) {
      const HeldLine& line = lines_.begin()->second;
      QUIRE_RETURN_IF_ERROR(output_.append(line.text, line.has_succeeded));
      lines_.erase(lines_.begin());
      ++num_written_;
    }
    return {};
  }

  const server::EngineApi& engine_;
  server::Service& service_;
  BatchReader& requests_;
  BatchOutput& output_;
  const size_t max_running_;
  size_t num_written_;
  std::map<size_t, BatchRequest> running_;  // by number
  std::deque<size_t> refused_;              // numbers of running_ that must be sent again
  Clock::time_point pause_end_ = {};
  std::map<size_t, HeldLine> lines_;  // by number; held back until all earlier lines are written
  std::shared_ptr<FinishedQueue> finished_ = std::make_shared<FinishedQueue>();
  Progress progress_{"batch"};
  const std::function<std::string()> note_ = [this] {
    return output_.num_failed() == 0 ? std::string()
                                     : fmt::format("{} failed", output_.num_failed());
  };
};

// Runs the batch on a loaded engine.
Status run_on(std::unique_ptr<Engine> engine, const ServeOptions& options, BatchReader& requests,
              BatchOutput& output) {
  server::ServiceConfig config = model_service_config(options, *engine);
  set_access(options, {}, false, config);
  const std::unique_ptr<server::EngineApi> api = server::make_engine_api(*engine);
  server::Service service(*api, std::move(config));
  const CancelScope scope;
  Status status = BatchRun(*api, service, requests, output).run();
  service.close();
  service.cancel();
  service.stop();
  engine.reset();  // before the service ends, because the engine delivers its last outputs to it
  return status;
}

Result<int> run(BatchOptions& options) {
  const std::string& input_path = options.files[0];
  QUIRE_ASSIGN_OR_RETURN(const std::string input, read_input(input_path));
  std::error_code is_missing;
  if (std::filesystem::equivalent(input_path, options.files[1], is_missing)) {
    return invalid_argument(
        fmt::format("[batch] {} is the input too, expected another output", options.files[1]));
  }
  BatchReader requests(input, input_path);
  if (requests.num_requests() == 0) {
    return invalid_argument(
        fmt::format("[input] {} is empty; expected one request per line", input_name(input_path)));
  }
  QUIRE_ASSIGN_OR_RETURN(BatchOutput output, BatchOutput::open(options.files[1], requests));
  const size_t num_total = requests.num_requests();
  if (requests.num_read() > 0) {
    print_stderr("{} has {} of {} responses\n", options.files[1], requests.num_read(), num_total);
  }
  if (requests.num_read() < num_total) {
    use_default_model(&options.serve.engine.model);
    QUIRE_RETURN_IF_ERROR(pull_missing_model(options.serve.engine));
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, load_engine(options.serve.engine));
    QUIRE_RETURN_IF_ERROR(run_on(std::move(engine), options.serve, requests, output));
  }
  if (output.num_failed() == 0) return kExitOk;
  return invalid_argument(fmt::format("[batch] {} of {} requests failed; their lines in {} say why",
                                      output.num_failed(), num_total, options.files[1]));
}

}  // namespace

Command batch_command() {
  const auto options = std::make_shared<BatchOptions>();
  Command command;
  command.name = "batch";
  command.summary = "Answer a file of requests, as OpenAI's Batch API does";
  command.details =
      "Each line of INPUT is an object: custom_id (a unique text), method (POST), url (a "
      "route\n"
      "of quire serve, such as /v1/chat/completions) and body (what the route takes). OUTPUT gets\n"
      "a line for each, in the same order: id, custom_id, response (status_code, request_id, "
      "body)\n"
      "and error. The same command continues an interrupted batch: requests that have a line are\n"
      "not run again, even if they failed.\n";
  command.example =
      "  quire batch requests.jsonl responses.jsonl --model smollm2\n"
      "  quire batch requests.jsonl responses.jsonl --model ~/models/llama "
      "--served-model-name gpt-4o";
  add_batch_flags(command.flags, &options->serve);
  command.positional = {
      .name = "INPUT OUTPUT",
      .help = "The file of requests, or - for standard input, and the file of responses",
      .kind = ValueKind::kFile,
      .min_words = 2,
      .max_words = 2,
      .set = [options](std::string_view word) -> Status {
        options->files.emplace_back(word);
        return {};
      },
      .excess = "the model is --model M here"};
  command.check = [options](Complaints& complaints) {
    if (options->files.size() == 2 && options->files[1] == "-") {
      complaints.add(
          "OUTPUT: got -, expected a file, which tells where an interrupted batch continues");
    }
    check_batch(options->serve, complaints);
  };
  command.log->level = "warning";  // a line per request would hide the progress
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
