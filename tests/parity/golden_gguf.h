// The tiny models of tests/golden/families as GGUF files, as llama.cpp's converter writes them. The
// names, orders of rows and metadata are those of a table of the tests.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parity/golden_families.h"
#include "tensor/gguf_writer.h"

namespace quire::testing {

struct GoldenGguf {
  std::string family;        // GoldenFamily::name
  std::string layout = {};   // the end of the test's name, if a family has several files
  std::string architecture;  // llama.cpp's name
  // Writes what the architecture has beside the sizes. The keys begin with `prefix`.
  std::function<void(GgufWriter& writer, const std::string& prefix)> write = {};
  // Names in the checkpoint and in the file, where they differ from Llama's.
  std::vector<std::pair<std::string, std::string>> names = {};
  bool pairs_rows = false;
  double theta = 0.0;  // 0: the one of config.json
  int num_mtp_layers = 0;
  // A part of config.json that GGUF files do not have: the model without it is the expected one.
  std::string left_out = {};
  // `write` writes the numbers of query heads, or of KV heads, one per layer.
  bool has_layer_heads = false;
  bool has_layer_kv_heads = false;
  bool has_own_width = false;        // `write` writes feed_forward_length
  bool has_own_head_dim = false;     // `write` writes attention.key_length and value_length
  bool fuses_experts = false;        // the matrices of gate and up stay in one stack
  bool shifts_norms = false;         // the layers' norms have 1 + w
  bool shifts_all_norms = false;     // so do all norms, except those of delta nets
  bool transposes_experts = false;   // of the checkpoint's stacks of experts
  bool interleaves_gate_up = false;  // in these stacks, the rows of gates and ups alternate
};

std::vector<GoldenGguf> golden_ggufs();
// The bytes of the file, with all numbers in F32, except those in MXFP4, or with matrices in blocks
// of this type.
std::string write_golden_gguf(const GoldenGguf& gguf, const GoldenFamily& family,
                              std::string_view matrices = {});

}  // namespace quire::testing
