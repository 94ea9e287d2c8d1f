#include "tokenizer/vocab.h"

#include <fmt/format.h>

#include "base/text.h"

namespace quire {

Status Vocab::add(std::string_view text, int64_t id) {
  if (id < 0 || id > kMaxId) {
    return invalid_argument(
        fmt::format("the id of token \"{}\" is out of range; got {}, expected "
                    "0 to {}",
                    clipped(text), id, kMaxId));
  }
  if (contains(static_cast<int32_t>(id))) {
    return invalid_argument(
        fmt::format("tokens \"{}\" and \"{}\" share the id {}; expected one each",
                    clipped(this->text(static_cast<int32_t>(id))), clipped(text), id));
  }
  if (text.size() > kMaxTextBytes - bytes_.size()) {
    return invalid_argument("the vocabulary's text is too long; expected at most 1 GiB");
  }
  const auto slot = static_cast<size_t>(id);
  if (slot >= by_id_.size()) by_id_.resize(slot + 1);
  by_id_[slot] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(text.size())};
  bytes_ += text;
  in_order_.push_back(static_cast<int32_t>(id));
  return {};
}

void Vocab::index() {
  by_text_ = StringMap(in_order_.size());
  for (const int32_t id : in_order_) by_text_.set(text(id), id);
  in_order_ = {};
}

}  // namespace quire
