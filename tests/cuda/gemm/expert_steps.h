// The steps of experts on a device, which the tests of plain and of packed experts share.
#pragma once

#include <vector>

#include "cuda/ops/device_data.h"
#include "support/expert_cases.h"

namespace quire::testing {

// A step's operands on the device, and the call.
struct DeviceStep {
  DeviceStep(cuda::CudaStream& stream, cuda::CudaOps& ops, DType dtype, const ExpertsShape& shape,
             const Step& step)
      : x(stream, {step.num_tokens, shape.hidden_size}, dtype, step.x),
        ids(stream, {step.num_tokens, shape.top_k}, DType::kI32),
        weights(stream, {step.num_tokens, shape.top_k}, DType::kF32, step.weights),
        out(stream, {step.num_tokens, shape.hidden_size}, dtype),
        workspace(stream, {ops.experts()->workspace_bytes(shape, step.num_tokens)},
                  DType::kF8E4M3) {
    ids.write(step.ids.data());
  }
  ExpertsCall call(const Experts& experts, Activation activation, bool adds = false) const {
    return {.experts = &experts,
            .activation = activation,
            .x = x.view(),
            .ids = ids.view(),
            .weights = weights.view(),
            .out = out.view(),
            .adds = adds,
            .workspace = {workspace.as<std::byte>(), workspace.view().num_bytes()}};
  }

  DeviceData x, ids, weights, out, workspace;
};

class CudaExpertsTest : public CudaOpsTest {
 protected:
  DeviceStep on_device(const ExpertsShape& shape, const Step& step) {
    return DeviceStep(stream(), *ops_, dtype(), shape, step);
  }

  // A graph that was captured with `first` computes `second`, which has as many tokens.
  void expect_graph_serves(const Experts& experts, const Step& first, const Step& second,
                           const std::vector<float>& expected,
                           Activation activation = Activation::kSilu) {
    DeviceStep on = on_device(experts.shape(), first);
    const ExpertsCall call = on.call(experts, activation);
    CapturedGraph graph(stream(), [&] { ops_->experts()->run_experts(call); });
    graph.launch();
    on.x.set(second.x);
    on.ids.write(second.ids.data());
    on.weights.set(second.weights);
    graph.launch();
    EXPECT_EQ(on.out.values(), expected) << second.num_tokens << " tokens";
  }
};

}  // namespace quire::testing
