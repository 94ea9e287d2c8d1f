// What `generate --format json` prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/run_requests.h"

namespace quire::cli {

// One line an answer; `index` counts the prompts from 0, `answer_index` (with n > 1) the answers:
//   {"index":0,"prompt_token_ids":[…],"token_ids":[…],"text":"…","finish_reason":"stop"}
// with `stop_reason`, `logprobs` and `prompt_logprobs` where there are some. A position's log
// probabilities are a list of {token_id, logprob, rank, decoded_token}, the chosen token first;
// null where there are none (the first token of a prompt).
using DecodeToken = std::function<std::string(int32_t token_id)>;
std::string completion_lines(size_t prompt_idx, const Completion& completion,
                             const DecodeToken& decode);

// {"index":3,"error":"…"}: a prompt that could not be answered.
std::string error_line(size_t prompt_idx, const Status& error);

}  // namespace quire::cli
