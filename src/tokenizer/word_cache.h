// A per-thread cache of the ids of short words: a table of fixed size in which a newer word
// replaces the older one in its slot.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace quire {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 22;
  static constexpr size_t kMaxIds = 8;
  static constexpr size_t kNumSlots = size_t{1} << 14;  // of 64 bytes each: 1 MiB per thread

  static WordCache& of_this_thread() {
    thread_local const std::unique_ptr<WordCache> cache = std::make_unique<WordCache>();
    return *cache;
  }

  struct alignas(64) Slot {
    uint64_t serial = 0;  // of the model
    uint8_t num_bytes = 0;
    uint8_t num_ids = 0;
    std::array<char, kMaxWordBytes> word{};
    std::array<int32_t, kMaxIds> ids{};

    bool holds(uint64_t model_serial, std::string_view text) const {
      return serial == model_serial && num_bytes == text.size() &&
             std::memcmp(word.data(), text.data(), text.size()) == 0;
    }
    void store(uint64_t model_serial, std::string_view text, std::span<const int32_t> text_ids) {
      serial = model_serial;
      num_bytes = static_cast<uint8_t>(text.size());
      num_ids = static_cast<uint8_t>(text_ids.size());
      std::memcpy(word.data(), text.data(), text.size());
      std::memcpy(ids.data(), text_ids.data(), text_ids.size_bytes());
    }
  };
  static_assert(sizeof(Slot) == 64);

  Slot& slot(uint64_t hash) { return slots_[hash % kNumSlots]; }

 private:
  std::array<Slot, kNumSlots> slots_;
};

}  // namespace quire
