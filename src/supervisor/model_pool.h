// Starts a process per model when requests need it, and unloads models to make room, after a time
// without requests, or when told to. Independent of HTTP's details: a request is called back once
// its model is loaded.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "supervisor/child.h"
#include "supervisor/model_list.h"
#include "supervisor/unload_choice.h"
#include "supervisor/upstream.h"

namespace quire::supervisor {

using Clock = std::chrono::steady_clock;

struct PoolConfig {
  std::string program = "/proc/self/exe";
  std::vector<ModelEntry> models;
  // Every model's process gets these before the arguments of its entry.
  std::vector<std::string> arguments = {};
  std::string process_key = {};     // of requests that the pool itself sends; empty: none
  std::filesystem::path directory;  // of the sockets; only the user may enter it
  int max_loaded = 0;               // models that hold memory; 0: no limit
  std::chrono::milliseconds start_timeout{120'000};  // for a request to wait for its model
  std::chrono::milliseconds sleep_idle{0};           // until an idle model is unloaded; 0: never
  std::chrono::milliseconds stop_timeout{35'000};    // until a process that does not end is killed
  std::chrono::milliseconds probe_period{10'000};    // between probes of a loaded process
  bool logs_json = false;
  std::function<int64_t()> free_host_bytes;
};

enum class ModelState { kUnloaded, kLoading, kLoaded, kUnloading, kFailed };
std::string_view name_of(ModelState state);

// The process of a loaded model, as requests and the pool share it.
struct Instance {
  std::unique_ptr<Child> child;        // used by the pool's thread only
  std::unique_ptr<Upstream> upstream;  // must outlive the requests that run
  std::string socket;
  // Guarded by the pool's mutex.
  bool has_room = false;  // the process may take its memory; it waits until its input ends
  int num_running = 0;
  std::chrono::steady_clock::time_point probed_at = {};
  int num_silent_probes = 0;  // the latest ones, without a response until now
};

class ModelPool;

// The message for clients. The log and the model's status have the reason, which may name flags and
// paths of the server.
std::string does_not_start(std::string_view model);

// Keeps the model busy while a request runs.
class Lease {
 public:
  Lease(ModelPool& pool, size_t model, std::shared_ptr<Instance> instance)
      : pool_(pool), model_(model), instance_(std::move(instance)) {}
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Upstream& upstream() const { return *instance_->upstream; }

 private:
  ModelPool& pool_;
  const size_t model_;
  const std::shared_ptr<Instance> instance_;
};

// The reason for which a request does not run.
struct PoolRefusal {
  std::string message;
  std::string code;
  std::chrono::seconds retry_after{1};
};

// Gets exactly one call of run() or refuse(), on any thread, unless it has left before. Neither
// call may block.
class PoolRequest {
 public:
  virtual ~PoolRequest() = default;
  virtual void run(std::shared_ptr<Lease> lease) = 0;
  virtual void refuse(const PoolRefusal& refusal) = 0;
};

struct ModelStatus {
  ModelState state = ModelState::kUnloaded;
  std::string error = {};  // of the last start or the end of the process; empty: none
  int num_running = 0;
  int num_waiting = 0;
  PlannedMemory memory = {};                                 // 0: not planned yet
  std::optional<std::chrono::milliseconds> expires_in = {};  // absent: never
  int64_t num_requests = 0;                                  // that were sent to the model
  int64_t num_starts = 0;
  int64_t num_failed_starts = 0;
  int64_t num_crashes = 0;  // of loaded models
  int64_t num_unloads = 0;
  double start_seconds = 0;      // sum of all starts
  std::string model_json = {};   // the entry of the process's /v1/models; empty: not loaded yet
  std::string ollama_json = {};  // the entry of its /api/ps
};

class ModelPool {
 public:
  explicit ModelPool(PoolConfig config);
  ~ModelPool();  // calls stop()
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;

  const std::vector<ModelEntry>& models() const { return config_.models; }
  // Finds a model by its name or an alias, see is_same_model_name().
  std::optional<size_t> find(std::string_view name) const;
  // The model of requests that name none: the only one, or the one marked as default.
  std::optional<size_t> default_model() const;

  // Runs the request once the model is loaded, in the order of submit().
  void submit(size_t model, std::shared_ptr<PoolRequest> request);
  // Removes a request that waits.
  void leave(size_t model, const PoolRequest& request);
  // The time that the model stays loaded without requests; negative: forever, 0: it is unloaded
  // when it is idle. Holds until the model is unloaded.
  void keep_alive(size_t model, std::chrono::milliseconds duration);
  void load(size_t model);
  void unload(size_t model);  // once its running requests have ended

  std::vector<ModelStatus> status() const;
  // Sends a request without keeping the model busy. Returns false if the model is not loaded. The
  // handler is dropped without a call if no response comes within 2 s.
  bool ask(size_t model, http_client::Request request,
           std::shared_ptr<http_client::ResponseHandler> handler);

  // Refuses waiting and later requests; running ones continue.
  void close();
  // Ends all processes, and waits for them. Running requests lose their connections.
  void stop();

 private:
  friend class Lease;

  enum class Phase { kUnloaded, kPlanning, kStarting, kLoaded, kUnloading };

  struct Waiting {
    std::shared_ptr<PoolRequest> request;
    Clock::time_point deadline;
  };

  // The progress of a model in wanted_, besides its phase.
  struct Start {
    bool is_asked = false;               // by load(), so that it needs no request
    bool knows_plan_is_current = false;  // the kept plan's files are as they were
    bool fits_alone = false;  // a plan that counts other models' memory as free has succeeded
    std::string shortage;     // of free memory, as the last plan reports it; empty: none
    std::optional<std::string> files;  // stamp_of_files() before the plan
  };

  // The part of a successful plan that holds as long as the files are the same.
  struct KeptPlan {
    std::string files;  // stamp_of_files()
    bool is_on_gpu = false;
    int64_t least_free_bytes = 0;
  };

  struct Model {
    Phase phase = Phase::kUnloaded;
    std::optional<Start> start;  // present if the model is in wanted_
    std::optional<PlannedMemory> memory;
    std::optional<KeptPlan>
        kept_plan;  // absent after a failed start, or if the files are not known
    std::unique_ptr<Child> planner;
    bool plans_alone = false;  // the planner counts the memory of all other models as free
    std::shared_ptr<Instance> instance;
    std::deque<Waiting> queue;
    bool is_held = false;  // to be unloaded for another model
    bool unloads_when_idle = false;
    Clock::time_point last_used = {};
    Clock::time_point began = {};    // the start
    Clock::time_point kill_at = {};  // while it plans or unloads
    std::optional<std::chrono::milliseconds> keep_alive;
    int num_failures = 0;  // starts in a row
    Clock::time_point retry_at = {};
    std::string last_line;  // on standard error
    std::string plan_json;
    ModelStatus counts;
  };

  using Actions = std::vector<std::function<void()>>;  // to run without the lock

  // model_pool_thread.cc: the pool's thread.
  void loop();
  void wait_for_events() const;
  Clock::time_point next_deadline() const;
  void read_outputs(Actions& after);
  void read_output(size_t idx, Child& child, Actions& after);
  void step(Actions& after);
  void expire_waiting(size_t idx, Actions& after);
  std::string lateness(size_t idx) const;
  void kill_if_hung(size_t idx);
  void end_late_plan(size_t idx, Actions& after);
  void unload_if_due(size_t idx);
  void start_wanted(Actions& after);
  // Returns false if the model, and all models after it, have to wait.
  bool start_next(size_t idx, Actions& after);
  void make_room_for(const UnloadChoice& choice, size_t idx);
  void make_room_for_plan(size_t idx, Actions& after);
  std::vector<LiveModel> live_models() const;
  Capacity capacity(const std::vector<LiveModel>& live);
  // The memory that the end of these models frees, of the host or of a GPU.
  int64_t bytes_to_free(const std::vector<LiveModel>& live, bool is_on_gpu) const;
  void forget_plan_of_changed_files(size_t idx);
  // Returns whether a plan shows that the model would start if these models had ended.
  bool is_known_to_fit_without(const std::vector<LiveModel>& live, size_t idx) const;
  // freed_bytes: of other models, which the plan counts as free.
  void begin_plan(size_t idx, std::optional<int64_t> freed_bytes, Actions& after);
  void end_plan(size_t idx, Actions& after);
  void begin_start(size_t idx, Actions& after);
  static bool waits_for_room(const Model& model);
  void end_start(size_t idx, Actions& after);
  void fail_start(size_t idx, const std::string& reason, Actions& after);
  void begin_unload(Model& model);
  void end_process(size_t idx, Actions& after);
  void retire_instances();
  void begin_stop();
  bool has_processes() const;
  std::vector<std::string> arguments_of(size_t idx) const;

  // Any thread.
  void wake() const;
  Start& want(size_t idx);
  void unwant(size_t idx);
  // Does nothing unless the model is loaded, or if it is to be unloaded first.
  void run_queue(size_t idx, Actions& after);
  void run_all(size_t idx, Actions& after);
  void refuse_queue(Model& model, const PoolRefusal& refusal, Actions& after);
  void release(size_t idx, Instance& instance);
  bool is_idle(const Model& model) const;
  std::optional<Clock::time_point> expiry(const Model& model) const;
  ModelState state_of(const Model& model) const;

  const PoolConfig config_;
  mutable std::mutex mutex_;
  std::vector<Model> models_;
  std::deque<size_t> wanted_;                       // models to start, in order
  std::vector<std::shared_ptr<Instance>> ended_;    // that requests may still use
  std::vector<std::unique_ptr<Upstream>> retired_;  // to be destroyed without the lock
  std::vector<std::unique_ptr<Child>> killed_;
  bool is_closed_ = false;
  bool is_stopping_ = false;
  int64_t host_capacity_ = 0;
  std::optional<int64_t> gpu_capacity_;
  int num_sockets_ = 0;
  int wake_fd_ = -1;
  std::thread thread_;
};

}  // namespace quire::supervisor
