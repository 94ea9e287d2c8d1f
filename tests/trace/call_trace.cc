// Records the call stack at the first call of every function by each caller, per thread.
// ThreadSanitizer calls __tsan_func_entry and __tsan_func_exit in every function that it
// instruments; the linker's --wrap option sends these calls through this file. At the end of the
// program one line per call is written to the file that QUIRE_CALL_TRACE names:
//
//   ORDER THREAD ADDRESS ADDRESS …
//
// ORDER counts first calls over all threads. The addresses lead from the thread's first
// instrumented function to the called one; each follows the prologue's call into the runtime
// and is relative to the start of the binary, as addr2line expects. This file is not instrumented
// itself.
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void __real___tsan_func_entry(void* return_address);
void __real___tsan_func_exit();
extern const char __executable_start;
}

namespace {

constexpr int kMaxThreads = 64;
constexpr int kMaxDepth = 512;
constexpr uint32_t kNumSeen = 1 << 15;     // entries of the hash table, far above the calls
constexpr uint32_t kMaxRecords = 1 << 20;  // words of recorded stacks per thread

struct ThreadTrace {
  int depth = 0;
  uint32_t num_words = 0;
  uintptr_t stack[kMaxDepth];
  uintptr_t seen[kNumSeen];       // keys of calls
  uint64_t records[kMaxRecords];  // repeatedly: order, depth, addresses
};

std::atomic<int> num_threads{0};
std::atomic<uint64_t> next_order{0};
std::atomic<ThreadTrace*> traces[kMaxThreads];
thread_local ThreadTrace* own_trace = nullptr;
thread_local bool is_full = false;  // more threads than kMaxThreads

// mmap gives zeroed pages, and none is touched before it is used. malloc would call back into the
// runtime.
ThreadTrace* new_trace() {
  const int index = num_threads.fetch_add(1);
  if (index >= kMaxThreads) return nullptr;
  void* memory = ::mmap(nullptr, sizeof(ThreadTrace), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  traces[index] = static_cast<ThreadTrace*>(memory);
  return traces[index];
}

// Returns whether the caller calls the function for the first time on this thread.
bool insert(ThreadTrace& trace, uintptr_t caller, uintptr_t function) {
  const uintptr_t key = (caller * 31 + function) * 0x9E3779B97F4A7C15u | 1;
  uint32_t i = static_cast<uint32_t>(key >> 49);
  for (uint32_t probes = 0; probes < kNumSeen; ++probes, i = (i + 1) % kNumSeen) {
    if (trace.seen[i] == key) return false;
    if (trace.seen[i] != 0) continue;
    trace.seen[i] = key;
    return true;
  }
  return false;
}

void record(ThreadTrace& trace) {
  const uint32_t depth = static_cast<uint32_t>(trace.depth);
  if (trace.num_words + 2 + depth > kMaxRecords) return;
  uint64_t* out = trace.records + trace.num_words;
  out[0] = next_order.fetch_add(1);
  out[1] = depth;
  std::memcpy(out + 2, trace.stack, depth * sizeof(uintptr_t));
  trace.num_words += 2 + depth;
}

struct WriteTrace {
  ~WriteTrace() {
    const char* path = std::getenv("QUIRE_CALL_TRACE");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    const uintptr_t start = reinterpret_cast<uintptr_t>(&__executable_start);
    for (int t = 0; t < kMaxThreads; ++t) {
      const ThreadTrace* written = traces[t];
      if (written == nullptr) continue;
      for (uint32_t i = 0; i < written->num_words;) {
        const uint64_t* at = written->records + i;
        std::fprintf(file, "%llu %d", static_cast<unsigned long long>(at[0]), t);
        for (uint64_t k = 0; k < at[1]; ++k) {
          std::fprintf(file, " %llx", static_cast<unsigned long long>(at[2 + k] - start));
        }
        std::fputc('\n', file);
        i += 2 + static_cast<uint32_t>(at[1]);
      }
    }
    std::fclose(file);
  }
} write_trace;

}  // namespace

extern "C" void __wrap___tsan_func_entry(void* return_address) {
  __real___tsan_func_entry(return_address);
  if (own_trace == nullptr && !is_full) is_full = (own_trace = new_trace()) == nullptr;
  if (own_trace == nullptr) return;
  const uintptr_t address = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  const int depth = own_trace->depth++;
  if (depth >= kMaxDepth) return;
  own_trace->stack[depth] = address;
  if (insert(*own_trace, depth > 0 ? own_trace->stack[depth - 1] : 0, address)) record(*own_trace);
}

extern "C" void __wrap___tsan_func_exit() {
  if (own_trace != nullptr && own_trace->depth > 0) own_trace->depth -= 1;
  __real___tsan_func_exit();
}
