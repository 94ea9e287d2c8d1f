#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace quire::cli {
namespace {

// Or, once interrupted, the signal's number.
enum State : int { kImmediate = 0, kCancellable = -1 };
std::atomic<int> state = kImmediate;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");

constexpr int exit_code_of(int signal_number) {
  return 128 + signal_number;  // as shells report it
}

void on_interrupt(int signal_number) {
  int expected = kCancellable;
  if (!state.compare_exchange_strong(expected, signal_number)) {
    ::_exit(exit_code_of(signal_number));
  }
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
  return state > 0;
}
int CancelScope::exit_code() {
  return exit_code_of(state);
}

}  // namespace quire::cli
