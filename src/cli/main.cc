#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "cli/command.h"
#include "cli/interrupt.h"

namespace {

// If a standard stream is closed at start, the next file opened would get its descriptor, and
// messages would be written into that file. /dev/null takes its place, opened so that reading input
// or writing output fails, as on a closed stream.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) == -1) {
      (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

}  // namespace

// Libraries may throw (out of memory, a full disk); Quire's own code does not.
int main(int argc, char** argv) {
  occupy_standard_streams();
  quire::cli::install_interrupt_handler();
  try {
    return quire::cli::run_program(quire::cli::root_command(), argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire: [cli] unexpected failure; %s\n", error.what());
    return quire::cli::kExitFailure;
  }
}
