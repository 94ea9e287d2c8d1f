// Makes allocations fail where a test wants them to. Linking quire_scarce_memory replaces the
// program's operator new, so it does not work with ThreadSanitizer, which has its own.
#pragma once

namespace quire::testing {

// While it exists, this thread's first `num_left` allocations succeed and all later ones throw
// std::bad_alloc. At most one per thread.
class ScarceMemory {
 public:
  explicit ScarceMemory(int num_left);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

// Lets allocations of any thread throw while `is_out` returns true; null: never.
void fail_allocations_if(bool (*is_out)());

}  // namespace quire::testing
