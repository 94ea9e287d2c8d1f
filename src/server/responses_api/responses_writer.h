// Writes the response to POST /v1/responses: one object, or a stream of typed events.
#pragma once

#include <functional>
#include <memory>

#include "server/openai/response_writer.h"
#include "server/responses_api/responses_request.h"

namespace quire::server {

// Takes the completed response of a request that stores it.
using StoreResponse = std::function<void(StoredResponse&&)>;

// The response's id is "resp_…". Fails if a parser's name is unknown.
Result<std::unique_ptr<ResponseWriter>> make_responses_writer(ResponsesRequest request,
                                                              ResponseInfo info,
                                                              StoreResponse store);

}  // namespace quire::server
