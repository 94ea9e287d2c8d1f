// The JSON lines that `generate --format json` prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/run_requests.h"

namespace quire::cli {

// Returns one line per sample. `index` is the index of the prompt, from 0; with n > 1,
// `sample_index` is the index of the sample:
//   {"index":0,"prompt_token_ids":[…],"token_ids":[…],"text":"…","finish_reason":"stop"}
// with `stop_reason`, `logprobs` and `prompt_logprobs` if present. The log probabilities of a
// position are a list of {token_id, logprob, rank, decoded_token} that starts with the chosen
// token, or null for a position without any (the first token of a prompt).
using DecodeToken = std::function<std::string(int32_t token_id)>;
std::string result_lines(size_t prompt_idx, const RequestResult& result, const DecodeToken& decode);

// Returns the line of a prompt that failed: {"index":3,"error":"…"}.
std::string error_line(size_t prompt_idx, const Status& error);

}  // namespace quire::cli
