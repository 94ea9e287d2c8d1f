// Tests `bench serve` without a server: the requests and their timing, and the figures computed
// from the responses.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "bench/dataset.h"
#include "bench/measurement.h"
#include "bench/serve_report.h"
#include "bench/server_load.h"
#include "http_client/client.h"
#include "http_client/parsers.h"
#include "support/value_of.h"

namespace quire::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(BenchServeUrl, TakesHostsPortsAndPaths) {
  const auto url = testing::value_of(http_client::parse_url("https://[::1]:8443/llm/"));
  EXPECT_TRUE(url.is_tls);
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.path, "/llm");
  EXPECT_EQ(http_client::host_field(url), "[::1]:8443");
  EXPECT_EQ(http_client::host_field(*http_client::parse_url("http://a")), "a");
  for (const char* bad : {"", "a:80", "ftp://a", "http://", "http://a:0", "http://a:99999",
                          "http://u@a", "http://a/?q", "http://a\r\nX: y", "http://[::1"}) {
    EXPECT_FALSE(http_client::parse_url(bad).ok()) << bad;
  }
  for (const char* bad : {"http://u:secret@a", "http://u:secret/x@a", "u:secret@a"}) {
    EXPECT_THAT(http_client::parse_url(bad).status().message(), Not(HasSubstr("secret"))) << bad;
  }
}

TEST(BenchServeSse, EventsAreTheSameWhereverTheyAreCut) {
  const std::string text =
      "data: one\n\n: a comment\r\ndata:two\r\ndata: more\r\n\r\nevent: x\n\ndata\n\n";
  for (size_t size = 1; size <= text.size(); ++size) {
    http_client::SseReader reader;
    std::vector<std::string> events;
    for (size_t i = 0; i < text.size(); i += size) {
      reader.feed(std::string_view(text).substr(i, size),
                  [&](std::string_view event) { events.emplace_back(event); });
    }
    EXPECT_THAT(events, ElementsAre("one", "two\nmore", "")) << size;
  }
}

TEST(BenchServeSse, AnEventIsBounded) {
  http_client::SseReader reader(100);
  const std::string line = "data: " + std::string(60, 'a') + "\n";
  EXPECT_TRUE(reader.feed(line, [](std::string_view) {}));
  EXPECT_FALSE(reader.feed(line, [](std::string_view) {}));
}

class Collector final : public http_client::ResponseHandler {
 public:
  void on_head(int code) override { status = code; }
  bool on_body(std::string_view piece) override {
    body += piece;
    return body.size() <= max_bytes;
  }
  void on_end(const Status&) override {}
  int status = 0;
  std::string body;
  size_t max_bytes = 100;
};

// Delivers the bytes in small pieces, as a connection does.
http_client::ResponseParser::State read_response(std::string_view bytes, size_t size,
                                                 Collector& collector) {
  http_client::ResponseParser parser(collector);
  size_t begin = 0;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(end + size, bytes.size());
    begin += parser.feed(bytes.substr(begin, end - begin));
  }
  parser.end_of_connection();
  return parser.state();
}

TEST(BenchServeResponse, BodiesAreTheSameWhereverTheyAreCut) {
  using State = http_client::ResponseParser::State;
  const std::string chunked =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n";
  const std::string sized = "HTTP/1.1 429 No\r\nContent-Length: 4\r\n\r\nabcd";
  const std::string endless = "HTTP/1.0 200 OK\r\n\r\nabcd";
  for (size_t size = 1; size <= chunked.size(); ++size) {
    for (const std::string& text : {chunked, sized, endless}) {
      Collector collector;
      EXPECT_EQ(read_response(text, size, collector), State::kDone) << text << size;
      EXPECT_EQ(collector.body, "abcd");
      EXPECT_EQ(collector.status, text == sized ? 429 : 200);
    }
  }
  for (const std::string& cut : {chunked.substr(0, chunked.size() - 5), sized.substr(0, 40),
                                 std::string("HTTP/1.1 2"), std::string("hello\r\n\r\n")}) {
    Collector collector;
    EXPECT_EQ(read_response(cut, 7, collector), State::kFailed) << cut;
  }
}

