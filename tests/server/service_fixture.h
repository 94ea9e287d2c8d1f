// A service over a fake engine, whose outputs the test sends.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/marked_text.h"
#include "jinja/value.h"
#include "server/fake_engine.h"
#include "server/service.h"

namespace quire::server {

using quire::testing::FakeEngine;
using quire::testing::FakeExchange;

class ServiceTest : public ::testing::Test {
 protected:
  void start(ServiceConfig config = {}) {
    config.model_names = {"fake", "alias"};
    config.version = "1.2.3";
    service_ = std::make_unique<Service>(engine_, std::move(config));
  }

  void TearDown() override { end(); }
  void end() {
    if (service_ == nullptr) return;
    service_->stop();
    engine_.end_all();
    service_.reset();
  }

  std::shared_ptr<FakeExchange> call(std::string method, std::string path, std::string body = "",
                                     http::Headers headers = {}, size_t room = SIZE_MAX) {
    if (service_ == nullptr) start();
    auto exchange = std::make_shared<FakeExchange>(room);
    if (method == "POST") headers.emplace_back("content-type", "application/json");
    service_->handle({.method = std::move(method),
                      .path = std::move(path),
                      .query = "",
                      .headers = std::move(headers),
                      .body = std::move(body),
                      .peer = "test"},
                     exchange);
    return exchange;
  }
  // POST /v1/completions.
  std::shared_ptr<FakeExchange> complete(std::string body, http::Headers headers = {},
                                         size_t room = SIZE_MAX) {
    return call("POST", "/v1/completions", std::move(body), std::move(headers), room);
  }
  http::Response get(const std::string& path, http::Headers headers = {}) {
    return call("GET", path, "", std::move(headers))->wait();
  }
  static std::string header(const http::Response& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  // Makes the engine render every conversation as "p", and keep the template's variables as Python
  // prints them in `variables_`.
  void record_variables() {
    engine_.render_ = [this](const jinja::Value& variables) -> Result<MarkedText> {
      constexpr int kBudget = 1 << 20;
      jinja::Budget budget(kBudget, kBudget);
      variables_ = jinja::to_repr(variables, budget).text;
      return MarkedText{"p", {}};
    };
  }
  // Responds to the next request with this text.
  std::string respond(const std::string& path, const std::string& body, const std::string& text,
                      http::Headers headers = {}) {
    const auto exchange = call("POST", path, body, std::move(headers));
    engine_.wait_for(++num_responses_);
    engine_.say(num_responses_, text, FinishReason::kStop);
    const http::Response response = exchange->wait();
    EXPECT_EQ(response.status, 200) << response.body;
    return response.body;
  }
  // Responds to a request with the thought "hm" and the call get_weather({"a":1}), in three pieces.
  void say_thought_and_call(RequestId id) {
    engine_.wait_for(id);
    engine_.say(id, "<think>hm</think>");
    engine_.say(id, R"(<tool_call>{"name":"get_weather","arguments":{"a":)");
    engine_.say(id, "1}}</tool_call>", FinishReason::kStop);
  }
  static constexpr int kNumThoughtTokens = 17;
  static constexpr int kNumCallTokens = 65;
  // Expects that each body is refused with a message that contains the text.
  void expect_refusals(const std::string& path,
                       const std::vector<std::pair<std::string, std::string>>& refusals) {
    for (const auto& [body, message] : refusals) {
      const http::Response response = call("POST", path, body)->wait();
      EXPECT_EQ(response.status, 400) << body;
      EXPECT_NE(response.body.find(message), std::string::npos) << body << '\n' << response.body;
    }
  }

  FakeEngine engine_;
  std::unique_ptr<Service> service_;
  std::string variables_;

 private:
  RequestId num_responses_ = 0;
};

}  // namespace quire::server
