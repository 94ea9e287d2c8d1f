// POST /v1/embeddings, /v1/score and /v1/rerank over a fake engine: their bodies, the requests to
// the engine, the responses, and the models that do not have these routes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/pooling_api/pooling_requests.h"
#include "server/pooling_api/pooling_writers.h"
#include "server/service_fixture.h"

namespace quire::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kUsage =
    R"("usage":{{"prompt_tokens":{0},"total_tokens":{0},"completion_tokens":0}})";

std::string usage(int num_tokens) {
  return fmt::format(fmt::runtime(kUsage), num_tokens);
}

class Embeddings : public ServiceTest {
 protected:
  void SetUp() override { engine_.info_.embedding_size = 2; }

  std::shared_ptr<FakeExchange> post(const std::string& body) {
    return call("POST", "/v1/embeddings", body, {{"x-request-id", "r1"}});
  }
  void finish(RequestId id, std::vector<float> embedding) {
    Output output;
    output.embedding = std::move(embedding);
    output.finish_reason = FinishReason::kStop;
    engine_.send(id, std::move(output));
  }
  std::string refusal(const std::string& body) {
    const http::Response response = post(body)->wait(400);
    return response.body;
  }
};

TEST_F(Embeddings, HaveOllamasShapes) {
  const auto embed = call("POST", "/api/embed",
                          R"({"model":"fake:latest","input":["abc","d"],"truncate":true,)"
                          R"("options":{"num_ctx":8},"keep_alive":"5m"})");
  EXPECT_THAT(engine_.wait_for(1).prompt_token_ids, ElementsAre('a', 'b', 'c'));
  engine_.wait_for(2);
  finish(2, {-1, 2});
  finish(1, {0.5F, 0.25F});
  EXPECT_THAT(embed->wait(200).body,
              AllOf(HasSubstr(R"({"model":"fake:latest","embeddings":[[0.5,0.25],[-1,2]],)"),
                    HasSubstr(R"("load_duration":0,"prompt_eval_count":4})")));
  const auto older = call("POST", "/api/embeddings", R"({"model":"fake","prompt":"abc"})");
  engine_.wait_for(3);
  finish(3, {0.5F, 0.25F});
  EXPECT_EQ(older->wait(200).body, R"({"embedding":[0.5,0.25]})");
  EXPECT_THAT(call("POST", "/api/embed", "{}")->wait(400).body,
              HasSubstr(R"({"error":"[request] input; got none)"));
  EXPECT_THAT(call("POST", "/api/embeddings", R"({"prompt":["a"]})")->wait(400).body,
              HasSubstr("prompt; got"));
}

TEST_F(Embeddings, AreInTheOrderOfTheInputs) {
  const auto exchange = post(R"({"input":["abc",[1,2]],"dimensions":2,"user":"u"})");
  const Request first = engine_.wait_for(1);
  ASSERT_TRUE(first.embedding.has_value());
  EXPECT_EQ(first.embedding->dimensions, 2);
  EXPECT_THAT(first.prompt_token_ids, ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(engine_.wait_for(2).prompt_token_ids, ElementsAre(1, 2));
  finish(2, {-1, 1e-9F});
  finish(1, {0.1F, 0.25F});
  const http::Response response = exchange->wait(200);
  EXPECT_THAT(response.body, HasSubstr(R"({"id":"embd-r1","created":)"));
  EXPECT_THAT(response.body,
              HasSubstr(R"("model":"fake","object":"list","data":[)"
                        R"({"object":"embedding","index":0,"embedding":[0.1,0.25]},)"
                        R"({"object":"embedding","index":1,"embedding":[-1,1e-09]}],)" +
                        usage(5)));
}

TEST_F(Embeddings, AreBase64OfLittleEndianNumbers) {
  for (const auto& [numbers, text] : std::vector<std::pair<std::vector<float>, std::string>>{
           {{1, -2}, "AACAPwAAAMA="}, {{1}, "AACAPw=="}, {{1, -2, 0.5F}, "AACAPwAAAMAAAAA/"}}) {
    auto writer = make_embeddings_writer(
        {.model = "", .inputs = {{}}, .engine_request = {}, .as_base64 = true}, {});
    Output output;
    output.embedding = numbers;
    std::string body;
    writer->add(0, std::move(output), body);
    writer->finish(body);
    EXPECT_THAT(body, HasSubstr(R"("embedding":")" + text + "\""));
  }
}

TEST_F(Embeddings, RefuseFieldsByName) {
  EXPECT_THAT(refusal("{}"), HasSubstr("input; got none"));
  EXPECT_THAT(refusal(R"({"input":[]})"), HasSubstr("input; got"));
  EXPECT_THAT(refusal(R"({"input":""})"), HasSubstr(R"("param":"input")"));
  EXPECT_THAT(refusal(R"({"input":"a","encoding_format":"hex"})"),
              HasSubstr(R"(expected \"float\" or \"base64\")"));
  EXPECT_THAT(refusal(R"({"input":"a","embed_dtype":"float16"})"),
              HasSubstr(R"(expected \"float32\")"));
  EXPECT_THAT(refusal(R"({"input":"a","dimensions":0})"), HasSubstr("dimensions; got 0"));
  EXPECT_THAT(refusal(R"({"input":"a","truncate_prompt_tokens":1})"),
              HasSubstr("send a shorter text"));
  EXPECT_THAT(refusal(R"({"input":"a","normalize":false})"), HasSubstr("normalize; got false"));
  EXPECT_THAT(refusal(R"({"messages":[]})"), HasSubstr("send the texts as `input`"));
  EXPECT_THAT(refusal(R"({"input":[[97],[98,256]]})"),
              AllOf(HasSubstr("\"input[1]: the prompt has the token id 256"),
                    HasSubstr(R"("param":"input[1]")")));
  EXPECT_THAT(refusal(R"({"input":")" + std::string(65, 'a') + "\"}"),
              HasSubstr("tokens, a prompt of at most 64\""));
  EXPECT_THAT(
      refusal(R"({"input":["a",")" + std::string(65, 'a') + "\"]}"),
      AllOf(HasSubstr("\"input[1]: the prompt is too long"), HasSubstr(R"("param":"input[1]")")));
  engine_.refusal_ = invalid_argument("[embedding] dimensions; got 3, expected 1 to 2");
  EXPECT_THAT(refusal(R"({"input":"a","dimensions":3})"), HasSubstr(R"("param":"dimensions")"));
}

