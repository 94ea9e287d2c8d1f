#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

namespace quire {

Unigram::Unigram(const Vocab& vocab, std::vector<double> scores, int32_t unk_id, double unk_score,
                 bool byte_fallback)
    : vocab_(vocab),
      scores_(std::move(scores)),
      unk_id_(unk_id),
      unk_score_(unk_score),
      byte_fallback_(byte_fallback) {}

std::vector<Unigram::Node> Unigram::best_paths(std::string_view piece, SearchBudget& budget) const {
  std::vector<Node> best(piece.size() + 1);
  const auto offer = [&](size_t start, size_t end, int32_t id, double score) {
    Node& node = best[end];
    const double total = best[start].score + score;
    if (node.id < 0 || total > node.score) node = {total, id, static_cast<uint32_t>(start)};
  };
  for (size_t start = 0; start < piece.size() && !budget.is_spent();) {
    const size_t length = unicode::char_length(piece[start]);
    bool has_char_token = false;
    ByteTrie::Node node = ByteTrie::kRoot;
    size_t end = start;
    while (end < piece.size()) {
      node = trie_.next(node, piece[end++]);
      if (node == ByteTrie::kNone) break;
      const int32_t id = trie_.id(node);
      if (id == ByteTrie::kNoId) continue;
      offer(start, end, id, scores_[static_cast<size_t>(id)]);
      has_char_token = has_char_token || end - start == length;
    }
    budget.spend(end - start);  // charged, because a token may be as long as the text
    if (!has_char_token) offer(start, start + length, unk_id_, unk_score_);
    start += length;
  }
  return best;
}

void Unigram::encode(std::string_view piece, SearchBudget& budget,
                     std::vector<int32_t>& ids) const {
  QUIRE_CHECK(piece.size() < UINT32_MAX, "[tokenizer] a piece of text has 4 GiB or more");
  const std::vector<Node> best = best_paths(piece, budget);
  if (budget.is_spent()) return;
  std::vector<size_t> ends;
  for (size_t end = piece.size(); end > 0; end = best[end].start) ends.push_back(end);
  std::reverse(ends.begin(), ends.end());
  size_t start = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const int32_t id = best[ends[i]].id;
    // Adjacent unknown characters become one unknown token.
    while (id == unk_id_ && i + 1 < ends.size() && best[ends[i + 1]].id == unk_id_) ++i;
    if (id == unk_id_) {
      append_unknown(piece.substr(start, ends[i] - start), ids);
    } else {
      ids.push_back(id);
    }
    start = ends[i];
  }
}

void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  if (const std::optional<int32_t> id = vocab_.find(text)) return ids.push_back(*id);
  const size_t size_before = ids.size();
  for (const char c : text) {
    if (!byte_fallback_) break;
    const std::optional<int32_t> id = vocab_.find(byte_token(static_cast<unsigned char>(c)));
    if (!id) {
      ids.resize(size_before);
      break;
    }
    ids.push_back(*id);
  }
  if (ids.size() == size_before) ids.push_back(unk_id_);
}

namespace {

struct ScoredToken {
  std::string_view text;
  double score;
};

Result<ScoredToken> read_token(JsonElement json, size_t index) {
  simdjson::dom::array pair;
  ScoredToken token;
  if (json.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
      pair.at(0).get(token.text) != simdjson::SUCCESS ||
      pair.at(1).get(token.score) != simdjson::SUCCESS || !std::isfinite(token.score)) {
    return invalid_argument(
        fmt::format("model.vocab[{}] is not valid; expected [\"TOKEN\", SCORE]", index));
  }
  return token;
}

}  // namespace

Result<std::vector<double>> read_unigram_vocab(JsonElement json, Vocab& vocab) {
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array tokens,
                         json_required<simdjson::dom::array>(json, "vocab"));
  std::vector<double> scores;
  for (const JsonElement element : tokens) {
    QUIRE_ASSIGN_OR_RETURN(const ScoredToken token, read_token(element, scores.size()));
    QUIRE_RETURN_IF_ERROR(vocab.add(token.text, static_cast<int64_t>(scores.size())));
    scores.push_back(token.score);
  }
  return scores;
}

Result<std::unique_ptr<TokenModel>> unigram_from_json(JsonElement json, const Vocab& vocab,
                                                      std::vector<double> scores) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t unk_id, json_required<int64_t>(json, "unk_id"));
  QUIRE_ASSIGN_OR_RETURN(const bool byte_fallback, json_or(json, "byte_fallback", false));
  double lowest = std::numeric_limits<double>::infinity();
  for (const double score : scores) lowest = std::min(lowest, score);
  if (unk_id < 0 || static_cast<size_t>(unk_id) >= scores.size()) {
    return invalid_argument(fmt::format("model.unk_id is out of range; got {}, expected 0 to {}",
                                        unk_id, static_cast<int64_t>(scores.size()) - 1));
  }
  const auto num_ids = static_cast<int32_t>(scores.size());
  auto model = std::make_unique<Unigram>(vocab, std::move(scores), static_cast<int32_t>(unk_id),
                                         lowest - Unigram::kUnkPenalty, byte_fallback);
  for (int32_t id = 0; id < num_ids; ++id) {
    if (!vocab.text(id).empty()) model->add_token(vocab.text(id), id);
  }
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace quire
