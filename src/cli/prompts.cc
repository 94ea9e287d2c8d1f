#include "cli/prompts.h"

#include "cli/input.h"
#include "cli/request_json.h"

namespace quire::cli {

std::vector<Prompt> prompts_from_lines(std::string_view text, std::string_view path,
                                       const Request& defaults) {
  std::vector<Prompt> prompts;
  for (const Line& line : split_lines(text)) {
    Prompt& prompt = prompts.emplace_back();
    prompt.source = line_source(path, line);
    auto request = parse_request(line.text, prompt.source, defaults);
    prompt.error = request.status();
    if (request.ok()) prompt.request = std::move(*request);
  }
  return prompts;
}

std::string_view example_problem() {
  return "Maya has 3 bags with 24 marbles in each. She puts 12 aside. 5 children share the others "
         "equally. How many does every child get?";
}

}  // namespace quire::cli