TEST(BenchServeResponse, AHandlerEndsAnEndlessBody) {
  Collector collector;
  collector.max_bytes = 2;
  const std::string endless = "HTTP/1.1 200 OK\r\n\r\n" + std::string(1000, 'a');
  EXPECT_EQ(read_response(endless, 3, collector), http_client::ResponseParser::State::kFailed);
  EXPECT_LT(collector.body.size(), 10U);
}

// Events that arrive this many milliseconds after the request was sent.
ServedResponse read_stream(const std::vector<std::pair<int, std::string>>& events) {
  ServedResponse response;
  const auto sent = steady_clock::time_point() + std::chrono::hours(1);
  StreamReader reader(response, sent, 8);
  for (const auto& [when, data] : events) {
    reader.feed("data: " + data + "\n\n", sent + milliseconds(when));
  }
  reader.finish();
  return response;
}

TEST(BenchServeStream, TimesAreVllms) {
  const ServedResponse response =
      read_stream({{20, R"({"choices":[{"text":"a","finish_reason":null}]})"},
                   {30, R"({"choices":[{"text":"b","finish_reason":null}]})"},
                   {60, R"({"choices":[{"text":"c","finish_reason":"length"}]})"},
                   {61, R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,)"
                        R"("prompt_tokens_details":{"cached_tokens":4}}})"},
                   {62, "[DONE]"}});
  EXPECT_EQ(response.end, ServedResponse::End::kOk);
  EXPECT_NEAR(response.first_token_s, 0.020, 1e-9);
  EXPECT_NEAR(response.latency_s, 0.060, 1e-9);
  EXPECT_THAT(response.inter_token_s,
              ElementsAre(DoubleNear(0.010, 1e-9), DoubleNear(0.030, 1e-9)));
  EXPECT_EQ(response.num_prompt_tokens, 7);
  EXPECT_EQ(response.num_cached_tokens, 4);
  EXPECT_EQ(response.num_output_tokens, 5);
}

TEST(BenchServeStream, ARoleIsNotATokenAndChunksAreCountedWithoutUsage) {
  const ServedResponse response = read_stream(
      {{1, R"({"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]})"},
       {20, R"({"choices":[{"delta":{"content":"a"},"finish_reason":null}]})"},
       {30, R"({"choices":[{"delta":{"reasoning_content":"b"},"finish_reason":null}]})"},
       {31, R"({"choices":[{"delta":{},"finish_reason":"stop"}]})"}});
  EXPECT_EQ(response.end, ServedResponse::End::kOk);
  EXPECT_NEAR(response.first_token_s, 0.020, 1e-9);
  EXPECT_NEAR(response.latency_s, 0.031, 1e-9);
  EXPECT_THAT(response.inter_token_s, SizeIs(1));
  EXPECT_EQ(response.num_output_tokens, 2);
}

TEST(BenchServeStream, ErrorsHaveAKind) {
  const std::string token = R"({"choices":[{"text":"a","finish_reason":null}]})";
  EXPECT_EQ(read_stream({{1, token}}).error_kind, "cut stream");
  EXPECT_EQ(read_stream({{1, "{"}}).error_kind, "bad stream");
  EXPECT_EQ(read_stream({{1, "[]"}}).error_kind, "bad stream");
  const ServedResponse response = read_stream({{1, token}, {2, R"({"error":{"message":"lost"}})"}});
  EXPECT_EQ(response.end, ServedResponse::End::kFailed);
  EXPECT_EQ(response.error_kind, "error in the stream");
  EXPECT_THAT(response.error_message, HasSubstr("lost"));
}

