// A process of this program that serves or plans one model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quire/status.h"

namespace quire::supervisor {

// The process ends with the thread that started it, even if that thread is killed. All functions
// belong to this thread. The destructor kills the process.
class Child {
 public:
  // Runs the program with these arguments, in a process group of its own, so that a Ctrl-C of the
  // terminal reaches the supervisor alone.
  static Result<std::unique_ptr<Child>> start(const std::string& program,
                                              const std::vector<std::string>& arguments);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // A stream of lines from the process. Lines are cut at 64 KiB.
  struct Output {
    int fd = -1;  // -1: it has ended
    std::string partial = {};
  };
  Output& out() { return out_; }
  Output& err() { return err_; }
  // Reads the complete lines that are available, without blocking.
  static std::vector<std::string> read_lines(Output& from);

  // Ends the process's standard input, which is empty. A process of `quire serve` waits for this
  // before it takes memory.
  void end_input();

  int pid() const { return pid_; }
  void signal(int number) const;
  // Returns whether the process has ended.
  bool has_ended();
  // "exit code 1" or "signal 9 (Killed)"; only after has_ended().
  std::string end_text() const;
  bool has_succeeded() const;  // exit code 0

 private:
  Child() = default;

  int pid_ = -1;
  int in_ = -1;
  std::optional<int> wait_status_;
  Output out_;
  Output err_;
};

}  // namespace quire::supervisor
