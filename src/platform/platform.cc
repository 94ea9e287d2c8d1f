#include "platform/platform.h"

namespace quire {

Result<std::span<std::byte>> DeviceContext::workspace(size_t num_bytes) {
  if (workspaces_.empty() || workspaces_.back().num_bytes() < num_bytes) {
    QUIRE_ASSIGN_OR_RETURN(Buffer added, allocate_workspace(num_bytes));
    workspaces_.push_back(std::move(added));
  }
  const Buffer& largest = workspaces_.back();
  return std::span(static_cast<std::byte*>(largest.data()), largest.num_bytes());
}

}  // namespace quire
