#include "tokenizer/post_processor.h"

#include "base/text.h"
#include "tokenizer/vocab.h"

namespace quire {
namespace {

constexpr int kMaxPostProcessorDepth = 8;
constexpr size_t kMaxAddedIds = 1024;
constexpr std::string_view kSupportedPostProcessors =
    "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing";

Result<int32_t> checked_id(JsonElement json) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t id, json_value<int64_t>(json, "post_processor id"));
  if (id < 0 || id > Vocab::kMaxId) {
    return invalid_argument(fmt::format("a post_processor id is out of range; got {}", id));
  }
  return static_cast<int32_t>(id);
}

Status append_special_token(JsonElement json, std::string_view name, std::vector<int32_t>& ids) {
  const std::optional<JsonElement> tokens = json_field(json, "special_tokens");
  const std::optional<JsonElement> token = tokens ? json_field(*tokens, name) : std::nullopt;
  if (!token) {
    return invalid_argument(fmt::format(
        "post_processor.special_tokens has no \"{}\", which its template uses", clipped(name)));
  }
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array token_ids,
                         json_required<simdjson::dom::array>(*token, "ids"));
  for (const JsonElement element : token_ids) {
    QUIRE_ASSIGN_OR_RETURN(const int32_t id, checked_id(element));
    if (ids.size() >= kMaxAddedIds) {
      return invalid_argument("post_processor adds more than 1024 tokens");
    }
    ids.push_back(id);
  }
  return {};
}

}  // namespace

Result<PostProcessor> PostProcessor::from_json(std::optional<JsonElement> json) {
  PostProcessor result;
  if (json) QUIRE_RETURN_IF_ERROR(result.add_json(*json, 0));
  return result;
}

PostProcessor PostProcessor::around(std::optional<int32_t> bos, std::optional<int32_t> eos) {
  PostProcessor result;
  if (bos) result.prefix_.push_back(*bos);
  if (eos) result.suffix_.push_back(*eos);
  return result;
}

Status PostProcessor::add_json(JsonElement json, int depth) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type,
                         json_required<std::string_view>(json, "type"));
  if (depth > kMaxPostProcessorDepth)
    return invalid_argument("post_processor is more than 8 levels deep");
  if (type == "Sequence") {
    QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array parts,
                           json_required<simdjson::dom::array>(json, "processors"));
    for (const JsonElement part : parts) QUIRE_RETURN_IF_ERROR(add_json(part, depth + 1));
    return {};
  }
  if (type == "TemplateProcessing") return add_template(json);
  if (type == "BertProcessing" || type == "RobertaProcessing") return add_pair(json);
  if (type == "ByteLevel") return {};  // it changes only offsets, which Quire does not compute
  return unsupported_type("post_processor", type, kSupportedPostProcessors);
}

Status PostProcessor::add_template(JsonElement json) {
  QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array pieces,
                         json_required<simdjson::dom::array>(json, "single"));
  std::vector<int32_t> before;
  std::vector<int32_t> after;
  int num_texts = 0;
  for (const JsonElement piece : pieces) {
    if (const auto special = json_field(piece, "SpecialToken")) {
      QUIRE_ASSIGN_OR_RETURN(const std::string_view name,
                             json_required<std::string_view>(*special, "id"));
      QUIRE_RETURN_IF_ERROR(append_special_token(json, name, num_texts == 0 ? before : after));
      continue;
    }
    const auto sequence = json_field(piece, "Sequence");
    if (!sequence) {
      return invalid_argument(
          "a piece of post_processor.single is neither a SpecialToken nor a Sequence");
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string_view id,
                           json_required<std::string_view>(*sequence, "id"));
    num_texts += id == "A" ? 1 : 2;
  }
  if (num_texts != 1) {
    return unimplemented("post_processor.single is not supported; expected sequence A, once");
  }
  prefix_.insert(prefix_.begin(), before.begin(), before.end());
  suffix_.insert(suffix_.end(), after.begin(), after.end());
  return {};
}

Status PostProcessor::add_pair(JsonElement json) {
  const auto read = [json](std::string_view name) -> Result<int32_t> {
    QUIRE_ASSIGN_OR_RETURN(const simdjson::dom::array pair,
                           json_required<simdjson::dom::array>(json, name));
    JsonElement id;
    if (pair.at(1).get(id) != simdjson::SUCCESS) {
      return invalid_argument(fmt::format("post_processor.{} is not [TOKEN, ID]", name));
    }
    return checked_id(id);
  };
  QUIRE_ASSIGN_OR_RETURN(const int32_t cls, read("cls"));
  QUIRE_ASSIGN_OR_RETURN(const int32_t sep, read("sep"));
  prefix_.insert(prefix_.begin(), cls);
  suffix_.push_back(sep);
  return {};
}

}  // namespace quire
