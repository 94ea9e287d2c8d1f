#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

// A per-thread cache of the ids of short words. It is a table of fixed size, in which a newer word
// replaces the older word in its slot.
class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 22;
  static constexpr size_t kMaxIds = 8;
  static constexpr size_t kNumSlots = size_t{1} << 14;  // slots of 64 bytes: 1 MiB per thread

  static WordCache& of_this_thread() {
    thread_local const std::unique_ptr<WordCache> cache = std::make_unique<WordCache>();
    return *cache;
  }

  struct alignas(64) Slot {
    uint64_t serial = 0;  // of the model
    uint8_t num_bytes = 0;
    uint8_t num_ids = 0;
    std::array<char, kMaxWordBytes> word{};
    std::array<int32_t, kMaxIds> ids{};

    bool holds(uint64_t model_serial, std::string_view text) const {
      return serial == model_serial && num_bytes == text.size() &&
             std::memcmp(word.data(), text.data(), text.size()) == 0;
    }
    void store(uint64_t model_serial, std::string_view text, std::span<const int32_t> text_ids) {
      serial = model_serial;
      num_bytes = static_cast<uint8_t>(text.size());
      num_ids = static_cast<uint8_t>(text_ids.size());
      std::memcpy(word.data(), text.data(), text.size());
      std::memcpy(ids.data(), text_ids.data(), text_ids.size_bytes());
    }
  };
  static_assert(sizeof(Slot) == 64);

  Slot& slot(uint64_t hash) { return slots_[hash % kNumSlots]; }

 private:
  std::array<Slot, kNumSlots> slots_;
};

// Up to this length, scanning all pairs for each merge is faster than a heap.
constexpr size_t kMaxShortWord = 96;
constexpr int32_t kNoId = -1;

uint64_t next_serial() {
  static std::atomic<uint64_t> serial = 0;
  return ++serial;
}

char32_t first_char(std::string_view text) {
  return text.empty() ? 0 : unicode::CharTable::get().at(text.data()).code_point;
}

char32_t last_char(std::string_view text) {
  return text.empty() ? 0 : first_char(text.substr(unicode::last_char_start(text)));
}

constexpr size_t kMaxMerges = size_t{1} << 24;

// Adds the merge rules of a tokenizer.json in order. A rule's position in the list is its rank.
class MergeReader {
 public:
  MergeReader(const Vocab& vocab, Bpe& model) : vocab_(vocab), model_(model) {}

  Status add(std::string_view left, std::string_view right) {
    merged_.assign(left);
    merged_ += right;
    const std::optional<int32_t> ids[] = {vocab_.find(left), vocab_.find(right),
                                          vocab_.find(merged_)};
    if (!ids[0] || !ids[1] || !ids[2]) {
      return invalid_argument(
          fmt::format("model.merges[{}] (\"{}\" \"{}\") names a token that is "
                      "not in model.vocab",
                      rank_, clipped(left), clipped(right)));
    }
    model_.add_merge(*ids[0], *ids[1], rank_++, *ids[2]);
    return {};
  }
  Status malformed() const {
    return invalid_argument(fmt::format(
        "model.merges[{}] is not valid; expected \"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]", rank_));
  }

 private:
  const Vocab& vocab_;
  Bpe& model_;
  std::string merged_;
  int32_t rank_ = 0;  // of the next rule
};

Status add_merge(JsonElement json, MergeReader& reader) {
  std::string_view text;
  if (json.get(text) == simdjson::SUCCESS) {
    if (text.starts_with("#version")) return {};
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return reader.malformed();
    }
    return reader.add(text.substr(0, space), text.substr(space + 1));
  }
  simdjson::dom::array pair;
  std::string_view left;
  std::string_view right;
  if (json.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
      pair.at(0).get(left) != simdjson::SUCCESS || pair.at(1).get(right) != simdjson::SUCCESS) {
    return reader.malformed();
  }
  return reader.add(left, right);
}

