// Allocations that fail where a test wants them to. Linking quire_scarce_memory replaces the
// program's operator new, which ThreadSanitizer has its own of.
#pragma once

namespace quire::testing {

// While it lives, this thread's first `num_left` allocations succeed, and all later ones throw
// std::bad_alloc. One per thread at a time.
class ScarceMemory {
 public:
  explicit ScarceMemory(int num_left);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

// Allocations of all threads for which `is_out` returns true throw; null: none does.
void fail_allocations_if(bool (*is_out)());

}  // namespace quire::testing
