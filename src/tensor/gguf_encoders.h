// How numbers become the blocks of GGUF files. Each function writes one block of finite numbers
// whose magnitude is at most 65504, the largest F16 number.
#pragma once

#include <cstddef>

namespace quire {

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
