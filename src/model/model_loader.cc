#include "model/model_loader.h"

#include "base/check.h"
#include "model/families.h"

namespace quire {

Result<std::unique_ptr<Model>> load_model(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadProgress& progress) {
  QUIRE_CHECK(
      limits.max_num_tokens > 0 && limits.max_num_logit_rows > 0 && limits.max_model_len > 0,
      "[model] limits must be set");
  return family_of(config).load(config, source, ops, limits, progress);
}

}  // namespace quire
