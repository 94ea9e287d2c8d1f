#include "cuda/tune/attention_meter.h"
#include "platform/tune.h"

namespace quire {

Status measure_attention(DeviceContext& context, std::span<AttentionBackend* const> backends,
                         const MeasureConfig& config, const OnMeasured& on_measured) {
  QUIRE_RETURN_IF_ERROR(context.bind_thread());
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<cuda::AttentionMeter> meter,
                         cuda::AttentionMeter::create(config));
  for (size_t i = 0; i < config.workloads.size(); ++i) {
    const AttentionWorkload& workload = config.workloads[i];
    std::vector<AttentionBackend*> able;
    for (AttentionBackend* backend : backends) {
      if (backend->supports(config.shape, use_of(workload), context.device()).ok()) {
        able.push_back(backend);
      }
    }
    QUIRE_ASSIGN_OR_RETURN(const MeasuredWorkload measured, meter->measure(workload, able));
    if (!on_measured(i, measured)) return {};
  }
  return {};
}

}  // namespace quire
