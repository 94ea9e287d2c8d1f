// Publishes KV events over ZeroMQ as vLLM 0.33 does: a PUB socket sends [topic, sequence number,
// batch] per step, and a ROUTER socket repeats earlier batches.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kv/kv_events.h"
#include "kv_events/event_batch.h"
#include "quire/status.h"

namespace quire {

// vLLM's KVEventsConfig.
struct KvEventsConfig {
  bool enable_kv_cache_events = false;
  std::string publisher = "null";  // "zmq" or "null"
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint = {};  // empty: no replay
  int buffer_steps = 10'000;         // batches that are kept for replay
  // Batches that wait for a slow subscriber; later ones are dropped. 0: no limit.
  int hwm = 100'000;
  int max_queue_size = 100'000;  // batches that wait to be published; later ones are dropped
  std::string topic = {};

  bool publishes() const { return enable_kv_cache_events && publisher == "zmq"; }
};

// The endpoint of a data-parallel rank: a port other than 0 plus the rank, or a name with a suffix.
std::string endpoint_of_rank(std::string_view endpoint, int rank);
// Returns kInvalidArgument if the TCP ports of `num_ranks` ranks overlap or do not exist.
Status check_ports(const KvEventsConfig& config, int num_ranks);
// As in vLLM: an endpoint with `*` or `::`, or an ipc:// path, is bound; otherwise the socket
// connects.
bool binds_to(std::string_view endpoint);

class KvEventPublisher {
 public:
  // Opens the sockets. Fails if an endpoint cannot be used.
  static Result<std::unique_ptr<KvEventPublisher>> open(const KvEventsConfig& config, int rank);
  // Publishes the waiting batches, and lets subscribers read them, for about 1 s in total.
  ~KvEventPublisher();
  KvEventPublisher(const KvEventPublisher&) = delete;
  KvEventPublisher& operator=(const KvEventPublisher&) = delete;

  // Starts the thread that publishes. Call it once, before publish().
  void start(KvEventForm form);

  // Queues the events of a step. Never waits for a subscriber or the network. If max_queue_size
  // batches wait, the batch is dropped: subscribers can detect the gap in the sequence numbers.
  void publish(std::vector<KvEvent>&& events);
  int64_t num_dropped() const { return num_dropped_.load(std::memory_order_relaxed); }

  // The configuration with the rank's endpoints and with the ports that the system chose.
  const KvEventsConfig& config() const { return config_; }

 private:
  struct Sockets;
  struct Batch {
    uint64_t number = 0;
    double timestamp = 0;
    std::vector<KvEvent> events;
  };
  struct Sent {
    uint64_t number = 0;
    std::string payload;
  };

  KvEventPublisher(KvEventsConfig config, int rank);

  Status open_sockets();
  void wake();
  void run();
  void send(const Batch& batch);
  void answer_replay();
  void repeat_from(uint64_t first, const std::string& client);

  KvEventsConfig config_;
  const int rank_;
  std::unique_ptr<Sockets> sockets_;
  std::atomic<int64_t> num_dropped_ = 0;

  // Filled by the engine's thread, emptied by the publisher's thread.
  std::mutex mutex_;
  std::vector<Batch> waiting_;
  uint64_t next_number_ = 0;
  std::chrono::steady_clock::time_point stop_deadline_;  // set before stopping_
  std::atomic<bool> stopping_ = false;  // written under the mutex, read also without it

  // Used only by the publisher's thread.
  KvEventForm form_;
  std::deque<Sent> sent_;  // the last buffer_steps batches

  std::thread thread_;
};

}  // namespace quire
