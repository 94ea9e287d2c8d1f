#include "supervisor/model_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/model_name.h"

namespace quire::supervisor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

std::string_view name_of(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kLoaded:
      return "loaded";
    case ModelState::kUnloading:
      return "unloading";
    case ModelState::kFailed:
      break;
  }
  return "failed";
}

std::string does_not_start(std::string_view model) {
  return fmt::format("[supervisor] the model '{}' does not start; the server's log has the reason",
                     model);
}

Lease::~Lease() {
  pool_.release(model_, *instance_);
}

ModelPool::ModelPool(PoolConfig config)
    : config_(std::move(config)),
      models_(config_.models.size()),
      host_capacity_(config_.free_host_bytes()),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (size_t i = 0; i < models_.size(); ++i) {
    if (config_.models[i].loads_at_start) want(i).is_asked = true;
  }
  thread_ = std::thread([this] { loop(); });
  ::pthread_setname_np(thread_.native_handle(), "quire-models");
}

ModelPool::~ModelPool() {
  stop();
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

std::optional<size_t> ModelPool::find(std::string_view name) const {
  const auto is_name = [&](const std::string& own) { return is_same_model_name(own, name); };
  for (size_t i = 0; i < config_.models.size(); ++i) {
    const ModelEntry& model = config_.models[i];
    if (is_name(model.name) || std::ranges::any_of(model.aliases, is_name)) return i;
  }
  return std::nullopt;
}

std::optional<size_t> ModelPool::default_model() const {
  if (config_.models.size() == 1) return 0;
  const auto found = std::ranges::find(config_.models, true, &ModelEntry::is_default);
  if (found == config_.models.end()) return std::nullopt;
  return static_cast<size_t>(found - config_.models.begin());
}

// --- Requests ---

void ModelPool::submit(size_t idx, std::shared_ptr<PoolRequest> request) {
  Actions after;
  {
    const std::lock_guard lock(mutex_);
    Model& model = models_[idx];
    const Clock::time_point now = Clock::now();
    model.queue.push_back({std::move(request), now + config_.start_timeout});
    if (is_closed_) {
      refuse_queue(model,
                   {.message = "[server] the server is shutting down", .code = "shutting_down"},
                   after);
    } else if (model.phase == Phase::kUnloaded && now < model.retry_at) {
      const auto left = std::chrono::ceil<seconds>(model.retry_at - now);
      refuse_queue(model,
                   {.message = does_not_start(config_.models[idx].name),
                    .code = "model_not_started",
                    .retry_after = left},
                   after);
    } else {
      run_queue(idx, after);
      if (!model.queue.empty()) want(idx);
    }
  }
  for (const auto& action : after) action();
}

void ModelPool::run_queue(size_t idx, Actions& after) {
  const Model& model = models_[idx];
  if (model.phase == Phase::kLoaded && !model.is_held && !model.unloads_when_idle) {
    run_all(idx, after);
  }
}

void ModelPool::run_all(size_t idx, Actions& after) {
  Model& model = models_[idx];
  for (Waiting& waiting : model.queue) {
    ++model.instance->num_running;
    ++model.counts.num_requests;
    after.push_back([request = std::move(waiting.request),
                     lease = std::make_shared<Lease>(*this, idx, model.instance)]() mutable {
      request->run(std::move(lease));
    });
  }
  if (!model.queue.empty()) model.last_used = Clock::now();
  model.queue.clear();
}

void ModelPool::refuse_queue(Model& model, const PoolRefusal& refusal, Actions& after) {
  for (Waiting& waiting : model.queue) {
    after.push_back([request = std::move(waiting.request), refusal] { request->refuse(refusal); });
  }
  model.queue.clear();
}

void ModelPool::leave(size_t idx, const PoolRequest& request) {
  std::shared_ptr<PoolRequest> gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  std::deque<Waiting>& queue = models_[idx].queue;
  const auto found = std::ranges::find_if(
      queue, [&](const Waiting& waiting) { return waiting.request.get() == &request; });
  if (found == queue.end()) return;
  gone = std::move(found->request);
  queue.erase(found);
}

void ModelPool::release(size_t idx, Instance& instance) {
  const std::lock_guard lock(mutex_);
  --instance.num_running;
  models_[idx].last_used = Clock::now();
  if (instance.num_running == 0) wake();
}

void ModelPool::keep_alive(size_t idx, milliseconds duration) {
  const std::lock_guard lock(mutex_);
  models_[idx].keep_alive = duration;
  wake();
}

void ModelPool::load(size_t idx) {
  const std::lock_guard lock(mutex_);
  if (is_closed_ || models_[idx].phase == Phase::kLoaded) return;
  models_[idx].retry_at = {};
  want(idx).is_asked = true;
}

void ModelPool::unload(size_t idx) {
  const std::lock_guard lock(mutex_);
  Model& model = models_[idx];
  if (model.start) model.start->is_asked = false;
  model.unloads_when_idle = model.phase != Phase::kUnloaded && model.phase != Phase::kUnloading;
  if (model.phase == Phase::kUnloaded) model.counts.error.clear();
  if (model.queue.empty()) unwant(idx);
  wake();
}

bool ModelPool::ask(size_t idx, http_client::Request request,
                    std::shared_ptr<http_client::ResponseHandler> handler) {
  const std::lock_guard lock(mutex_);
  const Model& model = models_[idx];
  if (model.phase != Phase::kLoaded) return false;
  constexpr std::chrono::seconds kPatience(2);  // with a process that does not respond
  model.instance->upstream->send_with_limit(std::move(request), std::move(handler), kPatience);
  return true;
}

ModelPool::Start& ModelPool::want(size_t idx) {
  std::optional<Start>& start = models_[idx].start;
  if (!start) {
    start = Start();
    wanted_.push_back(idx);
  }
  wake();
  return *start;
}

void ModelPool::unwant(size_t idx) {
  models_[idx].start.reset();
  std::erase(wanted_, idx);
}

void ModelPool::wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof(one));
}

