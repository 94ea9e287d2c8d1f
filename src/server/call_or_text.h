// A restriction of the text beside tools: the output is either a tool call or the restricted text.
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
  // text: the marker that opens a call (call_opening()). If it begins with one of the markers, only
  // this token opens a call, as in the parser of the output.
  CallOpening(const EngineApi& engine, std::string_view text,
              const std::vector<TokenMarker>& markers = {});

  size_t size() const { return text_.size(); }
  const std::vector<int32_t>& token_ids() const { return token_ids_; }  // empty: unknown
  size_t vocab_size() const { return vocab_size_; }
  // The tokens that may follow after `num_matched` bytes of the opening, as in TokenConstraint.
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
// text. A constraint that allows the opening describes calls itself, so it stays as it is. `engine`
// must outlive it.
ConstraintFactory call_or_text(ConstraintFactory constraint,
                               std::shared_ptr<const CallOpening> opening, const EngineApi& engine);

}  // namespace quire::server
