#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace quire {

// The tokens of a sequence, contiguous. The n sequences of a request share their prompt, which may
// be long. Each copies it when its first output token is appended, so waiting sequences share one
// copy.
class TokenIds {
 public:
  TokenIds() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  TokenIds(std::vector<int32_t> ids) : ids_(std::move(ids)) {}
  TokenIds(std::shared_ptr<const std::vector<int32_t>> prompt) : prompt_(std::move(prompt)) {}
  // NOLINTEND(google-explicit-constructor)

  const std::vector<int32_t>& get() const { return prompt_ == nullptr ? ids_ : *prompt_; }
  size_t size() const { return get().size(); }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }

  void push_back(int32_t id) {
    if (prompt_ != nullptr) {
      std::vector<int32_t> own;
      own.reserve(prompt_->size() + kFirstTokens);
      own.assign(prompt_->begin(), prompt_->end());
      ids_ = std::move(own);
      prompt_.reset();
    }
    ids_.push_back(id);
  }

 private:
  static constexpr size_t kFirstTokens = 64;  // room for output beside a copied prompt

  std::shared_ptr<const std::vector<int32_t>> prompt_;  // null: the sequence has its own copy
  std::vector<int32_t> ids_;
};

}  // namespace quire
