// Converts tokens back to text, one token at a time. The text of a whole sequence is defined as the
// output of a stream, so streamed and whole decoding cannot differ.
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
    kJoin,          // joins tokens with spaces, like a tokenizer without a decoder
    kByteLevel,     // replaces spellings by their bytes (byte_level.h)
    kReplace,       // replaces `pattern` by `content`
    kByteFallback,  // replaces runs of <0xNN> by their text, or by one U+FFFD per byte
    kFuse,          // joins all tokens into one for the later stages
    kStrip,         // strips up to `start` leading and `stop` trailing `pattern`s of a token
    kMetaspace,     // replaces `pattern` by a space
  };
  Kind kind;
  std::string pattern = {};
  std::string content = {};
  size_t start = 0;
  size_t stop = 0;
  bool removes_in_first = false;  // kMetaspace: removes `pattern` in the first token
  bool is_fused = false;  // an earlier stage fused all tokens, so each chunk is a part of one token
};

class Decoder {
 public:
  // From the "decoder" of a tokenizer.json.
  static Result<Decoder> from_json(std::optional<JsonElement> json);
  // The decoder of byte-level vocabularies.
  static Decoder byte_level();
  // The decoder of SentencePiece models.
  static Decoder sentencepiece(bool byte_fallback, bool strips_first_space);

  // The bytes that this token adds in the middle of a text.
  std::string token_bytes(std::string_view token) const;

  const std::vector<DecoderStage>& stages() const { return stages_; }

 private:
  Status add_json(JsonElement json, int depth);
  Status add_stage(DecoderStage stage);

  std::vector<DecoderStage> stages_;
  double growth_ = 1;  // the maximum number of bytes to which all stages expand one byte
};

// Decodes one sequence. Appends text as soon as later tokens cannot change it. The amortized time
// is linear in the tokens. Does not append characters whose bytes all come from the prompt.
class DecoderStream {
 public:
  explicit DecoderStream(const Decoder& decoder)
      : stages_(&decoder.stages()), states_(stages_->size()) {}

  // Adds a token of the prompt. Must precede all push() calls.
  void prime(std::string_view token);
  void push(std::string_view token, std::string& out) { run(0, {token}, out); }
  // Ends the sequence and appends the remaining text.
  void finish(std::string& out);
  // The text that finish() would append now, without characters that more bytes could complete.
  std::string pending() const;

 private:
  struct Chunk {
    std::string_view text;
    size_t num_prompt = 0;  // leading bytes that come from the prompt
  };
  struct Held {
    std::string text;
    size_t num_prompt;
  };
  struct State {
    std::string held = {};   // bytes that later tokens may still change
    size_t num_prompt = 0;   // leading bytes of `held` that come from the prompt
    size_t num_tokens = 0;   // kJoin, kMetaspace: number of tokens so far
    size_t num_leading = 0;  // kStrip: leading patterns stripped; `start`: stripping has ended
    size_t num_valid = 0;    // kByteFallback: leading bytes of `held` that are whole characters
    bool is_broken = false;  // the run of byte tokens is not valid UTF-8
  };

  void run(size_t stage, Chunk chunk, std::string& out);
  void flush(size_t stage, std::string& out);
  void run_byte_level(size_t stage, Chunk chunk, std::string& out);
  void run_byte_fallback(size_t stage, Chunk chunk, std::string& out);
  void run_replace(size_t stage, Chunk chunk, std::string& out);
  void run_strip(size_t stage, Chunk chunk, std::string& out);
  // These functions pass the chunk to the next stage. pass_replaced() replaces each pattern by
  // `content`, pass_repaired() each invalid sequence by U+FFFD, and pass_broken() each of
  // `num_bytes` bytes by U+FFFD.
  void pass_replaced(size_t stage, Chunk chunk, std::string_view content, std::string& out);
  void pass_repaired(size_t stage, Chunk chunk, std::string& out);
  void pass_broken(size_t stage, size_t num_bytes, size_t num_prompt, std::string& out);
  static Held take(State& state, size_t num_bytes);

  const std::vector<DecoderStage>* stages_;
  std::vector<State> states_;
  bool in_prompt_ = false;  // assigns tokens without text to the prompt or the output
};

}  // namespace quire
