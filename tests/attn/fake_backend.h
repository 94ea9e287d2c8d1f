// An attention backend that serves the shapes a test allows and computes nothing.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "attn/backend.h"

namespace quire::testing {

class FakePlan final : public AttentionPlan {
 public:
  explicit FakePlan(size_t workspace_bytes) : workspace_bytes_(workspace_bytes) {}

  size_t workspace_bytes() const override { return workspace_bytes_; }
  Status update(const AttentionBatch& /*batch*/, Stream& /*stream*/) override {
    ++num_updates;
    return {};
  }
  Status run(const AttentionCall& /*call*/, Stream& /*stream*/) override { return {}; }

  int num_updates = 0;

 private:
  size_t workspace_bytes_;
};

// Serves one phase of shapes with at most max_heads heads.
class PickyBackend final : public AttentionBackend {
 public:
  PickyBackend(std::string_view name, int max_heads, Phase phase, size_t workspace_bytes = 0)
      : name_(name), max_heads_(max_heads), phase_(phase), workspace_bytes_(workspace_bytes) {}

  std::string_view name() const override { return name_; }
  Support supports(const AttentionShape& shape, const AttentionUse& use,
                   const Device& /*device*/) const override {
    Support support;
    if (shape.num_heads > max_heads_) support.reasons.push_back("too many heads.");
    if (use.phase != phase_) support.reasons.push_back("wrong phase.");
    if (use.q_len > max_q_len) support.reasons.push_back("too many query tokens.");
    if (is_causal && !shape.causal) support.reasons.push_back("not causal.");
    if (is_for_graphs && !use.in_graph)
      support.reasons_to_prefer_others.push_back("slow outside of graphs.");
    return support;
  }
  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    if (!fault.ok()) return fault;
    made.emplace_back(shape, limits);
    return std::unique_ptr<AttentionPlan>(std::make_unique<FakePlan>(workspace_bytes_));
  }

  int max_q_len = 8;
  bool is_causal = false;  // serves only causal shapes
  bool is_for_graphs = false;
  Status fault;                                             // returned by make_plan()
  std::vector<std::pair<AttentionShape, PlanLimits>> made;  // the plans made

 private:
  std::string_view name_;
  int max_heads_;
  Phase phase_;
  size_t workspace_bytes_;
};

}  // namespace quire::testing
