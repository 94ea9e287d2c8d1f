// The functions of cuDNN that its C++ frontend calls. functions.cc defines them, hidden from other
// libraries, to forward to the library that open_functions() opened; so nothing links to cuDNN.
#pragma once

#include "quire/status.h"

namespace quire::cuda::cudnn {

// Once a process; later calls answer as the first. kUnavailable where there is no cuDNN.
Status open_functions();

}  // namespace quire::cuda::cudnn