Status refuse_unsupported(JsonElement json) {
  for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view affix, json_or(json, name, std::string_view()));
    if (!affix.empty()) {
      return unimplemented(fmt::format("model.{} is not supported; got \"{}\", expected none", name,
                                       clipped(affix)));
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const double dropout, json_or(json, "dropout", 0.0));
  if (dropout != 0) {
    return unimplemented(
        fmt::format("model.dropout is not supported; got {}, expected none", dropout));
  }
  return {};
}

}  // namespace

std::string byte_token(unsigned char byte) {
  return fmt::format("<0x{:02X}>", byte);
}

Bpe::Bpe(const Vocab& vocab, const BpeOptions& options, ByteTrie user_defined)
    : vocab_(vocab),
      options_(options),
      serial_(next_serial()),
      user_defined_(std::move(user_defined)),
      has_user_defined_(!user_defined_.is_empty()) {
  byte_ids_.fill(kNoId);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char raw = static_cast<char>(byte);
    const std::string text =
        options_.byte_level ? spell_bytes({&raw, 1}) : byte_token(static_cast<unsigned char>(byte));
    byte_ids_[byte] = vocab_.find(text).value_or(kNoId);
  }
  const bool has_all_bytes =
      std::find(byte_ids_.begin(), byte_ids_.end(), kNoId) == byte_ids_.end();
  // A word may be split only if no unknown character is fused or dropped across the split.
  splits_words_ = !options_.byte_level && !options_.ignore_merges && !has_user_defined_ &&
                  options_.byte_fallback && has_all_bytes;
  if (!options_.byte_level || !options_.ignore_merges) return;
  std::vector<std::pair<size_t, int32_t>> starts;
  for (int32_t id = 0; id < vocab_.num_ids(); ++id) {
    const size_t start = raw_bytes_.size();
    if (!append_unspelled(vocab_.text(id), raw_bytes_) || raw_bytes_.size() == start) continue;
    if (vocab_.find(vocab_.text(id)) == id) starts.emplace_back(start, id);
  }
  raw_tokens_ = StringMap(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1].first : raw_bytes_.size();
    raw_tokens_.set(std::string_view(raw_bytes_).substr(starts[i].first, end - starts[i].first),
                    starts[i].second);
  }
}

void Bpe::add_merge(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  merges_.set(static_cast<uint32_t>(left), static_cast<uint32_t>(right), {rank, merged});
  if (!splits_words_) return;
  // A character without a token becomes byte tokens. No known vocabulary has a rule that merges
  // byte tokens. If a rule does, can_touch() would not detect it, so words are not split at all.
  const auto is_byte_token = [this](int32_t id) {
    return std::find(byte_ids_.begin(), byte_ids_.end(), id) != byte_ids_.end();
  };
  bytes_can_merge_ = bytes_can_merge_ || is_byte_token(left) || is_byte_token(right);
  const char32_t a = last_char(vocab_.text(left));
  const char32_t b = first_char(vocab_.text(right));
  if (a < 128 && b < 128) {
    ascii_joints_.set(a * 128 + b);
  } else {
    joints_.set(a, b, true);
  }
}

// tiktoken merges any two symbols whose union is a token, the lowest id first. One rule per token
// is enough: merges with lower ids join the token's bytes in the same way in every text. If these
// merges leave two symbols, the symbols are the halves of the token's rule. If they leave more, no
// merge makes the token, and it is used only for a whole piece.
std::vector<Bpe::Pair> Bpe::add_merges_by_id() {
  std::vector<Pair> pairs;
  std::string bytes;
  std::vector<int32_t> symbols;
  std::vector<int32_t> halves;
  for (int32_t id = 0; id < vocab_.num_ids(); ++id) {
    bytes.clear();
    symbols.clear();
    halves.clear();
    append_unspelled(vocab_.text(id), bytes);
    append_symbols(bytes, symbols);
    merge(symbols, halves);
    if (halves.size() != 2) continue;
    add_merge(halves[0], halves[1], id, id);
    pairs.push_back({halves[0], halves[1]});
  }
  return pairs;
}

