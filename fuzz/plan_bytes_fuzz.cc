// Parses bytes of another node as a plan. An accepted plan is within the bounds, and gives the same
// bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sched/plan_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(static_cast<const char*>(static_cast<const void*>(data)), size);
  constexpr int kVocabSize = 96;
  const auto plan = quire::plan_from_bytes(bytes,
                                           {.max_num_seqs = 8,
                                            .max_num_batched_tokens = 64,
                                            .max_model_len = 512,
                                            .block_size = 16,
                                            .tables = {{.num_blocks = 40}, {.num_blocks = 20}},
                                            .num_drafts = 8},
                                           kVocabSize);
  if (plan.ok()) QUIRE_CHECK(quire::plan_to_bytes(*plan) == bytes, "the bytes differ");
  return 0;
}
