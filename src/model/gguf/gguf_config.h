// The configuration of a GGUF file's model, in the fields of config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/config.h"
#include "model/gguf/gguf_architectures.h"
#include "quire/status.h"
#include "tensor/dtype.h"
#include "tensor/gguf.h"

namespace quire {

// The row of the file's architecture; an error if it is not served.
Result<const GgufArchitecture*> gguf_architecture(const GgufModel& gguf);

// The number of blocks at the end that predict further tokens and are not layers of the model.
int64_t num_gguf_mtp_layers(const GgufModel& gguf, const GgufArchitecture& row);

// The value of query_pre_attn_scalar that llama.cpp assumes for a Gemma of these sizes.
int64_t gguf_gemma_query_scalar(const GgufArchitecture& gemma, int64_t num_layers,
                                int64_t hidden_size, int64_t num_heads, int64_t head_dim);

// The type of all matrices after expansion, except those of keeps_gguf_type(). If all matrices have
// one type of F32, F16 and BF16, they keep it. Otherwise they become F16, which keeps 3 more bits
// of a block's numbers than BF16.
DType gguf_weight_dtype(const GgufModel& gguf);
// Whether the tensor is a router, the gate of shared experts, or a convolution. llama.cpp's
// converter writes them in F32.
bool keeps_gguf_type(const GgufTensor& tensor);

// Writes a config.json from the metadata. The fields' values are checked by parse_model_config.
Result<std::string> gguf_config_json(const GgufModel& gguf);
// Sets ModelConfig::embeds by the kind of pooling.
Result<ModelConfig> gguf_model_config(const GgufModel& gguf);

}  // namespace quire
