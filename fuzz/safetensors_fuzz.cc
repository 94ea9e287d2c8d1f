// Opens a checkpoint in memory. For any header, views are inside the checkpoint, and errors are one
// line.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "tensor/checkpoint.h"

namespace quire {
namespace {

void check_error(const Status& status) {
  QUIRE_CHECK(!status.message().empty() && status.message().size() < 1000, status.message());
  QUIRE_CHECK(status.message().find('\n') == std::string::npos, status.message());
}

// Reads every byte, so that a sanitizer detects reads out of bounds.
void read_all(const TensorView& view) {
  uint64_t sum = 0;
  for (size_t i = 0; i < view.num_bytes(); ++i) sum += view.as<uint8_t>()[i];
  QUIRE_CHECK(sum <= uint64_t{255} * view.num_bytes(), "bytes are bytes");
}

void fuzz(std::span<const std::byte> bytes) {
  const auto file = Safetensors::parse(bytes, "input");
  if (!file.ok()) return check_error(file.status());
  auto checkpoint = Checkpoint::from_memory(bytes, "input").value();
  QUIRE_CHECK(checkpoint->names().size() == file->names().size(), "names are unique");
  for (const std::string& name : checkpoint->names()) {
    const auto view = file->view(name);
    if (!view.ok()) {
      check_error(view.status());
      continue;
    }
    const auto aligned = checkpoint->tensor(name, view->shape);
    QUIRE_CHECK(aligned.ok(), "a tensor of the shape it has");
    read_all(*view);
    read_all(*aligned);
    checkpoint->release(name);
    if (view->shape.rank() == 1) {
      const auto integers = checkpoint->integers(name, view->shape[0]);
      const bool are_stored = view->dtype == DType::kI32 || view->dtype == DType::kI64;
      QUIRE_CHECK(integers.ok() == are_stored, "integers are read from integers alone");
    }
    check_error(checkpoint->tensor(name, {1, 2, 3, 4}).status());
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::fuzz({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
