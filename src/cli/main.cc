#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "cli/app.h"
#include "cli/command.h"
#include "cli/interrupt.h"

namespace {

// A standard stream that came closed must not become the next file that is opened: messages would
// go into it. What stands in fails as a closed one does: input cannot be read, output not written.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) == -1) {
      (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

}  // namespace

// Libraries below may throw (out of memory, a full disk); nothing of ours does.
int main(int argc, char** argv) {
  occupy_standard_streams();
  quire::cli::install_interrupt_handler();
  try {
    return quire::cli::run_app(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire: [cli] unexpected failure; %s\n", error.what());
    return quire::cli::kExitFailure;
  }
}
