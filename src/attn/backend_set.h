// The attention backends of this process, and the choice among them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "attn/backend.h"

namespace quire {

// A backend's name and what it needs, whether this build has it or not: a user who asks for one
// that the build lacks did not misspell it.
struct BackendName {
  std::string_view name;
  DeviceKind device;
};
std::span<const BackendName> backend_names();

// The backend that was asked for, and by which flag.
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

  // All that serve the shape in this phase on this device, in order of preference.
  std::vector<AttentionBackend*> supporting(const AttentionShape& shape, Phase phase,
                                            const Device& device) const;

  // "auto" (or empty): the first backend that serves the shape in this phase on this device. A
  // name: that backend or nothing, never a silent substitute. A refusal is invalid_argument and
  // lists every reason of every backend that was asked.
  Result<AttentionBackend*> select(const AttentionShape& shape, Phase phase, const Device& device,
                                   const ForcedBackend& forced) const;

 private:
  Result<AttentionBackend*> select_first(const AttentionShape& shape, Phase phase,
                                         const Device& device) const;

  std::vector<std::unique_ptr<AttentionBackend>> backends_;
};

}  // namespace quire
