#include "support/scarce_memory.h"

#include <atomic>
#include <climits>
#include <cstdlib>
#include <new>

namespace {

constinit thread_local int allocations_left = INT_MAX;
constinit std::atomic<bool (*)()> is_thread_out = nullptr;

bool is_out_of_memory() {
  if (allocations_left == 0) return true;
  if (allocations_left != INT_MAX) --allocations_left;
  bool (*const is_out)() = is_thread_out.load();
  return is_out != nullptr && is_out();
}

}  // namespace

// AddressSanitizer replaces both forms of operator new separately, so both are replaced here.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return is_out_of_memory() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void* operator new(size_t size) {
  void* memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace quire::testing {

ScarceMemory::ScarceMemory(int num_left) {
  allocations_left = num_left;
}
ScarceMemory::~ScarceMemory() {
  allocations_left = INT_MAX;
}

void fail_allocations_if(bool (*is_out)()) {
  is_thread_out = is_out;
}

}  // namespace quire::testing
