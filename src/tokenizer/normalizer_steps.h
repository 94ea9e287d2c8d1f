#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/normal_form.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pattern.h"

namespace quire {

std::unique_ptr<const NormalizerStep> make_normal_form_step(NormalForm form);
std::unique_ptr<const NormalizerStep> make_lowercase_step();
std::unique_ptr<const NormalizerStep> make_strip_accents_step();
// Removes the control characters and replaces the unusual spaces that SentencePiece's NMT rules
// name.
std::unique_ptr<const NormalizerStep> make_nmt_step();
// Leaves an empty text empty.
std::unique_ptr<const NormalizerStep> make_prepend_step(std::string prefix);
std::unique_ptr<const NormalizerStep> make_replace_step(std::unique_ptr<const Pattern> pattern,
                                                        std::string content);
std::unique_ptr<const NormalizerStep> make_strip_step(bool left, bool right);
std::unique_ptr<const NormalizerStep> make_precompiled_step(Charsmap map);

Result<std::string> decode_base64(std::string_view text);

}  // namespace quire
