#include "cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace quire::cli {
namespace {

// `state` holds one of these, or the signal's number after an interrupt.
enum State : int { kImmediate = 0, kCancellable = -1 };
std::atomic<int> state = kImmediate;
std::atomic<void (*)()> before_exit = nullptr;
int wake_fd = -1;     // readable after an interrupt inside a scope, to end wait()
int last_signal = 0;  // interrupted the scope that ended last; 0: none did
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");

constexpr int exit_code_of(int signal_number) {
  return 128 + signal_number;  // the code that shells report
}

void on_interrupt(int signal_number) {
  int expected = kCancellable;
  if (!state.compare_exchange_strong(expected, signal_number)) {
    if (void (*const function)() = before_exit) function();
    ::_exit(exit_code_of(signal_number));
  }
  const int error = errno;  // of the code that the signal interrupts
  const uint64_t one = 1;
  (void)!::write(wake_fd, &one, sizeof(one));
  errno = error;
}

void drain_wake() {
  uint64_t count = 0;
  (void)!::read(wake_fd, &count, sizeof(count));
}

}  // namespace

void install_interrupt_handler() {
  wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // Without SA_RESTART, a signal during a write would count as lost output.
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // A terminal that closes sends SIGHUP. Under nohup, the signal must remain ignored.
  struct sigaction hangup = {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
  // Without SIGPIPE, a write to a closed pipe fails with EPIPE and does not end the program
  // silently.
  ::signal(SIGPIPE, SIG_IGN);
  // Without SIGXFSZ, a write beyond `ulimit -f` fails with EFBIG.
  ::signal(SIGXFSZ, SIG_IGN);
}

CancelScope::CancelScope(void (*function)()) {
  before_exit = function;
  state = kCancellable;
}
CancelScope::~CancelScope() {
  const int ended_as = state.exchange(kImmediate);
  before_exit = nullptr;
  last_signal = ended_as > 0 ? ended_as : 0;
  drain_wake();
}
bool CancelScope::interrupted() {
  return state > 0;
}
bool CancelScope::wait(std::chrono::milliseconds limit) {
  pollfd wake = {.fd = wake_fd, .events = POLLIN, .revents = 0};
  if (!interrupted() && ::poll(&wake, 1, static_cast<int>(limit.count())) > 0 && !interrupted()) {
    drain_wake();  // a signal of an earlier scope arrived late
  }
  return interrupted();
}
bool CancelScope::was_interrupted() {
  return last_signal > 0;
}
int CancelScope::exit_code() {
  return exit_code_of(interrupted() ? state.load() : last_signal);
}

}  // namespace quire::cli
