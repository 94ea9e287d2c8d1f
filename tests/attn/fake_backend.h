// A backend that serves what it is told to, and computes nothing.
#pragma once

#include "attn/backend.h"

namespace quire::testing {

// Serves one phase of shapes with at most max_heads heads.
class PickyBackend final : public AttentionBackend {
 public:
  PickyBackend(std::string_view name, int max_heads, Phase phase, size_t workspace_bytes = 0)
      : name_(name), max_heads_(max_heads), phase_(phase), workspace_bytes_(workspace_bytes) {}

  std::string_view name() const override { return name_; }
  Support supports(const AttentionShape& shape, Phase phase,
                   const Device& /*device*/) const override {
    Support support;
    if (shape.num_heads > max_heads_) support.reasons.push_back("too many heads.");
    if (phase != phase_) support.reasons.push_back("wrong phase.");
    return support;
  }
  Status prepare(const AttentionShape& /*shape*/, const AttentionLimits& limits) override {
    prepared_sizes.assign(limits.graph_sizes.begin(), limits.graph_sizes.end());
    return prepared;
  }
  size_t workspace_bytes(const AttentionShape& /*shape*/,
                         const AttentionLimits& /*limits*/) const override {
    return workspace_bytes_;
  }
  Status plan(const AttentionShape& /*shape*/, const AttentionBatch& /*batch*/,
              Workspace& /*workspace*/, Stream& /*stream*/) override {
    return {};
  }
  Status run(const AttentionCall& /*call*/, Stream& /*stream*/) override { return {}; }

  int max_decode_q_len() const override { return max_q_len; }
  bool plans_each_size() const override { return is_slow_to_plan; }

  int max_q_len = 8;
  bool is_slow_to_plan = false;
  Status prepared;                  // what prepare() answers
  std::vector<int> prepared_sizes;  // what it was told

 private:
  std::string_view name_;
  int max_heads_;
  Phase phase_;
  size_t workspace_bytes_;
};

}  // namespace quire::testing
