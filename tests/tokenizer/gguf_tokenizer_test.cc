#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "support/shared_data.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/token_model.h"
#include "tokenizer/tokenizer_gguf.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::shared_data_path;

// A byte-level BPE whose tokens are the bytes, "ab", and a control token.
class ByteLevelVocabulary {
 public:
  ByteLevelVocabulary() {
    for (int byte = 0; byte < 256; ++byte) {
      texts_.push_back(spell_bytes(std::string(1, static_cast<char>(byte))));
    }
    texts_.insert(texts_.end(), {"ab", "<|end|>", "[PAD258]"});
    vocabulary.model = "gpt2";
    vocabulary.pre = "gpt-2";
    vocabulary.tokens.assign(texts_.begin(), texts_.end());
    vocabulary.types.assign(texts_.size(), kGgufNormal);
    vocabulary.types[257] = kGgufControl;
    vocabulary.types[258] = kGgufUnused;
    vocabulary.merges = {"a b"};
    vocabulary.bos_id = vocabulary.eos_id = 257;
  }

  GgufVocabulary vocabulary;

 private:
  std::vector<std::string> texts_;
};

std::vector<int32_t> encode(const GgufVocabulary& vocabulary, std::string_view text) {
  return tokenizer_from_gguf(vocabulary).value()->encode(text, true).value();
}

std::string error_of(const GgufVocabulary& vocabulary) {
  const auto tokenizer = tokenizer_from_gguf(vocabulary);
  return tokenizer.ok() ? "" : tokenizer.status().message();
}

TEST(GgufTokenizer, ByteLevelTokensMergeAndControlTokensAreFound) {
  const ByteLevelVocabulary bytes;
  EXPECT_THAT(encode(bytes.vocabulary, "cab<|end|>"), ElementsAre('c', 256, 257));
  EXPECT_EQ(tokenizer_from_gguf(bytes.vocabulary).value()->vocab_size(), 258);
  EXPECT_TRUE(tokenizer_from_gguf(bytes.vocabulary).value()->is_special(257));
}

TEST(GgufTokenizer, FlagsAddTheEnds) {
  ByteLevelVocabulary bytes;
  bytes.vocabulary.add_bos = true;
  EXPECT_THAT(encode(bytes.vocabulary, "x"), ElementsAre(257, 'x'));
  bytes.vocabulary.add_bos = false;
  bytes.vocabulary.add_eos = true;
  EXPECT_THAT(encode(bytes.vocabulary, "x"), ElementsAre('x', 257));
  bytes.vocabulary.add_bos = bytes.vocabulary.add_eos = std::nullopt;
  EXPECT_THAT(encode(bytes.vocabulary, "x"), ElementsAre('x'));
  bytes.vocabulary.pre = "llama-bpe";  // adds BOS unless the file says otherwise
  EXPECT_THAT(encode(bytes.vocabulary, "x"), ElementsAre(257, 'x'));
}

TEST(GgufTokenizer, EveryPreTokenizerKeepsTheText) {
  ByteLevelVocabulary bytes;
  bytes.vocabulary.add_bos = false;
  const std::string text = "It's 12345 naïve — apples,\n\n\t x  y 日本 🍎 ab";
  for (const char* pre :
       {"llama-bpe", "llama3", "llama-v3", "qwen2", "qwen35", "deepseek-r1-qwen", "deepseek-llm",
        "deepseek-coder", "deepseek-v3", "tekken", "default", "gpt-2", "smollm", "starcoder",
        "refact", "falcon3", "lfm2", "smaug-bpe", "mellum"}) {
    bytes.vocabulary.pre = pre;
    const auto tokenizer = tokenizer_from_gguf(bytes.vocabulary);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    EXPECT_EQ((*tokenizer)->decode((*tokenizer)->encode(text, true).value(), false), text) << pre;
  }
}

