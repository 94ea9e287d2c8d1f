#include "sample/logits_error.h"

#include <fmt/format.h>

namespace quire {

Status nan_logit(int64_t position, int64_t token_id) {
  return internal_error(
      fmt::format("[sample] logits at position {}; got NaN for token {}, expected numbers: the "
                  "weights or the model are broken",
                  position, token_id));
}

Status infinite_logit(int64_t position) {
  return internal_error(fmt::format(
      "[sample] logits at position {}; got infinity, expected finite numbers", position));
}

Status no_finite_logit(int64_t position) {
  return internal_error(
      fmt::format("[sample] logits at position {}; got -infinity for every token, expected finite "
                  "numbers: the weights or the model are broken",
                  position));
}

Status no_token_allowed(int64_t position) {
  return invalid_argument(fmt::format(
      "[sample] logits at position {}; got -infinity for every token, expected one that may be "
      "chosen: allowed_token_ids, bad_words, min_tokens and a grammar leave none",
      position));
}

}  // namespace quire
