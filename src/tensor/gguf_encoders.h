// How numbers become the blocks of GGUF files. Each function writes one block of finite numbers
// whose magnitude is at most 65504, the largest F16 number.
#pragma once

#include <cstddef>

namespace quire {

// Elements of a block.
inline constexpr size_t kSmallBlock = 32;   // of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and IQ4_NL
inline constexpr size_t kSuperBlock = 256;  // of the K types and IQ4_XS

void write_q8_0(const float* numbers, std::byte* block);
void write_q4_0(const float* numbers, std::byte* block);
void write_q5_0(const float* numbers, std::byte* block);
void write_q5_1(const float* numbers, std::byte* block);
// The K types search the scale of each group for the least error, in which larger numbers weigh
// more, as llama.cpp does without an importance matrix.
void write_q4_k(const float* numbers, std::byte* block);
void write_q5_k(const float* numbers, std::byte* block);
void write_q6_k(const float* numbers, std::byte* block);

}  // namespace quire
