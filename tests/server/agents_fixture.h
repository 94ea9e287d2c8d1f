// A service over a fake engine whose prompts come from a real chat template.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "server/service_fixture.h"

namespace quire::server {

inline constexpr std::string_view kChatMl =
    "{%- if tools %}{{ tools | tojson }}\n{% endif %}"
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{%- if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
class AgentsTest : public ServiceTest {
 protected:
  void SetUp() override { engine_.info_.max_model_len = 1 << 16; }

  // Returns the prompt of a request, and ends its response with `text`.
  std::string prompt_of(const std::string& path, const std::string& body,
                        const std::string& text = "ok") {
    const auto exchange = call("POST", path, body);
    const RequestId id = num_requests_ + 1;
    while (!exchange->has_ended() && !engine_.has_submitted(id)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (exchange->has_ended()) return exchange->wait().body;  // refused
    request_ = engine_.wait_for(++num_requests_);
    engine_.say(num_requests_, text, FinishReason::kStop);
    response_ = exchange->wait();
    return {request_.prompt_token_ids.begin(), request_.prompt_token_ids.end()};
  }
  std::string chat(const std::string& messages, const std::string& more = "") {
    return prompt_of("/v1/chat/completions", R"({"messages":[)" + messages + "]" + more + "}");
  }

  Request request_;  // to the engine, of the newest prompt_of() that was not refused
  http::Response response_;

 private:
  RequestId num_requests_ = 0;
};

}  // namespace quire::server
