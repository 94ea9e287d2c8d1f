#include "base/text.h"
#include "tokenizer/bpe.h"

namespace quire {
namespace {

constexpr size_t kMaxMerges = size_t{1} << 24;

// Looks up the symbols of one rule; `scratch` holds the merged text.
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
  Status broken() const {
    return invalid_argument(fmt::format(
        "model.merges[{}] is broken; expected \"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]", rank_));
  }

 private:
  const Vocab& vocab_;
  Bpe& model_;
  std::string merged_;
  int32_t rank_ = 0;
};

Status add_merge(JsonElement json, MergeReader& reader) {
  std::string_view text;
  if (json.get(text) == simdjson::SUCCESS) {
    if (text.starts_with("#version")) return {};
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return reader.broken();
    }
    return reader.add(text.substr(0, space), text.substr(space + 1));
  }
  simdjson::dom::array pair;
  std::string_view left;
  std::string_view right;
  if (json.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
      pair.at(0).get(left) != simdjson::SUCCESS || pair.at(1).get(right) != simdjson::SUCCESS) {
    return reader.broken();
  }
  return reader.add(left, right);
}

Status refuse_unsupported(JsonElement json) {
  for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view affix, json_or(json, name, std::string_view()));
    if (!affix.empty()) {
      return unimplemented(
          fmt::format("model.{} is not supported; got \"{}\", expected none", name, affix));
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
      return invalid_argument(fmt::format("model.unk_token \"{}\" is not in model.vocab", unk));
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
