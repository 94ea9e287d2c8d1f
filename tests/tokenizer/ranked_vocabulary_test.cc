// tekken.json and tiktoken.model, made from a small vocabulary, with the ids of the tiktoken
// package.
#include "tokenizer/ranked_vocabulary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <span>

#include "base/digest.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "support/scratch_directory.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/golden_data.h"
#include "tokenizer/scanners.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kNumSpecial = 30;
constexpr std::string_view kSpecialTokens =
    R"([{"rank": 0, "token_str": "<unk>", "is_control": true},
        {"rank": 1, "token_str": "<s>", "is_control": true},
        {"rank": 2, "token_str": "[THINK]", "is_control": false}])";
constexpr std::string_view kKimiConfig =
    R"({"auto_map": {"AutoTokenizer": ["owner/name--tokenization_kimi.TikTokenTokenizer", null]},
        "added_tokens_decoder": {
          "702": {"content": "[BOS]", "special": true},
          "703": {"content": "<|im_end|>", "special": true},
          "704": {"content": "<think>", "special": false}}})";

// The base64 texts of the vocabulary's tokens, in the order of their ranks.
std::vector<std::string> golden_tokens() {
  const JsonDocument golden = load_golden("ranks.json");
  std::vector<std::string> tokens;
  for (const std::string_view token : simdjson::dom::array(golden.root()["tokens"])) {
    tokens.emplace_back(token);
  }
  return tokens;
}

struct Tekken {
  std::string pattern{scan::kTekkenRegex};
  int num_tokens = 0;  // 0: all
  int num_special = kNumSpecial;
  std::string version = "v3";
  std::string special_tokens{kSpecialTokens};  // empty: none
  std::vector<std::string> tokens = golden_tokens();

  std::string json() const {
    JsonWriter json;
    json.begin_object();
    json.key("config");
    json.begin_object();
    json.field("pattern", pattern);
    const size_t count = num_tokens > 0 ? static_cast<size_t>(num_tokens) : tokens.size();
    json.field("default_vocab_size", count + static_cast<size_t>(num_special));
    json.field("default_num_special_tokens", num_special);
    json.field("version", version);
    json.end_object();
    if (!special_tokens.empty()) {
      json.key("special_tokens");
      json.raw(special_tokens);
    }
    json.key("vocab");
    json.begin_array();
    for (size_t rank = 0; rank < tokens.size(); ++rank) {
      json.begin_object();
      json.field("rank", rank);
      json.field("token_bytes", tokens[rank]);
      json.key("token_str");
      json.raw("null");
      json.end_object();
    }
    json.end_array();
    json.end_object();
    return json.take();
  }
};

std::string tiktoken_model() {
  std::string lines;
  size_t rank = 0;
  for (const std::string& token : golden_tokens()) lines += fmt::format("{} {}\n", token, rank++);
  return lines;
}

Result<std::shared_ptr<const Tokenizer>> read_tekken(const Tekken& tekken) {
  return Tokenizer::from_ranks("tekken.json", tekken.json(), "", "tekken.json");
}

Result<std::shared_ptr<const Tokenizer>> read_tiktoken(std::string_view model,
                                                       std::string_view config = kKimiConfig) {
  return Tokenizer::from_ranks("tiktoken.model", model, config, "tiktoken.model");
}

void check_golden_ids(const Tokenizer& tokenizer, std::string_view name, int32_t first_id) {
  const JsonDocument golden = load_golden("ranks.json");
  size_t count = 0;
  for (const simdjson::dom::element test : simdjson::dom::array(golden.root()[name])) {
    const std::string text = string_of(test, "text");
    std::vector<int32_t> expected = ids_of(test, "ranks");
    for (int32_t& id : expected) id += first_id;
    // As a request's text, because tiktoken takes no special token from it.
    EXPECT_EQ(tokenizer.encode(text, false, ByteSpans::whole(text.size())).value(), expected)
        << name << ": " << text;
    EXPECT_EQ(tokenizer.decode(expected, false), text) << name;
    ++count;
  }
  EXPECT_GT(count, 20U);
}

