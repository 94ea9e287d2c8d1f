// Every built-in dialect reads its corpus from tokens: its markers are added tokens of real
// tokenizers, and text that spells them by other tokens is text.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/file.h"
#include "engine/sample_output.h"
#include "server/openai/response_writer.h"
#include "server/tools/dialect_corpus.h"
#include "server/tools/dialect_markers.h"
#include "server/tools/dialects.h"
#include "support/added_tokens.h"
#include "support/shared_data.h"
#include "tokenizer/tokenizer.h"

namespace quire::server {
namespace {

constexpr int32_t kFirstId = 200'000;
class Model {
 public:
  Model(const std::string& name, bool has_special) {
    const auto path = testing::shared_data_path("tokenizers/" + name + "/tokenizer.json");
    const std::string json = read_file(path, size_t{32} << 20).value();
    plain_ = Tokenizer::from_json(json, name).value();
    tokenizer_ = Tokenizer::from_json(
                     testing::with_added_tokens(json, markers_, has_special, kFirstId), name)
                     .value();
    for (const std::string& marker : markers_) {
      added_.push_back({.token_id = id_of(marker), .text = marker, .is_hidden = has_special});
    }
    has_byte_tokens_ = tokenizer_->token_to_id("<0x0A>").has_value();
  }

  const std::vector<std::string>& markers() const { return markers_; }
  const std::vector<TokenMarker>& added() const { return added_; }
  int32_t id_of(std::string_view marker) const { return *tokenizer_->token_to_id(marker); }

  // The tokens of a text without markers.
  void append_text(std::string_view text, std::vector<int32_t>& ids) const {
    if (!has_byte_tokens_) {
      const std::vector<int32_t> more = plain_->encode(text, false).value();
      ids.insert(ids.end(), more.begin(), more.end());
      return;
    }
    // SentencePiece puts a space before each text, which a model would not write.
    for (const char c : text) {
      const auto token = tokenizer_->token_to_id(std::string(1, c));
      const auto byte = static_cast<unsigned char>(c);
      ids.push_back(token && byte < 0x80
                        ? *token
                        : *tokenizer_->token_to_id(fmt::format("<0x{:02X}>", byte)));
    }
  }

  std::vector<int32_t> encode(std::string_view text) const {
    std::vector<int32_t> ids;
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const std::string* longest = nullptr;
      for (const std::string& marker : markers_) {
        if (!text.substr(at).starts_with(marker)) continue;
        if (longest == nullptr || marker.size() > longest->size()) longest = &marker;
      }
      if (longest == nullptr) {
        ++at;
        continue;
      }
      append_text(text.substr(begin, at - begin), ids);
      ids.push_back(id_of(*longest));
      at += longest->size();
      begin = at;
    }
    append_text(text.substr(begin), ids);
    return ids;
  }

  // Returns the message of a sample with these tokens, as a response has it.
  ParsedMessage play(OutputParserConfig config, const std::vector<int32_t>& ids) const {
    config.token_markers = markers_among(added_, {find_dialect(config.tool_call_parser),
                                                  find_reasoning_dialect(config.reasoning_parser)});
    const auto parser = *make_output_parser(config);
    const auto spec = std::make_shared<const SamplingSpec>(
        SamplingSpec{.params = std::make_shared<const SamplingParams>()});
    SampleOutput sample(
        SampleOutput::start_of(tokenizer_.get(), *spec, plain_->encode("Q:", false).value()), spec,
        {}, 0);
    UsageCount usage(0);
    ParsedMessage message;
    for (const int32_t id : ids) {
      SpanResult span;
      span.tokens.push_back({.token_id = id, .logprobs = {}});
      append(message, next_deltas(parser.get(), sample.accept(std::move(span), 0, false), usage));
    }
    Output last = sample.end(FinishReason::kStop, {});
    append(message, next_deltas(parser.get(), last, usage));
    return message;
  }

