// The thread of the pool, which owns all processes.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/guarded.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/text.h"
#include "supervisor/json_members.h"
#include "supervisor/model_pool.h"

namespace quire::supervisor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kMaxBackOff(60);
constexpr seconds kMaxPause(1);
constexpr milliseconds kEndPoll(5);  // between the end of a process's output and its own end

// Copies a line of a process's log to standard error, with the name of its model.
void relay_line(const std::string& model, const std::string& line, bool is_json) {
  if (is_json && !line.starts_with('{')) return log_error("[supervisor] {}: {}", model, line);
  std::string text;
  if (is_json) {
    text = "{\"model\":";
    JsonWriter(text).value(std::string_view(model));
    text += "," + line.substr(1) + "\n";
  } else {
    text = fmt::format("[{}] {}\n", one_line(model), line);
  }
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

// Passes a whole JSON response on.
class SmallResponse final : public http_client::ResponseHandler {
 public:
  using Use = std::function<void(std::string_view body)>;
  explicit SmallResponse(Use use) : use_(std::move(use)) {}
  void on_head(int status) override { is_ok_ = status == 200; }
  bool on_body(std::string_view piece) override {
    constexpr size_t kMost = size_t{1} << 20;
    body_ += piece;
    return body_.size() <= kMost;
  }
  void on_end(const Status& status) override {
    if (status.ok() && is_ok_) use_(body_);
  }

 private:
  const Use use_;
  bool is_ok_ = false;
  std::string body_;
};

// Notes that a process responds, with any status.
class Pulse final : public http_client::ResponseHandler {
 public:
  explicit Pulse(std::function<void()> on_response) : on_response_(std::move(on_response)) {}
  void on_head(int /*status*/) override { on_response_(); }
  bool on_body(std::string_view /*piece*/) override { return true; }
  void on_end(const Status& /*status*/) override {}

 private:
  const std::function<void()> on_response_;
};

// Returns the first element of the array of objects with this key.
std::string first_element(std::string_view body, std::string_view key) {
  std::string_view list = json_member(body, key);
  if (!list.starts_with('[')) return "";
  list.remove_prefix(1);
  return std::string(json_member(fmt::format("{{\"first\":{}", list), "first"));
}

// The reason for which a process ended: its last message, unless a signal ended it.
std::string failure_text(const Child& child, std::string line) {
  constexpr std::string_view kProgram = "quire serve: ";
  if (line.starts_with(kProgram)) line.erase(0, kProgram.size());
  const std::string end = child.end_text();
  if (line.empty() || end.starts_with("signal")) return "its process ended with " + end;
  return one_line(line);
}

const LiveModel* least_recent_idle(const std::vector<LiveModel>& live) {
  const LiveModel* oldest = nullptr;
  for (const LiveModel& model : live) {
    if (model.is_busy || model.is_leaving) continue;
    if (oldest == nullptr || model.last_used < oldest->last_used) oldest = &model;
  }
  return oldest;
}

}  // namespace

void ModelPool::loop() {
  for (bool is_done = false; !is_done;) {
    wait_for_events();
    run_guarded("[supervisor] caught an exception in the pool of models, which continues", [&] {
      Actions after;
      std::vector<std::unique_ptr<Upstream>> retired;
      {
        const std::lock_guard lock(mutex_);
        read_outputs(after);
        if (is_stopping_) begin_stop();
        step(after);
        retire_instances();
        retired = std::move(retired_);
        is_done = is_stopping_ && !has_processes() && ended_.empty();
      }
      for (const auto& action : after) action();
      retired.clear();
    });
  }
}

void ModelPool::wait_for_events() const {
  std::vector<pollfd> fds = {{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  Clock::time_point deadline;
  {
    const std::lock_guard lock(mutex_);
    for (const Model& model : models_) {
      Child* const child = model.planner    ? model.planner.get()
                           : model.instance ? model.instance->child.get()
                                            : nullptr;
      if (child == nullptr) continue;
      for (const int fd : {child->out().fd, child->err().fd}) {
        if (fd >= 0) fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      }
    }
    deadline = next_deadline();
  }
  const auto pause = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(pause.count(), 0)));
  uint64_t count = 0;
  (void)!::read(wake_fd_, &count, sizeof(count));
}

