#include "supervisor/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace quire::supervisor {
namespace {

constexpr size_t kMaxLineBytes = size_t{64} << 10;
constexpr int kNotExecuted = 127;

// Two descriptors that close when they are destroyed or another program is executed.
struct Pipe {
  Pipe() { is_open = ::pipe2(ends, O_CLOEXEC) == 0; }
  ~Pipe() {
    for (const int fd : ends) {
      if (fd >= 0) ::close(fd);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take_reader() { return std::exchange(ends[0], -1); }
  int take_writer() { return std::exchange(ends[1], -1); }

  int ends[2] = {-1, -1};
  bool is_open = false;
};

// Runs between fork() and exec(), where only async-signal-safe functions may be called.
[[noreturn]] void become(const char* program, char* const* arguments, int in, int out, int err,
                         int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotExecuted);  // the parent was killed before the call
  ::setpgid(0, 0);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  // Sockets that libraries accept lack the flag.
  constexpr unsigned kCloseOnExec = 1U << 2;
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, kCloseOnExec);
  // With the parent's handlers, a signal to this process would count as one to the parent.
  for (const int number : {SIGINT, SIGTERM}) ::signal(number, SIG_DFL);
  struct sigaction hangup = {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::signal(SIGHUP, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(program, arguments);
  ::_exit(kNotExecuted);
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const std::string& program,
                                            const std::vector<std::string>& arguments) {
  std::string name = "quire";  // `program` may be a link of /proc
  std::vector<char*> words = {name.data()};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  Pipe in;
  Pipe out;
  Pipe err;
  std::unique_ptr<Child> child(new Child());
  const int parent = ::getpid();
  // No signal may reach the new process before become() has reset the handlers.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  if (in.is_open && out.is_open && err.is_open) child->pid_ = ::fork();
  if (child->pid_ != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child->pid_ == 0) {
    become(program.c_str(), words.data(), in.ends[0], out.ends[1], err.ends[1], parent);
  }
  if (child->pid_ < 0) {
    return unavailable(
        fmt::format("[supervisor] cannot start a process: {}; raise the limits of processes "
                    "(ulimit -u) and open "
                    "files (ulimit -n)",
                    std::strerror(errno)));
  }
  child->in_ = in.take_writer();
  child->out_.fd = out.take_reader();
  child->err_.fd = err.take_reader();
  for (const int fd : {child->out_.fd, child->err_.fd}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return child;
}

Child::~Child() {
  if (!wait_status_) {
    signal(SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int fd : {in_, out_.fd, err_.fd}) {
    if (fd >= 0) ::close(fd);
  }
}

void Child::end_input() {
  if (in_ >= 0) ::close(std::exchange(in_, -1));
}

std::vector<std::string> Child::read_lines(Output& from) {
  std::vector<std::string> lines;
  char buffer[4096];
  while (from.fd >= 0) {
    const ssize_t size = ::read(from.fd, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0) {
      ::close(std::exchange(from.fd, -1));
      if (!from.partial.empty()) lines.push_back(std::exchange(from.partial, {}));
      break;
    }
    from.partial.append(buffer, static_cast<size_t>(size));
    size_t begin = 0;
    for (size_t end; (end = from.partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
      lines.push_back(from.partial.substr(begin, end - begin));
    }
    from.partial.erase(0, begin);
    if (from.partial.size() > kMaxLineBytes) lines.push_back(std::exchange(from.partial, {}));
  }
  return lines;
}

void Child::signal(int number) const {
  if (pid_ > 0 && !wait_status_) ::kill(pid_, number);
}

bool Child::has_ended() {
  int status = 0;
  if (!wait_status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) wait_status_ = status;
  return wait_status_.has_value();
}

std::string Child::end_text() const {
  const int status = wait_status_.value_or(0);
  if (!WIFSIGNALED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

bool Child::has_succeeded() const {
  return wait_status_ && WIFEXITED(*wait_status_) && WEXITSTATUS(*wait_status_) == 0;
}

}  // namespace quire::supervisor
