// Writes the model of dialect_checkpoint.h, for tests of the binary that are not in C++.
// Usage: write_dialect_checkpoint OUT_DIR
// Exits with 77 if the tokenizer is absent.
#include <filesystem>
#include <iostream>

#include "server/e2e/dialect_checkpoint.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_dialect_checkpoint OUT_DIR\n";
    return 2;
  }
  if (!std::filesystem::exists(quire::testing::dialect_tokenizer())) {
    std::cerr << "no " << quire::testing::dialect_tokenizer() << " on this machine\n";
    return 77;
  }
  quire::testing::write_dialect_checkpoint(argv[1]);
  return 0;
}
