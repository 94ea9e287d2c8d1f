#include "cli/prompts.h"

#include "cli/input.h"
#include "cli/request_json.h"

namespace quire::cli {

std::vector<Prompt> prompts_from_lines(std::string_view text, std::string_view path,
                                       const Request& defaults) {
  std::vector<Prompt> prompts;
  for (const Line& line : split_lines(text)) {
    const std::string source = line_source(path, line);
    prompts.push_back({parse_request(line.text, source, defaults), source});
  }
  return prompts;
}

std::string_view example_problem() {
  return "Maya has 3 bags with 24 marbles in each. She puts 12 aside. 5 children share the others "
         "equally. How many does every child get?";
}

}  // namespace quire::cli