// Whether any merge could join these two characters. If not, the text may be split between them,
// because the two sides never affect each other.
bool Bpe::can_touch(char32_t left, char32_t right) const {
  if (left < 128 && right < 128) return ascii_joints_[left * 128 + right];
  return joints_.find(left, right) != nullptr;
}

void Bpe::encode(std::string_view piece, SearchBudget&, std::vector<int32_t>& ids) const {
  QUIRE_CHECK(piece.size() < UINT32_MAX, "[tokenizer] a piece of text has 4 GiB or more");
  if (!splits_words_ || bytes_can_merge_) return encode_word(piece, ids);
  const unicode::CharTable& table = unicode::CharTable::get();
  size_t start = 0;
  unicode::Char left = table.at(piece.data());
  for (size_t i = left.num_bytes; i < piece.size();) {
    const unicode::Char right = table.at(piece.data() + i);
    if (!can_touch(left.code_point, right.code_point)) {
      encode_word(piece.substr(start, i - start), ids);
      start = i;
    }
    left = right;
    i += right.num_bytes;
  }
  encode_word(piece.substr(start), ids);
}

void Bpe::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  WordCache::Slot* slot = nullptr;
  if (word.size() <= WordCache::kMaxWordBytes) {
    slot = &WordCache::of_this_thread().slot(hash_bytes(word));
    if (slot->holds(serial_, word)) {
      ids.insert(ids.end(), slot->ids.begin(), slot->ids.begin() + slot->num_ids);
      return;
    }
  }
  const size_t start = ids.size();
  int32_t whole = kNoId;
  if (options_.ignore_merges) {
    whole = options_.byte_level ? raw_tokens_.find(word) : vocab_.find(word).value_or(kNoId);
  }
  if (whole != kNoId) {
    ids.push_back(whole);
  } else {
    thread_local std::vector<int32_t> symbols;
    symbols.clear();
    append_symbols(word, symbols);
    merge(symbols, ids);
    if (symbols.size() > kMaxShortWord) symbols.shrink_to_fit();
  }
  const std::span<const int32_t> added = std::span(ids).subspan(start);
  if (slot != nullptr && added.size() <= WordCache::kMaxIds) slot->store(serial_, word, added);
}

bool Bpe::append_byte_tokens(std::string_view text, std::vector<int32_t>& symbols) const {
  const auto id_of = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (std::any_of(text.begin(), text.end(), [&](char c) { return id_of(c) == kNoId; })) {
    return false;
  }
  for (const char c : text) symbols.push_back(id_of(c));
  return true;
}

// Appends one symbol per character (per byte in a byte-level vocabulary). Unknown characters are
// handled according to the options.
void Bpe::append_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
  bool unk_pending = false;  // not yet appended, because the next unknown character may be fused
                             // with it
  const auto flush_unk = [&] {
    if (unk_pending) symbols.push_back(*options_.unk_id);
    unk_pending = false;
  };
  for (size_t i = 0; i < word.size();) {
    size_t length = options_.byte_level ? 1 : unicode::char_length(word[i]);
    int32_t id = kNoId;
    if (options_.byte_level) {
      id = byte_ids_[static_cast<unsigned char>(word[i])];
    } else if (const auto match = has_user_defined_ ? user_defined_.longest_prefix(word.substr(i))
                                                    : ByteTrie::Match{};
               match.num_bytes > 0) {
      id = match.id;
      length = match.num_bytes;
    } else {
      id = vocab_.find(word.substr(i, length)).value_or(kNoId);
    }
    const std::string_view text = word.substr(i, length);
    i += length;
    if (id != kNoId) {
      flush_unk();
      symbols.push_back(id);
    } else if (!(options_.byte_fallback && !options_.byte_level &&
                 append_byte_tokens(text, symbols)) &&
               options_.unk_id) {
      if (!options_.fuse_unk) flush_unk();
      unk_pending = true;
    }
  }
  flush_unk();
}

void Bpe::merge(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  symbols.size() <= kMaxShortWord ? merge_short(symbols, ids) : merge_long(symbols, ids);
}

