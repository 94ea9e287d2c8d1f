// The table of model families, with one row per architecture. A new family needs a row.
#pragma once

#include <string>
#include <string_view>

#include "model/family_traits.h"

namespace quire {

// Returns null if the architecture is not supported.
const FamilyTraits* find_family(std::string_view architecture);
// Returns "LlamaForCausalLM, MistralForCausalLM, …".
std::string supported_architectures();

}  // namespace quire