Clock::time_point ModelPool::next_deadline() const {
  const Clock::time_point now = Clock::now();
  Clock::time_point next = now + kMaxPause;
  for (const Model& model : models_) {
    if (!model.queue.empty()) next = std::min(next, model.queue.front().deadline);
    const bool is_limited = model.phase == Phase::kPlanning || model.phase == Phase::kUnloading;
    if (is_limited) next = std::min(next, model.kill_at);
    if (is_idle(model)) next = std::min(next, expiry(model).value_or(next));
    if (model.phase == Phase::kLoaded) {
      next = std::min(next, model.instance->probed_at + config_.probe_period);
    }
    const bool has_ended_output = (model.planner && model.planner->out().fd < 0) ||
                                  (model.instance && model.instance->child->out().fd < 0);
    if (has_ended_output) next = std::min(next, now + kEndPoll);
  }
  return next;
}

void ModelPool::read_outputs(Actions& after) {
  for (size_t idx = 0; idx < models_.size(); ++idx) {
    Model& model = models_[idx];
    if (model.planner) {
      const bool has_ended = model.planner->has_ended();  // before the last lines are read
      read_output(idx, *model.planner, after);
      if (has_ended) end_plan(idx, after);
    } else if (model.instance) {
      const std::shared_ptr<Instance> instance = model.instance;
      const bool has_ended = instance->child->has_ended();
      read_output(idx, *instance->child, after);
      if (has_ended) end_process(idx, after);
    }
  }
}

void ModelPool::read_output(size_t idx, Child& child, Actions& after) {
  Model& model = models_[idx];
  for (const std::string& line : Child::read_lines(child.err())) {
    if (!trimmed(line).empty()) model.last_line = line;
    if (model.planner) continue;  // its failure is logged once
    after.push_back(
        [this, idx, line] { relay_line(config_.models[idx].name, line, config_.logs_json); });
  }
  for (const std::string& line : Child::read_lines(child.out())) {
    if (model.planner) model.plan_json += line;
    if (model.phase == Phase::kStarting && line.starts_with("serving ")) end_start(idx, after);
  }
}

void ModelPool::step(Actions& after) {
  const Clock::time_point now = Clock::now();
  for (size_t idx = 0; idx < models_.size(); ++idx) {
    Model& model = models_[idx];
    model.is_held = false;
    expire_waiting(idx, after);
    kill_if_hung(idx);
    end_late_plan(idx, after);
    unload_if_due(idx);
    if (model.phase == Phase::kUnloading && now >= model.kill_at) {
      model.instance->child->signal(SIGKILL);
      model.kill_at = now + kMaxPause;
    }
  }
  std::erase_if(killed_, [](const auto& child) { return child->has_ended(); });
  if (!is_closed_) start_wanted(after);
  for (size_t idx = 0; idx < models_.size(); ++idx) run_queue(idx, after);
}

void ModelPool::expire_waiting(size_t idx, Actions& after) {
  Model& model = models_[idx];
  const Clock::time_point now = Clock::now();
  while (!model.queue.empty() && model.queue.front().deadline <= now) {
    const PoolRefusal refusal = {
        .message = lateness(idx), .code = "model_start_timeout", .retry_after = seconds(5)};
    after.push_back(
        [request = std::move(model.queue.front().request), refusal] { request->refuse(refusal); });
    model.queue.pop_front();
  }
}

// The reason for which a request has waited too long.
std::string ModelPool::lateness(size_t idx) const {
  const int64_t limit = std::chrono::duration_cast<seconds>(config_.start_timeout).count();
  std::string others;
  for (const LiveModel& other : live_models()) {
    if (other.idx == idx || !other.is_busy) continue;
    others += fmt::format("{}'{}'", others.empty() ? "" : ", ", config_.models[other.idx].name);
  }
  const Phase phase = models_[idx].phase;
  if (others.empty() || phase == Phase::kPlanning || phase == Phase::kStarting) {
    return fmt::format("[supervisor] the model '{}' did not start within {} s",
                       config_.models[idx].name, limit);
  }
  return fmt::format(
      "[supervisor] the model '{}' got no room within {} s, because other models were busy: {}",
      config_.models[idx].name, limit, others);
}

