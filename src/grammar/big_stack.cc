#include "grammar/big_stack.h"

#include <pthread.h>

#include <exception>

namespace quire::grammar {
namespace {

struct Job {
  const std::function<void()>& work;
  std::exception_ptr thrown;
};

// An exception that leaves a thread's function would end the program.
void* run(void* argument) noexcept {
  auto& job = *static_cast<Job*>(argument);
  try {
    job.work();
  } catch (...) {
    job.thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

bool run_on_big_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread{};
  Job job = {.work = work, .thrown = nullptr};
  const bool started = pthread_attr_setstacksize(&attributes, kBigStackBytes) == 0 &&
                       pthread_create(&thread, &attributes, run, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return false;
  pthread_join(thread, nullptr);
  if (job.thrown) std::rethrow_exception(job.thrown);
  return true;
}

}  // namespace quire::grammar