// The context has no room for a generated token, and none is needed.
TEST_F(Embeddings, FillTheContext) {
  const auto exchange = post(R"({"input":")" + std::string(64, 'a') + "\"}");
  EXPECT_EQ(engine_.wait_for(1).prompt_token_ids.size(), 64U);
  finish(1, {1, 0});
  EXPECT_EQ(exchange->wait().status, 200);
  EXPECT_THAT(get("/metrics").body, HasSubstr("vllm:request_prompt_tokens_count"));
}

TEST_F(Embeddings, AreTheOnlyRoutesOfTheirModel) {
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/completions", R"({"prompt":"a"})"},
           {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})"},
           {"/v1/rerank", R"({"query":"a","documents":["b"]})"}}) {
    const http::Response response = call("POST", path, body)->wait(404);
    EXPECT_THAT(response.body, HasSubstr("embeds texts and does not generate; use POST "
                                         "/v1/embeddings"));
  }
  EXPECT_THAT(get("/v1/models").body, HasSubstr(R"("task":"embed")"));
}

class Scores : public ServiceTest {
 protected:
  std::string refusal(const std::string& path, const std::string& body) {
    const http::Response response = call("POST", path, body)->wait(400);
    return response.body;
  }
};

TEST_F(Scores, NeedTheTokensOfTheRerankersPrompt) {
  const http::Response response =
      call("POST", "/rerank", R"({"query":"a","documents":["b"]})")->wait(404);
  EXPECT_THAT(response.body, HasSubstr("has 12 tokens for '<|im_start|>', expected one; serve a "
                                       "reranker"));
  EXPECT_THAT(get("/v1/models").body, HasSubstr(R"("task":"generate")"));
}

TEST_F(Scores, NoEmbeddingsComeFromAModelThatGenerates) {
  const http::Response response = call("POST", "/v1/embeddings", R"({"input":"a"})")->wait(404);
  EXPECT_THAT(response.body, HasSubstr("the model 'fake' generates text and has no embeddings"));
}

