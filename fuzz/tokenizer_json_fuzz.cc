// The input is a tokenizer.json, a NUL byte and a text.
#include <cstddef>
#include <cstdint>

#include "tokenizer_use.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const auto tokenizer = quire::Tokenizer::from_json(input.substr(0, nul), "fuzz");
  const std::string_view text = nul == std::string_view::npos ? input : input.substr(nul + 1);
  if (tokenizer.ok()) quire::use_tokenizer(**tokenizer, text.substr(0, 4096));
  return 0;
}
