// Tests refused tokenizers, hostile input, and small queries.
#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/machine.h"
#include "base/text.h"
#include "support/scratch_directory.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/golden_data.h"
#include "tokenizer/pattern.h"
#include "tokenizer/scanners.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

std::string json_with(std::string_view part, std::string_view value) {
  return fmt::format(
      R"({{"model":{{"type":"BPE","vocab":{{"a":0,"b":1,"ab":2}},"merges":["a b"]}},"{}":{}}})",
      part, value);
}

std::string error_of(std::string_view json) {
  const auto tokenizer = Tokenizer::from_json(json, "x.json");
  return tokenizer.ok() ? "" : tokenizer.status().message();
}

TEST(TokenizerErrors, NameTheUnsupportedPart) {
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos && text.starts_with("[tokenizer] x.json: ") &&
           text.find('\n') == std::string::npos;
  };
  EXPECT_TRUE(
      has(error_of(json_with("normalizer", R"({"type":"BertNormalizer"})")), "\"BertNormalizer\""));
  EXPECT_TRUE(has(error_of(json_with("pre_tokenizer", R"({"type":"UnicodeScripts"})")),
                  "\"UnicodeScripts\""));
  EXPECT_TRUE(has(error_of(json_with("decoder", R"({"type":"CTC"})")), "\"CTC\""));
  EXPECT_TRUE(has(error_of(json_with("post_processor", R"({"type":"Other"})")), "\"Other\""));
  EXPECT_TRUE(has(error_of(R"({"model":{"type":"WordPiece","vocab":{}}})"), "\"WordPiece\""));
  EXPECT_TRUE(has(
      error_of(R"({"model":{"type":"BPE","vocab":{},"merges":[],"end_of_word_suffix":"</w>"}})"),
      "end_of_word_suffix"));
  EXPECT_TRUE(
      has(error_of(R"({"model":{"type":"BPE","vocab":{},"merges":[],"dropout":0.1}})"), "dropout"));
}

TEST(TokenizerErrors, NameTheFault) {
  EXPECT_EQ(error_of(json_with("decoder", "null")), "");
  EXPECT_NE(error_of("{"), "");
  EXPECT_NE(error_of("[]"), "");
  for (const char* model : {
           R"({"type":"BPE","vocab":{"a":-1},"merges":[]})",
           R"({"type":"BPE","vocab":{"a":4194304},"merges":[]})",
           R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})",
           R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})",
           R"({"type":"BPE","vocab":{"a":0},"merges":[["a"]]})",
           R"({"type":"BPE","vocab":{"a":0}})",
           R"({"type":"Unigram","vocab":[["a",0.0]],"unk_id":1})",
           R"({"type":"Unigram","vocab":[["a"]],"unk_id":0})",
       }) {
    EXPECT_NE(error_of(fmt::format(R"({{"model":{}}})", model)), "") << model;
  }
  EXPECT_NE(
      error_of(json_with("pre_tokenizer",
                         R"({"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})")),
      "");
  EXPECT_FALSE(Tokenizer::from_sentencepiece("", "m").ok());
  EXPECT_FALSE(Tokenizer::from_sentencepiece("\x0A\xFF\xFF\xFF\xFF\x7F", "m").ok());
  EXPECT_FALSE(Tokenizer::load("/nonexistent").ok());
}

TEST(TokenizerErrors, TokensMustBeTokens) {
  EXPECT_EQ(error_of(R"({"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}})"),
            "[tokenizer] x.json: tokens \"a\" and \"b\" share the id 0; expected one each");
  // This also applies if the vocabulary has the text, so that the id would not be used.
  for (const char* content : {"a", "<x>"}) {
    EXPECT_EQ(error_of(json_with("added_tokens",
                                 fmt::format(R"([{{"id":-1,"content":"{}"}}])", content))),
              fmt::format("[tokenizer] x.json: the id of added token \"{}\" is out of range; got "
                          "-1, expected 0 to 4194303",
                          content));
  }
  EXPECT_EQ(error_of(json_with("added_tokens", R"([{"id":3,"content":""}])")),
            "[tokenizer] x.json: an added token has no content; expected a text");
}

