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
// The control characters and odd spaces that SentencePiece's NMT rules clear away.
std::unique_ptr<const NormalizerStep> make_nmt_step();
// Not before an empty text.
std::unique_ptr<const NormalizerStep> make_prepend_step(std::string prefix);
std::unique_ptr<const NormalizerStep> make_replace_step(std::unique_ptr<const Pattern> pattern,
                                                        std::string content);
std::unique_ptr<const NormalizerStep> make_strip_step(bool left, bool right);
std::unique_ptr<const NormalizerStep> make_precompiled_step(Charsmap map);

Result<std::string> decode_base64(std::string_view text);

}  // namespace quire
