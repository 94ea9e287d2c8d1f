#include "cuda/platform/cuda_drafter.h"

#include "base/check.h"
#include "cuda/platform/lookup_drafter.h"
#include "cuda/platform/model_drafter.h"

namespace quire::cuda {

Result<std::shared_ptr<CudaDrafter>> make_drafter(const DraftSource& source,
                                                  const DrafterLimits& limits, CudaOps& ops,
                                                  CudaStream& stream) {
  if (const auto* lookup = std::get_if<LookupConfig>(&source)) {
    return make_lookup_drafter(*lookup, limits, stream);
  }
  if (const auto* model = std::get_if<DraftModelParts>(&source)) {
    return make_model_drafter(*model, limits, ops, stream);
  }
  const auto* own = std::get_if<std::shared_ptr<Drafter>>(&source);
  if (own == nullptr) return std::shared_ptr<CudaDrafter>();
  auto drafter = std::dynamic_pointer_cast<CudaDrafter>(*own);
  QUIRE_CHECK(drafter != nullptr, "[cuda] the runner's drafter is one of another platform");
  return drafter;
}

}  // namespace quire::cuda