TEST(TokenizerErrors, TextsInThemAreClipped) {
  const std::string huge(60'000, 'x');
  const auto split = [](std::string_view regex) {
    return json_with(
        "pre_tokenizer",
        fmt::format(R"({{"type":"Split","pattern":{{"Regex":"{}"}},"behavior":"Isolated"}})",
                    regex));
  };
  for (const std::string& json :
       {json_with("normalizer", fmt::format(R"({{"type":"{}"}})", huge)), split(huge + "("),
        split(huge + "\\\\B"), json_with("post_processor", fmt::format(R"({{"type":"{}"}})", huge)),
        fmt::format(R"({{"model":{{"type":"BPE","vocab":{{}},"merges":[],"unk_token":"{}"}}}})",
                    huge),
        fmt::format(R"({{"model":{{"type":"{}"}}}})", huge)}) {
    EXPECT_NE(error_of(json), "") << json.substr(0, 80);
    EXPECT_LT(error_of(json).size(), 400U) << json.substr(0, 80);
  }
}

// A text with two ids, or an id with two texts: readers differ in which one they take.
TEST(TokenizerErrors, AddedTokensHaveOneId) {
  const auto error_with = [](std::string_view added) {
    return error_of(json_with("added_tokens", fmt::format("[{}]", added)));
  };
  const std::string token = R"({"id":7,"content":"<x>"})";
  EXPECT_EQ(error_with(token + "," + token), "");
  EXPECT_EQ(error_with(R"({"id":2,"content":"ab"})"), "") << "as in the vocabulary";
  EXPECT_EQ(
      error_with(token + R"(,{"id":7,"content":"<y>"})"),
      "[tokenizer] x.json: the tokens \"<x>\" and \"<y>\" (added) share the id 7; expected one "
      "each");
  EXPECT_EQ(error_with(token + R"(,{"id":8,"content":"<x>"})"),
            "[tokenizer] x.json: added token \"<x>\" has the ids 7 and 8; expected one");
  EXPECT_EQ(error_with(R"({"id":1,"content":"<x>"})"),
            "[tokenizer] x.json: the tokens \"b\" and \"<x>\" (added) share the id 1; expected one "
            "each");
  EXPECT_EQ(error_with(R"({"id":9,"content":"ab"})"), "") << "the vocabulary's id, 2";
}

TEST(TokenizerErrors, APreTokenizerHasAtMost32Parts) {
  const auto splitting = [](size_t num_parts) {
    const std::vector<std::string> parts(num_parts,
                                         R"({"type":"Digits","individual_digits":true})");
    return json_with("pre_tokenizer", fmt::format(R"({{"type":"Sequence","pretokenizers":[{}]}})",
                                                  fmt::join(parts, ",")));
  };
  EXPECT_EQ(error_of(splitting(32)), "");
  EXPECT_EQ(error_of(splitting(33)),
            "[tokenizer] x.json: pre_tokenizer is too large; expected at most 32 parts, 8 levels "
            "deep");
}

TEST(TokenizerErrors, ADecoderMustNotBlowATokenUp) {
  const auto replacing = [](int num_parts, std::string_view pattern) {
    const std::string part =
        fmt::format(R"({{"type":"Replace","pattern":{{"String":"{}"}},"content":"{}"}})", pattern,
                    std::string(32, 'a'));
    const std::vector<std::string> parts(static_cast<size_t>(num_parts), part);
    return json_with(
        "decoder", fmt::format(R"({{"type":"Sequence","decoders":[{}]}})", fmt::join(parts, ",")));
  };
  EXPECT_EQ(error_of(replacing(1, "a")), "");
  EXPECT_EQ(error_of(replacing(2, "a")),
            "[tokenizer] x.json: the decoder's Replace parts turn one byte into 1024; expected at "
            "most 64");
  EXPECT_NE(error_of(replacing(16, "a")), "");
  EXPECT_EQ(error_of(replacing(16, std::string(32, 'b'))), "")
      << "it is as long as the replaced text";
}

TEST(TokenizerErrors, EveryTruncationOfAModelIsRefusedOrWhole) {
  const std::string model = testing::read_golden("sp_bpe.model");
  for (size_t size = 0; size < model.size(); size += 97) {
    const auto tokenizer = Tokenizer::from_sentencepiece({model.data(), size}, "cut");
    if (!tokenizer.ok()) continue;
    EXPECT_TRUE((*tokenizer)->encode("", false).value().empty());
  }
}

// A SentencePiece model of the pieces <unk>, <s> and a, whose trainer_spec states the id of BOS.
std::string model_with_bos(uint64_t bos_id) {
  const auto bytes_field = [](char key, const std::string& bytes) {
    return std::string(1, key) + static_cast<char>(bytes.size()) + bytes;
  };
  std::string model = bytes_field('\x0A', bytes_field('\x0A', "<unk>") + "\x18\x02");
  model += bytes_field('\x0A', bytes_field('\x0A', "<s>") + "\x18\x03");
  model += bytes_field('\x0A', bytes_field('\x0A', "a"));
  std::string varint;
  for (; bos_id >= 0x80; bos_id >>= 7) varint += static_cast<char>(0x80 | (bos_id & 0x7F));
  varint += static_cast<char>(bos_id);
  return model + bytes_field('\x12', "\xC8\x02" + varint);  // field 41
}

TEST(TokenizerErrors, ABosThatIsNoPieceIsNamed) {
  const auto ids_of = [](uint64_t bos_id) {
    return Tokenizer::from_sentencepiece(model_with_bos(bos_id), "m").value()->encode("", true);
  };
  EXPECT_EQ(ids_of(1).value(), (std::vector<int32_t>{1}));
  EXPECT_TRUE(ids_of(~uint64_t{0}).value().empty()) << "-1: none";
  for (const uint64_t bos_id : {uint64_t{3}, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{1}}) {
    const auto tokenizer = Tokenizer::from_sentencepiece(model_with_bos(bos_id), "m");
    ASSERT_FALSE(tokenizer.ok()) << bos_id;
    EXPECT_NE(tokenizer.status().message().find(fmt::format(
                  "SentencePiece trainer_spec.bos_id; got {}", static_cast<int64_t>(bos_id))),
              std::string::npos);
  }
}

TEST(Tokenizer, AnswersAboutItsTokens) {
  const auto tokenizer =
      Tokenizer::from_json(json_with("added_tokens", R"([{"id":7,"content":"<x>","special":true},
                                                           {"id":9,"content":"y","special":false}])"),
                           "x.json")
          .value();
  EXPECT_EQ(tokenizer->vocab_size(), 10);
  EXPECT_EQ(tokenizer->token_to_id("<x>"), 7);
  EXPECT_EQ(tokenizer->token_to_id("ab"), 2);
  EXPECT_EQ(tokenizer->token_to_id("zz"), std::nullopt);
  EXPECT_EQ(tokenizer->id_to_token(7), "<x>");
  EXPECT_EQ(tokenizer->id_to_token(8), "");
  EXPECT_EQ(tokenizer->id_to_token(-1), "");
  EXPECT_EQ(tokenizer->id_to_token(1 << 30), "");
  EXPECT_TRUE(tokenizer->is_special(7));
  EXPECT_FALSE(tokenizer->is_special(9));
  EXPECT_EQ(tokenizer->encode("ab<x>yba", false).value(), (std::vector<int32_t>{2, 7, 9, 1, 0}));
}

