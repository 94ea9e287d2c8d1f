#include "model/footprint.h"

#include "model/families.h"
#include "model/shard.h"

namespace quire {
namespace {

// Bytes of a tensor in one rank's memory.
int64_t kept_bytes(const TensorSpec& tensor, const WeightSource& source, const Ops& ops,
                   const Parallel& parallel) {
  const int64_t count = tensor.shape.num_elements();
  if (tensor.kind == TensorSpec::Kind::kVector) {
    return count * static_cast<int64_t>(dtype_bytes(DType::kF32));
  }
  const DType stored = source.dtype_of(tensor.name).value_or(DType::kF32);
  const DType kept = tensor.kind == TensorSpec::Kind::kMatrix ? ops.linear_dtype(stored) : stored;
  const int64_t num_parts = tensor.split == Split::kNone ? 1 : parallel.size;
  return count / num_parts * static_cast<int64_t>(dtype_bytes(kept));
}

}  // namespace

int64_t num_parameters(const ModelConfig& config) {
  int64_t count = 0;
  for (const TensorSpec& tensor : family_of(config).tensors(config)) {
    if (tensor.kind != TensorSpec::Kind::kScales) count += tensor.shape.num_elements();
  }
  return count;
}

std::vector<KvGroup> make_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                    DType activation) {
  return family_of(config).kv_groups(config, limits, activation);
}

int64_t estimate_weight_bytes(const ModelConfig& config, const WeightSource& source, const Ops& ops,
                              const Parallel& parallel) {
  int64_t bytes = 0;
  for (const TensorSpec& tensor : family_of(config).tensors(config)) {
    bytes += kept_bytes(tensor, source, ops, parallel);
  }
  return bytes;
}

int64_t estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                  DType activation) {
  return family_of(config).activation_bytes(config, limits, activation);
}

}  // namespace quire