TEST(RankedVocabulary, TekkenGivesTheIdsOfTiktoken) {
  const auto tokenizer = value_of(read_tekken({}));
  check_golden_ids(*tokenizer, "tekken", kNumSpecial);
}

TEST(RankedVocabulary, KimiGivesTheIdsOfTiktoken) {
  const auto tokenizer = value_of(read_tiktoken(tiktoken_model()));
  check_golden_ids(*tokenizer, "kimi", 0);
}

TEST(RankedVocabulary, TekkenHasItsSpecialTokens) {
  const auto tokenizer = value_of(read_tekken({}));
  EXPECT_EQ(tokenizer->vocab_size(), kNumSpecial + 701);
  EXPECT_EQ(tokenizer->encode("", true).value(), (std::vector<int32_t>{1}));
  EXPECT_EQ(tokenizer->encode("[THINK]<SPECIAL_29>", false).value(), (std::vector<int32_t>{2, 29}));
  EXPECT_EQ(tokenizer->token_to_id("<SPECIAL_3>"), 3);
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_FALSE(tokenizer->is_special(2));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{1, 2, kNumSpecial + 'a'}, true), "[THINK]a");
  // A request's text becomes no special token.
  const std::string text = "<s>";
  const std::vector<int32_t> marked =
      tokenizer->encode(text, false, ByteSpans::whole(text.size())).value();
  EXPECT_EQ(std::ranges::count(marked, 1), 0);
  EXPECT_EQ(tokenizer->decode(marked, false), text);

  const auto old = value_of(read_tekken({.special_tokens = ""}));
  EXPECT_EQ(old->token_to_id("[TOOL_CALLS]"), 9);
  EXPECT_EQ(old->token_to_id("<SPECIAL_20>"), 20);
}

// The embedding has no rows for them.
TEST(RankedVocabulary, TekkenLeavesOutEntriesBeyondItsSize) {
  const auto tokenizer = value_of(read_tekken({.num_tokens = 300}));
  EXPECT_EQ(tokenizer->vocab_size(), kNumSpecial + 300);
  const std::vector<int32_t> ids = tokenizer->encode(read_golden("mixed.txt"), false).value();
  for (const int32_t id : ids) {
    ASSERT_LT(id, kNumSpecial + 300);
  }
}

TEST(RankedVocabulary, KimiHasItsSpecialTokens) {
  const auto tokenizer = value_of(read_tiktoken(tiktoken_model()));
  EXPECT_EQ(tokenizer->vocab_size(), 701 + 256);
  EXPECT_EQ(tokenizer->encode("[BOS]a<|im_end|><|reserved_token_701|><|reserved_token_956|>", true)
                .value(),
            (std::vector<int32_t>{702, 'a', 703, 701, 956}));
  EXPECT_EQ(tokenizer->token_to_id("<|reserved_token_957|>"), std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(703));
  EXPECT_FALSE(tokenizer->is_control(704));
  EXPECT_TRUE(tokenizer->is_control(956));
  // Line ends of Windows, empty lines, any order.
  std::string lines = "\r\n";
  const std::vector<std::string> tokens = golden_tokens();
  for (size_t rank = tokens.size(); rank-- > 0;) {
    lines += fmt::format("{} {}\r\n\n", tokens[rank], rank);
  }
  check_golden_ids(*value_of(read_tiktoken(lines)), "kimi", 0);
}

// Pieces of more symbols than the search for short words takes, and tokens without a merge.
TEST(RankedVocabulary, EncodesEachTokenToItself) {
  const auto tokenizer = value_of(read_tiktoken(tiktoken_model()));
  int32_t num_whole = 0;
  for (int32_t id = 0; id < 701; ++id) {
    const std::string bytes = tokenizer->token_bytes(id);
    if (!is_valid_utf8(bytes)) continue;
    num_whole += tokenizer->encode(bytes, false).value() == std::vector<int32_t>{id} ? 1 : 0;
  }
  EXPECT_GT(num_whole, 500);
}

