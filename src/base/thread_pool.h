// The threads of a CPU's parallel regions, and the CPUs that they are bound to.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace quire {

// Where a thread of a pool runs.
struct ThreadPlace {
  std::vector<int> cpus;  // the CPUs that it is bound to; empty: any
  int node = 0;           // the NUMA node of these CPUs, as the kernel numbers it

  friend bool operator==(const ThreadPlace&, const ThreadPlace&) = default;
};

// Binds the calling thread to CPUs, and restores its affinity at the end.
class BoundThread {
 public:
  // Does nothing if `cpus` is empty. If the kernel refuses or there is no memory, logs it and
  // leaves the thread unbound.
  explicit BoundThread(std::span<const int> cpus) noexcept;
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  std::vector<int> before_;  // empty: nothing to restore
};

// Fork and join over a fixed set of threads; the caller is thread 0. Designed for many short
// parallel regions in a row (one per operation of a model): workers spin briefly between regions
// and then sleep, so that an idle engine uses no CPU time. The pool does not wait for a worker that
// arrives late because the machine gave its core to another program.
class ThreadPool {
 public:
  static constexpr int kMaxThreads = 4095;

  explicit ThreadPool(int num_threads) : ThreadPool(std::vector<ThreadPlace>(num_threads)) {}
  // One thread per place. Workers are bound to their place; a caller binds itself by
  // bind_caller().
  explicit ThreadPool(std::vector<ThreadPlace> places);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // From now on, regions run on the first `num_threads` threads; more than num_threads() mean all.
  // The other threads sleep. Called between regions, by the thread that runs them.
  void use_threads(int num_threads);

  // Binds the calling thread to the place of thread 0 for as long as the result lives.
  BoundThread bind_caller() const { return BoundThread(places_.front().cpus); }

  // The distinct NUMA nodes of the threads, at least one. node_of() and share() take and return
  // indices into this list.
  std::span<const int> nodes() const { return nodes_; }
  int node_of(int thread_idx) const { return node_of_[static_cast<size_t>(thread_idx)]; }

  // Tasks [begin, end).
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
  };
  // The part of [0, count) that belongs to a node, in proportion to its threads. Equal arguments
  // give the same part, so that the node that packs a part of a matrix also multiplies it.
  Share share(int node, int64_t count) const;

  // Calls task(thread_idx) on the caller's thread and, at most once each, on the workers that
  // arrive before the caller's call returns. Therefore a task must distribute its work dynamically
  // (by an atomic counter), never as a fixed share per thread. Returns when all calls have ended.
  // Regions do not nest, and only one thread at a time may call this. If calls throw, the first
  // exception is rethrown once all have ended.
  void run(const std::function<void(int thread_idx)>& task);

  // Calls body(i) for each i of [0, count), distributed one at a time in ascending order. The
  // thread that runs an i is not determined, so body's result must not depend on it.
  void parallel_for(int64_t count, const std::function<void(int64_t i)>& body);
  // parallel_for(), but threads take the share of their node first.
  void parallel_for_by_node(int64_t count, const std::function<void(int64_t i)>& body);

 private:
  friend class NodeTasks;

  // Has its own cache line, because the threads of each node use another counter.
  struct alignas(64) Counter {
    std::atomic<int64_t> next = 0;
  };

  void worker_loop(int thread_idx);
  void call_task(int thread_idx);
  std::optional<uint64_t> wait_for_region(int thread_idx, uint64_t seen);
  std::optional<uint64_t> join_region(int thread_idx);
  bool is_used(int thread_idx) const;

  // One word holds the region's number, whether it is open, how many threads may take part, and how
  // many workers have joined.
  static constexpr uint64_t kJoined = kMaxThreads;
  static constexpr int kUsedShift = 12;
  static constexpr uint64_t kUsed = kJoined << kUsedShift;
  static constexpr uint64_t kOpen = uint64_t{1} << 24;
  static constexpr uint64_t kRegion = kOpen << 1;

  std::vector<ThreadPlace> places_;
  std::vector<int> nodes_;
  std::vector<int> node_of_;             // by thread
  std::vector<int64_t> first_thread_;    // by node; the last element is the number of threads
  std::unique_ptr<Counter[]> counters_;  // one per node, of the tasks of a region
  std::vector<std::thread> workers_;
  const std::function<void(int)>* task_ = nullptr;
  std::atomic<uint64_t> state_ = 0;
  std::atomic<uint64_t> num_ended_ = 0;  // workers that joined the region and have ended
  std::atomic<bool> stopping_ = false;
  std::atomic<int> num_sleeping_ = 0;  // of the threads that regions use
  std::mutex mutex_;
  std::condition_variable wake_;      // a region began
  std::condition_variable use_more_;  // regions use other threads
  std::exception_ptr error_;          // first exception of the region
};

// The tasks of a region whose data is in the memory of the nodes that packed it. A thread takes the
// tasks of its own node first, then those of the other nodes. Create it before the region; a pool
// has at most one at a time.
class NodeTasks {
 public:
  explicit NodeTasks(ThreadPool& pool);

  // Calls take_from(node) for all nodes, the thread's own first.
  template <class TakeFrom>
  void for_nodes(int thread_idx, const TakeFrom& take_from) const {
    const int num_nodes = static_cast<int>(pool_.nodes().size());
    const int own = pool_.node_of(thread_idx);
    for (int i = 0; i < num_nodes; ++i) take_from((own + i) % num_nodes);
  }
  // Takes a task of the node. Returns the number of its tasks taken before.
  int64_t take(int node) { return pool_.counters_[static_cast<size_t>(node)].next.fetch_add(1); }
  ThreadPool::Share share(int node, int64_t count) const { return pool_.share(node, count); }

  // A thread's part of `count` tasks: calls body(i), in ascending order per node.
  template <class Body>
  void run(int thread_idx, int64_t count, const Body& body) {
    for_nodes(thread_idx, [&](int node) {
      const ThreadPool::Share part = share(node, count);
      for (int64_t i = part.begin + take(node); i < part.end; i = part.begin + take(node)) body(i);
    });
  }

 private:
  ThreadPool& pool_;
};

}  // namespace quire
