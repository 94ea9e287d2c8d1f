// The attention backends of this process, and the choice among them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend.h"

namespace quire {

// A backend's name and the device that it needs, whether this build has it or not: a user who asks
// for one that the build lacks did not misspell it.
struct BackendName {
  std::string_view name;
  DeviceKind device;
};
std::span<const BackendName> backend_names();

// "prefill", "decode", "decode of 5 query tokens"
std::string describe(const AttentionUse& use);

// The backend that a flag names; auto or empty: any.
struct ForcedBackend {
  std::string_view name = "auto";
  std::string_view flag = "--attention-backend";

  bool is_forced() const { return !name.empty() && name != "auto"; }
};

class BackendSet {
 public:
  // In order of preference; names are distinct.
  void add(std::unique_ptr<AttentionBackend> backend);

  std::vector<std::string_view> names() const;
  const std::vector<std::unique_ptr<AttentionBackend>>& all() const { return backends_; }

  // All that serve the shape in this use on this device, in order of preference. Those with
  // reservations only where no other serves.
  std::vector<AttentionBackend*> supporting(const AttentionShape& shape, const AttentionUse& use,
                                            const Device& device) const;

  // Not forced: supporting(), of which there is at least one. Forced: that backend or none, never
  // a silent substitute. A refusal is invalid_argument and lists every reason of every backend that
  // was asked.
  Result<std::vector<AttentionBackend*>> select(const AttentionShape& shape,
                                                const AttentionUse& use, const Device& device,
                                                const ForcedBackend& forced) const;

 private:
  std::vector<std::unique_ptr<AttentionBackend>> backends_;
};

}  // namespace quire
