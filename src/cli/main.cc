#include <cstdio>
#include <exception>

#include "cli/app.h"
#include "cli/command.h"
#include "cli/interrupt.h"

// Libraries below may throw (out of memory, a full disk); nothing of ours does.
int main(int argc, char** argv) {
  quire::cli::install_interrupt_handler();
  try {
    return quire::cli::run_app(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire: [cli] unexpected failure; %s\n", error.what());
    return quire::cli::kExitFailure;
  }
}
