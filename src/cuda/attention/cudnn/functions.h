// The cuDNN functions that its C++ frontend calls. functions.cc defines them, hidden from other
// libraries, and forwards them to the library that open_functions() opened, so that Quire does not
// link to cuDNN.
#pragma once

#include "quire/status.h"

namespace quire::cuda::cudnn {

// Opens the library once per process; later calls return the first result. Fails with kUnavailable
// if there is no cuDNN.
Status open_functions();

}  // namespace quire::cuda::cudnn