TEST(RankedVocabulary, LoadsTheFirstOfSeveralFiles) {
  ScratchDirectory directory;
  EXPECT_THAT(Tokenizer::load(directory.path()).status().message(),
              HasSubstr("expected tokenizer.json, tekken.json, tiktoken.model or tokenizer.model"));
  directory.write("tiktoken.model", tiktoken_model());
  EXPECT_THAT(Tokenizer::load(directory.path()).status().message(),
              HasSubstr("tiktoken.model: tokenizer_config.json is missing"));
  directory.write("tokenizer_config.json", std::string(kKimiConfig));
  EXPECT_EQ(value_of(Tokenizer::load(directory.path()))->token_to_id("[BOS]"), 702);
  directory.write("tekken.json", Tekken().json());
  EXPECT_EQ(value_of(Tokenizer::load(directory.path()))->token_to_id("<s>"), 1);
  directory.write("tokenizer.json",
                  R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})");
  EXPECT_EQ(value_of(Tokenizer::load(directory.path()))->vocab_size(), 3);
}

TEST(RankedVocabulary, ErrorsOfTekkenNameTheField) {
  const auto error_of = [](const Tekken& tekken) {
    const auto tokenizer = read_tekken(tekken);
    return tokenizer.ok() ? std::string() : tokenizer.status().message();
  };
  EXPECT_EQ(error_of({}), "");
  EXPECT_THAT(error_of({.pattern = "a$"}), HasSubstr("tekken.json: regex \"a$\" uses $"));
  EXPECT_EQ(error_of({.pattern = R"([$^]|\$|.)"}), "");
  EXPECT_THAT(error_of({.pattern = "[a&&b]"}), HasSubstr("uses && in a class"));
  EXPECT_THAT(error_of({.num_tokens = 800}), HasSubstr("vocab has 701 entries; expected 800"));
  EXPECT_THAT(error_of({.num_tokens = 100}), HasSubstr("no token has the byte 0x64 alone"));
  EXPECT_THAT(error_of({.num_special = 0}), HasSubstr("default_num_special_tokens 0"));
  EXPECT_THAT(error_of({.num_tokens = 1 << 22}), HasSubstr("expected at most 4194303"));
  EXPECT_THAT(error_of({.num_special = 65'537}), HasSubstr("and 65536, and a vocabulary"));
  EXPECT_THAT(error_of({.num_special = 2}), HasSubstr("\"[THINK]\" has the rank 2, expected 0"));
  EXPECT_THAT(error_of({.version = "v11", .special_tokens = ""}),
              HasSubstr("\"special_tokens\" is missing"));
  EXPECT_THAT(error_of({.special_tokens = "[]"}), HasSubstr("no special token is \"<s>\""));
  EXPECT_THAT(error_of({.special_tokens = R"([{"rank":1,"token_str":"<s>"}])"}),
              HasSubstr("\"is_control\" is missing"));
  EXPECT_THAT(error_of({.special_tokens = R"([{"rank":1,"token_str":"<s>","is_control":true}])"}),
              HasSubstr("\"<SPECIAL_1>\" with the id 1 has the id of another token"));
  EXPECT_THAT(error_of({.special_tokens = R"([{"rank":0,"token_str":"<s>","is_control":true},
                                              {"rank":1,"token_str":"<s>","is_control":true}])"}),
              HasSubstr("\"<s>\" with the id 1 appears twice"));
  Tekken same;
  same.tokens[600] = same.tokens[500];
  EXPECT_THAT(error_of(same), HasSubstr("the ids 530 and 630 have the same bytes"));
  Tekken malformed;
  malformed.tokens[400] = "YQ=";
  EXPECT_THAT(error_of(malformed), HasSubstr("vocab[400] has the token \"YQ=\""));
  Tekken empty;
  empty.tokens[400] = "";
  EXPECT_THAT(error_of(empty), HasSubstr("vocab[400]"));
  Tekken large;
  large.tokens[400] = to_base64(std::vector<uint8_t>(4097, 'a'));
  EXPECT_THAT(error_of(large), HasSubstr("expected 1 to 4096 bytes"));
  for (const char* json : {"", "[]", "{}", R"({"config":{"pattern":"."}})", R"({"config":[]})",
                           R"({"config":{},"config":{}})"}) {
    EXPECT_FALSE(Tokenizer::from_ranks("tekken.json", json, "", "tekken.json").ok()) << json;
  }
}

TEST(RankedVocabulary, ErrorsOfTiktokenNameTheLine) {
  const std::string model = tiktoken_model();
  const auto error_of = [](const std::string& lines, std::string_view config = kKimiConfig) {
    const auto tokenizer = read_tiktoken(lines, config);
    return tokenizer.ok() ? std::string() : tokenizer.status().message();
  };
  EXPECT_EQ(error_of(model), "");
  EXPECT_THAT(error_of("YQ== 0\nYg==\n"), HasSubstr("line 2 is \"Yg==\""));
  EXPECT_THAT(error_of("YQ== x\n"), HasSubstr("line 1"));
  EXPECT_THAT(error_of("Y! 0\n"), HasSubstr("line 1 has the token \"Y!\""));
  EXPECT_THAT(error_of("YQ== -1\n"), HasSubstr("got -1"));
  EXPECT_THAT(error_of("YQ== 0\nYg== 0\n"), HasSubstr("share the id 0"));
  EXPECT_THAT(error_of("YQ== 0\nYQ== 1\n"), HasSubstr("have the same bytes"));
  EXPECT_THAT(error_of(""), HasSubstr("no token has the byte 0x00 alone"));
  EXPECT_THAT(error_of(model, ""), HasSubstr("tokenizer_config.json is missing"));
  for (const char* config :
       {"{}", R"({"auto_map":{"AutoTokenizer":["tokenization_other.TikTokenTokenizer",null]}})",
        R"({"auto_map":[]})", R"({"auto_map":{"AutoTokenizer":[]}})"}) {
    EXPECT_THAT(error_of(model, config), HasSubstr("expected tokenization_kimi.TikTokenTokenizer"));
  }
  const auto with_token = [](std::string_view id) {
    return fmt::format(
        R"({{"auto_map":{{"AutoTokenizer":["tokenization_moonshot.TikTokenTokenizer",null]}},
            "added_tokens_decoder":{{"{}":{{"content":"[BOS]","special":true}}}}}})",
        id);
  };
  EXPECT_EQ(error_of(model, with_token("701")), "");
  EXPECT_THAT(error_of(model, with_token("700")), HasSubstr("has the id of another token"));
  EXPECT_THAT(error_of(model, with_token("x")), HasSubstr("has the key \"x\""));
  EXPECT_THAT(error_of(model, with_token("9999999999")), HasSubstr("out of range"));
}