// Merges that need two characters in one piece. tests/tokenizer/golden/splits.json has DeepSeek's
// regexes with their pieces.
TEST(GgufTokenizer, DeepSeekSplitsDigitsAndLines) {
  ByteLevelVocabulary bytes;
  bytes.vocabulary.add_bos = false;
  const std::string line = spell_bytes("\n");
  const std::vector<std::string> merges = {"1 2", line + " " + line, "! a"};
  const std::vector<std::string> tokens = {"12", line + line, "!a"};
  bytes.vocabulary.merges.assign(merges.begin(), merges.end());
  bytes.vocabulary.types.assign(bytes.vocabulary.tokens.size(), kGgufNormal);
  for (size_t i = 0; i < tokens.size(); ++i) {
    bytes.vocabulary.tokens.emplace_back(tokens[i]);
    bytes.vocabulary.types.push_back(kGgufNormal);
  }
  for (const char* pre : {"deepseek-llm", "deepseek-coder"}) {
    bytes.vocabulary.pre = pre;
    EXPECT_THAT(encode(bytes.vocabulary, "12"), ElementsAre('1', '2')) << pre;
    EXPECT_THAT(encode(bytes.vocabulary, "\n\n"), ElementsAre('\n', '\n')) << pre;
    EXPECT_THAT(encode(bytes.vocabulary, "!a"), ElementsAre('!', 'a')) << pre;
  }
  bytes.vocabulary.pre = "deepseek-v3";
  EXPECT_THAT(encode(bytes.vocabulary, "12"), ElementsAre(259));
  EXPECT_THAT(encode(bytes.vocabulary, "\n\n"), ElementsAre(260));
  EXPECT_THAT(encode(bytes.vocabulary, "!a"), ElementsAre(261));
}

TEST(GgufTokenizer, UnknownNamesAreRefused) {
  ByteLevelVocabulary bytes;
  bytes.vocabulary.pre = "jais";
  EXPECT_THAT(error_of(bytes.vocabulary),
              AllOf(HasSubstr("tokenizer.ggml.pre; got \"jais\", expected one of llama-bpe"),
                    HasSubstr("qwen2"), HasSubstr("`tokenizer`")));
  bytes.vocabulary.pre = "";
  EXPECT_THAT(error_of(bytes.vocabulary), HasSubstr("got nothing"));
  for (const char* model : {"bert", "t5", "rwkv"}) {
    bytes.vocabulary.model = model;
    EXPECT_THAT(error_of(bytes.vocabulary),
                AllOf(HasSubstr(model), HasSubstr("gpt2, llama or gemma4")));
  }
}

TEST(GgufTokenizer, ListsMustFit) {
  ByteLevelVocabulary bytes;
  EXPECT_THAT(error_of(GgufVocabulary{.model = "gpt2"}), HasSubstr("tokenizer.ggml.tokens"));
  bytes.vocabulary.types.pop_back();
  EXPECT_THAT(error_of(bytes.vocabulary),
              HasSubstr("got 258 entries, expected one per token, 259"));
  bytes.vocabulary.types.push_back(7);
  EXPECT_THAT(error_of(bytes.vocabulary), HasSubstr("got 7, expected 1 to 6"));
  bytes.vocabulary.types.back() = kGgufUnused;
  bytes.vocabulary.bos_id = 259;
  EXPECT_THAT(error_of(bytes.vocabulary),
              HasSubstr("tokenizer.ggml.bos_token_id; got 259, expected 0 to 258"));
  bytes.vocabulary.bos_id = 1;
  bytes.vocabulary.model = "llama";
  EXPECT_THAT(error_of(bytes.vocabulary), HasSubstr("tokenizer.ggml.scores; got 0 entries"));
}

// Without merges every text would become single bytes, and a byte without a token would disappear.
TEST(GgufTokenizer, ByteLevelVocabulariesNeedMergesAndCharacters) {
  ByteLevelVocabulary bytes;
  bytes.vocabulary.merges = {};
  EXPECT_THAT(error_of(bytes.vocabulary),
              AllOf(HasSubstr("tokenizer.ggml.merges; got nothing, expected the merges"),
                    HasSubstr("`tokenizer`")));
  bytes.vocabulary.merges = {"a b"};
  bytes.vocabulary.types['~'] = kGgufControl;
  EXPECT_THAT(error_of(bytes.vocabulary),
              HasSubstr("tokenizer.ggml.tokens; got no token of the character \"~\""));
  bytes.vocabulary.types['~'] = kGgufNormal;
  bytes.vocabulary.types[0xC0] = kGgufControl;  // valid UTF-8 does not have this byte
  EXPECT_EQ(error_of(bytes.vocabulary), "");
}

// Characters with scores, without tokens of bytes: <unk> <s> </s> a b ab ▁.
GgufVocabulary scored_vocabulary(int64_t type_of_unknown) {
  GgufVocabulary vocabulary{.model = "llama",
                            .tokens = {"<unk>", "<s>", "</s>", "a", "b", "ab", "▁"},
                            .types = {type_of_unknown, kGgufControl, kGgufControl, kGgufNormal,
                                      kGgufNormal, kGgufNormal, kGgufNormal},
                            .scores = {-1000, -1000, -1000, -2, -3, -1, -4},
                            .bos_id = 1,
                            .eos_id = 2,
                            .add_space_prefix = false};
  return vocabulary;
}

