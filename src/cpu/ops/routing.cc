#include "cpu/ops/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace quire::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

using Numbers = std::array<float, kMaxExperts>;

void softmax(std::span<const float> logits, Numbers& scores) {
  const float largest = *std::ranges::max_element(logits);
  float sum = 0.0F;
  for (size_t i = 0; i < logits.size(); ++i) {
    scores[i] = std::exp(logits[i] - largest);
    sum += scores[i];
  }
  for (size_t i = 0; i < logits.size(); ++i) scores[i] /= sum;
}

void sigmoid(std::span<const float> logits, Numbers& scores) {
  for (size_t i = 0; i < logits.size(); ++i) scores[i] = 1.0F / (1.0F + std::exp(-logits[i]));
}

// Returns the index of the largest number that is not excluded; among equal numbers, the index of
// the first.
size_t best_of(std::span<const float> numbers, std::span<const bool> excluded) {
  size_t best = numbers.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!excluded[i] && (best == numbers.size() || numbers[i] > numbers[best])) best = i;
  }
  return best;
}

float group_score(GroupScores rule, std::span<const float> choices) {
  float first = kNever;
  float second = kNever;
  for (const float choice : choices) {
    if (choice > first) {
      second = first;
      first = choice;
    } else {
      second = std::max(second, choice);
    }
  }
  return rule == GroupScores::kLargest ? first : first + second;
}

// Marks the experts outside the best groups as excluded.
void exclude_other_groups(const ExpertRouting& routing, const Numbers& choices,
                          std::span<bool> excluded) {
  const auto num_groups = static_cast<size_t>(routing.num_groups);
  const size_t group_size = excluded.size() / num_groups;
  Numbers scores;
  std::array<bool, kMaxExperts> is_best = {};
  for (size_t g = 0; g < num_groups; ++g) {
    scores[g] =
        group_score(routing.group_scores, std::span(choices).subspan(g * group_size, group_size));
  }
  for (int i = 0; i < routing.top_groups; ++i) {
    is_best[best_of(std::span(scores).first(num_groups), is_best)] = true;
  }
  for (size_t i = 0; i < excluded.size(); ++i) excluded[i] = !is_best[i / group_size];
}

}  // namespace

void route_row(const ExpertRouting& routing, const float* logits, const float* bias, int32_t* ids,
               float* weights) {
  const auto num_experts = static_cast<size_t>(routing.num_experts);
  Numbers scores;
  const std::span<const float> row(logits, num_experts);
  routing.scores == RouterScores::kSoftmax ? softmax(row, scores) : sigmoid(row, scores);
  Numbers choices;
  for (size_t i = 0; i < num_experts; ++i) {
    choices[i] = bias == nullptr ? scores[i] : scores[i] + bias[i];
    if (std::isnan(choices[i])) choices[i] = kNever;
  }
  std::array<bool, kMaxExperts> excluded = {};
  if (routing.top_groups < routing.num_groups) {
    exclude_other_groups(routing, choices, std::span(excluded).first(num_experts));
  }
  float sum = kRoutingSumAddend;
  for (int j = 0; j < routing.top_k; ++j) {
    const size_t expert = best_of(std::span(choices).first(num_experts), excluded);
    excluded[expert] = true;
    ids[j] = static_cast<int32_t>(expert);
    weights[j] = scores[expert];
    sum += scores[expert];
  }
  for (int j = 0; j < routing.top_k; ++j) {
    weights[j] = (routing.renormalize ? weights[j] / sum : weights[j]) * routing.scale;
    if (routing.expert_scales != nullptr) weights[j] *= routing.expert_scales[ids[j]];
  }
  for (int i = 0; i < routing.num_shared; ++i) {
    ids[routing.top_k + i] = routing.num_experts + i;
    weights[routing.top_k + i] = 1.0F;
  }
}

}  // namespace quire::cpu
