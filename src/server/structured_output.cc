#include "server/structured_output.h"

#include <memory>
#include <utility>

#include "base/numbers.h"
#include "engine/engine_parts.h"
#include "server/tools/tool_parsers.h"

namespace quire::server {
namespace {

class AfterReasoning final : public TokenConstraint {
 public:
  AfterReasoning(std::unique_ptr<TokenConstraint> inner, const EngineApi& engine)
      : inner_(std::move(inner)), engine_(engine) {}

  std::vector<uint32_t> allowed_tokens() override {
    if (!is_reasoning_) return inner_->allowed_tokens();
    constexpr size_t kBitsPerWord = 32;
    const auto vocab_size = static_cast<size_t>(engine_.model_info().vocab_size);
    return std::vector<uint32_t>(ceil_div(vocab_size, kBitsPerWord), ~0U);
  }

  // The inner constraint does not see the bytes of a token that follow "</think>". In practice they
  // are white space, so they are dropped.
  bool accept(int32_t token_id) override {
    if (!is_reasoning_) return inner_->accept(token_id);
    for (const char c : engine_.token_bytes(token_id)) {
      if (end_.push(c, [](std::string_view) {})) is_reasoning_ = false;
    }
    return true;
  }

  Status status() const override { return inner_->status(); }

 private:
  std::unique_ptr<TokenConstraint> inner_;
  const EngineApi& engine_;
  Marker end_{"</think>"};
  bool is_reasoning_ = true;
};

}  // namespace

ConstraintCompiler make_constraint_compiler(const Engine& engine) {
  ConstraintCompiler constraints;
  if (!engine.has_tokenizer()) {
    constraints.compile = [](const GrammarSpec&) {
      return invalid_argument(
          "[grammar] the model has no tokenizer, so no grammar knows its tokens");
    };
    return constraints;
  }
  const auto compiler = std::make_shared<GrammarCompiler>(*EngineInternals::tokenizer(engine),
                                                          engine.model_info().eos_token_ids);
  constraints.compile = [compiler](const GrammarSpec& grammar) {
    return compiler->compile(grammar);
  };
  constraints.find = [compiler](const GrammarSpec& grammar) { return compiler->find(grammar); };
  constraints.stop = [compiler] { compiler->stop(); };
  constraints.stats = [compiler] { return compiler->stats(); };
  return constraints;
}

ConstraintFactory after_reasoning(ConstraintFactory constraint, const EngineApi& engine) {
  return [constraint = std::move(constraint), &engine] {
    return std::make_unique<AfterReasoning>(constraint(), engine);
  };
}

}  // namespace quire::server
