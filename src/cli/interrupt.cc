#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "cli/command.h"

namespace quire::cli {
namespace {

enum State : int { kImmediate, kCancellable, kInterrupted };
std::atomic<int> state = kImmediate;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");

void on_interrupt(int) {
  int expected = kCancellable;
  if (!state.compare_exchange_strong(expected, kInterrupted)) ::_exit(kExitInterrupted);
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // A closed pipe is an error of write(), not the end of the program without a word.
  ::signal(SIGPIPE, SIG_IGN);
}

CancelScope::CancelScope() {
  state = kCancellable;
}
CancelScope::~CancelScope() {
  state = kImmediate;
}
bool CancelScope::interrupted() {
  return state == kInterrupted;
}

}  // namespace quire::cli
