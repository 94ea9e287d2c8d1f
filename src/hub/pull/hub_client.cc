#include "hub/pull/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/ascii.h"
#include "hub/pull/repository_list.h"

namespace quire::hub {
namespace {

constexpr int kMaxAttempts = 5;
constexpr int64_t kProgressBytes = int64_t{1} << 20;
constexpr int kMaxRetryAfterS = 300;

// HTTP statuses.
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kMissing = 404;
constexpr int kTimeout = 408;
constexpr int kTooMany = 429;
constexpr int kFirstServerError = 500;

std::string page_of(const HubSettings& settings) {
  return settings.endpoint + "/" + settings.model.repository;
}

// Returns the remedy that concerns the token. It depends on whether a token was sent.
std::string token_remedy(const HubSettings& settings) {
  return settings.token.empty()
             ? fmt::format("set HF_TOKEN to a token of {}/settings/tokens", settings.endpoint)
             : "check that the token (HF_TOKEN) belongs to an account with access";
}

std::string explain_access(const Reply& reply, const HubSettings& settings, std::string_view what) {
  const ModelName& model = settings.model;
  if (reply.error_code == "GatedRepo") {
    return fmt::format("[hub] {} is gated: ask for access at {}, then {}", model.repository,
                       page_of(settings), token_remedy(settings));
  }
  if (reply.error_code == "RevisionNotFound") {
    return fmt::format("[hub] {} has no revision '{}'; expected a branch, tag or commit of {}",
                       model.repository, model.revision, page_of(settings));
  }
  if (reply.error_code == "EntryNotFound" || (reply.status == kMissing && !what.empty())) {
    return fmt::format("[hub] {} has no {}, though the hub lists it; try again", model.text(),
                       what);
  }
  if (reply.status == kForbidden) {
    return fmt::format("[hub] access to {} is forbidden (403{}{}); {}", model.repository,
                       reply.error_text.empty() ? "" : ": ", reply.error_text,
                       token_remedy(settings));
  }
  // The hub responds with 401 for a model that does not exist, so as not to reveal which private
  // models exist.
  return fmt::format(
      "[hub] {} has no model {}{}, or it is private ({}{}{}); check the name, or {}",
      settings.endpoint, model.repository,
      model.revision == kMainRevision ? "" : fmt::format(" with a revision '{}'", model.revision),
      reply.status, reply.error_text.empty() ? "" : ": ", reply.error_text, token_remedy(settings));
}

// Returns an ok status if the receiver is complete.
Refusal try_once(CurlClient& curl, const Get& request, Receiver& receiver, std::string_view what,
                 PullState& state, const std::function<Refusal(const Reply&)>& explain) {
  const bool was_answered = state.was_answered;
  const Reply reply = curl.get(request, receiver);
  if (reply.status != 0) state.was_answered = true;
  if (!reply.failure.ok() || !reply.is_content()) {
    Refusal refusal = explain(reply);
    if (reply.status == 0 && !was_answered) refusal.may_retry = false;
    return refusal;
  }
  if (receiver.is_complete()) return {};
  return {unavailable(fmt::format("[hub] a response ended after {} bytes of {}; expected more",
                                  receiver.size(), what)),
          true};
}

}  // namespace

Refusal explain(const Reply& reply, const HubSettings& settings, std::string_view what) {
  if (!reply.failure.ok()) return {reply.failure, reply.may_retry};
  const int status = reply.status;
  if (status == kUnauthorized || status == kForbidden || status == kMissing) {
    return {not_found(explain_access(reply, settings, what))};
  }
  const std::string subject = what.empty() ? "the list of files" : std::string(what);
  if (status == kTooMany) {
    return {resource_exhausted(fmt::format(
                "[hub] the hub limits the rate of requests (429); try again later{}",
                settings.token.empty() ? ", or set HF_TOKEN: accounts have a higher limit" : "")),
            reply.retry_after_s <= kMaxRetryAfterS, reply.retry_after_s};
  }
  const bool may_pass = status >= kFirstServerError || status == kTimeout;
  return {unavailable(fmt::format("[hub] the hub answered {} with status {}{}{}", subject, status,
                                  reply.error_text.empty() ? "" : ": ", reply.error_text)),
          may_pass && reply.retry_after_s <= kMaxRetryAfterS, reply.retry_after_s};
}

void wait_interruptibly(std::chrono::milliseconds time, const std::function<bool()>& interrupted) {
  constexpr std::chrono::milliseconds kSlice{50};
  const auto end = std::chrono::steady_clock::now() + time;
  while (!interrupted()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::milliseconds(0)) return;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kSlice));
  }
}

