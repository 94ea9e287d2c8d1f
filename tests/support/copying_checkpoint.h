// A checkpoint whose greedy output repeats its prompt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace quire::testing {

struct CopyingCheckpoint {
  std::string tokenizer_json;
  std::string chat_template;
  int vocab_size = 0;  // the highest id plus 1
  int32_t eos_token_id = 0;
  int period = 0;  // token i of the sequence is followed by the token that followed i - period
};

// Writes a Llama of one layer in F32. A token's embedding has the bits of its id. The query and the
// key are the same for all tokens but for the turn by `period` positions, so the attention copies
// the bits of one token, which the head finds again.
void write_copying_checkpoint(const CopyingCheckpoint& checkpoint,
                              const std::filesystem::path& dir);

}  // namespace quire::testing
