// What does not depend on a backend: is this shape meaningful?
#pragma once

#include <string>
#include <vector>

#include "attn/backend.h"

namespace quire {

// Every way in which the shape contradicts itself, whoever would compute it. Each reason is one
// sentence that names the field, its value and what is expected.
std::vector<std::string> shape_faults(const AttentionShape& shape);

}  // namespace quire
