// The AMX instructions, one function each; only kernel.cc includes them.
#pragma once

#include <cstdint>

#include "cpu/ops/amx/kernel.h"

namespace quire::cpu::amx {
namespace {

// The compiler's own intrinsics do not declare that tiles read and write memory.
template <int kTile>
inline void load_tile(const void* from, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(stride_bytes), "i"(kTile)
               : "memory");
}
template <int kTile>
inline void store_tile(void* to, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
               :
               : "r"(to), "r"(stride_bytes), "i"(kTile)
               : "memory");
}
template <int kTile>
inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kSums, int kX, int kW>
inline void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kX), "i"(kW));
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// The tile configuration. The tiles of sums and activations have exactly the rows that exist, so no
// other memory is read or written. Setting the configuration clears all tiles and is slow, so it
// happens only on a change.
class TileShape {
 public:
  void set(int64_t rows0, int64_t rows1) {
    if (rows0 == rows0_ && rows1 == rows1_) return;
    rows0_ = rows0;
    rows1_ = rows1;
    TileConfig config;
    for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64;
    config.rows[0] = config.rows[1] = config.rows[4] = static_cast<uint8_t>(rows0);
    config.rows[2] = config.rows[3] = config.rows[5] = static_cast<uint8_t>(rows1);
    config.rows[6] = config.rows[7] = kTileRows;
    asm volatile("ldtilecfg %0" : : "m"(config));
  }

 private:
  int64_t rows0_ = 0;
  int64_t rows1_ = 0;
};

}  // namespace
}  // namespace quire::cpu::amx
