#include "server/http/request_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire::http {
namespace {

using State = RequestParser::State;

Limits small_limits() {
  Limits limits;
  limits.max_header_bytes = 512;
  limits.max_headers = 8;
  limits.max_body_bytes = 64;
  return limits;
}

// Feeds `bytes` in pieces, as a connection would, up to the end of a request. Returns the remaining
// bytes.
std::string feed(RequestParser& parser, std::string_view bytes, size_t piece_bytes) {
  std::string waiting;
  while (parser.state() != State::kDone && parser.state() != State::kFailed) {
    const size_t used = parser.feed(waiting);
    waiting.erase(0, used);
    if (used > 0) continue;
    if (bytes.empty()) break;
    waiting += bytes.substr(0, piece_bytes);
    bytes.remove_prefix(std::min(piece_bytes, bytes.size()));
  }
  return waiting + std::string(bytes);
}

Request parse(std::string_view bytes, std::string* rest = nullptr) {
  RequestParser parser(small_limits());
  const std::string left = feed(parser, bytes, bytes.size());
  EXPECT_EQ(parser.state(), State::kDone) << bytes;
  if (rest != nullptr) *rest = left;
  return parser.state() == State::kDone ? parser.take() : Request{};
}

int refusal(std::string_view bytes) {
  int status = 0;
  for (const size_t piece_bytes : {bytes.size(), size_t{1}}) {
    RequestParser parser(small_limits());
    feed(parser, bytes, piece_bytes);
    const int now = parser.state() == State::kFailed ? parser.refusal().status : 0;
    if (piece_bytes == bytes.size()) status = now;
    EXPECT_EQ(now, status) << "the result depends on the pieces of the input: " << bytes;
    if (now != 0) {
      EXPECT_FALSE(parser.refusal().code.empty());
      EXPECT_FALSE(parser.refusal().message.empty());
    }
  }
  return status;
}

constexpr std::string_view kPost = "POST /v1/x HTTP/1.1\r\nHost: a\r\n";

std::string post(std::string_view fields_and_body) {
  return std::string(kPost) + std::string(fields_and_body);
}

TEST(RequestParser, ReadsHeadAndBody) {
  std::string rest;
  const Request request = parse(
      "POST /v1/a%20b?x=%20&y HTTP/1.1\r\nHost: a\r\nX-Two:  1 2 \r\nX-Two: 3\r\n"
      "Content-Length: 5\r\n\r\nhelloGET /",
      &rest);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v1/a b");
  EXPECT_EQ(request.query, "x=%20&y");
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(request.header("x-two"), "1 2");
  EXPECT_EQ(request.header("host"), "a");
  EXPECT_EQ(request.header("absent"), "");
  EXPECT_EQ(rest, "GET /");
}

TEST(RequestParser, ReadsChunks) {
  std::string rest;
  const std::string bytes = post(
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: "
      "1\r\n\r\nG");
  const Request request = parse(bytes, &rest);
  EXPECT_EQ(request.body, "abc0123456789");
  EXPECT_EQ(request.header("t"), "") << "a trailer is not a header field";
  EXPECT_EQ(rest, "G");
  RequestParser slow(small_limits());
  EXPECT_EQ(feed(slow, bytes, 1), "G");
  EXPECT_EQ(slow.take().body, request.body);
}

TEST(RequestParser, ReadsRequestsInARow) {
  RequestParser parser(small_limits());
  std::string bytes = "\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n" +
                      post("Content-Length: 1\r\n\r\nx") + "\r\nGET /2 HTTP/1.0\r\n\r\n";
  std::vector<std::string> paths;
  std::vector<bool> keep_alive;
  while (!bytes.empty()) {
    bytes = feed(parser, bytes, 7);
    ASSERT_EQ(parser.state(), State::kDone);
    keep_alive.push_back(parser.keeps_alive());
    paths.push_back(parser.take().path);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"/1", "/v1/x", "/2"}));
  EXPECT_EQ(keep_alive, (std::vector<bool>{true, true, false}));
}