// Probes a loaded process from time to time, and kills it after some probes without a response:
// otherwise a process that hangs keeps its memory and its requests forever. A process whose engine
// has failed or takes long still responds.
void ModelPool::kill_if_hung(size_t idx) {
  constexpr int kMostSilent = 6;
  Model& model = models_[idx];
  const std::shared_ptr<Instance>& instance = model.instance;
  const Clock::time_point now = Clock::now();
  if (model.phase != Phase::kLoaded || now - instance->probed_at < config_.probe_period) return;
  if (instance->num_silent_probes == kMostSilent) {
    log_error("[supervisor] the process of {} has not responded to {} probes: killing it",
              config_.models[idx].name, kMostSilent);
    instance->child->signal(SIGKILL);
  } else {
    ++instance->num_silent_probes;
    instance->upstream->send(
        {.target = "/health"},
        std::make_shared<Pulse>([this, weak = std::weak_ptr<Instance>(instance)] {
          const std::lock_guard lock(mutex_);
          if (const auto alive = weak.lock()) alive->num_silent_probes = 0;
        }));
  }
  instance->probed_at = now;
}

// All later starts wait for a plan, so one that hangs must end. A killed process can take long to
// end, for example in a call of a driver; nothing waits for it.
void ModelPool::end_late_plan(size_t idx, Actions& after) {
  Model& model = models_[idx];
  if (model.phase != Phase::kPlanning || Clock::now() < model.kill_at) return;
  model.planner->signal(SIGKILL);
  killed_.push_back(std::move(model.planner));
  const int64_t limit = std::chrono::duration_cast<seconds>(config_.start_timeout).count();
  fail_start(idx, fmt::format("its plan took more than {} s", limit), after);
}

void ModelPool::unload_if_due(size_t idx) {
  Model& model = models_[idx];
  const std::optional<Clock::time_point> expires = expiry(model);
  const bool is_due = model.unloads_when_idle || (expires && *expires <= Clock::now());
  const bool is_starting = model.phase == Phase::kStarting && model.unloads_when_idle;
  if (!is_starting && !(is_due && is_idle(model))) return;
  log_info("[supervisor] unloading {}, {}", config_.models[idx].name,
           model.unloads_when_idle ? "as a request asks for"
                                   : "which had no requests for the time that it stays loaded");
  begin_unload(model);
}

// --- Starts ---

void ModelPool::start_wanted(Actions& after) {
  while (!wanted_.empty()) {
    const size_t idx = wanted_.front();
    if (!start_next(idx, after)) return;
    unwant(idx);
  }
}

bool ModelPool::start_next(size_t idx, Actions& after) {
  Model& model = models_[idx];
  const bool has_demand = model.start->is_asked || !model.queue.empty();
  const bool waits = waits_for_room(model);
  if (!has_demand && waits) begin_unload(model);
  if (!has_demand && (waits || model.phase == Phase::kUnloaded)) return true;
  if (model.phase == Phase::kPlanning || model.phase == Phase::kUnloading) return false;
  if (model.phase != Phase::kUnloaded && !waits) return true;
  forget_plan_of_changed_files(idx);
  const std::vector<LiveModel> live = live_models();
  UnloadChoice choice;
  if (model.memory) {
    choice = choose_unloads(live, *model.memory, capacity(live));
    if (choice.action == UnloadChoice::Action::kStart) {
      if (!waits) begin_start(idx, after);
      if (model.instance) {
        model.instance->has_room = true;
        model.instance->child->end_input();
      }
      return true;
    }
  } else {
    if (std::ranges::any_of(live, &LiveModel::is_leaving)) return false;
    if (model.start->shortage.empty()) {
      begin_plan(idx, std::nullopt, after);
      return false;
    }
  }
  // Other models would be unloaded in vain for a model that does not start even without them.
  if (!waits && !live.empty() && !is_known_to_fit_without(live, idx)) {
    // The device of a model without a plan is not known.
    begin_plan(idx, std::max(bytes_to_free(live, false), bytes_to_free(live, true)), after);
  } else if (!model.memory) {
    make_room_for_plan(idx, after);
  } else if (choice.action == UnloadChoice::Action::kNeverFits) {
    fail_start(idx,
               fmt::format("its plan of {} MiB exceeds the memory without other models; expected "
                           "at most {} MiB",
                           model.memory->num_bytes >> 20, choice.bound_bytes >> 20),
               after);
  } else {
    make_room_for(choice, idx);
    // While the other models end, the process does what needs no memory.
    if (!waits && choice.hold.empty()) begin_start(idx, after);
  }
  return false;
}

bool ModelPool::waits_for_room(const Model& model) {
  return model.phase == Phase::kStarting && !model.instance->has_room;
}

