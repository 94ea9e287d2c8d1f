// Writes the embedded model as a checkpoint of safetensors in the type of its config.json, with the
// files of its tokenizer: a directory for tests that convert, damage or copy a checkpoint.
// Usage: write_abacus MODEL_DIR OUT_DIR
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "model/model_loader.h"
#include "start/model_files.h"
#include "support/reference_layer.h"
#include "tensor/checkpoint.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

Result<testing::StoredTensors> read_tensors(ModelFiles& files) {
  testing::StoredTensors tensors;
  for (const TensorSpec& spec : list_tensors(files.config)) {
    if (!files.weights->has(spec.name)) continue;  // scales of quantized models
    QUIRE_ASSIGN_OR_RETURN(const TensorView view, files.weights->tensor(spec.name, spec.shape));
    testing::StoredTensor& stored = tensors[spec.name];
    stored.dtype = "BF16";
    for (int i = 0; i < view.shape.rank(); ++i) stored.shape.push_back(view.shape[i]);
    stored.bytes.assign(view.as<std::byte>(), view.as<std::byte>() + view.num_bytes());
    files.weights->release(spec.name);
  }
  return tensors;
}

Status write_checkpoint(const fs::path& model, const fs::path& out) {
  QUIRE_ASSIGN_OR_RETURN(ModelFiles files, open_model_files({}));
  if (files.config.dtype != DType::kBF16) {
    return invalid_argument("the embedded model's config.json: expected torch_dtype bfloat16");
  }
  QUIRE_ASSIGN_OR_RETURN(const testing::StoredTensors tensors, read_tensors(files));
  fs::create_directories(out);
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}) {
    fs::copy_file(model / name, out / name, fs::copy_options::overwrite_existing);
  }
  const std::vector<std::byte> bytes = testing::safetensors_file(tensors);
  const fs::path path = out / kWeightsFile;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return internal_error("cannot write " + path.string());
  return {};
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: write_abacus MODEL_DIR OUT_DIR\n";
    return 2;
  }
  const quire::Status status = quire::write_checkpoint(argv[1], argv[2]);
  if (!status.ok()) std::cerr << status.message() << '\n';
  return status.ok() ? 0 : 1;
}
