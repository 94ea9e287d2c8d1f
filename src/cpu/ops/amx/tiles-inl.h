// The instructions on AMX's tile registers. Only sources that are compiled with AMX flags include
// this file; they must not share inline functions. The kernels are templates of Tiles. Tests
// instantiate them with EmulatedTiles (tests/cpu/ops/amx/emulated_tiles-inl.h), which needs only
// the AVX-512 instructions around the tiles.
#pragma once

#include <cstdint>

namespace quire::cpu::amx {
namespace {

// The operand of LDTILECFG. A tile has `rows` rows of `row_bytes` bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// The compiler's own intrinsics do not declare that tiles read and write memory.
struct Tiles {
  // Also clears all tiles, and is slow.
  static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  // Releases the tile registers, so that a context switch does not have to save them.
  static void release() { asm volatile("tilerelease"); }

  template <int kTile>
  static void load(const void* from, int64_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  static void store(void* to, int64_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kSums, int kX, int kW>
  static void multiply_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kX), "i"(kW));
  }
  // Multiplies signed activations by unsigned weights.
  template <int kSums, int kX, int kW>
  static void multiply_int8() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kX), "i"(kW));
  }
};

}  // namespace
}  // namespace quire::cpu::amx