// Unloads idle models, or holds busy ones.
void ModelPool::make_room_for(const UnloadChoice& choice, size_t idx) {
  for (const size_t other : choice.unload) {
    log_info("[supervisor] unloading {} to make room for {}", config_.models[other].name,
             config_.models[idx].name);
    begin_unload(models_[other]);
  }
  for (const size_t other : choice.hold) models_[other].is_held = true;
}

// The free memory was too little for a plan: frees some of it, one model at a time.
void ModelPool::make_room_for_plan(size_t idx, Actions& after) {
  const std::vector<LiveModel> live = live_models();
  std::string& shortage = models_[idx].start->shortage;
  if (live.empty()) return fail_start(idx, std::string(shortage), after);
  if (const LiveModel* oldest = least_recent_idle(live)) {
    log_info("[supervisor] unloading {} to make room for {}", config_.models[oldest->idx].name,
             config_.models[idx].name);
    shortage.clear();  // so that the plan is made again
    return begin_unload(models_[oldest->idx]);
  }
  for (const LiveModel& other : live) models_[other.idx].is_held = true;
}

std::vector<LiveModel> ModelPool::live_models() const {
  std::vector<LiveModel> live;
  for (size_t idx = 0; idx < models_.size(); ++idx) {
    const Model& model = models_[idx];
    if (!model.instance || waits_for_room(model)) continue;
    const bool stays_long = model.keep_alive && *model.keep_alive < milliseconds(0);
    live.push_back({.idx = idx,
                    .memory = model.instance->has_room ? model.memory.value_or(PlannedMemory())
                                                       : PlannedMemory(),
                    .is_busy = model.phase != Phase::kUnloading && !is_idle(model),
                    .is_leaving = model.phase == Phase::kUnloading,
                    .last_used = stays_long ? Clock::time_point::max() : model.last_used});
  }
  return live;
}

// The memory of a loaded model counts in full, because it may not have touched all of it yet.
Capacity ModelPool::capacity(const std::vector<LiveModel>& live) {
  const int64_t free_bytes = config_.free_host_bytes();
  if (live.empty()) host_capacity_ = free_bytes;
  Capacity capacity = {
      .host_bytes = host_capacity_, .gpu_bytes = gpu_capacity_, .max_models = config_.max_loaded};
  for (const LiveModel& model : live) {
    if (!model.memory.is_on_gpu) capacity.host_bytes -= model.memory.num_bytes;
    if (model.memory.is_on_gpu && capacity.gpu_bytes) *capacity.gpu_bytes -= model.memory.num_bytes;
  }
  capacity.host_bytes = std::min(capacity.host_bytes, free_bytes);
  return capacity;
}

int64_t ModelPool::bytes_to_free(const std::vector<LiveModel>& live, bool is_on_gpu) const {
  int64_t num_bytes = 0;
  for (const LiveModel& model : live) {
    if (model.memory.is_on_gpu == is_on_gpu) num_bytes += model.memory.num_bytes;
  }
  if (is_on_gpu) return num_bytes;
  // A loaded model may not have touched all of its memory yet.
  const int64_t taken = std::max<int64_t>(host_capacity_ - config_.free_host_bytes(), 0);
  return std::min(num_bytes, taken);
}

void ModelPool::forget_plan_of_changed_files(size_t idx) {
  Model& model = models_[idx];
  if (!model.kept_plan || std::exchange(model.start->knows_plan_is_current, true)) return;
  if (model.kept_plan->files == stamp_of_files(config_.models[idx])) return;
  model.kept_plan.reset();
  model.memory.reset();
}

bool ModelPool::is_known_to_fit_without(const std::vector<LiveModel>& live, size_t idx) const {
  const Model& model = models_[idx];
  if (model.start->fits_alone) return true;
  if (!model.kept_plan) return false;
  // Only a process that uses a GPU knows how much of its memory is free now. If other programs have
  // taken it since the plan, the start fails after the unload, and the next one is planned again.
  const int64_t free_bytes = model.kept_plan->is_on_gpu
                                 ? gpu_capacity_.value_or(0)
                                 : config_.free_host_bytes() + bytes_to_free(live, false);
  return model.kept_plan->least_free_bytes <= free_bytes;
}

