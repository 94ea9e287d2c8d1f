// The input is a tokenizer.json, a tekken.json or a tiktoken.model, a NUL byte and a text.
#include <cstddef>
#include <cstdint>

#include "tokenizer_use.h"

namespace {

quire::Result<std::shared_ptr<const quire::Tokenizer>> read(std::string_view file) {
  constexpr std::string_view kConfig =
      R"({"auto_map":{"AutoTokenizer":["tokenization_kimi.TikTokenTokenizer"]},
          "added_tokens_decoder":{"260":{"content":"[BOS]","special":true}}})";
  if (!file.starts_with('{')) {
    return quire::Tokenizer::from_ranks("tiktoken.model", file, kConfig, "fuzz");
  }
  if (file.find("\"default_vocab_size\"") != std::string_view::npos) {
    return quire::Tokenizer::from_ranks("tekken.json", file, "", "fuzz");
  }
  return quire::Tokenizer::from_json(file, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const auto tokenizer = read(input.substr(0, nul));
  const std::string_view text = nul == std::string_view::npos ? input : input.substr(nul + 1);
  if (tokenizer.ok()) quire::use_tokenizer(**tokenizer, text.substr(0, 4096));
  return 0;
}