 private:
  std::vector<std::string> markers_ = dialect_markers();
  std::vector<TokenMarker> added_;
  std::shared_ptr<const Tokenizer> plain_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool has_byte_tokens_ = false;
};

std::string show(const ParsedMessage& message) {
  std::string text = message.reasoning + "\n---\n" + message.content;
  for (const ToolCall& call : message.tool_calls) {
    text += fmt::format("\n--- {}({})", call.name, call.arguments);
  }
  return text;
}

struct Variant {
  const char* tokenizer;
  bool has_special;
};

class DialectTokens : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const auto path = std::string("tokenizers/") + GetParam().tokenizer + "/tokenizer.json";
    QUIRE_REQUIRE_SHARED(testing::shared_data_path(path));
    model_.emplace(GetParam().tokenizer, GetParam().has_special);
  }
  std::optional<Model> model_;
};

TEST_P(DialectTokens, GiveTheMessageOfTheText) {
  for_each_dialect_case([&](const OutputParserConfig& config, const DialectCase& c) {
    ParsedMessage expected = c.message;
    if (GetParam().has_special) {
      expected.reasoning = without_markers(model_->markers(), expected.reasoning);
      expected.content = without_markers(model_->markers(), expected.content);
      for (ToolCall& call : expected.tool_calls) {
        call.arguments = without_markers(model_->markers(), call.arguments);
      }
    }
    EXPECT_EQ(show(model_->play(config, model_->encode(c.text))), show(expected));
  });
}

// Special tokens that are no markers are neither text nor in the way.
TEST_P(DialectTokens, ShowNoOtherSpecialToken) {
  if (!GetParam().has_special) return;
  const int32_t foreign = model_->id_of(kForeign);
  std::vector<int32_t> markers;
  for (const TokenMarker& marker : model_->added()) markers.push_back(marker.token_id);
  for_each_dialect_case([&](const OutputParserConfig& config, const DialectCase& c) {
    const std::vector<int32_t> ids = model_->encode(c.text);
    std::vector<int32_t> mixed = {foreign};
    for (const int32_t id : ids) {
      mixed.push_back(id);
      if (std::ranges::find(markers, id) != markers.end()) mixed.push_back(foreign);
    }
    EXPECT_EQ(show(model_->play(config, mixed)), show(model_->play(config, ids)));
  });
}

// Dialects whose calls may open without a marker that is a token: <function=NAME>, [NAME(, {"name".
bool opens_by_text(const std::string& tool_call_parser) {
  const std::set<std::string> names = {"granite",     "llama3_json", "llama4_json",    "mimo",
                                       "minimax_m2",  "nemotron_v3", "phi4_mini_json", "pythonic",
                                       "qwen3_coder", "seed_oss",    "step3"};
  return names.contains(tool_call_parser);
}

TEST_P(DialectTokens, TextThatSpellsTheMarkersIsContent) {
  for_each_dialect_case([&](const OutputParserConfig& config, const DialectCase& c) {
    if (opens_by_text(config.tool_call_parser)) return;
    std::vector<int32_t> ids;
    std::string_view rest = c.text;
    while (!rest.empty()) {  // no piece has a whole marker
      const size_t end = std::min(rest.find_first_of("<[", 1), rest.size());
      const size_t first = rest.find_first_of("<[") == 0 ? 1 : end;
      model_->append_text(rest.substr(0, first), ids);
      rest.remove_prefix(first);
    }
    const ParsedMessage message = model_->play(config, ids);
    EXPECT_EQ(message.content, c.text);
    EXPECT_THAT(message.tool_calls, ::testing::IsEmpty());
  });
}

std::string name_of(const ::testing::TestParamInfo<Variant>& info) {
  std::string name = info.param.tokenizer;
  std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
  return name + (info.param.has_special ? "_special" : "_visible");
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, DialectTokens,
                         ::testing::Values(Variant{"qwen2_5", true}, Variant{"qwen2_5", false},
                                           Variant{"llama2", true}, Variant{"gpt2", true},
                                           Variant{"llama3.2-instruct", true}),
                         name_of);

}  // namespace
}  // namespace quire::server
