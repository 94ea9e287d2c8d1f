#include "support/copying_checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <vector>

#include "base/json_writer.h"
#include "support/reference_layer.h"

namespace quire::testing {
namespace {

constexpr int kSize = 64;  // of the residual and of the only head
constexpr int kNumBits = 20;
constexpr int kConstant = kNumBits;    // the dimension that is 1 in each embedding
constexpr int kCopied = kNumBits + 1;  // the first dimension of the copied bits
constexpr double kRopeTheta = 10000;

float bit_of(int id, int bit) {
  return ((id >> bit) & 1) != 0 ? 1.0F : -1.0F;
}

class Matrix {
 public:
  Matrix(int num_rows, int num_columns)
      : num_rows_(num_rows),
        num_columns_(num_columns),
        values_(static_cast<size_t>(num_rows) * static_cast<size_t>(num_columns)) {}

  float& at(int row, int column) {
    return values_[static_cast<size_t>(row) * static_cast<size_t>(num_columns_) +
                   static_cast<size_t>(column)];
  }
  StoredTensor stored() const { return stored_floats({num_rows_, num_columns_}, values_); }

 private:
  int num_rows_;
  int num_columns_;
  std::vector<float> values_;
};

StoredTensor constant_vector(float value) {
  return stored_floats({kSize}, std::vector<float>(kSize, value));
}

// The key of each token is (a, 0) in each of the planes that rope turns. The query is turned back
// by `distance` positions, so it fits the key that is so far away, and no other.
void add_attention(int distance, StoredTensors& tensors) {
  constexpr float kScale = 16;  // the scores of neighbours differ by more than 40
  constexpr float kGain = 8;    // of the copied bits over the token's own
  constexpr int kNumPlanes = kSize / 2;
  Matrix query(kSize, kSize);
  Matrix key(kSize, kSize);
  for (int i = 0; i < kNumPlanes; ++i) {
    const double angle = distance * std::pow(kRopeTheta, -2.0 * i / kSize);
    key.at(i, kConstant) = kScale;
    query.at(i, kConstant) = kScale * static_cast<float>(std::cos(angle));
    query.at(i + kNumPlanes, kConstant) = -kScale * static_cast<float>(std::sin(angle));
  }
  Matrix value(kSize, kSize);
  Matrix output(kSize, kSize);
  for (int bit = 0; bit < kNumBits; ++bit) {
    value.at(bit, bit) = 1;
    output.at(kCopied + bit, bit) = kGain;
  }
  const std::string prefix = "model.layers.0.self_attn.";
  tensors[prefix + "q_proj.weight"] = query.stored();
  tensors[prefix + "k_proj.weight"] = key.stored();
  tensors[prefix + "v_proj.weight"] = value.stored();
  tensors[prefix + "o_proj.weight"] = output.stored();
}

StoredTensors tensors_of(int vocab_size, int period) {
  constexpr float kSharpness = 8;  // of the logits
  StoredTensors tensors;
  Matrix embedding(vocab_size, kSize);
  Matrix head(vocab_size, kSize);
  for (int id = 0; id < vocab_size; ++id) {
    embedding.at(id, kConstant) = 1;
    for (int bit = 0; bit < kNumBits; ++bit) {
      embedding.at(id, bit) = bit_of(id, bit);
      head.at(id, kCopied + bit) = bit_of(id, bit);
    }
  }
  tensors["model.embed_tokens.weight"] = embedding.stored();
  tensors["lm_head.weight"] = head.stored();
  tensors["model.norm.weight"] = constant_vector(kSharpness);
  add_attention(period - 1, tensors);
  const std::string layer = "model.layers.0.";
  // The norm of an embedding is the same for all tokens; this weight restores it.
  const auto size_of_embedding = static_cast<float>(kNumBits + 1);
  tensors[layer + "input_layernorm.weight"] =
      constant_vector(std::sqrt(size_of_embedding / static_cast<float>(kSize)));
  tensors[layer + "post_attention_layernorm.weight"] = constant_vector(1);
  for (const char* const name : {"gate_proj", "up_proj", "down_proj"}) {
    tensors[layer + "mlp." + name + ".weight"] = Matrix(kSize, kSize).stored();
  }
  return tensors;
}

std::string config_of(const CopyingCheckpoint& checkpoint) {
  return fmt::format(
      R"({{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":{0},)"
      R"("intermediate_size":{0},"num_hidden_layers":1,"num_attention_heads":1,)"
      R"("num_key_value_heads":1,"head_dim":{0},"vocab_size":{1},"rms_norm_eps":1e-9,)"
      R"("rope_theta":{2},"max_position_embeddings":{3},"tie_word_embeddings":false,)"
      R"("hidden_act":"silu","torch_dtype":"float32","eos_token_id":{4}}})",
      kSize, checkpoint.vocab_size, kRopeTheta, 4 * checkpoint.period, checkpoint.eos_token_id);
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

void write_copying_checkpoint(const CopyingCheckpoint& checkpoint,
                              const std::filesystem::path& dir) {
  std::filesystem::create_directories(dir);
  write_file(dir / "config.json", config_of(checkpoint));
  write_file(dir / "tokenizer.json", checkpoint.tokenizer_json);
  JsonWriter json;
  json.begin_object();
  json.field("chat_template", checkpoint.chat_template);
  json.end_object();
  write_file(dir / "tokenizer_config.json", json.text());
  const std::vector<std::byte> weights =
      safetensors_file(tensors_of(checkpoint.vocab_size, checkpoint.period));
  write_file(dir / "model.safetensors",
             {reinterpret_cast<const char*>(weights.data()), weights.size()});
}

}  // namespace quire::testing
