#include "cpu/platform/host_drafter.h"

#include "base/check.h"
#include "cpu/platform/lookup_drafter.h"
#include "cpu/platform/model_drafter.h"

namespace quire {

Result<std::shared_ptr<HostDrafter>> make_drafter(const DraftSource& source,
                                                  const DrafterLimits& limits, HostDevice& device) {
  if (const auto* lookup = std::get_if<LookupConfig>(&source)) {
    return make_lookup_drafter(*lookup, limits, device.pool);
  }
  if (const auto* model = std::get_if<DraftModelParts>(&source)) {
    return make_model_drafter(*model, limits, device);
  }
  const auto* own = std::get_if<std::shared_ptr<Drafter>>(&source);
  if (own == nullptr) return std::shared_ptr<HostDrafter>();
  auto drafter = std::dynamic_pointer_cast<HostDrafter>(*own);
  QUIRE_CHECK(drafter != nullptr, "[cpu] the runner's drafter belongs to another platform");
  return drafter;
}

}  // namespace quire
