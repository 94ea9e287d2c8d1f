// Checks of an attention shape that do not depend on a backend.
#pragma once

#include <string>
#include <vector>

#include "attn/backend.h"

namespace quire {

// Every way in which the shape contradicts itself, for any backend. Each reason is one sentence
// that names the field, its value and the expected value.
std::vector<std::string> shape_faults(const AttentionShape& shape);

}  // namespace quire
