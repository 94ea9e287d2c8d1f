// The attention backends of this process, and the choice among them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "attn/backend.h"

namespace quire {

class BackendSet {
 public:
  // In order of preference; names are distinct.
  void add(std::unique_ptr<AttentionBackend> backend);

  std::vector<std::string_view> names() const;
  const std::vector<std::unique_ptr<AttentionBackend>>& all() const { return backends_; }

  // "auto" (or empty): the first backend that serves the shape in this phase on this device. A
  // name: that backend or nothing, never a silent substitute. A refusal is invalid_argument and
  // lists every reason of every backend that was asked.
  Result<AttentionBackend*> select(const AttentionShape& shape, Phase phase, const Device& device,
                                   std::string_view forced_name) const;

 private:
  Result<AttentionBackend*> select_first(const AttentionShape& shape, Phase phase,
                                         const Device& device) const;

  std::vector<std::unique_ptr<AttentionBackend>> backends_;
};

}  // namespace quire