TEST(BenchServeStream, AnEndlessStreamFails) {
  const std::string token = R"({"choices":[{"text":"a","finish_reason":null}]})";
  const std::vector<std::string> events = {token, R"({"choices":[]})", "[DONE]"};
  for (const std::string& data : events) {
    ServedResponse response;
    StreamReader reader(response, steady_clock::now(), 8);
    int num_fed = 0;
    while (reader.feed("data: " + data + "\n\n", steady_clock::now()) && num_fed < 10'000)
      ++num_fed;
    EXPECT_LT(num_fed, 2000) << data;
    EXPECT_EQ(response.error_kind, "endless stream");
    EXPECT_THAT(response.error_message, HasSubstr("8 requested tokens"));
    EXPECT_LT(response.inter_token_s.size(), 2000U);
  }
  std::string choices = R"({"text":"a"})";
  for (int i = 0; i < 5000; ++i) choices += R"(,{"text":"a"})";
  EXPECT_EQ(read_stream({{1, R"({"choices":[)" + choices + "]}"}}).error_kind, "endless stream");
}

TEST(BenchServeStream, CommentsDoNotKeepAStreamAliveForever) {
  const auto start = steady_clock::now();
  ServedResponse response;
  StreamReader reader(response, start, 8);
  constexpr auto kPause = StreamReader::kMaxSilence / 2;
  EXPECT_TRUE(reader.feed(": a comment\n\n", start + kPause));
  EXPECT_TRUE(reader.feed("data: {\"choices\":[]}\n\n", start + 2 * kPause));
  EXPECT_TRUE(reader.feed(": a comment\n\n", start + 4 * kPause)) << "an event came in between";
  EXPECT_FALSE(reader.feed(": a comment\n\n", start + 5 * kPause));
  EXPECT_EQ(response.error_kind, "silent stream");
  EXPECT_THAT(response.error_message, HasSubstr("10 minutes"));
}

TEST(BenchServeStream, RefusesImpossibleCounts) {
  const std::string token = R"({"choices":[{"text":"a","finish_reason":"stop"}]})";
  for (const char* count : {"9223372036854775807", "2147483648", "-1", "1.5", "\"a\""}) {
    const std::string usage = fmt::format(R"({{"usage":{{"completion_tokens":{}}}}})", count);
    const ServedResponse response = read_stream({{1, token}, {2, usage}});
    EXPECT_EQ(response.error_kind, "bad stream") << count;
    EXPECT_THAT(response.error_message, HasSubstr("usage.completion_tokens"));
  }
  EXPECT_EQ(read_stream({{1, token}, {2, R"({"usage":null})"}}).end, ServedResponse::End::kOk);
}

TEST(BenchServeStream, AStreamWithoutChoicesFails) {
  EXPECT_EQ(read_stream({{1, "[DONE]"}}).error_kind, "empty stream");
  EXPECT_EQ(read_stream({{1, R"({"usage":{"completion_tokens":3}})"}, {2, "[DONE]"}}).error_kind,
            "empty stream");
}

ServedResponse answer_of(double sent_s, double first_s, std::vector<double> gaps) {
  ServedResponse response;
  response.end = ServedResponse::End::kOk;
  response.sent_s = sent_s;
  response.first_token_s = first_s;
  response.latency_s = first_s;
  for (const double gap : gaps) response.latency_s += gap;
  response.num_prompt_tokens = 10;
  response.num_cached_tokens = 8;
  response.num_output_tokens = static_cast<int64_t>(gaps.size()) + 1;
  response.inter_token_s = std::move(gaps);
  return response;
}

TEST(BenchServeReport, CountsCompletedRequests) {
  std::vector<ServedResponse> responses = {answer_of(0.0, 0.1, {0.02, 0.04}),
                                           answer_of(0.5, 0.3, {0.6}), answer_of(0.0, 0.2, {})};
  responses.emplace_back();  // never ended
  responses.emplace_back();
  responses.back().end = ServedResponse::End::kFailed;
  responses.back().error_kind = "HTTP 429";
  const std::vector<Goodput> limits = {{LatencyKind::kTtft, 250}, {LatencyKind::kTpot, 50}};
  const ServeResult result = summarize(responses, 2.0, limits);
  EXPECT_EQ(result.num_completed, 3U);
  EXPECT_EQ(result.num_failed, 1U);
  EXPECT_EQ(result.errors.at("HTTP 429"), 1U);
  EXPECT_EQ(result.num_prompt_tokens, 30);
  EXPECT_EQ(result.num_cached_tokens, 24);
  EXPECT_EQ(result.num_output_tokens, 6);
  EXPECT_EQ(result.num_good, 2U);
  EXPECT_EQ(result.peak_output_tokens_per_s, 5);  // 1.4 s is in the next second
  EXPECT_NEAR(mean(result.latencies_ms.at(LatencyKind::kTtft)), 200, 1e-9);
  EXPECT_THAT(result.latencies_ms.at(LatencyKind::kTpot),
              ElementsAre(DoubleNear(30, 1e-9), DoubleNear(600, 1e-9)));
  EXPECT_THAT(result.latencies_ms.at(LatencyKind::kItl), SizeIs(3));
}

TEST(BenchServeArrivals, AreGammaWithTheRatesMean) {
  constexpr int kNum = 20000;
  EXPECT_THAT(arrival_times({.request_rate = std::numeric_limits<double>::infinity()}, 5), Each(0));
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const auto times =
        arrival_times({.request_rate = 50, .burstiness = burstiness, .seed = 3}, kNum);
    EXPECT_NEAR(times.back(), kNum / 50.0, 1e-6);
    std::vector<double> gaps;
    for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
    // The coefficient of variation of a gamma distribution.
    EXPECT_NEAR(standard_deviation(gaps) / mean(gaps), 1 / std::sqrt(burstiness), 0.05);
    EXPECT_EQ(times,
              arrival_times({.request_rate = 50, .burstiness = burstiness, .seed = 3}, kNum));
  }
}

