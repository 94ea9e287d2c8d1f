// The table of model families, with one row per architecture. A new family needs a row.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/family_traits.h"

namespace quire {

// The family of an architecture whose text_config has this model_type, empty: none. Returns null if
// it is not supported.
const FamilyTraits* find_family(std::string_view architecture, std::string_view text_type);
std::span<const FamilyTraits> all_families();
// Returns "LlamaForCausalLM, MistralForCausalLM, …".
std::string supported_architectures();

}  // namespace quire
