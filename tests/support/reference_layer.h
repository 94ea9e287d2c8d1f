// The computation of small decoder layers in fp64, and files of random weights for them: 4 heads of
// 8 on 2 KV heads, and an MLP of 24.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing {

inline constexpr int kReferenceHeadDim = 8;

// A tensor of a safetensors file.
struct StoredTensor {
  std::string dtype;  // as the format spells it
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};
using StoredTensors = std::map<std::string, StoredTensor>;

StoredTensor stored_floats(const std::vector<int64_t>& shape, std::span<const float> values);
StoredTensor stored_integers(std::span<const int64_t> values);        // I64
StoredTensor stored_short_integers(std::span<const int32_t> values);  // I32
// The tensors "d2t" and "t2d" of a draft vocabulary: the odd tokens, then the even ones.
void add_draft_vocabulary(int vocab, int draft_vocab, StoredTensors& tensors);
std::vector<float> floats_of(const StoredTensor& tensor);

std::vector<std::byte> safetensors_file(const StoredTensors& tensors);
// The tensors of such a file, copied.
StoredTensors stored_tensors(std::span<const std::byte> file);

// Makes tensors of normal random numbers.
class RandomTensors {
 public:
  explicit RandomTensors(uint32_t seed) : generator_(seed) {}

  void add(const std::string& name, const std::vector<int64_t>& dims, float mean);
  // A weight [rows, columns] and, if it has one, the bias.
  void add_matrix(const std::string& name, int64_t rows, int64_t columns, bool has_bias = false);
  // All tensors of a layer but its norms. `input_width` is the width of the input of the queries,
  // keys and values.
  void add_layer(const std::string& prefix, int64_t hidden, int64_t input_width, bool has_bias,
                 bool has_mlp_bias);

  StoredTensors tensors;

 private:
  std::mt19937 generator_;
};

// The sizes of a layer in a config.json.
std::string layer_sizes_json(int max_position_embeddings = 64);

class ReferenceTensors {
 public:
  using Row = std::vector<double>;
  // By KV head, the keys and values of some positions.
  struct KeysValues {
    std::vector<std::vector<Row>> keys;
    std::vector<std::vector<Row>> values;
  };

  // Takes the F32 tensors.
  explicit ReferenceTensors(const StoredTensors& tensors);
  void set(const std::string& name, std::vector<float> values);

  Row row(const std::string& matrix, int32_t idx, int width) const;
  Row apply(const std::string& matrix, const Row& x) const;
  Row norm(const std::string& vector, const Row& x) const;
  Row mlp(const std::string& prefix, const Row& x) const;
  // Does what mlp() does, with the names of the matrices.
  Row gated_mlp(const std::string& gate, const std::string& up, const std::string& down,
                const Row& x) const;
  // Adds the keys and values of a position whose layer input is x. A head has a norm if the layer
  // has a tensor for it.
  void add_keys_values(const std::string& prefix, const Row& x, size_t position,
                       KeysValues& out) const;
  // The attention of a position over all keys, through o_proj.
  Row attend(const std::string& prefix, const Row& x, size_t position, const KeysValues& kv) const;

 private:
  Row head(const std::string& norm_name, const Row& row, int head_idx) const;

  std::map<std::string, std::vector<float>> tensors_;
};

ReferenceTensors::Row sum(const ReferenceTensors::Row& a, const ReferenceTensors::Row& b);

}  // namespace quire::testing
