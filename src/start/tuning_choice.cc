#include "start/tuning_choice.h"

#include <string>
#include <utility>
#include <vector>

#include "model/decoder_sizes.h"
#include "model/model_loader.h"
#include "nodes/nodes.h"
#include "start/measured_table.h"

namespace quire {
namespace {

// Returns the times that were measured on this device, at this start or at an earlier one.
Result<TuningTable> measure_backends(const PlanInputs& in) {
  const RunnerSizes sizes = runner_sizes(in);
  const std::vector<int>& q_lens = sizes.decode_q_lens;
  std::vector<AttentionSelector> selectors;  // the candidates of each are measured
  for (const KvGroup& group :
       decoder_kv_groups(in.files.config, sizes.limits, in.context.ops().activation_dtype())) {
    QUIRE_ASSIGN_OR_RETURN(AttentionSelector selector, make_selector(in, group, q_lens));
    selectors.push_back(std::move(selector));
  }
  return measured_table(selectors,
                        {.sizes = sizes,
                         .measure =
                             [&](std::span<AttentionBackend* const> backends,
                                 const MeasureConfig& config, const OnMeasured& on_measured) {
                               return measure_attention(in.context, backends, config, on_measured);
                             }},
                        *in.platform.choices());
}

// `tuning_table` is "builtin", "measured" or the path of a file. Without it, a device without a
// built-in table is measured. A CPU is never measured, and has no built-in table.
Result<TuningTable> find_tuning_table(const PlanInputs& in) {
  const std::string& wanted = in.config.tuning_table;
  const Device& device = in.context.device();
  if (wanted.empty() || wanted == "builtin" || wanted == "measured") {
    TuningTable builtin = builtin_table(device);
    const bool is_measured = wanted == "measured" || (wanted.empty() && builtin.points().empty());
    if (device.kind == DeviceKind::kCpu || !is_measured || !in.platform.choices()->measures()) {
      return builtin;
    }
    return measure_backends(in);
  }
  Result<TuningTable> table = TuningTable::read(wanted);
  if (!table.ok()) return invalid_argument("[engine] tuning_table: " + table.status().message());
  return table;
}

}  // namespace

Result<TuningTable> find_shared_table(const PlanInputs& in) {
  Nodes* const nodes = in.platform.nodes();
  if (nodes == nullptr) return find_tuning_table(in);
  std::string csv;
  if (nodes->node() == 0) {
    QUIRE_ASSIGN_OR_RETURN(const TuningTable own, find_tuning_table(in));
    if (!own.points().empty()) csv = to_csv(own.rows());
  }
  QUIRE_ASSIGN_OR_RETURN(csv, nodes->broadcast("the times of backends", csv));
  return csv.empty() ? TuningTable() : TuningTable::parse(csv, "the times of node 0");
}

}  // namespace quire
