// Parses all JSON that the commands read: requests, texts, ids, word problems, ShareGPT files.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "bench/dataset.h"
#include "bench/gsm8k.h"
#include "cli/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Line& line : split_lines(text)) {
    const auto problem = bench::parse_word_problem(line.text, "line");
    if (problem.ok()) (void)bench::answer_value(problem->answer);
    (void)cli::parse_text_line(line.text, "line");
    (void)cli::parse_ids_line(line.text, "line");
  }
  (void)cli::prompts_from_lines(text, "file", {});
  (void)bench::answer_value(text);
  const auto document = JsonDocument::parse(text, "file");
  if (!document.ok()) return 0;
  const auto dialogues = bench::parse_sharegpt(*document, "file");
  if (!dialogues.ok()) return 0;
  bench::ShareGptDataset dataset;
  dataset.num_prompts = 16;
  dataset.count_tokens = [](std::string_view words) { return static_cast<int>(words.size()); };
  (void)dataset.sample(*dialogues);
  return 0;
}
