// Requests about one model to the hub. They carry the user's token, are repeated after failures
// that may be temporary, and have errors that name the remedy.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "hub/cache/model_cache.h"
#include "hub/pull/curl_client.h"
#include "quire/status.h"

namespace quire::hub {

struct HubSettings {
  ModelName model;
  std::string endpoint;  // without a slash at the end
  std::string token;     // empty: anonymous
  std::string user_agent;
  std::chrono::milliseconds first_wait{1000};  // before the second attempt; then doubled
};

// Shared by the clients of several threads; the functions must be thread-safe.
struct PullState {
  std::function<bool()> interrupted;
  std::function<void(const std::string& line)> note;
  std::atomic<bool> was_answered = false;  // whether a server has responded once
};

// A failed attempt: the error for the user, and whether and when another attempt may succeed.
struct Refusal {
  Status status;
  bool may_retry = false;
  int retry_after_s = 0;
};

// `what` names the file, or is empty for the list of files.
Refusal explain(const Reply& reply, const HubSettings& settings, std::string_view what);

// Sleeps, and returns early if interrupted() returns true.
void wait_interruptibly(std::chrono::milliseconds time, const std::function<bool()>& interrupted);

// Keeps a whole list of files in memory, of at most kMaxListBytes.
class TextReceiver : public Receiver {
 public:
  Status begin(const Reply& head) override;
  Status receive(std::string_view bytes) override;
  int64_t size() const override { return 0; }  // a list is requested again as a whole
  bool is_complete() const override { return true; }

  const std::string& text() const { return text_; }
  const std::string& url() const { return url_; }  // of the response, after redirects

 private:
  std::string text_;
  std::string url_;
};

// Counts consecutive attempts that together received less than 1 MiB. A server that ignores ranges
// and sends only the first part each time makes no progress.
class Attempts {
 public:
  // `num_bytes`: the bytes that the receiver has before the first attempt.
  explicit Attempts(int64_t num_bytes) : num_bytes_(num_bytes) {}

  // Called after a failed attempt, with the bytes that the receiver has now. Returns false after 5
  // such attempts.
  bool allow_another(int64_t num_bytes);
  int wait_factor() const { return 1 << (num_failed_ - 1); }  // the wait doubles each time

 private:
  int64_t num_bytes_;  // at the last progress
  int num_failed_ = 0;
};

// Requests the bytes from receiver.size() on, and repeats the request until the receiver is
// complete or until `explain` or Attempts allows no further attempt. A connection that fails before
// the server has responded once is not repeated. `what` names the file in messages.
Status get_repeatedly(CurlClient& curl, Get request, Receiver& receiver, std::string_view what,
                      std::chrono::milliseconds first_wait, PullState& state,
                      const std::function<Refusal(const Reply&)>& explain);

class HubClient {
 public:
  // The arguments must outlive the client.
  static Result<HubClient> create(const HubSettings& settings, PullState& state);

  const PullState& state() const { return state_; }

  // Download the list of files, and one file of a commit.
  Status get_list(Receiver& receiver);
  Status get_file(std::string_view commit, std::string_view file, Receiver& receiver);

 private:
  HubClient(const HubSettings& settings, PullState& state, CurlClient curl);

  Status get(std::string url, std::string_view what, Receiver& receiver);

  const HubSettings& settings_;
  PullState& state_;
  CurlClient curl_;
};

// Percent-encodes all but letters, digits, "-._~" and the characters of `kept`.
std::string url_escaped(std::string_view text, std::string_view kept = "");

}  // namespace quire::hub
