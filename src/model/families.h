// The table of model families. It has one row per architecture or, if several decoders occur in the
// architecture, one per architecture and text_type.
#pragma once

#include <span>
#include <string_view>

#include "model/family_traits.h"

namespace quire {

// Returns the family of an architecture, or null if it is not supported. `text_type` is the
// model_type in config.json's text_config; it is empty if config.json has none.
const FamilyTraits* find_family(std::string_view architecture, std::string_view text_type);
std::span<const FamilyTraits> all_families();
int num_architectures();

}  // namespace quire
