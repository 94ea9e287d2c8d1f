// From tokens back to text, one token at a time: the text of a whole sequence is by definition what
// a stream gives for it, so that streamed and whole decoding cannot differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/json_fields.h"

namespace quire {

struct DecoderStage {
  enum class Kind {
    kJoin,          // one space between tokens: what a tokenizer without decoder does
    kByteLevel,     // bytes by their spelling (byte_level.h)
    kReplace,       // `pattern` by `content`
    kByteFallback,  // runs of <0xNN> by the text they encode, or U+FFFD a byte
    kFuse,          // all tokens are one from here on
    kStrip,         // up to `start` leading and `stop` trailing `pattern`s of a token
    kMetaspace,     // `pattern` by a space; in the first token, where `start` is 1, by nothing
  };
  Kind kind;
  std::string pattern = {};
  std::string content = {};
  size_t start = 0;
  size_t stop = 0;
  bool is_fused = false;  // a stage before has made all tokens one: they come in chunks of it
};

class Decoder {
 public:
  // Of a tokenizer.json's "decoder".
  static Result<Decoder> from_json(std::optional<JsonElement> json);
  // The one of the SentencePiece family of models.
  static Decoder sentencepiece(bool byte_fallback, bool strips_first_space);

  // The bytes that this token adds in the midst of a text.
  std::string token_bytes(std::string_view token) const;

  const std::vector<DecoderStage>& stages() const { return stages_; }

 private:
  Status add_json(JsonElement json, int depth);
  Status add_stage(DecoderStage stage);

  std::vector<DecoderStage> stages_;
  double growth_ = 1;  // the most bytes that all stages together make of one
};

// One sequence's decoding. Appends what is certain by now; amortized time linear in the tokens. A
// character belongs to the prompt, and is not appended, if all that it is made of does.
class DecoderStream {
 public:
  explicit DecoderStream(const Decoder& decoder)
      : stages_(&decoder.stages()), states_(stages_->size()) {}

  // A token of the prompt: comes before what is pushed.
  void prime(std::string_view token);
  void push(std::string_view token, std::string& out) { run(0, {token}, out); }
  // No token follows.
  void finish(std::string& out);
  // What finish would append now, but nothing of a character that more bytes could complete.
  std::string pending() const;

 private:
  struct Chunk {
    std::string_view text;
    size_t num_prompt = 0;  // its leading bytes that the prompt brought
  };
  struct Held {
    std::string text;
    size_t num_prompt;
  };
  struct State {
    std::string held = {};   // what cannot be told yet
    size_t num_prompt = 0;   // of the held bytes
    size_t count = 0;        // tokens or leading characters seen; bytes held that are text
    bool is_broken = false;  // the run of byte tokens is no text
  };

  void run(size_t stage, Chunk chunk, std::string& out);
  void flush(size_t stage, std::string& out);
  void run_byte_level(size_t stage, Chunk chunk, std::string& out);
  void run_byte_fallback(size_t stage, Chunk chunk, std::string& out);
  void run_replace(size_t stage, Chunk chunk, std::string& out);
  void run_strip(size_t stage, Chunk chunk, std::string& out);
  // These pass on to the next stage: each pattern as `content`; each invalid sequence, or each of
  // so many bytes, as U+FFFD.
  void pass_replaced(size_t stage, Chunk chunk, std::string_view content, std::string& out);
  void pass_repaired(size_t stage, Chunk chunk, std::string& out);
  void pass_broken(size_t stage, size_t num_bytes, size_t num_prompt, std::string& out);
  static Held take(State& state, size_t num_bytes);

  const std::vector<DecoderStage>* stages_;
  std::vector<State> states_;
  bool in_prompt_ = false;  // tells whose a token without text is
};

}  // namespace quire
