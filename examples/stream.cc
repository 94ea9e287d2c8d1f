// Streams an answer: stream [MODEL_DIR]. Without a directory the embedded model answers.
#include <quire/engine.h>

#include <iostream>

int main(int argc, char** argv) {
  auto engine = quire::Engine::create({.model = argc > 1 ? argv[1] : ""});
  if (!engine.ok()) return std::cerr << engine.status().message() << "\n", 1;
  auto stream = (*engine)->submit({
      .prompt = "Question: Tom has 3 bags with 4 marbles each. How many marbles has Tom?\nAnswer:",
      .sampling = {.temperature = 0, .max_tokens = 100},
  });
  if (!stream.ok()) return std::cerr << stream.status().message() << "\n", 1;
  while (auto output = (*stream)->next()) std::cout << output->text << std::flush;
  std::cout << "\n";
}
