#include <atomic>

#include "cuda/ops/launch_gate.h"

namespace quire::cuda {
namespace {

// One thread, which polls the host's memory.
__global__ void hold_kernel(const int32_t* num_opened, int32_t turn, int64_t most_nanoseconds) {
  const auto now = [] {
    int64_t nanoseconds = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
  };
  const int64_t end = now() + most_nanoseconds;
  int32_t opened = 0;
  do {
    asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(opened) : "l"(num_opened) : "memory");
  } while (opened < turn && now() < end);
}

}  // namespace

Result<LaunchGate> LaunchGate::create() {
  QUIRE_ASSIGN_OR_RETURN(Buffer memory, pinned_memory(sizeof(int32_t)));
  *static_cast<int32_t*>(memory.data()) = 0;
  return LaunchGate(std::move(memory));
}

void LaunchGate::close(CudaStream& stream) {
  const LaunchShape shape = {.grid = 1, .block = 1};
  QUIRE_LAUNCH(stream, hold_kernel, shape, static_cast<const int32_t*>(memory_.data()),
               ++num_closed_, kMostMicroseconds * 1000);
}

void LaunchGate::open() {
  std::atomic_ref(*static_cast<int32_t*>(memory_.data()))
      .store(num_closed_, std::memory_order_release);
}

}  // namespace quire::cuda