void Bpe::merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  // The rank and result of merging each symbol with the next one. Separate arrays let the search
  // for the lowest rank use vector instructions.
  std::array<int32_t, kMaxShortWord> ranks;
  std::array<int32_t, kMaxShortWord> merged;
  size_t count = symbols.size();
  const auto look_up = [&](size_t i) {
    const Merge merge = merge_of(symbols[i], symbols[i + 1]);
    ranks[i] = merge.rank;
    merged[i] = merge.id;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    int32_t lowest = kNoRank;
    for (size_t i = 0; i + 1 < count; ++i) lowest = std::min(lowest, ranks[i]);
    if (lowest == kNoRank) break;
    size_t best = 0;
    while (ranks[best] != lowest) ++best;
    symbols[best] = merged[best];
    --count;
    for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) ranks[i] = ranks[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) merged[i] = merged[i + 1];
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<ptrdiff_t>(count));
}

// Uses a heap of (rank, position) over a linked list, so the time is O(n log n) for any word. An
// entry becomes stale when a neighbour merges, and is skipped when it reaches the top.
void Bpe::merge_long(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  const auto count = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> next(count);
  std::vector<uint32_t> previous(count);
  std::vector<uint64_t> heap;
  heap.reserve(count);
  const auto entry = [](int32_t rank, uint32_t position) {
    return (static_cast<uint64_t>(rank) << 32) | position;
  };
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
    if (i + 1 == count) break;
    const Merge merge = merge_of(symbols[i], symbols[i + 1]);
    if (merge.id != kNoId) heap.push_back(entry(merge.rank, i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto offer = [&](uint32_t left) {
    const Merge merge = merge_of(symbols[left], symbols[next[left]]);
    if (merge.id == kNoId) return;
    heap.push_back(entry(merge.rank, left));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t top = heap.back();
    heap.pop_back();
    const auto left = static_cast<uint32_t>(top);
    if (symbols[left] == kNoId || next[left] == kEnd) continue;
    const uint32_t right = next[left];
    const Merge merge = merge_of(symbols[left], symbols[right]);
    if (merge.id == kNoId || merge.rank != static_cast<int32_t>(top >> 32)) continue;
    symbols[left] = merge.id;
    symbols[right] = kNoId;
    next[left] = next[right];
    if (next[left] != kEnd) {
      previous[next[left]] = left;
      offer(left);
    }
    if (previous[left] != kEnd) offer(previous[left]);
  }
  for (uint32_t i = 0; i != kEnd; i = next[i]) ids.push_back(symbols[i]);
}

Result<std::unique_ptr<TokenModel>> bpe_from_json(JsonElement json, const Vocab& vocab,
                                                  bool byte_level) {
  QUIRE_RETURN_IF_ERROR(refuse_unsupported(json));
  BpeOptions options{.byte_level = byte_level};
  QUIRE_ASSIGN_OR_RETURN(options.ignore_merges, json_or(json, "ignore_merges", false));
  QUIRE_ASSIGN_OR_RETURN(options.byte_fallback, json_or(json, "byte_fallback", false));
  QUIRE_ASSIGN_OR_RETURN(options.fuse_unk, json_or(json, "fuse_unk", false));
  if (json_field(json, "unk_token")) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view unk,
                           json_required<std::string_view>(json, "unk_token"));
    options.unk_id = vocab.find(unk);
    if (!options.unk_id) {
      return invalid_argument(
          fmt::format("model.unk_token \"{}\" is not in model.vocab", clipped(unk)));
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array merges,
                         json_required<simdjson::dom::array>(json, "merges"));
  auto model = std::make_unique<Bpe>(vocab, options);
  MergeReader reader(vocab, *model);
  size_t count = 0;
  for (const JsonElement merge : merges) {
    if (++count > kMaxMerges) return invalid_argument("model.merges has more than 2^24 rules");
    QUIRE_RETURN_IF_ERROR(add_merge(merge, reader));
  }
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace quire