TEST(RequestParser, TellsOfExpectationBeforeTheBody) {
  RequestParser parser(small_limits());
  const std::string head = post("Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(parser.feed(head), head.size());
  EXPECT_EQ(parser.state(), State::kBody);
  EXPECT_TRUE(parser.expects_continue());
  EXPECT_EQ(refusal(post("Expect: miracles\r\nContent-Length: 2\r\n\r\n")), 417);
}

TEST(RequestParser, RefusesOtherProtocols) {
  EXPECT_EQ(refusal("\x16\x03\x01\x02"), 400) << "TLS on a plain port fails at once";
  EXPECT_EQ(refusal("hello\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET /\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.x\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(refusal("PRI * HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(refusal("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
}

TEST(RequestParser, RefusesLinesThatOthersReadDifferently) {
  EXPECT_EQ(refusal("GET / HTTP/1.1\nHost: a\n\n"), 400) << "bare LF";
  EXPECT_EQ(refusal(post("A: 1\rB: 2\r\n\r\n")), 400) << "bare CR";
  EXPECT_EQ(refusal(post("A: 1\r\n 2\r\n\r\n")), 400) << "obs-fold";
  EXPECT_EQ(refusal(post("A : 1\r\n\r\n")), 400) << "space before the colon";
  EXPECT_EQ(refusal(post(": 1\r\n\r\n")), 400) << "no name";
  EXPECT_EQ(refusal(post("A\r\n\r\n")), 400) << "no colon";
  EXPECT_EQ(refusal(post(std::string_view("A: 1\0\r\n\r\n", 10))), 400) << "NUL";
  EXPECT_EQ(refusal(post("A: \x7f\r\n\r\n")), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(refusal(post("Host: b\r\n\r\n")), 400) << "two Hosts";
}

TEST(RequestParser, RefusesAmbiguousFraming) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(refusal(post("Content-Length: 5\r\n" + chunked + "\r\n0\r\n\r\n")), 400);
  EXPECT_EQ(refusal(post(chunked + "Content-Length: 5\r\n\r\n0\r\n\r\n")), 400);
  EXPECT_EQ(refusal(post(chunked + chunked + "\r\n0\r\n\r\n")), 400);
  for (const char* length : {"5\r\nContent-Length: 5", "5\r\nContent-Length: 6", "5, 5", "+5", "-1",
                             "5 5", "0x5", "", "99999999999999999999999", "5;", "5,"}) {
    EXPECT_EQ(refusal(post(std::string("Content-Length: ") + length + "\r\n\r\nhello")), 400)
        << length;
  }
  for (const char* encoding : {"chunked, gzip", "chunked, chunked", "", "chunked;", "chunked,"}) {
    EXPECT_NE(refusal(post(std::string("Transfer-Encoding: ") + encoding + "\r\n\r\n0\r\n\r\n")), 0)
        << encoding;
  }
  for (const char* encoding : {"gzip", "gzip, chunked", "identity", "xchunked"}) {
    EXPECT_EQ(refusal(post(std::string("Transfer-Encoding: ") + encoding + "\r\n\r\n0\r\n\r\n")),
              501)
        << encoding;
  }
  EXPECT_EQ(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
}

TEST(RequestParser, RefusesBadChunks) {
  for (const char* body :
       {"x\r\nab", "-1\r\nab", " 3\r\nabc", "3\nabc\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3 \r\nabc\r\n",
        "3;\r\nabc\r\n", "11111111111111111\r\n", "\r\n\r\n\r\n", "3;a=\"\n\"\r\nabc\r\n",
        "0\r\nbad trailer\r\n\r\n"}) {
    EXPECT_EQ(refusal(post(std::string("Transfer-Encoding: chunked\r\n\r\n") + body)), 400) << body;
  }
  EXPECT_EQ(refusal(post("Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n")), 400);
}

TEST(RequestParser, KeepsLimits) {
  const std::string long_text(600, 'a');
  EXPECT_EQ(refusal("GET /" + long_text), 414);
  EXPECT_EQ(refusal(post("A: " + long_text)), 431);
  std::string many;
  for (int i = 0; i < 8; ++i) many += "A: 1\r\n";
  EXPECT_EQ(refusal(post(many + "\r\n")), 431);
  EXPECT_EQ(refusal("GET http://a/ HTTP/1.0\r\n" + many + "\r\n"), 431)
      << "the host of the target counts as a ninth field";
  EXPECT_EQ(refusal(post("Content-Length: 65\r\n\r\n")), 413)
      << "before any byte of it has arrived";
  EXPECT_EQ(refusal(post("Content-Length: 18446744073709551615\r\n\r\n")), 413);
  EXPECT_EQ(refusal(post("Transfer-Encoding: chunked\r\n\r\n41\r\nb")), 413);
  EXPECT_EQ(refusal(post("Transfer-Encoding: chunked\r\n\r\n40\r\n" + std::string(64, 'b') +
                         "\r\n1\r\n")),
            413);
  EXPECT_EQ(refusal(post("Transfer-Encoding: chunked\r\n\r\n1;" + long_text)), 400);
  EXPECT_EQ(refusal(post("Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + long_text)), 400);
  EXPECT_EQ(parse(post("Content-Length: 64\r\n\r\n" + std::string(64, 'b'))).body.size(), 64u);
}

TEST(RequestParser, TheTargetsHostHoldsOverTheField) {
  const Request request =
      parse("GET http://evil.example:80/x?y HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(request.path, "/x");
  EXPECT_EQ(request.header("host"), "evil.example:80");
  EXPECT_EQ(parse("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").header("host"), "localhost");
}

TEST(RequestParser, RefusesSeveralKeys) {
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\n"
                    "authorization: Bearer b\r\n\r\n"),
            400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n"
                    "content-type: application/json\r\n\r\n"),
            400);
}

TEST(Target, IsDecodedOnce) {
  const auto path = [](std::string_view target) {
    const auto parts = parse_target("GET", target);
    return parts ? parts->path : "none";
  };
  EXPECT_EQ(path("/a%2Fb%252F"), "/a/b%2F");
  EXPECT_EQ(path("/%c3%A9"), "/\xc3\xa9");
  EXPECT_EQ(path("http://host:1/v1/models"), "/v1/models");
  EXPECT_EQ(path("HTTPS://host"), "/");
  EXPECT_EQ(path("http://host?q"), "/");
  for (const char* bad : {"/%", "/%4", "/%4x", "/%00", "/a#b", "a", "", "*", "http://", "http:///a",
                          "http://u@a/", "ftp://a/"}) {
    EXPECT_EQ(path(bad), "none") << bad;
  }
  EXPECT_EQ(parse_target("OPTIONS", "*")->path, "*");
  EXPECT_EQ(parse_target("GET", "/a?b?c%zz")->query, "b?c%zz");
}

}  // namespace
}  // namespace quire::http
