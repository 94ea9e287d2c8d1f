// An engine whose outputs the test sends, and an exchange that records the response.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/engine_api.h"
#include "server/http/http.h"

namespace quire::testing {

// One token per byte of text: 'a' is 97.
class FakeEngine final : public server::EngineApi {
 public:
  FakeEngine() {
    info_.name = "fake";
    info_.vocab_size = 256;
    info_.max_model_len = 64;
    info_.max_num_seqs = 4;
  }

  Result<RequestId> submit(Request request, Engine::OutputCallback on_output) override {
    const std::lock_guard lock(mutex_);
    if (!refusal_.ok()) return refusal_;
    const RequestId id = next_id_++;
    running_.emplace(id, Running{std::move(request), std::move(on_output)});
    submitted_.notify_all();
    return id;
  }
  void cancel(RequestId id) override {
    Output output;
    output.finish_reason = FinishReason::kCancelled;
    send(id, std::move(output));
  }
  Result<RenderedChat> render_chat(const jinja::Value& variables) const override {
    if (!template_fault_.ok()) return template_fault_;
    if (chat_format_) return chat_format_->render(variables);
    if (!render_) return RenderedChat{{"<rendered by the fake>" + chat_suffix_, {}}};
    QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, render_(variables));
    return RenderedChat{std::move(prompt)};
  }
  std::string_view chat_template() const override { return chat_template_; }
  Result<std::vector<int32_t>> encode(std::string_view text, bool /*special*/,
                                      const ByteSpans& /*untrusted*/) const override {
    if (on_encode_) on_encode_(text);
    if (!encode_error_.ok()) return encode_error_;
    std::vector<int32_t> ids;
    for (const char c : text) ids.insert(ids.end(), num_ids_per_byte_, c);
    return ids;
  }
  std::string decode(const std::vector<int32_t>& ids, bool /*skip*/) const override {
    ++num_decodes_;
    return {ids.begin(), ids.end()};
  }
  std::string token_bytes(int32_t id) const override {
    return std::string(1, static_cast<char>(id));
  }
  bool is_added_token(int32_t id) const override { return id == added_token_; }
  SamplingDefaults sampling_defaults(SamplingFallback fallback) const override {
    SamplingDefaults defaults;
    defaults.source = "test";
    if (fallback == SamplingFallback::kNone) return defaults;
    defaults.params.temperature = 0.8F;
    defaults.params.top_p = 0.95F;
    defaults.params.repetition_penalty = repetition_penalty_;
    return defaults;
  }
  const ModelInfo& model_info() const override { return info_; }
  EngineStats stats() const override { return stats_; }
  Status health() const override { return health_; }
  std::vector<ReplicaState> replicas() const override {
    if (!replicas_.empty()) return replicas_;
    return {{.stats = stats_, .health = health_}};
  }

  // Waits for the n-th submitted request (counted from 1, `id` is n), and returns it.
  Request wait_for(RequestId id) {
    std::unique_lock lock(mutex_);
    submitted_.wait(lock, [&] { return next_id_ > id; });
    return running_.at(id).request;
  }
  // Returns whether the n-th request has been submitted.
  bool has_submitted(RequestId id) {
    const std::lock_guard lock(mutex_);
    return next_id_ > id;
  }
  bool is_running(RequestId id) {
    const std::lock_guard lock(mutex_);
    return running_.contains(id);
  }
  // Sends one output with this text. With a finish reason it is the sample's last output.
  void say(RequestId id, const std::string& text, std::optional<FinishReason> reason = {},
           int index = 0) {
    Output output;
    output.index = index;
    output.text = text;
    output.token_ids.assign(text.begin(), text.end());
    output.finish_reason = reason;
    output.first_scheduled = std::chrono::steady_clock::now();
    send(id, std::move(output));
  }
  void send(RequestId id, Output output) {
    Engine::OutputCallback on_output;
    {
      const std::lock_guard lock(mutex_);
      const auto found = running_.find(id);
      if (found == running_.end()) return;
      on_output = found->second.on_output;
      if (output.finish_reason && --found->second.num_left == 0) running_.erase(found);
    }
    on_output(std::move(output));
  }
  // Sends an error, which ends the request.
  void fail(RequestId id, Status error = internal_error("[sample] NaN logits")) {
    Output output;
    output.finish_reason = FinishReason::kError;
    output.error = std::move(error);
    send(id, std::move(output));
  }
  // Prepares a request with several samples.
  void expect_answers(RequestId id, int n) {
    const std::lock_guard lock(mutex_);
    running_.at(id).num_left = n;
  }

