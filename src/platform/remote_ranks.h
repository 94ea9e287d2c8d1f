// The ranks of other nodes run the plans of node 0. Messages of node 0 make each node call its own
// runner in the same order. Each node returns a digest of each step's tokens.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "nodes/nodes.h"
#include "platform/runner.h"
#include "sched/batch_plan.h"
#include "sched/plan_bytes.h"

namespace quire {

// On node 0, the ranks of all other nodes.
class RemoteRanks {
 public:
  explicit RemoteRanks(std::shared_ptr<Nodes> nodes) : nodes_(std::move(nodes)) {}
  // Ends the other nodes: NCCL releases the ranks of a machine only together.
  ~RemoteRanks() { nodes_->end(); }
  RemoteRanks(const RemoteRanks&) = delete;
  RemoteRanks& operator=(const RemoteRanks&) = delete;

  void enqueue(const BatchPlan& plan);
  // Lets every node wait for its oldest step.
  void begin_wait();
  // Waits for these steps. Fails if a node reports an error, or if it has sampled other tokens than
  // `first`, the result on node 0.
  Status end_wait(const StepResult& first);
  // Names the nodes from which node 0 has no result of a stalled step. `local_ended`: whether all
  // ranks of node 0 have ended the step. Any thread may call it.
  std::string describe_wait(bool local_ended) const;

 private:
  std::shared_ptr<Nodes> nodes_;
  std::atomic<int> num_received_ = 0;  // results of the step that is waited for
};

// On another node: runs node 0's plans by `runner` until node 0 ends, a step fails, or
// `should_stop` returns true. Calls `should_stop` about every 100 ms. Ok: node 0 has ended.
// limits and vocab_size: see plan_from_bytes().
Status serve_remote_ranks(Nodes& nodes, Runner& runner, const SchedulerConfig& limits,
                          int vocab_size, const std::function<bool()>& should_stop);

}  // namespace quire