void add_byte_tokens(GgufVocabulary& vocabulary) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) {
      texts.push_back(byte_token(static_cast<unsigned char>(byte)));
    }
    return texts;
  }();
  vocabulary.tokens.insert(vocabulary.tokens.end(), names.begin(), names.end());
  vocabulary.types.insert(vocabulary.types.end(), 256, kGgufByte);
  vocabulary.scores.insert(vocabulary.scores.end(), 256, -1000.0);
}

// The id of the metadata wins over a token of the type, and that over the spelling.
TEST(GgufTokenizer, UnknownTokenIsNamedTypedOrSpelled) {
  GgufVocabulary vocabulary = scored_vocabulary(kGgufUnknown);
  EXPECT_THAT(encode(vocabulary, "abz"), ElementsAre(1, 5, 0));
  vocabulary.unk_id = 2;
  EXPECT_THAT(encode(vocabulary, "az"), ElementsAre(1, 3, 2));
  vocabulary.unk_id = std::nullopt;
  vocabulary.tokens[0] = "<oov>";
  EXPECT_THAT(encode(vocabulary, "az"), ElementsAre(1, 3, 0));
  // llama.cpp's converter gives special tokens this type.
  vocabulary.types[0] = kGgufControl;
  EXPECT_THAT(error_of(vocabulary),
              AllOf(HasSubstr("tokenizer.ggml.unknown_token_id; got no unknown token"),
                    HasSubstr("`tokenizer`")));
  vocabulary.unk_id = 0;
  EXPECT_THAT(encode(vocabulary, "az"), ElementsAre(1, 3, 0));
  vocabulary = scored_vocabulary(kGgufControl);
  EXPECT_THAT(encode(vocabulary, "az<unk>"), ElementsAre(1, 3, 0, 0));
}

TEST(GgufTokenizer, BytesNeedNoUnknownToken) {
  GgufVocabulary vocabulary = scored_vocabulary(kGgufControl);
  vocabulary.tokens[0] = "<pad>";
  add_byte_tokens(vocabulary);
  EXPECT_THAT(encode(vocabulary, "abz"), ElementsAre(1, 5, 7 + 'z'));
  // Characters with the byte that is missing would disappear.
  vocabulary.tokens.pop_back();
  vocabulary.types.pop_back();
  vocabulary.scores.pop_back();
  EXPECT_THAT(error_of(vocabulary),
              AllOf(HasSubstr("tokenizer.ggml.unknown_token_id; got no unknown token"),
                    HasSubstr("255 tokens of bytes")));
  vocabulary.unk_id = 0;
  EXPECT_THAT(encode(vocabulary, "abz"), ElementsAre(1, 5, 7 + 'z'));
}

// llama.cpp's converter fills a vocabulary up to the size of the embedding, also before and between
// added tokens, and writes the spaces of user-defined tokens as such.
TEST(GgufTokenizer, ScoredVocabulariesHavePaddingAndSpaces) {
  GgufVocabulary vocabulary = scored_vocabulary(kGgufControl);
  add_byte_tokens(vocabulary);
  const std::vector<std::string_view> added = {"[PAD263]", "  ", "\n\n", "", "[PAD267]"};
  vocabulary.tokens.insert(vocabulary.tokens.end(), added.begin(), added.end());
  vocabulary.types.insert(vocabulary.types.end(), {kGgufUnused, kGgufUserDefined, kGgufUserDefined,
                                                   kGgufNormal, kGgufUnused});
  vocabulary.scores.insert(vocabulary.scores.end(), added.size(), -1000.0);
  const auto tokenizer = tokenizer_from_gguf(vocabulary).value();
  const std::vector<int32_t> ids = tokenizer->encode("a  b\n\n a   ", true).value();
  EXPECT_THAT(ids, ElementsAre(1, 3, 264, 4, 265, 6, 3, 264, 6));
  EXPECT_EQ(tokenizer->decode(ids, true), "a  b\n\n a   ");
  EXPECT_EQ(tokenizer->vocab_size(), 267);
}

TEST(GgufTokenizer, UnusedPiecesOfMergesAreRefused) {
  GgufVocabulary vocabulary = scored_vocabulary(kGgufControl);
  vocabulary.types[5] = kGgufUnused;  // "ab", to which "a" and "b" merge
  add_byte_tokens(vocabulary);
  EXPECT_THAT(error_of(vocabulary), HasSubstr("the unused piece \"ab\""));
}

