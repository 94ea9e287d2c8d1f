// The input is two bytes of the model's size, a SentencePiece model and a text.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tokenizer_use.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t model_size = std::min(size - 2, static_cast<size_t>(data[0] + 256 * data[1]));
  const std::string_view input(reinterpret_cast<const char*>(data + 2), size - 2);
  const auto tokenizer = quire::Tokenizer::from_sentencepiece(input.substr(0, model_size), "fuzz");
  if (tokenizer.ok()) quire::use_tokenizer(**tokenizer, input.substr(model_size).substr(0, 4096));
  return 0;
}
