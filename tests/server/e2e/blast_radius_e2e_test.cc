// A fault of one request affects that request alone: in the real binary, concurrent requests get
// the same responses, bit for bit, as in a run without the faults.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "server/e2e/served.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kNumNeighbours = 16;
constexpr int kPoison = 700;  // an ordinary token of the embedded model

std::string with_head_of_its_own(std::string config) {
  const std::string tied = "\"tie_word_embeddings\": true";
  const size_t at = config.find(tied);
  EXPECT_NE(at, std::string::npos) << config;
  return config.replace(at, tied.size(), "\"tie_word_embeddings\": false");
}

// The embedded model with untied embeddings, so that a row of the embedding table can be NaN
// without affecting every request: only requests with that token in the prompt have NaN logits.
std::string poisoned_weights(const std::string& original) {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, original.data(), sizeof(header_bytes));
  std::string header = original.substr(sizeof(header_bytes), header_bytes);
  std::string data = original.substr(sizeof(header_bytes) + header_bytes);
  const auto document = JsonDocument::parse(header, "header");
  EXPECT_TRUE(document.ok());
  const simdjson::dom::element embedding = document->root()["model.embed_tokens.weight"];
  const auto begin = embedding["data_offsets"].at(0).get_uint64().value();
  const auto end = embedding["data_offsets"].at(1).get_uint64().value();
  const auto hidden_size = embedding["shape"].at(1).get_uint64().value();
  header.erase(header.find_last_of('}'));
  header += fmt::format(
      R"(,"lm_head.weight":{{"dtype":"BF16","shape":{},"data_offsets":[{},{}]}}}})",
      simdjson::to_string(embedding["shape"].value()), data.size(), data.size() + end - begin);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  data += data.substr(begin, end - begin);
  constexpr uint16_t kNan = 0x7fc0;
  for (uint64_t i = 0; i < hidden_size; ++i) {
    std::memcpy(data.data() + begin + (kPoison * hidden_size + i) * sizeof(kNan), &kNan,
                sizeof(kNan));
  }
  header_bytes = header.size();
  return std::string(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes)) + header +
         data;
}

class PoisonedModel {
 public:
  PoisonedModel() {
    const fs::path from = abacus_path();
    for (const char* name : {"generation_config.json", "tokenizer.json"}) {
      scratch_.copy(from / name, name);
    }
    const auto read = [&](const char* name) { return *read_file(from / name, size_t{1} << 28); };
    scratch_.write("config.json", with_head_of_its_own(read("config.json")));
    scratch_.write("model.safetensors", poisoned_weights(read("model.safetensors")));
    // For one content, the template raises an exception.
    scratch_.write(
        "chat_template.jinja",
        "{% for m in messages %}{% if m.content == 'boom' %}"
        "{{ raise_exception('no such thing') }}{% endif %}{{ m.content }}\n{% endfor %}");
  }
  std::string path() const { return scratch_.path().string(); }

 private:
  ScratchDirectory scratch_;
};

JsonCall neighbour(int i) {
  return {"/v1/completions",
          fmt::format(R"({{"prompt":"Question: Tom has {} apples and buys {} more.\nAnswer:",)"
                      R"("max_tokens":{},"temperature":{},"seed":{},"ignore_eos":true,)"
                      R"("logprobs":1,"return_token_ids":true}})",
                      i, 2 * i + 1, 24 + i % 5, i % 2 == 0 ? 0.0 : 0.9, i)};
}

// Returns the parts in which no bit may change: text, ids, log probabilities.
std::string essence(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto document = JsonDocument::parse(answer.body, "answer");
  if (!document.ok()) return "";
  simdjson::dom::element choices;
  if (document->root()["choices"].get(choices) != simdjson::SUCCESS) return "";
  return simdjson::to_string(choices);
}

struct Fault {
  JsonCall call;
  int status;
  std::string says;  // part of its error message
};

std::vector<Fault> faults() {
  std::string long_prompt;
  for (int i = 0; i < 5000; ++i) long_prompt += "apple ";
  return {
      {{"/v1/completions", R"({"prompt":"a","structured_outputs":{"grammar":"root ::= ("}})"},
       400,
       "[grammar]"},
      {{"/v1/completions", R"({"prompt":")" + long_prompt + R"("})"}, 400, "too long"},
      {{"/v1/completions", "{\"prompt\":\"\xff\xfe\"}"}, 400, "UTF-8"},
      {{"/v1/completions", fmt::format(R"({{"prompt":[5,{},9],"max_tokens":8}})", kPoison)},
       500,
       "internal error"},
      {{"/v1/chat/completions", R"({"messages":[{"role":"user","content":"boom"}]})"},
       400,
       "no such thing"},
  };
}

TEST(BlastRadius, EachFaultFailsAlone) {
  const PoisonedModel model;
  // The cache is so small that requests reuse one another's pages, including pages with NaN.
  Served server({"--model", model.path(), "--max-model-len", "512", "--max-num-seqs", "32"});
  ASSERT_TRUE(server.is_up());
  std::vector<JsonCall> neighbours;
  for (int i = 0; i < kNumNeighbours; ++i) neighbours.push_back(neighbour(i));
  std::vector<std::string> alone;
  for (const HttpAnswer& answer : server.post_all(neighbours)) alone.push_back(essence(answer));

  for (const Fault& fault : faults()) {
    std::vector<JsonCall> calls = neighbours;
    calls.insert(calls.begin() + kNumNeighbours / 2, fault.call);
    calls.push_back(fault.call);
    std::vector<HttpAnswer> answers = server.post_all(calls);
    for (const size_t i : {size_t{kNumNeighbours} / 2, answers.size() - 1}) {
      EXPECT_EQ(answers[i].status, fault.status) << answers[i].body;
      EXPECT_THAT(string_at(answers[i].body, "/error/message"), HasSubstr(fault.says));
    }
    answers.pop_back();
    answers.erase(answers.begin() + kNumNeighbours / 2);
    for (size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(essence(answers[i]), alone[i]) << fault.says;
    }
    EXPECT_EQ(server.get("/health").status, 200);
  }
  EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace quire::testing
