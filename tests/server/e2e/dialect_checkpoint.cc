#include "server/e2e/dialect_checkpoint.h"

#include <string>
#include <vector>

#include "base/file.h"
#include "server/tools/dialect_markers.h"
#include "support/added_tokens.h"
#include "support/copying_checkpoint.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

constexpr int32_t kEos = 50256;  // of kDialectEosText

}  // namespace

std::filesystem::path dialect_tokenizer() {
  return shared_data_path("tokenizers/gpt2/tokenizer.json");
}

void write_dialect_checkpoint(const std::filesystem::path& dir) {
  const std::string tokenizer = read_file(dialect_tokenizer(), size_t{1} << 24).value();
  const std::vector<std::string> markers = server::dialect_markers();
  write_copying_checkpoint({.tokenizer_json = with_added_tokens(tokenizer, markers, true, kEos + 1),
                            .chat_template = "{# tools #}{{ messages[-1].content }}",
                            .vocab_size = kEos + 1 + static_cast<int>(markers.size()),
                            .eos_token_id = kEos,
                            .period = kDialectPeriod},
                           dir);
}

}  // namespace quire::testing
