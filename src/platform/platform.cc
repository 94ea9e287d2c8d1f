#include "platform/platform.h"

#include <fmt/format.h>

namespace quire {

Result<std::span<std::byte>> DeviceContext::workspace(size_t num_bytes) {
  if (workspaces_.empty() || workspaces_.back().num_bytes() < num_bytes) {
    QUIRE_ASSIGN_OR_RETURN(Buffer added, allocate_workspace(num_bytes));
    workspaces_.push_back(std::move(added));
  }
  const Buffer& largest = workspaces_.back();
  return std::span(static_cast<std::byte*>(largest.data()), largest.num_bytes());
}

Status DeviceContext::check_model_drafter() const {
  return unimplemented(
      fmt::format("[engine] `speculative_config`: a model drafts on a CPU only, got {}; leave it "
                  "out, or use `device` cpu; outputs are the same without it",
                  device().name));
}

Result<std::unique_ptr<Drafter>> DeviceContext::make_model_drafter(
    const DraftModelParts& /*parts*/, const DrafterLimits& /*limits*/) {
  return check_model_drafter();
}

}  // namespace quire
