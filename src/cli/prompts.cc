#include "cli/prompts.h"

#include "cli/input.h"
#include "cli/request_json.h"

namespace quire::cli {

std::vector<Prompt> prompts_from_lines(std::string_view text, std::string_view path,
                                       const Request& defaults) {
  std::vector<Prompt> prompts;
  for (const Line& line : split_lines(text)) {
    prompts.push_back(parse_request(line.text, line_source(path, line), defaults));
  }
  return prompts;
}

std::string_view example_problem() {
  return "Mia buys 4 boxes of pencils. Each box has 12 pencils. She gives 15 pencils to her "
         "friends. How many pencils does Mia have left?";
}

}  // namespace quire::cli
