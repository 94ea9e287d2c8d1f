#include "cuda/attention/xqa/xqa.h"

#include <fmt/format.h>

#include "cuda_attention_cases.h"
