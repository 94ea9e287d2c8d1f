#include "start/tuned_threads.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/text_input.h"
#include "start/model_identity.h"

namespace quire {
namespace {

std::string cpus_key(const ThreadChoice& choice) {
  std::set<int> nodes;
  for (const ThreadPlace& place : choice.places) nodes.insert(place.node);
  const std::string limit = max_cpu_isa();
  return fmt::format("{} cores {} CPUs {} nodes {} threads {}{}", choice.num_cores, choice.num_cpus,
                     nodes.size(), choice.places.size(),
                     choice.places.front().cpus.empty() ? "not pinned" : "pinned",
                     limit.empty() ? "" : " at most " + limit);
}

}  // namespace

std::string threads_key(const ThreadChoice& choice, const EngineConfig& config,
                        const ModelFiles& files) {
  return fmt::format("{}, {}", cpus_key(choice), model_key(config, files));
}

void keep_tuned_threads(std::string_view key, const StepThreads& threads,
                        MeasuredChoices& choices) {
  choices.add(ChoiceKind::kThreads, key, fmt::format("{} {}", threads.decode, threads.prefill));
}

std::optional<StepThreads> find_tuned_threads(std::string_view key, MeasuredChoices& choices) {
  const std::optional<std::string> value = choices.find(ChoiceKind::kThreads, key);
  if (!value) return std::nullopt;
  const std::vector<std::string_view> numbers = split(*value, ' ');
  if (numbers.size() != 2) return std::nullopt;
  const auto number = [&](size_t i) { return parse_whole<int>(numbers[i]).value_or(0); };
  const StepThreads threads = {.decode = number(0), .prefill = number(1)};
  const auto is_valid = [](int count) { return count > 0 && count <= kMaxTunedThreads; };
  if (!is_valid(threads.decode) || !is_valid(threads.prefill)) return std::nullopt;
  return threads;
}

}  // namespace quire