HubClient::HubClient(const HubSettings& settings, PullState& state, CurlClient curl)
    : settings_(settings), state_(state), curl_(std::move(curl)) {}

Result<HubClient> HubClient::create(const HubSettings& settings, PullState& state) {
  QUIRE_ASSIGN_OR_RETURN(CurlClient curl,
                         CurlClient::create({settings.user_agent, state.interrupted}));
  return HubClient(settings, state, std::move(curl));
}

Status HubClient::get_list(Receiver& receiver) {
  const std::string url =
      fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings_.endpoint,
                  settings_.model.repository, url_escaped(settings_.model.revision));
  return get(url, "", receiver);
}

Status HubClient::get_file(std::string_view commit, std::string_view file, Receiver& receiver) {
  const std::string url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint,
                                      settings_.model.repository, commit, url_escaped(file, "/"));
  return get(url, file, receiver);
}

Status TextReceiver::begin(const Reply& head) {
  text_.clear();
  url_ = head.url;
  return {};
}

Status TextReceiver::receive(std::string_view bytes) {
  if (bytes.size() > kMaxListBytes - text_.size()) {
    return invalid_argument(fmt::format(
        "[hub] the list of files is longer than {} bytes; expected the list of one model",
        kMaxListBytes));
  }
  text_ += bytes;
  return {};
}

bool Attempts::allow_another(int64_t num_bytes) {
  if (num_bytes - num_bytes_ >= kProgressBytes) {
    num_bytes_ = num_bytes;
    num_failed_ = 0;
  }
  return ++num_failed_ < kMaxAttempts;
}

Status HubClient::get(std::string url, std::string_view what, Receiver& receiver) {
  return get_repeatedly(curl_, {.url = std::move(url), .token = settings_.token}, receiver, what,
                        settings_.first_wait, state_,
                        [&](const Reply& reply) { return explain(reply, settings_, what); });
}

Status get_repeatedly(CurlClient& curl, Get request, Receiver& receiver, std::string_view what,
                      std::chrono::milliseconds first_wait, PullState& state,
                      const std::function<Refusal(const Reply&)>& explain) {
  Attempts attempts(receiver.size());
  while (true) {
    if (state.interrupted()) return cancelled("[hub] interrupted");
    request.offset = receiver.size();
    const Refusal refusal = try_once(curl, request, receiver, what, state, explain);
    if (refusal.status.ok() || !refusal.may_retry) return refusal.status;
    if (!attempts.allow_another(receiver.size())) return refusal.status;
    const auto pause = std::max<std::chrono::milliseconds>(
        first_wait * attempts.wait_factor(), std::chrono::seconds(refusal.retry_after_s));
    state.note(fmt::format("{}{}{}; trying again in {:.1f} s", what, what.empty() ? "" : ": ",
                           refusal.status.message(), std::chrono::duration<double>(pause).count()));
    wait_interruptibly(pause, state.interrupted);
  }
}

std::string url_escaped(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = is_alphanumeric(c) ||
                          std::string_view("-._~").find(c) != std::string_view::npos ||
                          kept.find(c) != std::string_view::npos;
    out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace quire::hub