// --- State ---

bool ModelPool::is_idle(const Model& model) const {
  return model.phase == Phase::kLoaded && model.instance->num_running == 0;
}

std::optional<Clock::time_point> ModelPool::expiry(const Model& model) const {
  if (model.phase != Phase::kLoaded) return std::nullopt;
  const bool has_default = config_.sleep_idle > milliseconds(0);
  if (!model.keep_alive && !has_default) return std::nullopt;
  const milliseconds duration = model.keep_alive.value_or(config_.sleep_idle);
  if (duration < milliseconds(0)) return std::nullopt;
  return model.last_used + duration;
}

ModelState ModelPool::state_of(const Model& model) const {
  switch (model.phase) {
    case Phase::kUnloaded:
      if (model.start) return ModelState::kLoading;
      return model.counts.error.empty() ? ModelState::kUnloaded : ModelState::kFailed;
    case Phase::kPlanning:
    case Phase::kStarting:
      return ModelState::kLoading;
    case Phase::kLoaded:
      return model.is_held || model.unloads_when_idle ? ModelState::kUnloading
                                                      : ModelState::kLoaded;
    case Phase::kUnloading:
      break;
  }
  return ModelState::kUnloading;
}

std::vector<ModelStatus> ModelPool::status() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelStatus> all;
  for (const Model& model : models_) {
    ModelStatus& status = all.emplace_back(model.counts);
    status.state = state_of(model);
    status.num_running = model.instance ? model.instance->num_running : 0;
    status.num_waiting = static_cast<int>(model.queue.size());
    status.memory = model.memory.value_or(PlannedMemory());
    if (const auto expires = expiry(model)) {
      status.expires_in = std::chrono::ceil<milliseconds>(*expires - Clock::now());
    }
  }
  return all;
}

void ModelPool::close() {
  Actions after;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    while (!wanted_.empty()) unwant(wanted_.front());
    for (Model& model : models_) {
      refuse_queue(model,
                   {.message = "[server] the server is shutting down", .code = "shutting_down"},
                   after);
    }
  }
  for (const auto& action : after) action();
}

void ModelPool::stop() {
  close();
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace quire::supervisor