std::vector<std::string> ModelPool::arguments_of(size_t idx) const {
  const ModelEntry& entry = config_.models[idx];
  std::vector<std::string> words = {"serve"};
  words.insert(words.end(), config_.arguments.begin(), config_.arguments.end());
  words.insert(words.end(), entry.arguments.begin(), entry.arguments.end());
  words.push_back("--served-model-name=" + entry.name);
  for (const std::string& alias : entry.aliases) words.push_back("--served-model-name=" + alias);
  return words;
}

void ModelPool::begin_plan(size_t idx, std::optional<int64_t> freed_bytes, Actions& after) {
  Model& model = models_[idx];
  std::vector<std::string> words = arguments_of(idx);
  words.insert(words.end(), {"--plan-only", "--log-level=error"});
  if (freed_bytes) words.push_back(fmt::format("--plan-freed-bytes={}", *freed_bytes));
  std::optional<std::string> files = stamp_of_files(config_.models[idx]);
  Result<std::unique_ptr<Child>> child = Child::start(config_.program, words);
  if (!child.ok()) return fail_start(idx, child.status().message(), after);
  model.plan_json.clear();
  model.last_line.clear();
  model.planner = std::move(*child);
  model.planner->end_input();
  model.plans_alone = freed_bytes.has_value();
  model.start->files = std::move(files);
  model.phase = Phase::kPlanning;
  model.kill_at = Clock::now() + config_.start_timeout;
}

void ModelPool::end_plan(size_t idx, Actions& after) {
  Model& model = models_[idx];
  const std::unique_ptr<Child> planner = std::move(model.planner);
  model.phase = Phase::kUnloaded;
  if (!model.start) return;  // unloaded meanwhile
  const std::string_view json = model.plan_json;
  const auto num_bytes = parse_whole<int64_t>(json_member(json, "num_bytes"));
  const auto least_free_bytes = parse_whole<int64_t>(json_member(json, "least_free_bytes"));
  const auto free_bytes = parse_whole<int64_t>(json_member(json, "free_bytes"));
  const bool is_whole = num_bytes && *num_bytes >= 0 && least_free_bytes && free_bytes;
  if (planner->has_succeeded() && is_whole) {
    const bool is_on_gpu = json_member(json, "is_on_gpu") == "true";
    if (model.start->files) {
      model.kept_plan = {.files = *std::move(model.start->files),
                         .is_on_gpu = is_on_gpu,
                         .least_free_bytes = *least_free_bytes};
      model.start->knows_plan_is_current = true;
    }
    if (model.plans_alone) {
      model.start->fits_alone = true;
      return;
    }
    model.memory = {.is_on_gpu = is_on_gpu, .num_bytes = *num_bytes};
    if (!model.memory->is_on_gpu) return;
    int64_t capacity = *free_bytes;
    for (const LiveModel& other : live_models()) {
      if (other.memory.is_on_gpu) capacity += other.memory.num_bytes;
    }
    gpu_capacity_ = std::max(capacity, gpu_capacity_.value_or(0));
    return;
  }
  if (const std::string error = json_string(json_member(json, "too_little_memory"));
      !error.empty()) {
    if (model.plans_alone) return fail_start(idx, error, after);
    model.start->shortage = error;
    return;
  }
  fail_start(idx, failure_text(*planner, model.last_line), after);
}

void ModelPool::begin_start(size_t idx, Actions& after) {
  Model& model = models_[idx];
  auto instance = std::make_shared<Instance>();
  instance->socket = config_.directory / fmt::format("{}.sock", num_sockets_++);
  std::vector<std::string> words = arguments_of(idx);
  words.insert(words.end(), {"--uds=" + instance->socket, "--trusted-proxies=unix"});
  log_info("[supervisor] starting {}", config_.models[idx].name);
  Result<std::unique_ptr<Child>> child = Child::start(config_.program, words);
  if (!child.ok()) return fail_start(idx, child.status().message(), after);
  instance->child = std::move(*child);
  model.instance = std::move(instance);
  model.phase = Phase::kStarting;
  model.last_line.clear();
  model.began = Clock::now();
  model.unloads_when_idle = false;
  ++model.counts.num_starts;
}

