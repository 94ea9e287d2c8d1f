// Streams the output of one request: stream [MODEL_DIR]. Without a directory, the embedded model
// generates it.
#include <quire/engine.h>
#include <quire/log_level.h>

#include <iostream>

int main(int argc, char** argv) {
  if (!quire::set_log_level("warning").ok()) return 1;  // hides the lines about the start
  auto engine = quire::Engine::create({.model = argc > 1 ? argv[1] : ""});
  if (!engine.ok()) return std::cerr << engine.status().message() << "\n", 1;
  auto stream = (*engine)->submit({
      .prompt =
          "Question: Sam collected 28 stickers. Rosa has three times as many stickers as Sam. "
          "Ivan has 6 less than Rosa. How many stickers do the three of them have?\nAnswer:",
      .sampling = {.temperature = 0, .max_tokens = 256},
  });
  if (!stream.ok()) return std::cerr << stream.status().message() << "\n", 1;
  while (auto output = (*stream)->next()) {
    if (!(std::cout << output->text << std::flush)) (*stream)->cancel();  // the output is closed
  }
  std::cout << "\n";
}
