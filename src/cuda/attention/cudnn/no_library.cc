// Replaces sdpa.cc if the toolkit has no cuDNN headers.
#include "cuda/attention/cudnn/sdpa.h"

namespace quire::cuda::cudnn {

Result<std::unique_ptr<Library>> Library::open() {
  return unavailable("[cudnn] this build was made without cudnn.h");
}

int64_t num_builds() {
  return 0;
}

}  // namespace quire::cuda::cudnn
