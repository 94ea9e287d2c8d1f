// Writers of the responses to the requests of pooling_requests.h.
#pragma once

#include <memory>

#include "server/openai/response_writer.h"
#include "server/pooling_api/pooling_requests.h"

namespace quire::server {

// Choice i is input i.
std::unique_ptr<ResponseWriter> make_embeddings_writer(EmbeddingsRequest request,
                                                       ResponseInfo info);
// Choices 2i and 2i + 1 have the log probabilities of kRelevantWord and of kIrrelevantWord for
// document i. With these probabilities r and s, its score is r / (r + s).
std::unique_ptr<ResponseWriter> make_score_writer(ScoreRequest request, ResponseInfo info);
std::unique_ptr<ResponseWriter> make_rerank_writer(ScoreRequest request, ResponseInfo info);

}  // namespace quire::server
