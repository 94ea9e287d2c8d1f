#pragma once

#include <memory>
#include <string>

#include "tokenizer/pattern.h"
#include "tokenizer/pre_tokenizer.h"

namespace quire {

// The handling of the matches of a split's pattern.
enum class SplitBehavior { kIsolated, kRemoved, kContiguous, kMergedWithPrevious, kMergedWithNext };
enum class PrependScheme { kAlways, kFirst, kNever };

std::unique_ptr<const PreTokenizerStage> make_split_stage(std::unique_ptr<const Pattern> pattern,
                                                          SplitBehavior behavior, bool invert);
// Adds `prefix` to a piece that does not begin with it.
std::unique_ptr<const PreTokenizerStage> make_prefix_stage(std::string prefix);
// Replaces each space by `replacement`, and prepends it as the scheme says.
std::unique_ptr<const PreTokenizerStage> make_metaspace_stage(std::string replacement,
                                                              PrependScheme scheme);

}  // namespace quire