// Old converters took them for text.
// Gemma 4: a BPE of characters.
TEST(GgufTokenizer, CharactersMergeAndOthersBecomeBytes) {
  std::vector<std::string> texts = {"<pad>", "<turn|>", "<bos>"};
  for (int byte = 0; byte < 256; ++byte) {
    texts.push_back(byte_token(static_cast<unsigned char>(byte)));
  }
  const auto first = static_cast<int32_t>(texts.size());
  texts.insert(texts.end(), {"▁", "a", "b", "▁a", "▁ab", "\n", "\n\n", "b"});
  GgufVocabulary vocabulary;
  vocabulary.model = "gemma4";
  vocabulary.tokens.assign(texts.begin(), texts.end());
  vocabulary.types.assign(texts.size(), kGgufNormal);
  vocabulary.types[0] = vocabulary.types[2] = kGgufControl;
  for (size_t id = 3; id < 259; ++id) vocabulary.types[id] = kGgufByte;
  vocabulary.merges = {"▁ a", "▁a b", "\n \n"};
  vocabulary.bos_id = 2;
  EXPECT_THAT(
      encode(vocabulary, "a ab\n\n\nb<turn|>é"),
      ElementsAre(2, first + 1, first + 4, first + 6, first + 5, first + 7, 1, 3 + 0xC3, 3 + 0xA9));
  const auto tokenizer = tokenizer_from_gguf(vocabulary).value();
  EXPECT_TRUE(tokenizer->is_special(1));
  // The text of two tokens is encoded as the last of them.
  const std::vector<int32_t> ids = {first + 1, first + 4, first + 2, first + 7, 3 + 0xC3, 3 + 0xA9};
  EXPECT_EQ(tokenizer->decode(ids, true), "a abbbé");
  vocabulary.tokens[3] = "<00>";
  EXPECT_THAT(error_of(vocabulary),
              HasSubstr("tokenizer.ggml.tokens; got no token of some byte, expected"));
  vocabulary.merges.clear();
  EXPECT_THAT(error_of(vocabulary), HasSubstr("tokenizer.ggml.merges; got nothing, expected"));
}

TEST(GgufTokenizer, TokensThatEndRepliesAreControlTokens) {
  ByteLevelVocabulary bytes;
  bytes.vocabulary.tokens[257] = "<|im_end|>";
  for (const int64_t type : {kGgufNormal, kGgufUserDefined, kGgufControl}) {
    bytes.vocabulary.types[257] = type;
    EXPECT_THAT(encode(bytes.vocabulary, "c<|im_end|>"), ElementsAre('c', 257));
    EXPECT_TRUE(tokenizer_from_gguf(bytes.vocabulary).value()->is_special(257));
  }
  EXPECT_TRUE(ends_gguf_replies("<end_of_turn>"));
  EXPECT_FALSE(ends_gguf_replies("<start_of_turn>"));
}

// In harmony, "<|end|>" ends a message, and others may follow.
TEST(GgufTokenizer, RepliesOfHarmonyEndWithReturnOrCall) {
  const std::vector<std::string_view> harmony = {"a", "<|end|>", "<|return|>", "<|call|>"};
  EXPECT_THAT(gguf_reply_ends(harmony), ElementsAre(2, 3));
  EXPECT_THAT(gguf_reply_ends(std::span(harmony).first(2)), ElementsAre(1));
}

// The metadata holds what the file of SentencePiece holds.
TEST(GgufTokenizer, ScoresGiveTheIdsOfSentencePiece) {
  const auto path = shared_data_path("models/stories15M/tokenizer.model");
  QUIRE_REQUIRE_SHARED(path);
  const std::string file = read_file(path, size_t{8} << 20).value();
  const SentencePieceModel model = SentencePieceModel::parse(file).value();
  GgufVocabulary vocabulary{.model = "llama", .bos_id = 1, .eos_id = 2};
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    vocabulary.tokens.push_back(piece.text);
    vocabulary.scores.push_back(piece.score);
    vocabulary.types.push_back(static_cast<int64_t>(piece.type));
  }
  const auto expected = Tokenizer::from_sentencepiece(file, "tokenizer.model").value();
  const auto tokenizer = tokenizer_from_gguf(vocabulary).value();
  for (const char* text : {"Once upon a time", "naïve 日本 🍎  two  spaces", "", " x\n\ty</s>z"}) {
    const auto ids = tokenizer->encode(text, true).value();
    EXPECT_EQ(ids, expected->encode(text, true).value()) << text;
    EXPECT_EQ(tokenizer->decode(ids, false), expected->decode(ids, false)) << text;
  }
  vocabulary.add_space_prefix = false;
  EXPECT_NE(encode(vocabulary, "Once"), expected->encode("Once", true).value());
}

}  // namespace
}  // namespace quire
