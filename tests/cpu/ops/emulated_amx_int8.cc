// The AMX kernel of quantized products on tiles in plain C++, for processors that have AVX-512 VNNI
// but no AMX. It traps where the tile instructions fault.
#include <cstring>

#include "cpu/ops/quantized/amx_int8-inl.h"

namespace quire::testing {
namespace {

using cpu::amx::TileConfig;

struct EmulatedTiles {
  static void configure(const TileConfig& config) {
    std::memset(tiles, 0, sizeof(tiles));
    shapes = config;
  }
  static void release() { shapes.palette = 0; }

  template <int kTile>
  static void load(const void* from, int64_t stride_bytes) {
    zero<kTile>();
    for (int64_t r = 0; r < shapes.rows[kTile]; ++r) {
      std::memcpy(tiles[kTile][r], static_cast<const std::byte*>(from) + r * stride_bytes,
                  shapes.row_bytes[kTile]);
    }
  }
  template <int kTile>
  static void store(void* to, int64_t stride_bytes) {
    expect(shapes.palette == 1);
    for (int64_t r = 0; r < shapes.rows[kTile]; ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * stride_bytes, tiles[kTile][r],
                  shapes.row_bytes[kTile]);
    }
  }
  template <int kTile>
  static void zero() {
    expect(shapes.palette == 1);
    std::memset(tiles[kTile], 0, sizeof(tiles[kTile]));
  }
  template <int kSums, int kX, int kW>
  static void multiply_int8() {
    expect(shapes.palette == 1 && shapes.rows[kX] == shapes.rows[kSums] &&
           shapes.row_bytes[kW] == shapes.row_bytes[kSums] &&
           shapes.row_bytes[kX] == 4 * shapes.rows[kW]);
    for (int row = 0; row < shapes.rows[kSums]; ++row) {
      for (int column = 0; column < shapes.row_bytes[kSums] / 4; ++column) {
        int32_t sum = 0;
        std::memcpy(&sum, tiles[kSums][row] + 4 * column, sizeof(sum));
        for (int k = 0; k < shapes.row_bytes[kX]; ++k) {
          sum += static_cast<int8_t>(tiles[kX][row][k]) * tiles[kW][k / 4][4 * column + k % 4];
        }
        std::memcpy(tiles[kSums][row] + 4 * column, &sum, sizeof(sum));
      }
    }
  }

 private:
  static void expect(bool holds) {
    if (!holds) __builtin_trap();
  }

  static thread_local TileConfig shapes;
  static thread_local uint8_t tiles[8][16][64];
};

thread_local TileConfig EmulatedTiles::shapes = {.palette = 0};
thread_local uint8_t EmulatedTiles::tiles[8][16][64] = {};

}  // namespace

extern const cpu::quantized::Kernel kEmulatedAmxInt8;
const cpu::quantized::Kernel kEmulatedAmxInt8 = {cpu::quantized::quantize_tile_row,
                                                 cpu::quantized::run_with_tiles<EmulatedTiles>,
                                                 cpu::quantized::min_tile_rows, true};

}  // namespace quire::testing
