// Everything that the commands read as JSON: requests, texts, ids, word problems, ShareGPT files.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/dataset.h"
#include "cli/gsm8k.h"
#include "cli/input.h"
#include "cli/prompts.h"
#include "cli/request_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const cli::Line& line : cli::split_lines(text)) {
    const auto problem = cli::parse_word_problem(line.text, "line");
    if (problem.ok()) (void)cli::answer_value(problem->answer);
    (void)cli::parse_text_line(line.text, "line");
    (void)cli::parse_ids_line(line.text, "line");
  }
  (void)cli::prompts_from_lines(text, "file", {});
  (void)cli::answer_value(text);
  const auto document = JsonDocument::parse(text, "file");
  if (!document.ok()) return 0;
  const auto dialogues = cli::parse_sharegpt(*document, "file");
  if (!dialogues.ok()) return 0;
  cli::ShareGptDataset dataset;
  dataset.num_prompts = 16;
  dataset.tokenize = [](std::string_view words) {
    return std::vector<int32_t>(words.begin(), words.end());
  };
  (void)dataset.sample(*dialogues);
  return 0;
}
