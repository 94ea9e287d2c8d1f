// The attention backends of this process, and the selection among them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend.h"

namespace quire {

// A backend's name and the device that it needs. The list includes backends that this build lacks,
// so that their names are not reported as misspelled.
struct BackendName {
  std::string_view name;
  DeviceKind device;
};
std::span<const BackendName> backend_names();

// Returns "prefill", "decode" or, for example, "decode of 5 query tokens".
std::string describe(const AttentionUse& use);

// The backend that a flag names; auto or empty: no restriction.
struct ForcedBackend {
  std::string_view name = "auto";
  std::string_view flag = "--attention-backend";

  bool is_forced() const { return !name.empty() && name != "auto"; }
};

class BackendSet {
 public:
  // Adds a backend, in order of preference; names are distinct.
  void add(std::unique_ptr<AttentionBackend> backend);

  std::vector<std::string_view> names() const;
  const std::vector<std::unique_ptr<AttentionBackend>>& all() const { return backends_; }

  // All backends that support the shape in this use on this device, in order of preference.
  // Backends with reservations are returned only when no other supports it.
  std::vector<AttentionBackend*> supporting(const AttentionShape& shape, const AttentionUse& use,
                                            const Device& device) const;

  // If not forced, returns supporting(), or fails if it is empty. If forced, returns that backend
  // or fails; it is never silently replaced. The error is invalid_argument and lists every reason
  // of every backend that was considered.
  Result<std::vector<AttentionBackend*>> select(const AttentionShape& shape,
                                                const AttentionUse& use, const Device& device,
                                                const ForcedBackend& forced) const;

 private:
  std::vector<std::unique_ptr<AttentionBackend>> backends_;
};

}  // namespace quire
