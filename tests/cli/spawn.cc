#include "cli/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace quire::testing {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_end = ends[0];
    write_end = ends[1];
  }
};

// Redirects fd to the file, or else to the pipe.
void redirect(int fd, const std::string& file, const Pipe& pipe) {
  const int target = file.empty() ? pipe.write_end : ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (target < 0 || ::dup2(target, fd) < 0) ::_exit(125);
}

[[noreturn]] void become_quire(const std::vector<std::string>& arguments,
                               const SpawnOptions& options, const Pipe& in, const Pipe& out,
                               const Pipe& err) {
  ::dup2(in.read_end, STDIN_FILENO);
  redirect(STDOUT_FILENO, options.out_file, out);
  redirect(STDERR_FILENO, options.err_file, err);
  const char* binary = std::getenv("QUIRE_BINARY");
  if (binary == nullptr) ::_exit(126);
  std::vector<char*> argv = {const_cast<char*>(binary)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(binary, argv.data());
  ::_exit(127);
}

// Appends what is there; false at the end.
bool drain(int fd, std::string& to) {
  char buffer[4096];
  const ssize_t got = ::read(fd, buffer, sizeof(buffer));
  if (got > 0) to.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

}  // namespace

SpawnResult run_quire(const std::vector<std::string>& arguments, const SpawnOptions& options) {
  const Pipe in, out, err;
  const pid_t child = ::fork();
  if (child == 0) become_quire(arguments, options, in, out, err);
  ::close(in.read_end);
  ::close(out.write_end);
  ::close(err.write_end);
  // Inputs are small enough for the pipe's buffer (64 KiB).
  if (::write(in.write_end, options.input.data(), options.input.size()) < 0) ::kill(child, SIGKILL);
  ::close(in.write_end);

  SpawnResult result;
  pollfd fds[2] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options.timeout_s);
  bool interrupted = false;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(child, SIGKILL);
    ::poll(fds, 2, 100);
    if (fds[0].revents != 0 && !drain(fds[0].fd, result.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !drain(fds[1].fd, result.err)) fds[1].fd = -1;
    if (!interrupted && options.interrupt_after_bytes >= 0 &&
        static_cast<int>(result.out.size()) > options.interrupt_after_bytes) {
      ::kill(child, SIGINT);
      interrupted = true;
    }
  }
  ::close(out.read_end);
  ::close(err.read_end);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace quire::testing