  // Sends every sample its last output, as an engine that stops does.
  void end_all() {
    while (true) {
      RequestId id = 0;
      {
        const std::lock_guard lock(mutex_);
        if (running_.empty()) return;
        id = running_.begin()->first;
      }
      cancel(id);
    }
  }

  void use_template(std::string source) {
    chat_format_ = ChatFormat::from_template(source).value();
    chat_template_ = std::move(source);
  }

  ModelInfo info_;
  float repetition_penalty_ = 1;  // of the model's files
  std::string chat_template_ = "{{ messages }}";
  std::string chat_suffix_;
  std::optional<ChatFormat> chat_format_;  // renders by a template; see use_template()
  std::function<Result<MarkedText>(const jinja::Value& variables)> render_;
  Status template_fault_;
  std::function<void(std::string_view text)> on_encode_;  // may block
  size_t num_ids_per_byte_ = 1;
  int32_t added_token_ = -1;
  mutable std::atomic<int> num_decodes_ = 0;
  EngineStats stats_;
  Status health_;
  std::vector<ReplicaState> replicas_;  // empty: one, with stats_ and health_
  Status refusal_;
  Status encode_error_;

 private:
  struct Running {
    Request request;
    Engine::OutputCallback on_output;
    int num_left = 1;
  };
  std::mutex mutex_;
  std::condition_variable submitted_;
  RequestId next_id_ = 1;
  std::map<RequestId, Running> running_;
};

class FakeExchange final : public http::Exchange {
 public:
  explicit FakeExchange(size_t room = SIZE_MAX) : room_(room) {}

  bool respond(http::Response response) override {
    if (response.status >= 400) {
      EXPECT_THAT(response.body, ::testing::Not(::testing::ContainsRegex("--[a-z]")))
          << "a client cannot set the server's flags";
    }
    const std::lock_guard lock(mutex_);
    if (response.body.size() > room_) return false;
    response_ = std::move(response);
    ended_ = true;
    changed_.notify_all();
    return true;
  }
  void start_stream(int status, std::string content_type, http::Headers headers) override {
    const std::lock_guard lock(mutex_);
    response_ = {status, std::move(content_type), std::move(headers), ""};
  }
  void write(std::string piece) override {
    const std::lock_guard lock(mutex_);
    response_.body += piece;
    changed_.notify_all();
  }
  void end_stream() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void on_closed(std::function<void()> callback) override {
    const std::lock_guard lock(mutex_);
    closed_ = std::move(callback);
    changed_.notify_all();
  }

  http::Response wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_; });
    return response_;
  }
  // Waits, and expects this status.
  http::Response wait(int status, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
    http::Response response = wait();
    if (response.status != status) {
      ADD_FAILURE_AT(file, line) << "got status " << response.status << ", expected " << status
                                 << '\n'
                                 << response.body;
    }
    return response;
  }
  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  // Waits until the stream has this text.
  void wait_for(std::string_view text) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return response_.body.find(text) != std::string::npos; });
  }
  // Disconnects the client.
  void close() {
    std::function<void()> callback;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return static_cast<bool>(closed_); });
      callback = closed_;
    }
    callback();
  }

 private:
  const size_t room_;  // for a response that is not a stream
  std::mutex mutex_;
  std::condition_variable changed_;
  http::Response response_;
  bool ended_ = false;
  std::function<void()> closed_;
};

}  // namespace quire::testing
