// Handles Ctrl-C, SIGTERM and SIGHUP. Outside a CancelScope they end the program at once. Inside,
// the first signal asks the owner of the scope to cancel and finish its output, and the second ends
// the program at once.
#pragma once

#include <chrono>

namespace quire::cli {

// Call it once, at the start of main().
void install_interrupt_handler();

class CancelScope {
 public:
  // The second signal calls `before_exit`, which must be safe in a signal handler.
  explicit CancelScope(void (*before_exit)() = nullptr);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // True after the first interrupt inside this scope.
  static bool interrupted();
  // Waits until the first interrupt inside this scope, for at most this time; returns
  // interrupted().
  static bool wait(std::chrono::milliseconds limit);
  // True if the scope that ended last was interrupted, also after its last call of interrupted().
  static bool was_interrupted();
  // The exit code of a program that was interrupted inside a scope: 130 after Ctrl-C, 143 after
  // SIGTERM, 129 after SIGHUP.
  static int exit_code();
};

}  // namespace quire::cli
