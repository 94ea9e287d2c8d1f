// AMX's tile instructions in plain C++. They trap where the instructions fault. Only sources with
// compiler flags of their own include this, so everything is in an unnamed namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu/ops/amx/tiles-inl.h"

namespace quire::testing {
namespace {

using cpu::amx::TileConfig;

struct EmulatedTiles {
  static void configure(const TileConfig& config) {
    expect(config.palette == 1 && config.start_row == 0);
    for (int tile = 0; tile < 8; ++tile) {
      expect(config.rows[tile] <= 16 && config.row_bytes[tile] <= 64 &&
             config.row_bytes[tile] % 4 == 0);
    }
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
    expect_product(kSums, kX, kW);
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

  // The sums of the even and of the odd products are added to the tile once, and numbers below
  // 2^-126 count as zero (Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS).
  template <int kSums, int kX, int kW>
  static void multiply_bf16() {
    expect_product(kSums, kX, kW);
    const int num_columns = shapes.row_bytes[kSums] / 4;
    for (int row = 0; row < shapes.rows[kSums]; ++row) {
      float products[2][16] = {};
      for (int pair = 0; pair < shapes.row_bytes[kX] / 4; ++pair) {
        for (int i = 0; i < 2; ++i) {
          const float x = bf16_at(tiles[kX][row] + 4 * pair + 2 * i);
          for (int column = 0; column < num_columns; ++column) {
            const float w = bf16_at(tiles[kW][pair] + 4 * column + 2 * i);
            products[i][column] = normal_or_zero(products[i][column] + normal_or_zero(x * w));
          }
        }
      }
      for (int column = 0; column < num_columns; ++column) {
        float sum = 0.0F;
        std::memcpy(&sum, tiles[kSums][row] + 4 * column, sizeof(sum));
        sum = normal_or_zero(sum + normal_or_zero(products[0][column] + products[1][column]));
        std::memcpy(tiles[kSums][row] + 4 * column, &sum, sizeof(sum));
      }
    }
  }

 private:
  static void expect(bool holds) {
    if (!holds) __builtin_trap();
  }
  static void expect_product(int sums, int x, int w) {
    expect(shapes.palette == 1 && shapes.rows[x] == shapes.rows[sums] &&
           shapes.row_bytes[w] == shapes.row_bytes[sums] &&
           shapes.row_bytes[x] == 4 * shapes.rows[w]);
  }
  static float normal_or_zero(float value) {
    return value > -0x1p-126F && value < 0x1p-126F ? 0.0F : value;
  }
  static float bf16_at(const uint8_t* at) {
    uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value = 0.0F;
    std::memcpy(&value, &wide, sizeof(value));
    return normal_or_zero(value);
  }

  static thread_local TileConfig shapes;
  static thread_local uint8_t tiles[8][16][64];
};

thread_local TileConfig EmulatedTiles::shapes = {.palette = 0};
thread_local uint8_t EmulatedTiles::tiles[8][16][64] = {};

}  // namespace
}  // namespace quire::testing
