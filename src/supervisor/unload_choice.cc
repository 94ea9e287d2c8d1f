#include "supervisor/unload_choice.h"

#include <algorithm>

namespace quire::supervisor {
namespace {

// Returns the memory for the wanted model after these models have left.
int64_t bytes_without(const std::vector<const LiveModel*>& gone, const PlannedMemory& wanted,
                      const Capacity& capacity) {
  int64_t free_bytes = wanted.is_on_gpu ? capacity.gpu_bytes.value_or(0) : capacity.host_bytes;
  for (const LiveModel* model : gone) {
    if (model->memory.is_on_gpu == wanted.is_on_gpu) free_bytes += model->memory.num_bytes;
  }
  return free_bytes;
}

// Returns whether the wanted model fits after these models have left.
bool fits_without(const std::vector<const LiveModel*>& gone, size_t num_live,
                  const PlannedMemory& wanted, const Capacity& capacity) {
  if (capacity.max_models > 0 &&
      num_live - gone.size() >= static_cast<size_t>(capacity.max_models)) {
    return false;
  }
  if (wanted.is_on_gpu && !capacity.gpu_bytes) return true;
  return wanted.num_bytes <= bytes_without(gone, wanted, capacity);
}

// Returns the fewest recently used of `candidates` that have to leave besides `gone`; all of them
// if even that is too little.
std::vector<const LiveModel*> choose(std::vector<const LiveModel*> candidates,
                                     std::vector<const LiveModel*> gone, size_t num_live,
                                     const PlannedMemory& wanted, const Capacity& capacity) {
  std::ranges::stable_sort(candidates, {}, [](const LiveModel* model) { return model->last_used; });
  std::vector<const LiveModel*> chosen;
  const auto fits_with = [&](const std::vector<const LiveModel*>& more) {
    std::vector<const LiveModel*> all = gone;
    all.insert(all.end(), more.begin(), more.end());
    return fits_without(all, num_live, wanted, capacity);
  };
  for (const LiveModel* model : candidates) {
    if (fits_with(chosen)) break;
    chosen.push_back(model);
  }
  if (!fits_with(chosen)) return chosen;
  // An early choice may be unnecessary beside a later, larger one.
  for (size_t i = chosen.size(); i-- > 0;) {
    std::vector<const LiveModel*> fewer = chosen;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits_with(fewer)) chosen = std::move(fewer);
  }
  return chosen;
}

}  // namespace

UnloadChoice choose_unloads(std::span<const LiveModel> live, const PlannedMemory& wanted,
                            const Capacity& capacity) {
  UnloadChoice choice;
  if (live.empty() || fits_without({}, live.size(), wanted, capacity)) {
    choice.action = UnloadChoice::Action::kStart;
    return choice;
  }
  std::vector<const LiveModel*> everything;
  for (const LiveModel& model : live) everything.push_back(&model);
  if (!fits_without(everything, live.size(), wanted, capacity)) {
    choice.action = UnloadChoice::Action::kNeverFits;
    choice.bound_bytes = bytes_without(everything, wanted, capacity);
    return choice;
  }
  std::vector<const LiveModel*> leaving;
  std::vector<const LiveModel*> idle;
  std::vector<const LiveModel*> others;  // all that stay without a decision
  for (const LiveModel& model : live) {
    if (model.is_leaving) {
      leaving.push_back(&model);
      continue;
    }
    others.push_back(&model);
    if (!model.is_busy) idle.push_back(&model);
  }
  if (fits_without(leaving, live.size(), wanted, capacity)) return choice;
  const std::vector<const LiveModel*> of_idle =
      choose(idle, leaving, live.size(), wanted, capacity);
  std::vector<const LiveModel*> all = leaving;
  all.insert(all.end(), of_idle.begin(), of_idle.end());
  if (fits_without(all, live.size(), wanted, capacity)) {
    for (const LiveModel* model : of_idle) choice.unload.push_back(model->idx);
    return choice;
  }
  for (const LiveModel* model : choose(others, leaving, live.size(), wanted, capacity)) {
    if (model->is_busy) choice.hold.push_back(model->idx);
  }
  return choice;
}

}  // namespace quire::supervisor