void ModelPool::end_start(size_t idx, Actions& after) {
  Model& model = models_[idx];
  Result<std::unique_ptr<Upstream>> upstream = Upstream::open(model.instance->socket);
  if (!upstream.ok()) {
    model.instance->child->signal(SIGKILL);  // its end is a failed start
    model.last_line = upstream.status().message();
    return;
  }
  model.instance->upstream = std::move(*upstream);
  model.phase = Phase::kLoaded;
  model.last_used = Clock::now();
  model.instance->probed_at = model.last_used;
  model.num_failures = 0;
  model.counts.error.clear();
  const double duration = std::chrono::duration<double>(model.last_used - model.began).count();
  model.counts.start_seconds += duration;
  log_info("[supervisor] {} is loaded after {:.2f} s", config_.models[idx].name, duration);
  const auto keep = [&](const std::string& target, std::string ModelStatus::*member,
                        const std::string& key) {
    http_client::Request request = {.target = target};
    if (!config_.process_key.empty()) {
      request.headers.emplace_back("authorization", "Bearer " + config_.process_key);
    }
    const auto use = [this, idx, member, key](std::string_view body) {
      const std::lock_guard lock(mutex_);
      models_[idx].counts.*member = first_element(body, key);
    };
    model.instance->upstream->send(std::move(request), std::make_shared<SmallResponse>(use));
  };
  keep("/v1/models", &ModelStatus::model_json, "data");
  keep("/api/ps", &ModelStatus::ollama_json, "models");
  // Also if the model is held: otherwise two models could unload each other without end.
  run_all(idx, after);
}

void ModelPool::fail_start(size_t idx, const std::string& reason, Actions& after) {
  Model& model = models_[idx];
  if (model.instance) {  // the process waited for memory
    model.instance->child->signal(SIGKILL);
    killed_.push_back(std::move(model.instance->child));
    ::unlink(model.instance->socket.c_str());
    model.instance.reset();
  }
  model.phase = Phase::kUnloaded;
  model.kept_plan.reset();
  model.memory.reset();
  ++model.counts.num_failed_starts;
  model.counts.error = reason;
  const seconds pause = std::min(kMaxBackOff, seconds(1) * (1 << std::min(model.num_failures, 6)));
  ++model.num_failures;
  model.retry_at = Clock::now() + pause;
  unwant(idx);
  log_error("[supervisor] {} does not start: {}; the next request may start it again in {} s",
            config_.models[idx].name, reason, pause.count());
  refuse_queue(model,
               {.message = does_not_start(config_.models[idx].name),
                .code = "model_not_started",
                .retry_after = pause},
               after);
}

// --- Ends ---

void ModelPool::begin_unload(Model& model) {
  model.phase = Phase::kUnloading;
  model.unloads_when_idle = false;
  model.kill_at = Clock::now() + config_.stop_timeout;
  ++model.counts.num_unloads;
  if (model.instance->upstream) retired_.push_back(std::move(model.instance->upstream));
  model.instance->child->signal(SIGTERM);
}

void ModelPool::end_process(size_t idx, Actions& after) {
  Model& model = models_[idx];
  const std::shared_ptr<Instance> instance = std::move(model.instance);
  ::unlink(instance->socket.c_str());
  const Phase phase = std::exchange(model.phase, Phase::kUnloaded);
  model.instance.reset();
  model.keep_alive.reset();
  if (phase == Phase::kStarting) {
    return fail_start(idx, failure_text(*instance->child, model.last_line), after);
  }
  if (phase == Phase::kLoaded) {
    ++model.counts.num_crashes;
    model.unloads_when_idle = false;
    model.counts.error = failure_text(*instance->child, model.last_line);
    log_error("[supervisor] the process of {} ended with {}; the next request starts it again",
              config_.models[idx].name, instance->child->end_text());
    ended_.push_back(instance);
  }
  if (!model.queue.empty() && !is_closed_) want(idx);
}

// Requests of a process that has ended get the end of their connections; then the last one is gone.
void ModelPool::retire_instances() {
  std::erase_if(ended_, [this](const std::shared_ptr<Instance>& instance) {
    if (instance->num_running > 0 && !is_stopping_) return false;
    retired_.push_back(std::move(instance->upstream));
    return true;
  });
}

void ModelPool::begin_stop() {
  constexpr seconds kPatience(5);
  for (Model& model : models_) {
    if (model.planner) {
      model.planner.reset();
      model.phase = Phase::kUnloaded;
    }
    if (!model.instance || model.phase == Phase::kUnloading) continue;
    begin_unload(model);
    model.kill_at = std::min(model.kill_at, Clock::now() + kPatience);
  }
}

bool ModelPool::has_processes() const {
  return std::ranges::any_of(models_, [](const Model& model) {
    return model.planner != nullptr || model.instance != nullptr;
  });
}

}  // namespace quire::supervisor