TEST(RankedVocabulary, IsWrittenToGguf) {
  const std::string tekken = Tekken().json();
  const auto mistral = value_of(read_tekken({}));
  const auto of_tekken = value_of(gguf_vocabulary({"tekken.json", tekken, ""}, *mistral,
                                                  {.num_tokens = mistral->vocab_size()}, "test"));
  EXPECT_EQ(of_tekken.pre, "tekken");
  EXPECT_TRUE(of_tekken.add_bos);
  EXPECT_EQ(of_tekken.bos_id, 1);
  check_golden_ids(*value_of(tokenizer_from_gguf(of_tekken.view())), "tekken", kNumSpecial);

  const std::string model = tiktoken_model();
  const auto kimi = value_of(read_tiktoken(model));
  const auto of_kimi = value_of(gguf_vocabulary({"tiktoken.model", model, kKimiConfig}, *kimi,
                                                {.num_tokens = kimi->vocab_size()}, "test"));
  EXPECT_EQ(of_kimi.pre, "kimi-k2");
  EXPECT_FALSE(of_kimi.add_bos);
  EXPECT_EQ(of_kimi.types[703], kGgufControl);
  check_golden_ids(*value_of(tokenizer_from_gguf(of_kimi.view())), "kimi", 0);
}

}  // namespace
}  // namespace quire::testing