TEST(Tokenizer, RefusesRepeatedKeys) {
  const std::string model = R"({"type":"BPE","vocab":{"a":0},"merges":[]})";
  const std::string twice = R"({"type":"BPE","type":"BPE","vocab":{"a":0},"merges":[]})";
  EXPECT_TRUE(Tokenizer::from_json(R"({"model":)" + model + "}", "t").ok());
  for (const std::string& json :
       {R"({"model":)" + model + R"(,"model":)" + model + "}", R"({"model":)" + twice + "}"}) {
    EXPECT_NE(Tokenizer::from_json(json, "t").status().message().find("appears twice"),
              std::string::npos);
  }
  EXPECT_EQ(error_of(json_with("added_tokens",
                               R"([{"id":7,"content":"<x>"},{"id":8,"id":9,"content":"<y>"}])")),
            "[tokenizer] x.json: the key \"added_tokens[1].id\" appears twice; expected it once");
  EXPECT_EQ(error_of(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"a":2},"merges":[]}})"),
            "[tokenizer] x.json: token \"a\" has the ids 0 and 2; expected one");
}

TEST(Tokenizer, ObeysTokenizerConfig) {
  const testing::ScratchDirectory scratch;
  const std::filesystem::path directory = scratch.path();
  scratch.write("tokenizer.json",
                json_with("added_tokens", R"([{"id":3,"content":"<s>","special":true}])"));
  EXPECT_EQ(Tokenizer::load(directory).value()->encode("ab", true).value(),
            (std::vector<int32_t>{2}));
  scratch.write(
      "tokenizer_config.json",
      R"({"tokenizer_class":"LlamaTokenizerFast","add_bos_token":true,"bos_token":{"content":"<s>"},
            "model_max_length":1000000000000000019884624838656})");
  EXPECT_EQ(Tokenizer::load(directory).value()->encode("ab", true).value(),
            (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(Tokenizer::load(directory).value()->encode("ab", false).value(),
            (std::vector<int32_t>{2}));
  scratch.write("tokenizer_config.json", R"({"add_bos_token":true,"add_bos_token":false})");
  EXPECT_NE(Tokenizer::load(directory).status().message().find("appears twice"), std::string::npos);
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int32_t> ids = tokenizer.encode(text, false).value();
  EXPECT_LE(ids.size(), 4 * text.size());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The bounds are generous, because quadratic work takes minutes.
TEST(HostileText, TakesNearlyLinearTime) {
  constexpr size_t kSize = 100'000;
  const auto repeat = [](std::string_view unit) {
    std::string text;
    while (text.size() < kSize) text += unit;
    return text;
  };
  std::vector<testing::NamedTokenizer> tokenizers = testing::component_tokenizers();
  for (const char* name : {"tokenizers/gpt2", "tokenizers/llama2", "tokenizers/qwen2_5"}) {
    const auto directory = testing::shared_data_path(name);
    if (std::filesystem::exists(directory)) {
      tokenizers.push_back({name, Tokenizer::load(directory).value()});
    }
  }
  for (const auto& [name, tokenizer] : tokenizers) {
    for (const char* unit : {"a", " ", "\n", "ab", " \n", "\u0301", "\u0327\u0301", "=", "<s",
                             "\xff", "\u4e00", "'s", "<|endoftext|", "1"}) {
      EXPECT_LT(seconds_to_encode(*tokenizer, repeat(unit)), 5) << name << ": " << unit;
    }
  }
}

// Added tokens "<A>" (with rstrip), " b", "\n" (with rstrip) and "  " on top of single characters.
std::shared_ptr<const Tokenizer> tokenizer_that_strips() {
  const auto token = [](int id, std::string_view content, bool rstrip) {
    return fmt::format(R"({{"id":{},"content":"{}","single_word":false,"lstrip":false,"rstrip":{},)"
                       R"("normalized":false,"special":false}})",
                       id, content, rstrip);
  };
  return Tokenizer::from_json(
             fmt::format(R"({{"model":{{"type":"BPE","vocab":{{"x":0,"b":1," ":2}},"merges":[]}},)"
                         R"("added_tokens":[{},{},{},{}]}})",
                         token(3, "<A>", true), token(4, " b", false), token(5, "\\n", true),
                         token(6, "  ", false)),
             "x.json")
      .value();
}

// The ids are those of Hugging Face's tokenizers 0.23.3: the white space that an rstrip token takes
// may hold further tokens, which are found as well.
TEST(AddedTokens, AreFoundInWhiteSpaceThatATokenBeforeThemStrips) {
  const auto tokenizer = tokenizer_that_strips();
  const std::pair<const char*, std::vector<int32_t>> cases[] = {
      {"x <A> x", {0, 2, 3, 0}},   {"<A>  b", {3, 6, 1}},
      {"<A> b", {3, 4}},           {"<A>   b", {3, 6, 4}},
      {"<A> \nb", {3, 5, 1}},      {"<A>  \n\nb", {3, 6, 5, 5, 1}},
      {"<A>     b", {3, 6, 6, 4}}, {"<A>   <A>  b", {3, 6, 2, 3, 6, 1}},
      {"<A>   ", {3, 6, 2}},       {"\n \nx", {5, 5, 0}},
  };
  for (const auto& [text, ids] : cases)
    EXPECT_EQ(tokenizer->encode(text, false).value(), ids) << text;
}

// A text at which Hugging Face's tokenizers panic: the token " " takes white space on its left, and
// all of that is taken already, beyond the token's own end.
TEST(AddedTokens, DoNotEndBeforeTheyBegin) {
  const auto tokenizer = Tokenizer::from_json(
      R"({"model":{"type":"BPE","vocab":{"x":0,"b":1," ":2},"merges":[]},"added_tokens":[
          {"id":2,"content":" ","lstrip":true,"normalized":false},
          {"id":3,"content":"<A>","rstrip":true,"normalized":false}]})",
      "x.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ((*tokenizer)->encode("<A>  b", false).value(), (std::vector<int32_t>{3, 2, 2, 1}));
}

