#include "server/call_or_text.h"

#include <algorithm>
#include <utility>

#include "base/numbers.h"

namespace quire::server {
namespace {

constexpr size_t kMaskBits = 32;

bool has_token(const std::vector<uint32_t>& mask, int32_t token_id) {
  const auto id = static_cast<size_t>(token_id);
  return id / kMaskBits < mask.size() && (mask[id / kMaskBits] >> id % kMaskBits & 1U) != 0;
}

// Returns whether the constraint allows the opening of a call. Changes the constraint's state.
bool allows(TokenConstraint& constraint, const CallOpening& opening) {
  return !opening.token_ids().empty() && std::ranges::all_of(opening.token_ids(), [&](int32_t id) {
    return constraint.accept(id);
  });
}

class CallOrText final : public TokenConstraint {
 public:
  CallOrText(std::unique_ptr<TokenConstraint> text, std::shared_ptr<const CallOpening> opening,
             const EngineApi& engine)
      : text_(std::move(text)), opening_(std::move(opening)), engine_(engine) {}

  std::vector<uint32_t> allowed_tokens() override {
    if (now_.is_call) {
      return std::vector<uint32_t>(ceil_div(opening_->vocab_size(), kMaskBits), ~0U);
    }
    if (!now_.may_call) return text_->allowed_tokens();
    std::vector<uint32_t> allowed = opening_->tokens_after(now_.num_matched);
    if (!now_.may_text) return allowed;
    const std::vector<uint32_t> of_text = text_->allowed_tokens();
    allowed.resize(std::max(allowed.size(), of_text.size()));
    for (size_t i = 0; i < of_text.size(); ++i) allowed[i] |= of_text[i];
    return allowed;
  }

  bool accept(int32_t token_id) override {
    State next = now_;
    if (!now_.is_call) {
      next.may_call =
          now_.may_call && has_token(opening_->tokens_after(now_.num_matched), token_id);
      if (next.may_call) {
        next.num_matched += engine_.token_bytes(token_id).size();
        next.is_call = next.num_matched >= opening_->size();
      }
      next.may_text = now_.may_text && !next.is_call && text_->accept(token_id);
      if (!next.may_call && !next.may_text) return false;
    }
    before_.push_back(std::exchange(now_, next));
    return true;
  }

  Status status() const override { return now_.may_text ? text_->status() : Status(); }

  bool can_roll_back() const override { return !now_.may_text || text_->can_roll_back(); }

  bool rollback(int num_tokens) override {
    int num_of_text = 0;
    for (int i = 0; i < num_tokens; ++i) {
      if (before_.empty()) return false;
      if (now_.may_text) ++num_of_text;  // text_ has accepted the newest token
      now_ = before_.back();
      before_.pop_back();
    }
    return num_of_text == 0 || text_->rollback(num_of_text);
  }

 private:
  struct State {
    bool may_text = true;
    bool may_call = true;
    bool is_call = false;    // the opening is complete
    size_t num_matched = 0;  // bytes of the opening
  };

  std::unique_ptr<TokenConstraint> text_;
  std::shared_ptr<const CallOpening> opening_;
  const EngineApi& engine_;
  State now_;
  std::vector<State> before_;  // the state before each accepted token
};

}  // namespace

CallOpening::CallOpening(const EngineApi& engine, std::string_view text,
                         const std::vector<TokenMarker>& markers)
    : text_(text),
      vocab_size_(static_cast<size_t>(engine.model_info().vocab_size)),
      masks_(text.size(), std::vector<uint32_t>(ceil_div(vocab_size_, kMaskBits))) {
  const auto marker = std::ranges::find_if(
      markers, [&](const TokenMarker& one) { return text_.starts_with(one.text); });
  const size_t num_of_marker = marker == markers.end() ? 0 : marker->text.size();
  if (auto ids = engine.encode(text_, false, {}); ids.ok()) token_ids_ = std::move(*ids);
  for (size_t id = 0; id < vocab_size_; ++id) {
    const std::string bytes = engine.token_bytes(static_cast<int32_t>(id));
    if (bytes.empty()) continue;
    for (size_t at = 0; at < text_.size(); ++at) {
      const size_t size = std::min(bytes.size(), text_.size() - at);
      if (text_.compare(at, size, bytes, 0, size) != 0) continue;
      const bool is_marker =
          at == 0 && num_of_marker > 0 && id == static_cast<size_t>(marker->token_id);
      if (at < num_of_marker && !is_marker) continue;
      masks_[at][id / kMaskBits] |= 1U << id % kMaskBits;
    }
  }
}

ConstraintFactory call_or_text(ConstraintFactory constraint,
                               std::shared_ptr<const CallOpening> opening,
                               const EngineApi& engine) {
  if (allows(*constraint(), *opening)) return constraint;
  return [constraint = std::move(constraint), opening = std::move(opening),
          &engine]() -> std::unique_ptr<TokenConstraint> {
    return std::make_unique<CallOrText>(constraint(), opening, engine);
  };
}

}  // namespace quire::server