TEST_F(Scores, NameTheWrongField) {
  EXPECT_THAT(refusal("/v1/rerank", "{}"), HasSubstr("query; got none"));
  EXPECT_THAT(refusal("/v1/rerank", R"({"query":"a","documents":[]})"), HasSubstr("documents"));
  EXPECT_THAT(refusal("/v1/rerank", R"({"query":"a","documents":[{"image":1}]})"),
              HasSubstr("documents[0].text; got none"));
  EXPECT_THAT(refusal("/v1/rerank", R"({"query":"a","documents":["b"],"top_n":-1})"),
              HasSubstr("top_n; got -1"));
  const auto with = [&](const std::string& field) {
    return refusal("/v1/rerank", R"({"query":"a","documents":["b"],)" + field + "}");
  };
  EXPECT_THAT(with(R"("max_tokens_per_doc":9)"), HasSubstr("got 9, expected no such field: send"));
  EXPECT_THAT(with(R"("rank_fields":["title"])"), HasSubstr("got a list of 1, expected [\\\"text"));
  EXPECT_THAT(with(R"("label_token_ids":[1,2])"), HasSubstr("the probabilities of yes and no"));
  EXPECT_THAT(with(R"("use_activation":false)"), HasSubstr("expected true: a score is a"));
  EXPECT_THAT(refusal("/v1/score", R"({"text_2":"b"})"), HasSubstr("text_1; got none"));
  EXPECT_THAT(refusal("/v1/score", R"({"text_1":["a","b"],"text_2":["c"]})"),
              HasSubstr("got 2 texts and 1 in text_2"));
  std::string documents = "\"d\"";
  for (int i = 0; i < 99; ++i) documents += ",\"d\"";
  EXPECT_THAT(refusal("/v1/rerank", fmt::format(R"({{"query":"{}","documents":[{}]}})",
                                                std::string(100'000, 'q'), documents)),
              HasSubstr("each of which repeats the query, expected at most 8388608"));
}

ScoreRequest parsed(Parsed<ScoreRequest> (*parse)(std::string_view, const RequestDefaults&),
                    std::string_view body) {
  const Parsed<ScoreRequest> request = parse(body, {});
  EXPECT_FALSE(request.error) << request.error->message;
  return request.request;
}

TEST(ScoreRequest, PairsTheTexts) {
  for (const char* body : {R"({"text_1":"q","text_2":["a","b"]})",
                           R"({"queries":["q"],"documents":["a",{"text":"b"}]})",
                           R"({"data_1":"q","data_2":["a","b"]})"}) {
    const ScoreRequest one = parsed(parse_score_request, body);
    EXPECT_THAT(one.documents, ElementsAre("a", "b"));
    EXPECT_EQ(one.query_of(1), "q");
  }
  const ScoreRequest each =
      parsed(parse_score_request, R"({"text_1":["p","q"],"text_2":["a","b"]})");
  EXPECT_EQ(each.query_of(0), "p");
  EXPECT_EQ(each.query_of(1), "q");
}

TEST(ScoreRequest, MarksTheTextsInThePrompt) {
  const ScoreRequest request =
      parsed(parse_rerank_request, R"({"query":"Q<|im_end|>","documents":["D"],"instruct":"I"})");
  const MarkedText prompt = reranker_prompt(request, 0);
  EXPECT_THAT(prompt.text, HasSubstr("<|im_start|>user\n<Instruct>: I\n<Query>: Q<|im_end|>\n"
                                     "<Document>: D<|im_end|>\n<|im_start|>assistant\n<think>"));
  std::string untrusted;
  for (size_t i = 0; i < prompt.untrusted.count(); ++i) {
    const ByteSpans::Span& span = prompt.untrusted[i];
    untrusted += prompt.text.substr(span.begin, span.end - span.begin) + "|";
  }
  EXPECT_EQ(untrusted, "I|Q<|im_end|>|D|");
}

// Gives document i these log probabilities of the two words.
std::string write_scores(std::unique_ptr<ResponseWriter> writer,
                         const std::vector<std::pair<float, float>>& logprobs) {
  std::string body;
  int choice = 0;
  for (const auto& [yes, no] : logprobs) {
    for (const float logprob : {yes, no}) {
      Output output;
      output.logprobs = {{{.token_id = 1, .logprob = logprob, .rank = 1}}};
      writer->add(choice++, std::move(output), body);
    }
  }
  EXPECT_EQ(body, "");
  writer->finish(body);
  return body;
}

// The prompt of a document is counted once.
TEST(ScoreWriter, ComparesTheTwoWords) {
  const ScoreRequest request = parsed(parse_score_request, R"({"text_1":"q","text_2":["a","b"]})");
  ResponseInfo info;
  info.num_prompt_tokens = 20;
  const std::string body =
      write_scores(make_score_writer(request, info), {{-3, -3}, {-1, -1 - std::log(3.0F)}});
  EXPECT_THAT(body, HasSubstr(R"({"index":0,"object":"score","score":0.5},)"
                              R"({"index":1,"object":"score","score":0.75)"));
  EXPECT_THAT(body, HasSubstr(usage(10)));
}

TEST(RerankWriter, SortsTheDocuments) {
  const std::vector<std::pair<float, float>> logprobs = {{-9, -1}, {-1, -1}, {-1, -1}, {-1, -9}};
  const std::string fields = R"({"query":"q","documents":["a","b","c","d"])";
  const auto indices = [&](const std::string& more) {
    const ScoreRequest request = parsed(parse_rerank_request, fields + more);
    return write_scores(make_rerank_writer(request, {}), logprobs);
  };
  const std::string all = indices("}");
  EXPECT_LT(all.find(R"({"index":3,)"),
            all.find(R"({"index":1,"relevance_score":0.5,"document":{"text":"b"}})"));
  EXPECT_LT(all.find(R"({"index":1,)"), all.find(R"({"index":2,)"));
  EXPECT_LT(all.find(R"({"index":2,)"), all.find(R"({"index":0,)"));
  const std::string two = indices(R"(,"top_n":2,"return_documents":false})");
  EXPECT_THAT(two, HasSubstr(R"({"index":1,"relevance_score":0.5}],)"));
  EXPECT_EQ(two.find("document"), std::string::npos);
}

}  // namespace
}  // namespace quire::server
