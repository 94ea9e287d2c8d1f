#include "platform/remote_ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_archive.h"
#include "base/digest.h"
#include "base/guarded.h"
#include "base/text.h"

namespace quire {
namespace {

using namespace std::chrono_literals;

// The first byte of a message of node 0.
constexpr char kEnqueue = 'e';  // a plan follows
constexpr char kWait = 'w';

// Digests the ids of the tokens that a step sampled, in order.
std::vector<uint8_t> digest_of(const StepResult& result) {
  ByteWriter writer;
  for (const SpanResult& span : result.spans) {
    std::vector<int32_t> ids;
    for (const SampledToken& token : span.tokens) ids.push_back(token.token_id);
    writer(ids);
  }
  const Sha256Digest digest = sha256_of(writer.take());
  return {digest.begin(), digest.end()};
}

std::string result_bytes(const StepResult& result) {
  ByteWriter writer;
  writer(static_cast<uint8_t>(result.error.code()), result.error.message(), digest_of(result));
  return writer.take();
}

Status check_result(const Result<std::string>& received, std::string_view node,
                    const StepResult& first) {
  if (!received.ok()) return received.status();
  uint8_t code = 0;
  std::string message;
  std::vector<uint8_t> digest;
  ByteReader reader(*received);
  reader(code, message, digest);
  if (!reader.is_complete() || code > static_cast<uint8_t>(StatusCode::kUnavailable)) {
    return internal_error(fmt::format("[runner] {} has sent a malformed result", node));
  }
  const auto status_code = static_cast<StatusCode>(code);
  if (status_code != StatusCode::kOk) {
    return {status_code,
            fmt::format("[runner] a step has failed on {}: {}", node, one_line(message))};
  }
  if (!first.error.ok() || digest == digest_of(first)) return {};
  return internal_error(
      fmt::format("[runner] {} sampled other tokens than node 0 in a step of {} sequences", node,
                  first.spans.size()));
}

using ReadPlan = std::function<Result<BatchPlan>(std::string_view bytes)>;

Status run_message(std::string_view message, Nodes& nodes, Runner& runner,
                   const ReadPlan& read_plan, int& num_in_flight) {
  if (message.starts_with(kEnqueue) && num_in_flight < kMaxStepsInFlight) {
    QUIRE_ASSIGN_OR_RETURN(BatchPlan plan, read_plan(message.substr(1)));
    runner.enqueue(std::make_shared<const BatchPlan>(std::move(plan)));
    ++num_in_flight;
    return {};
  }
  if (message == std::string_view(&kWait, 1) && num_in_flight > 0) {
    --num_in_flight;
    const StepResult result = runner.wait();
    nodes.send(0, result_bytes(result));
    return result.error;
  }
  return internal_error(fmt::format(
      "[runner] a message of {} bytes from node 0, with {} steps in flight, is malformed",
      message.size(), num_in_flight));
}

}  // namespace

void RemoteRanks::enqueue(const BatchPlan& plan) {
  const std::string message = kEnqueue + plan_to_bytes(plan);
  for (int node = 1; node < nodes_->size(); ++node) nodes_->send(node, message);
}

void RemoteRanks::begin_wait() {
  num_received_ = 0;
  for (int node = 1; node < nodes_->size(); ++node) {
    nodes_->send(node, std::string_view(&kWait, 1));
  }
}

Status RemoteRanks::end_wait(const StepResult& first) {
  Status error;
  for (int node = 1; node < nodes_->size(); ++node) {
    const Status result = check_result(nodes_->receive(node), nodes_->name(node), first);
    ++num_received_;
    if (error.ok()) error = result;
  }
  return error;
}

std::string RemoteRanks::describe_wait(bool local_ended) const {
  if (std::string wait = nodes_->describe_wait(); !wait.empty()) return wait;
  std::vector<std::string> names;
  if (!local_ended) names.emplace_back("node 0");
  for (int node = num_received_ + 1; node < nodes_->size(); ++node) {
    if (!nodes_->has_message(node)) names.push_back(nodes_->name(node));
  }
  if (names.empty()) return "all nodes have ended it";
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  return local_ended ? fmt::format("node 0 has ended it, and waits for {}", all)
                     : fmt::format("{} ha{} not ended it", all, names.size() == 1 ? "s" : "ve");
}

Status serve_remote_ranks(Nodes& nodes, Runner& runner, const SchedulerConfig& limits,
                          int vocab_size, const std::function<bool()>& should_stop) {
  const ReadPlan read_plan = [&](std::string_view bytes) {
    return plan_from_bytes(bytes, limits, vocab_size);
  };
  int num_in_flight = 0;
  Status status;
  while (status.ok()) {
    if (should_stop()) {
      status = unavailable("[nodes] this node was stopped before node 0 had ended");
      break;
    }
    Result<std::optional<std::string>> message = nodes.receive_within(0, 100ms);
    if (!message.ok()) {
      status = message.status();
    } else if (*message) {
      status = guarded_status("[runner] a step could not run", [&] {
        return run_message(**message, nodes, runner, read_plan, num_in_flight);
      });
    }
  }
  bool has_ended = status.code() == StatusCode::kCancelled && nodes.status().ok();
  if (has_ended && num_in_flight > 0) {  // node 0 waits for all steps before it ends
    has_ended = false;
    status =
        unavailable(fmt::format("{} with {} steps in flight, expected none; its log has the "
                                "reason",
                                status.message(), num_in_flight));
  }
  if (!has_ended) nodes.fail(status);
  for (; num_in_flight > 0; --num_in_flight) (void)runner.wait();
  return has_ended ? Status() : status;
}

}  // namespace quire