TEST(HostileText, WhiteSpaceIsStrippedInLinearTime) {
  const auto tokenizer = tokenizer_that_strips();
  const auto cpu_ns = [&](size_t num_bytes) {
    const int64_t start = thread_cpu_ns();
    EXPECT_EQ(tokenizer->encode(std::string(num_bytes, '\n'), false).value().size(), num_bytes);
    return thread_cpu_ns() - start;
  };
  const int64_t short_ns = cpu_ns(20'000);
  EXPECT_LE(cpu_ns(400'000), 100 * short_ns + 10'000'000);  // quadratic work: 400 times
}

TEST(HostileText, ARegexThatTakesTooLongIsAnErrorOfTheText) {
  const auto with_split = [](std::string_view regex) {
    return Tokenizer::from_json(
               json_with("pre_tokenizer",
                         fmt::format(R"({{"type":"Split","pattern":{{"Regex":"{}"}},)"
                                     R"("behavior":"Isolated"}})",
                                     regex)),
               "x.json")
        .value();
  };
  for (const char* regex : {R"(\\p{L}+\\p{N})", "a+(?=b)", "(a|aa)+(?=c)", "(?:a*)*(?=c)"}) {
    const auto tokenizer = with_split(regex);
    const auto start = std::chrono::steady_clock::now();
    const auto ids = tokenizer->encode(std::string(400'000, 'a'), false);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30)) << regex;
    ASSERT_FALSE(ids.ok()) << regex;
    EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(tokenizer->encode("aaab", false).ok()) << regex << ": the next text has its own";
  }
  // This pattern takes linear time for a text of any length.
  const auto tokenizer = with_split(R"(\\p{L}+|\\s+(?!\\S)|\\s+)");
  EXPECT_TRUE(tokenizer->encode(std::string(1'500'000, 'a'), false).ok());
  EXPECT_TRUE(tokenizer->encode(std::string(1'500'000, ' ') + "a", false).ok());
}

// Returns whether the budget of a text is spent before all of its matches are found.
bool is_too_slow(std::string_view regex, const std::string& text) {
  const auto pattern = make_regex_pattern(regex).value();
  SearchBudget budget(text.size());
  for_each_match(*pattern, text, budget, [](size_t, size_t, bool) {});
  return budget.is_spent();
}

// The pieces of a text, of which some may match and some not.
std::vector<std::string> pieces_of(const Pattern& pattern, const std::string& text) {
  std::vector<std::string> pieces;
  SearchBudget budget(text.size());
  for_each_match(pattern, text, budget, [&](size_t begin, size_t end, bool is_match) {
    pieces.push_back((is_match ? "+" : "-") + text.substr(begin, end - begin));
  });
  return pieces;
}

TEST(Scanners, MatchAsTheirRegexes) {
  // PCRE2 has no intersections of classes.
  std::string kimi(scan::kKimiRegex);
  for (size_t at = 0; (at = kimi.find("[\\p{L", at)) != std::string::npos;) {
    const size_t end = kimi.find("&&[^\\p{Han}]]", at);
    const std::string members = kimi.substr(at + 1, end - at - 1);
    const std::string same = "(?:(?!\\p{Han})[" + members + "])";
    kimi.replace(at, end - at + 13, same);
    at += same.size();
  }
  const std::pair<std::string_view, std::string> regexes[] = {
      {scan::kGpt2Regex, std::string(scan::kGpt2Regex)},
      {scan::kLlama3Regex, std::string(scan::kLlama3Regex)},
      {scan::kTekkenRegex, std::string(scan::kTekkenRegex)},
      {scan::kO200kRegex, std::string(scan::kO200kRegex)},
      {scan::kKimiRegex, kimi}};
  constexpr std::string_view kCharacters[] = {
      "A",      "B",      "a",      "b",          "s",          "t",         "L",
      "'",      "'s",     "'LL",    "\u01C5",     "\u02B0",     "\u00AA",    "\u4E2D",
      "\u3005", "\u3007", "\u2E80", "\u0301",     "\u304B",     "1",         "\u0663",
      "\u00BD", "\u017F", " ",      " ",          "\t",         "\r",        "\n",
      "/",      "!",      "\u3000", "\U0001F34E", "\U00020000", "\U00016FF0"};
  for (const auto& [known, regex] : regexes) {
    const auto scanner = make_regex_pattern(known).value();
    const auto pattern = compile_regex(regex).value();
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) {
      std::string text;
      for (auto left = random() % 9; left > 0; --left) {
        text += kCharacters[random() % std::size(kCharacters)];
      }
      ASSERT_EQ(pieces_of(*scanner, text), pieces_of(*pattern, text)) << known << ": " << text;
    }
  }
}

// U+30FC, of the script Common, is shared by Hiragana and Katakana; U+3013 by Han too.
TEST(Regex, AScriptHasNoSharedCharacters) {
  const auto pattern = make_regex_pattern("\\p{Han}{2}|\\P{Katakana}").value();
  EXPECT_EQ(pieces_of(*pattern, "\u4E2D\u6587\u3013\u30FC\u30AB"),
            (std::vector<std::string>{"+\u4E2D\u6587", "+\u3013", "+\u30FC", "-\u30AB"}));
  EXPECT_FALSE(make_regex_pattern("\\p{Elvish}+x").ok());
}

// PCRE2 reports no steps while it repeats a class or searches through it.
TEST(HostileText, SlowItemsOfARegexCostMore) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += std::string(59'999, 'a') + " ";
  EXPECT_TRUE(is_too_slow(R"(\p{L}{60000})", text));
  EXPECT_FALSE(is_too_slow(R"(\p{L}{1,3}x|\p{N}{3})", text));
  std::string members;
  for (char32_t c = 0x4e00; members.size() < 4000; c += 2) append_utf8(c, members);
  std::string wide;
  for (int i = 0; i < 1'000'000; ++i) wide += "é";
  EXPECT_TRUE(is_too_slow("[" + members + "]+\\p{N}|\\p{L}\\p{N}|\\p{M}", wide));
}

TEST(TokenizerErrors, ARegexWhoseStepsHaveNoBoundIsRefused) {
  for (const char* regex : {"(a+)b\\1", "(?<x>a+)b\\k<x>", "[]a]", "[^]a]"}) {
    const auto pattern = make_regex_pattern(regex);
    ASSERT_FALSE(pattern.ok()) << regex;
    EXPECT_EQ(pattern.status().code(), StatusCode::kUnimplemented) << regex;
  }
  std::string members;
  for (char32_t c = 0x4e00; members.size() < 5000; c += 2) append_utf8(c, members);
  EXPECT_FALSE(make_regex_pattern("x[" + members + "]+").ok());
}

int64_t cpu_ns_of_search(const Pattern& pattern, const std::string& text) {
  const int64_t start = thread_cpu_ns();
  SearchBudget budget(text.size());
  for_each_match(pattern, text, budget, [](size_t, size_t, bool) {});
  return thread_cpu_ns() - start;
}

TEST(HostileText, LiteralsAreFoundInLinearTime) {
  const std::string text(4'000'000, 'a');
  const int64_t short_ns = cpu_ns_of_search(*make_literal_pattern("aaaaaaab"), text);
  const int64_t long_ns =
      cpu_ns_of_search(*make_literal_pattern(std::string(1'000'000, 'a') + "b"), text);
  EXPECT_LE(long_ns, 20 * short_ns + 100'000'000);  // a quadratic search takes 10 s or more
}

// The budget bounds the text that the rules of a tokenizer's file produce, and the text that they
// read.
TEST(HostileText, RulesSpendFromTheTextsBudget) {
  const auto encodes = [](std::string_view json, const std::string& text) {
    const auto ids = Tokenizer::from_json(json, "x.json").value()->encode(text, false);
    if (!ids.ok()) {
      EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
    }
    return ids.ok();
  };
  const auto sequence = [](std::string_view field, std::string_view part, int count) {
    std::string parts;
    for (int i = 0; i < count; ++i) parts += std::string(i > 0 ? "," : "") + std::string(part);
    return fmt::format(R"({{"type":"Sequence","{}":[{}]}})", field, parts);
  };
  const std::string spaces =
      fmt::format(R"({{"type":"Metaspace","replacement":"{}"}})", std::string(32, ' '));
  EXPECT_FALSE(encodes(json_with("pre_tokenizer", sequence("pretokenizers", spaces, 6)),
                       std::string(1000, ' ')));
  EXPECT_TRUE(
      encodes(json_with("pre_tokenizer", R"({"type":"Metaspace"})"), std::string(1'000'000, ' ')));
  const std::string replace = fmt::format(
      R"({{"type":"Replace","pattern":{{"String":"a"}},"content":"{}"}})", std::string(32, 'a'));
  EXPECT_FALSE(encodes(json_with("normalizer", sequence("normalizers", replace, 6)),
                       std::string(1000, 'a')));
  const std::string token = std::string(50'000, 'a') + "b";
  EXPECT_FALSE(encodes(
      fmt::format(R"({{"model":{{"type":"Unigram","vocab":[["u",0.0],["a",0.0],["{}",0.0]],)"
                  R"("unk_id":0}}}})",
                  token),
      std::string(200'000, 'a')));
  EXPECT_FALSE(encodes(json_with("added_tokens", fmt::format(R"([{{"id":7,"content":"{}"}}])",
                                                             std::string(1000, 'a') + "b")),
                       std::string(200'000, 'a')));
}

// A trie with a cycle, so that a search follows a run of its character to the end.
TEST(HostileText, ACharsmapChargesItsSearches) {
  std::vector<uint32_t> units(512);
  units[0] = 256U << 10;
  units[256 ^ 'a'] = (uint32_t{'a'} << 10) | 'a';
  const auto num_bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string blob(reinterpret_cast<const char*>(&num_bytes), sizeof(num_bytes));
  blob.append(reinterpret_cast<const char*>(units.data()), num_bytes);
  const Charsmap map = Charsmap::parse(blob).value();
  const std::string text(200'000, 'a');
  SearchBudget budget(text.size());
  size_t num_searches = 0;
  while (!budget.is_spent() && num_searches < text.size()) {
    EXPECT_FALSE(map.longest_rule(std::string_view(text).substr(num_searches++), budget));
  }
  EXPECT_TRUE(budget.is_spent());
  EXPECT_LE(num_searches, 400);  // 256 steps per byte of text, one per byte read
}

TEST(HostileText, BacktrackingRegexEnds) {
  const auto pattern = make_regex_pattern("(a+)+$|(x+x+)+y").value();
  const std::string text = std::string(5000, 'a') + "b" + std::string(5000, 'x');
  size_t covered = 0;
  SearchBudget budget(text.size());
  for_each_match(*pattern, text, budget,
                 [&](size_t begin, size_t end, bool) { covered += end - begin; });
  EXPECT_EQ(covered, text.size());
}

TEST(Tokenizer, ThreadsShareOne) {
  const std::string text = testing::read_golden("mixed.txt");
  for (const auto& [name, tokenizer] : testing::component_tokenizers()) {
    const std::vector<int32_t> expected = tokenizer->encode(text, true).value();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back(
          [&, t = tokenizer] { EXPECT_EQ(t->encode(text, true).value(), expected); });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(NormalForm, OrdersAndComposes) {
  EXPECT_EQ(to_normal_form("e\u0301", NormalForm::kNfc), "\u00e9");
  EXPECT_EQ(to_normal_form("q\u0307\u0323", NormalForm::kNfc), "q\u0323\u0307");
  EXPECT_EQ(to_normal_form("\u1100\u1161\u11a8", NormalForm::kNfc), "\uac01");
  EXPECT_EQ(to_normal_form("\u212b", NormalForm::kNfc), "\u00c5");
  EXPECT_EQ(to_normal_form("\u0344", NormalForm::kNfc), "\u0308\u0301");
  EXPECT_EQ(to_normal_form("\ufb01\u00bd", NormalForm::kNfkc), "fi1\u20442");
  EXPECT_EQ(to_normal_form("\u1e9b\u0323", NormalForm::kNfkd), "s\u0323\u0307");
}

}  // namespace
}  // namespace quire
