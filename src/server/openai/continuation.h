// The prompt of a call with continue_final_message: it ends with the text of the last message.
//
// A search for that text could find it elsewhere, for example "end" in the template's <|im_end|>.
// So the text is rendered with a random marker at its end, and the prompt is cut at the marker.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/openai/api_error.h"
#include "server/openai/requests.h"

namespace quire::server {

// Whether the text has more than white space, as templates strip it.
bool has_text_to_continue(std::string_view content);

// Returns `content` with the marker between its text and its trailing white space, which a
// template can still trim.
std::string with_marker(std::string_view content, std::string_view marker);

// Cuts a rendered conversation after the text of the last message. A template that does not write
// this text exactly once and unchanged, except for white space around it, is an error. The time is
// linear in the texts.
std::optional<ApiError> continue_from(const Continuation& continuation, std::string& rendered);

}  // namespace quire::server
