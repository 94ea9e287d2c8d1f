// A restriction of the output's text for requests with tools: the output is either a tool call or
// the restricted text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/request.h"
#include "server/engine_api.h"

namespace quire::server {

// The tokens that continue the opening of a call, computed once per server.
class CallOpening {
 public:
  // `text` is the literal that opens a call, see call_opening(). If it begins with one of the
  // markers, only that marker's token opens a call, as in the output parser.
  CallOpening(const EngineApi& engine, std::string_view text,
              const std::vector<TokenMarker>& markers = {});

  size_t size() const { return text_.size(); }
  const std::vector<int32_t>& token_ids() const { return token_ids_; }  // empty if encoding failed
  size_t vocab_size() const { return vocab_size_; }
  // Returns the mask of tokens that may follow `num_matched` bytes of the opening, in the form of
  // TokenConstraint::allowed_tokens().
  const std::vector<uint32_t>& tokens_after(size_t num_matched) const {
    return masks_[num_matched];
  }

 private:
  const std::string text_;
  const size_t vocab_size_;
  std::vector<int32_t> token_ids_;
  std::vector<std::vector<uint32_t>> masks_;
};

// Returns a constraint that allows the texts of `constraint`, or a call: the opening and then any
// text. If `constraint` allows the opening, it describes calls itself, so it is returned unchanged.
// `engine` must outlive the result.
ConstraintFactory call_or_text(ConstraintFactory constraint,
                               std::shared_ptr<const CallOpening> opening, const EngineApi& engine);

}  // namespace quire::server