ServerQueries known_facts() {
  return {.vocab_size = [] { return Result<int>(100); },
          .count_tokens =
              [](std::string_view text) { return Result<int>(static_cast<int>(text.size())); }};
}

TEST(BenchBenchRequests, ATraceKeepsItsTimes) {
  const std::string trace =
      R"({"timestamp_ms": 3000, "prompt": "b", "output_length": 2})"
      "\n"
      R"({"timestamp_ms": 1000.5, "prompt_token_ids": [1, 2], "output_length": 1})"
      "\n\n"
      R"({"timestamp_ms": 2000, "input_length": 5, "output_length": 3})"
      "\n";
  const auto prompts =
      testing::value_of(parse_trace(trace, "t", {.num_prompts = 10}, known_facts()));
  ASSERT_THAT(prompts, SizeIs(3));
  EXPECT_THAT(prompts[0].token_ids, ElementsAre(1, 2));
  EXPECT_NEAR(*prompts[1].arrival_s, 0.9995, 1e-9);
  EXPECT_THAT(prompts[1].token_ids, SizeIs(5));
  EXPECT_EQ(prompts[2].text, "b");
  for (const char* bad : {"{}", "[]", R"({"output_length": 1})", R"({"prompt": "a"})",
                          R"({"prompt_token_ids": [-1], "output_length": 1})", ""}) {
    EXPECT_FALSE(parse_trace(bad, "t", {}, known_facts()).ok()) << bad;
  }
  const auto mixed = parse_trace(R"({"prompt": "a", "output_length": 1})"
                                 "\n"
                                 R"({"timestamp_ms": 1, "prompt": "a", "output_length": 1})",
                                 "t", {}, known_facts());
  EXPECT_THAT(mixed.status().message(), HasSubstr("every line or in none"));
}

TEST(BenchBenchRequests, BodiesAreOfTheirEndpoint) {
  DatasetRequest prompt;
  prompt.token_ids = {1, 2};
  prompt.output_len = 3;
  const std::string completion = request_body(prompt, {.model = "m", .ignore_eos = true});
  EXPECT_THAT(completion, HasSubstr(R"("prompt":[1,2],"max_tokens":3)"));
  EXPECT_THAT(completion, HasSubstr(R"("ignore_eos":true)"));
  EXPECT_THAT(completion, HasSubstr(R"("stream_options":{"include_usage":true})"));
  prompt.text = "hi";
  EXPECT_THAT(
      request_body(prompt, {.model = "m", .is_chat = true}),
      HasSubstr(R"("messages":[{"role":"user","content":"hi"}],"max_completion_tokens":3)"));
}

TEST(BenchBenchRequests, RandomOnesAreIdsOrWords) {
  ServeDatasetConfig config = {.num_prompts = 4, .input_len = 6, .output_len = 2};
  const auto ids = testing::value_of(make_requests(config, known_facts()));
  for (const DatasetRequest& prompt : ids) EXPECT_THAT(prompt.token_ids, SizeIs(6));
  config.wants_text = true;
  const auto words = testing::value_of(make_requests(config, known_facts()));
  for (const DatasetRequest& prompt : words) {
    EXPECT_EQ(std::count(prompt.text.begin(), prompt.text.end(), ' '), 5);
  }
}

}  // namespace
}  // namespace quire::bench
