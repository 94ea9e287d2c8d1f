// Counts the peak heap bytes of the code that runs during its life, with the hooks of the
// sanitizer. The counters are per thread, so other threads do not disturb them.
#pragma once

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstddef>

namespace quire::fuzz {

class HeapPeak {
 public:
  HeapPeak() {
    [[maybe_unused]] static const int installed = __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, size_t num_bytes) {
          live_ += static_cast<std::ptrdiff_t>(num_bytes);
          peak_ = std::max(peak_, live_);
        },
        [](const volatile void* memory) {
          if (memory == nullptr) return;
          live_ -= static_cast<std::ptrdiff_t>(
              __sanitizer_get_allocated_size(const_cast<const void*>(memory)));
        });
    live_ = peak_ = 0;
  }
  size_t num_bytes() const { return static_cast<size_t>(peak_); }

 private:
  static inline thread_local std::ptrdiff_t live_ = 0;
  static inline thread_local std::ptrdiff_t peak_ = 0;
};

}  // namespace quire::fuzz
