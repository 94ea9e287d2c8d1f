#include <gmock/gmock.h>

#include "server/openai/requests.h"

namespace quire::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using Kind = GrammarSpec::Kind;

Parsed<CompletionRequest> parse(std::string_view body) {
  return parse_completion_request(body, {});
}

CompletionRequest parsed(std::string_view body) {
  auto result = parse(body);
  EXPECT_FALSE(result.error) << result.error->message;
  return std::move(result.request);
}

// "PARAM: MESSAGE"
std::string refusal(std::string_view body) {
  const auto result = parse(body);
  if (!result.error) return "accepted";
  EXPECT_EQ(result.error->http_status, 400);
  EXPECT_EQ(result.error->type, "invalid_request_error");
  return result.error->param + ": " + result.error->message;
}

// The defaults for texts would change what programs get that send token ids.
TEST(ParseCompletion, TokenIdsHaveDefaultsOfTheirOwn) {
  RequestDefaults defaults;
  defaults.sampling.temperature = 0.75F;
  defaults.sampling.top_k = 40;
  const auto sampling_of = [&](std::string_view body) {
    const auto result = parse_completion_request(body, defaults);
    EXPECT_FALSE(result.error);
    return result.request.engine_request.sampling;
  };
  for (const char* texts : {R"("a")", R"(["a", "b"])", R"(["a", [1]])"}) {
    SCOPED_TRACE(texts);
    const SamplingParams sampling =
        sampling_of(R"({"top_p": 0.5, "prompt": )" + std::string(texts) + "}");
    EXPECT_EQ(sampling.temperature, 0.75F);
    EXPECT_EQ(sampling.top_k, 40);
    EXPECT_EQ(sampling.top_p, 0.5F);
  }
  for (const char* ids : {"[1, 2]", "[[1], [2]]"}) {
    SCOPED_TRACE(ids);
    const SamplingParams sampling =
        sampling_of(R"({"top_p": 0.5, "prompt": )" + std::string(ids) + R"(, "top_k": 3})");
    EXPECT_EQ(sampling.temperature, 1.0F);
    EXPECT_EQ(sampling.top_k, 3);
    EXPECT_EQ(sampling.top_p, 0.5F);
  }
}

TEST(ParseCompletion, TakesEveryField) {
  const CompletionRequest request = parsed(R"({
    "model": "m", "prompt": "Grüße", "echo": true, "n": 2, "best_of": 2, "stop": ["a", "b"],
    "stop_token_ids": [7], "logprobs": 3, "prompt_logprobs": 1, "logit_bias": {"5": -100, "9": 1.5},
    "seed": -1, "max_tokens": 12.0, "min_tokens": 2, "temperature": 0, "top_p": 0.5, "top_k": -1,
    "min_p": 0.25, "presence_penalty": -2, "frequency_penalty": 2, "repetition_penalty": 1.25,
    "bad_words": ["x"], "allowed_token_ids": [1, 2], "ignore_eos": true,
    "skip_special_tokens": false, "include_stop_str_in_output": true, "add_special_tokens": false,
    "cache_salt": "s", "priority": -3, "user": 5, "suffix": "", "stream": true,
    "stream_options": {"include_usage": true, "continuous_usage_stats": true, "x": 1},
    "return_token_ids": true, "return_tokens_as_token_ids": true, "unheard_of": [{}]})");
  EXPECT_EQ(request.model, "m");
  EXPECT_TRUE(request.echo);
  EXPECT_FALSE(request.echo_only);
  EXPECT_TRUE(request.streaming.stream);
  EXPECT_TRUE(request.streaming.include_usage);
  EXPECT_TRUE(request.streaming.continuous_usage_stats);
  EXPECT_TRUE(request.return_prompt_logprobs);
  EXPECT_TRUE(request.return_token_ids);
  EXPECT_TRUE(request.return_tokens_as_token_ids);
  ASSERT_THAT(request.prompts, SizeIs(1));
  const Request& engine_request = request.engine_request;
  EXPECT_EQ(request.prompts[0].text, "Grüße");
  EXPECT_FALSE(engine_request.add_special_tokens);
  EXPECT_EQ(engine_request.cache_salt, "s");
  EXPECT_EQ(engine_request.priority, -3);
  const SamplingParams& sampling = engine_request.sampling;
  EXPECT_EQ(sampling.n, 2);
  EXPECT_THAT(sampling.stop, ElementsAre("a", "b"));
  EXPECT_THAT(sampling.stop_token_ids, ElementsAre(7));
  EXPECT_EQ(sampling.logprobs, 3);
  EXPECT_EQ(sampling.prompt_logprobs, 1);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(Pair(5, -100.0F), Pair(9, 1.5F)));
  EXPECT_EQ(sampling.seed, UINT64_MAX);
  EXPECT_EQ(sampling.max_tokens, 12);
  EXPECT_EQ(sampling.min_tokens, 2);
  EXPECT_EQ(sampling.temperature, 0.0F);
  EXPECT_EQ(sampling.top_p, 0.5F);
  EXPECT_EQ(sampling.top_k, -1);
  EXPECT_EQ(sampling.min_p, 0.25F);
  EXPECT_EQ(sampling.presence_penalty, -2.0F);
  EXPECT_EQ(sampling.frequency_penalty, 2.0F);
  EXPECT_EQ(sampling.repetition_penalty, 1.25F);
  EXPECT_THAT(sampling.bad_words, ElementsAre("x"));
  EXPECT_THAT(sampling.allowed_token_ids, ElementsAre(1, 2));
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_FALSE(sampling.skip_special_tokens);
  EXPECT_TRUE(sampling.include_stop_str_in_output);
}

TEST(ParseCompletion, LaysTheCallOverTheDefaults) {
  RequestDefaults defaults;
  defaults.sampling.temperature = 0.25F;
  defaults.sampling.top_k = 9;
  defaults.completion_max_tokens = 33;
  const auto result = parse_completion_request(
      R"({"prompt": "a", "temperature": null, "top_k": 5, "model": null, "stop": null})", defaults);
  ASSERT_FALSE(result.error);
  EXPECT_EQ(result.request.engine_request.sampling.temperature, 0.25F);
  EXPECT_EQ(result.request.engine_request.sampling.top_k, 5);
  EXPECT_EQ(result.request.engine_request.sampling.max_tokens, 33);
  EXPECT_EQ(result.request.engine_request.sampling.seed, std::nullopt);
  EXPECT_TRUE(result.request.engine_request.add_special_tokens);
  EXPECT_EQ(result.request.model, "");
}

TEST(ParseCompletion, TakesPromptsInAllFourForms) {
  EXPECT_EQ(parsed(R"({"prompt": ""})").prompts[0].text, "");
  EXPECT_THAT(parsed(R"({"prompt": [1, 2]})").prompts[0].token_ids, ElementsAre(1, 2));
  const CompletionRequest texts = parsed(R"({"prompt": ["a", "b"], "top_k": 3})");
  ASSERT_THAT(texts.prompts, SizeIs(2));
  EXPECT_EQ(texts.prompts[1].text, "b");
  EXPECT_EQ(texts.engine_request.sampling.top_k, 3);
  const CompletionRequest mixed = parsed(R"({"prompt": [[1], [2, 3], "c"]})");
  ASSERT_THAT(mixed.prompts, SizeIs(3));
  EXPECT_THAT(mixed.prompts[1].token_ids, ElementsAre(2, 3));
  EXPECT_EQ(mixed.prompts[2].text, "c");

  EXPECT_THAT(refusal("{}"), HasSubstr("prompt: [request] prompt; got none"));
  EXPECT_THAT(refusal(R"({"prompt": null})"), HasSubstr("got none"));
  EXPECT_THAT(refusal(R"({"prompt": []})"), HasSubstr("prompt: "));
  EXPECT_THAT(refusal(R"({"prompt": [[]]})"), HasSubstr("prompt[0]: "));
  EXPECT_THAT(refusal(R"({"prompt": {"a": 1}})"), HasSubstr("prompt: "));
  EXPECT_THAT(refusal(R"({"prompt": [1, "a"]})"), HasSubstr("prompt[1]: "));
  EXPECT_THAT(refusal(R"({"prompt": ["a", 1]})"), HasSubstr("prompt[1]: "));
  EXPECT_THAT(refusal(R"({"prompt": [-1]})"), HasSubstr("prompt[0]: "));
  EXPECT_THAT(refusal(R"({"prompt": [[1, 2147483648]]})"), HasSubstr("prompt[0][1]: "));
}

TEST(ParseCompletion, SeedsAreIntegersHoweverTheyAreWritten) {
  const auto seed = [](const std::string& number) {
    return parsed(R"({"prompt": "a", "seed": )" + number + "}").engine_request.sampling.seed;
  };
  EXPECT_EQ(seed("5.0"), 5U);
  EXPECT_EQ(seed("-2.0"), UINT64_MAX - 1);
  EXPECT_EQ(seed("9007199254740992.0"), uint64_t{1} << 53);
  EXPECT_EQ(seed("-9223372036854775808"), uint64_t{1} << 63);
  EXPECT_EQ(seed("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(seed(R"(18446744073709551615, "more": 1000000000000000000000)"), UINT64_MAX);
  // Beyond 64 bits, or a double that may stand for another integer.
  for (const char* none : {"18446744073709551616", "-9223372036854775809", "1e19", "-1e19", "1e300",
                           "1.8446744073709552e19", "-9.223372036854775808e18", "1.5",
                           R"(-9223372036854775809, "more": 1000000000000000000000)"}) {
    EXPECT_THAT(refusal(R"({"prompt": "a", "seed": )" + std::string(none) + "}"),
                HasSubstr("an integer from -9223372036854775808 to 18446744073709551615"))
        << none;
  }
}

TEST(ParseCompletion, TakesTheFieldsOfLlamaCpp) {
  const auto sampling = [](std::string_view more) {
    return parsed(R"({"prompt": "a", )" + std::string(more) + "}").engine_request.sampling;
  };
  EXPECT_EQ(sampling(R"("n_predict": 7)").max_tokens, 7);
  for (const char* const both :
       {R"("max_tokens": 5, "n_predict": -1, "repetition_penalty": 1.25, "repeat_penalty": 2)",
        R"("repeat_penalty": 2, "repetition_penalty": 1.25, "n_predict": -1, "max_tokens": 5)"}) {
    EXPECT_EQ(sampling(both).max_tokens, 5) << both;
    EXPECT_EQ(sampling(both).repetition_penalty, 1.25F) << both;
  }
  EXPECT_EQ(sampling(R"("repeat_penalty": 1.5)").repetition_penalty, 1.5F);
  for (const char* const name : {"max_tokens", "n_predict"}) {
    EXPECT_EQ(sampling("\"" + std::string(name) + "\": -1").max_tokens, 0)
        << name << ": the rest of the context";
  }
  EXPECT_THAT(refusal(R"({"prompt": "a", "max_tokens": -2})"), HasSubstr("max_tokens: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "n_predict": 0})"), HasSubstr("n_predict: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "repeat_penalty": 0})"), HasSubstr("repeat_penalty: "));
}

TEST(ParseCompletion, NamesUnknownFields) {
  const auto ignored = [](const std::string& more) {
    return parsed(R"({"prompt": "a", "user": "u")" + more + "}").ignored;
  };
  EXPECT_THAT(ignored(R"(, "mirostat": 2, "samplers": ["top_k"], "top-k": 1, "dry": null)"),
              ElementsAre("mirostat", "samplers", "top-k"));
  // The names stand in a header.
  EXPECT_TRUE(ignored(R"(, "a\r\nb": 1, "": 1, "ü": 1, "a,b": 1)").empty());
  EXPECT_TRUE(ignored(", \"" + std::string(65, 'x') + "\": 1").empty());
  std::string many;
  for (int i = 0; i < 300; ++i) many += ", \"x" + std::to_string(i) + "\": 1";
  EXPECT_EQ(ignored(many).size(), kMaxIgnored);
  EXPECT_EQ(parsed(R"({"prompt": "a", "a,b": 1)" + many + "}").num_unnamed_ignored,
            301 - kMaxIgnored);
}

TEST(ParseCompletion, EchoesWithoutMakingAnything) {
  const CompletionRequest request = parsed(R"({"prompt": "a", "echo": true, "max_tokens": 0,
                                         "logprobs": 2})");
  EXPECT_TRUE(request.echo_only);
  EXPECT_EQ(request.engine_request.sampling.max_tokens, 1);
  EXPECT_EQ(request.engine_request.sampling.prompt_logprobs, 2);
  EXPECT_FALSE(request.return_prompt_logprobs);
  EXPECT_THAT(refusal(R"({"prompt": "a", "max_tokens": 0})"), HasSubstr("max_tokens: "));
}

TEST(ParseCompletion, NamesTheFieldAndTheExpectedValue) {
  EXPECT_EQ(refusal(R"({"prompt": "a", "top_p": 2})"),
            "top_p: [request] top_p; got 2, expected a number in (0, 1]");
  EXPECT_EQ(refusal(R"({"prompt": "a", "n": "2"})"),
            "n: [request] n; got '2', expected an integer in [1, 128]");
  EXPECT_THAT(refusal(R"({"prompt": "a", "n": 129})"), HasSubstr("n: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "max_tokens": 1.5})"), HasSubstr("max_tokens: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "max_tokens": 1e99})"), HasSubstr("max_tokens: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "max_tokens": 99999999999999999999999})"),
              HasSubstr("max_tokens: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "temperature": true})"), HasSubstr("temperature: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stream": "yes"})"), HasSubstr("stream: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stream_options": {"include_usage": 1}})"),
              HasSubstr("stream_options.include_usage: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stop": [1]})"), HasSubstr("stop: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stop": ""})"), HasSubstr("stop: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "logit_bias": {"x": 1}})"), HasSubstr("logit_bias: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "logit_bias": [1]})"), HasSubstr("logit_bias: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "logprobs": 21})"), HasSubstr("logprobs: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "logprobs": true})"), HasSubstr("logprobs: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "allowed_token_ids": [-1]})"),
              HasSubstr("allowed_token_ids: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "seed": 1.5})"), HasSubstr("seed: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "cache_salt": ""})"), HasSubstr("cache_salt: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "model": 1})"), HasSubstr("model: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "min_tokens": 20})"), HasSubstr("min_tokens: "));
}

TEST(ParseCompletion, RefusesUnsupportedFields) {
  EXPECT_THAT(refusal(R"({"prompt": "a", "suffix": "b"})"), HasSubstr("suffix: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "n": 2, "best_of": 3})"), HasSubstr("best_of: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "use_beam_search": true})"),
              HasSubstr("use_beam_search: "));
  EXPECT_EQ(refusal(R"({"prompt": "a", "use_beam_search": false})"), "accepted");
  EXPECT_THAT(refusal(R"({"prompt": "a", "length_penalty": 1.2})"), HasSubstr("length_penalty: "));
  EXPECT_EQ(refusal(R"({"prompt": "a", "length_penalty": 1.0})"), "accepted");
  EXPECT_THAT(refusal(R"({"prompt": "a", "stream_options": {}})"), HasSubstr("stream_options: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "stream": false, "stream_options": {}})"),
              HasSubstr("stream_options: "));
  EXPECT_EQ(refusal(R"({"prompt": "a", "stream_options": {}, "stream": true})"), "accepted");
  EXPECT_THAT(refusal(R"({"prompt": "a", "prompt_embeds": "x"})"), HasSubstr("prompt_embeds: "));
  EXPECT_THAT(refusal(R"({"prompt": "a", "truncate_prompt_tokens": 5})"),
              HasSubstr("truncate_prompt_tokens: "));
}

TEST(ParseCompletion, BoundsAHostileBody) {
  const auto list = [](size_t num, std::string_view item) {
    std::string text = "[";
    for (size_t i = 0; i < num; ++i) text += (i > 0 ? "," : "") + std::string(item);
    return text + "]";
  };
  const auto with = [](std::string_view field, const std::string& value) {
    return "{\"prompt\": \"a\", \"" + std::string(field) + "\": " + value + "}";
  };
  EXPECT_EQ(refusal(with("stop", list(16, "\"a\""))), "accepted");
  EXPECT_THAT(refusal(with("stop", list(17, "\"a\""))), HasSubstr("stop: "));
  EXPECT_THAT(refusal(with("stop", "\"" + std::string(5000, 'a') + "\"")), HasSubstr("stop: "));
  EXPECT_THAT(refusal("{\"prompt\": " + list(1025, "\"a\"") + "}"), HasSubstr("prompt: "));
  std::string biases = "{";
  for (int i = 0; i < 1025; ++i) biases += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\": 1";
  EXPECT_THAT(refusal(with("logit_bias", biases + "}")), HasSubstr("logit_bias: "));
  // Each of many prompts would copy this long list.
  EXPECT_THAT(refusal("{\"prompt\": " + list(1000, "\"a\"") +
                      ", \"allowed_token_ids\": " + list(2000, "1") + "}"),
              HasSubstr("allowed_token_ids: "));
  EXPECT_THAT(refusal(with("x", std::string(70, '[') + std::string(70, ']'))), HasSubstr("64"));
}

TEST(ParseCompletion, RefusesAKeyThatIsThereTwice) {
  const auto refused = [](std::string_view fields) {
    return refusal("{\"prompt\": \"a\", " + std::string(fields) + "}");
  };
  // Without the check, the first value, the last or both would be used.
  EXPECT_EQ(refused(R"("response_format": {"type": "json_object"},
                       "response_format": {"type": "text"})"),
            "response_format: [request] response_format; got it twice, expected it once");
  EXPECT_EQ(refused(R"("logit_bias": {"5": 100, "5": -100})"),
            "logit_bias: [request] logit_bias.5; got it twice, expected it once");
  EXPECT_EQ(refused(R"("top_p": null, "top_p": 0.5)"),
            "top_p: [request] top_p; got it twice, expected it once");
  EXPECT_EQ(
      refused(R"("stream": true, "stream_options": {"include_usage": 1, "include_usage": 0})"),
      "stream_options: [request] stream_options.include_usage; got it twice, expected it once");
  EXPECT_THAT(refused(R"("structured_outputs": {"regex": "a", "regex": "b"})"),
              HasSubstr("[request] structured_outputs.regex; got it twice"));
  EXPECT_THAT(refused(R"("guided_json": {"properties": {"a": {"type": "null", "type": "null"}}})"),
              HasSubstr("[request] guided_json.properties.a.type; got it twice"));
  EXPECT_THAT(refused(R"("nobody": 1, "nobody": 1)"), HasSubstr("[request] nobody; got it twice"));
  // These are different keys for one token.
  for (const char* same : {"05", "005", "-0"}) {
    const std::string biases =
        std::string("\"logit_bias\": {\"5\": 1, \"0\": 1, \"") + same + "\": 1}";
    EXPECT_THAT(refused(biases), HasSubstr("logit_bias; got token id")) << same;
  }
  for (const char* other : {" 5", "+5", "5 ", "0x5", "5.0"}) {
    const std::string biases = std::string("\"logit_bias\": {\"5\": 1, \"") + other + "\": 1}";
    EXPECT_THAT(refused(biases), HasSubstr("token ids as the keys")) << other;
  }
  EXPECT_THAT(refused(R"("logit_bias": {"5": 1, "7": "x"})"),
              HasSubstr("expected for token id 7 a number in [-100, 100]"));
}

TEST(ParseCompletion, NamesThePlaceWhereABodyIsNotJson) {
  EXPECT_THAT(refusal(""), HasSubstr("the body is empty; expected a JSON object"));
  EXPECT_THAT(refusal("{\"prompt\":\n  \"a\" \"b\"}"), HasSubstr("line 2, column 7 (byte 17)"));
  EXPECT_THAT(refusal("{\"prompt\": \"a\xff\"}"), HasSubstr("invalid UTF-8 at line 1, column 14"));
  for (const char* text : {R"(\ud83d)", R"(\ude00\ud83d)", R"(\udfffx)", R"(\ud83d\n)"}) {
    EXPECT_THAT(refusal(R"({"prompt": "\\ud83d\ud83d\ude00)" + std::string(text) + "\"}"),
                HasSubstr("half of a surrogate pair at line 1, column 32"))
        << text;
  }
  EXPECT_THAT(refusal("{\"prompt\": \"a\"} x"), HasSubstr("text after the object"));
  EXPECT_THAT(refusal("{\"prompt\": \"a\""), HasSubstr("does not end"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("a list of 1, expected a JSON object"));
}

TEST(ParseCompletion, NamesANumberThatIsOutOfRange) {
  EXPECT_THAT(refusal("{\"prompt\": \"\\\" 1e999\",\n \"top_p\": 1e999}"),
              HasSubstr("body; the number 1e999 is out of range at line 2, column 11 (byte 33), "
                        "expected numbers of magnitude 1.79e308 at most"));
  EXPECT_THAT(refusal(R"({"logit_bias": {"1": -2.5E+400}})"),
              HasSubstr("the number -2.5E+400 is out of range at line 1, column 22"));
  EXPECT_THAT(refusal(R"({"prompt": [1, )" + std::string(400, '7') + "]}"),
              HasSubstr("7… is out of range at line 1, column 16 (byte 15)"));
  // Simdjson takes these, so that their fields are checked.
  EXPECT_THAT(refusal(R"({"prompt": "a", "top_p": 1e308})"), HasSubstr("top_p; got 1"));
  EXPECT_EQ(parsed(R"({"prompt": "a", "temperature": 1e-999})").engine_request.sampling.temperature,
            0.0F);
}

TEST(ParseCompletion, TakesStructuredOutputs) {
  const auto restriction = [](std::string_view fields) {
    return parsed("{\"prompt\": \"a\", " + std::string(fields) + "}").restriction;
  };
  const auto grammar = [&](std::string_view fields) { return restriction(fields).value().grammar; };
  EXPECT_FALSE(restriction(R"("response_format": {"type": "text"})"));
  EXPECT_FALSE(restriction(R"("structured_outputs": {"json_object": false})"));
  EXPECT_EQ(restriction(R"("structured_outputs": {"regex": "a"})")->field,
            "structured_outputs.regex");
  EXPECT_EQ(grammar(R"("response_format": {"type": "json_object"})").kind, Kind::kJsonObject);
  const auto schema = grammar(R"("response_format": {"type": "json_schema", "json_schema":
      {"name": "x", "strict": true, "schema": {"type": "object"}}})");
  EXPECT_EQ(schema.kind, Kind::kJsonSchema);
  EXPECT_EQ(schema.text, R"({"type":"object"})");
  EXPECT_EQ(grammar(R"("structured_outputs": {"json": "{\"type\": \"object\"}"})").text,
            R"({"type": "object"})");
  const auto choice = grammar(R"("structured_outputs": {"choice": ["a", "b"], "regex": null})");
  EXPECT_EQ(choice.kind, Kind::kChoice);
  EXPECT_THAT(choice.choices, ElementsAre("a", "b"));
  EXPECT_EQ(grammar(R"("structured_outputs": {"json_object": true})").kind, Kind::kJsonObject);
  EXPECT_EQ(grammar(R"("guided_regex": "a+")").kind, Kind::kRegex);
  EXPECT_EQ(grammar(R"("guided_grammar": "root ::= 'a'")").text, "root ::= 'a'");
  EXPECT_EQ(grammar(R"("guided_json": {"type": "null"})").text, R"({"type":"null"})");
  EXPECT_THAT(grammar(R"("guided_choice": ["a"])").choices, ElementsAre("a"));

  const auto refused = [](std::string_view fields) {
    return refusal("{\"prompt\": \"a\", " + std::string(fields) + "}");
  };
  EXPECT_THAT(refused(R"("response_format": {"type": "xml"})"),
              HasSubstr("response_format.type: "));
  EXPECT_THAT(refused(R"("response_format": {})"), HasSubstr("response_format.type: "));
  EXPECT_THAT(refused(R"("response_format": {"type": "json_schema", "json_schema": {}})"),
              HasSubstr("response_format.json_schema.schema: "));
  EXPECT_THAT(refused(R"("structured_outputs": {"json": [1]})"),
              HasSubstr("structured_outputs.json: "));
  EXPECT_THAT(refused(R"("structured_outputs": {"json": {}, "regex": "a"})"),
              HasSubstr("a second restriction"));
  EXPECT_THAT(refused(R"("guided_regex": "a", "response_format": {"type": "json_object"})"),
              HasSubstr("a second restriction"));
  EXPECT_THAT(refused(R"("guided_choice": 1)"), HasSubstr("guided_choice: "));
  EXPECT_THAT(refused(R"("structured_outputs": {"structural_tag": "x"})"),
              HasSubstr("structured_outputs.structural_tag: "));
  EXPECT_THAT(refused(R"("structured_outputs": {"jsn": {}})"),
              HasSubstr("structured_outputs: [request] structured_outputs; got an unknown "
                        "member 'jsn', expected json, regex, choice, grammar or json_object"));
  EXPECT_THAT(refused(R"("structured_outputs": {"json": {}, "whitespace_pattern": " *"})"),
              HasSubstr("structured_outputs.whitespace_pattern: "));
  EXPECT_THAT(refused(R"("structured_outputs": {"json": {}, "disable_any_whitespace": true})"),
              HasSubstr("structured_outputs.disable_any_whitespace: "));
  EXPECT_EQ(refused(R"("structured_outputs": {"json": {}, "disable_any_whitespace": false,
                                              "disable_fallback": true})"),
            "accepted");
  EXPECT_THAT(refused(R"("guided_whitespace_pattern": " *")"),
              HasSubstr("guided_whitespace_pattern: "));
  EXPECT_EQ(refused(R"("guided_decoding_backend": "xgrammar")"), "accepted");
  EXPECT_THAT(refused("\"guided_regex\": \"" + std::string(300'000, 'a') + "\""),
              HasSubstr("guided_regex: "));
}

TEST(ParseCompletion, TakesTheRestrictionsOfOtherServers) {
  const auto restriction = [](std::string_view fields) {
    return parsed("{\"prompt\": \"a\", " + std::string(fields) + "}").restriction;
  };
  const auto expect = [&](std::string_view fields, std::string_view field, Kind kind,
                          std::string_view text) {
    const auto read = restriction(fields);
    ASSERT_TRUE(read) << fields;
    EXPECT_EQ(read->field, field);
    EXPECT_EQ(read->grammar.kind, kind) << fields;
    EXPECT_EQ(read->grammar.text, text);
  };
  // llama.cpp, Together and SGLang.
  expect(R"("response_format": {"type": "json_object", "schema": {"type": "null"}})",
         "response_format.schema", Kind::kJsonSchema, R"({"type":"null"})");
  expect(R"("response_format": {"type": "json_schema", "schema": {"type": "null"}})",
         "response_format.schema", Kind::kJsonSchema, R"({"type":"null"})");
  expect(R"("response_format": {"type": "json_object", "schema": null})", "response_format",
         Kind::kJsonObject, "");
  expect(R"("json_schema": {"type": "null"})", "json_schema", Kind::kJsonSchema,
         R"({"type":"null"})");
  expect(R"("json_schema": "{}")", "json_schema", Kind::kJsonSchema, "{}");
  expect(R"("grammar": "root ::= .")", "grammar", Kind::kGbnf, "root ::= .");
  expect(R"("regex": "a+")", "regex", Kind::kRegex, "a+");
  expect(R"("ebnf": "root ::= \"a\"")", "ebnf", Kind::kGrammar, "root ::= \"a\"");
  expect(R"("guided_json_object": true)", "guided_json_object", Kind::kJsonObject, "");
  EXPECT_FALSE(restriction(R"("grammar": "", "grammar_lazy": false, "regex": null)"));

  const auto refused = [](std::string_view fields, std::string_view reason) {
    EXPECT_THAT(refusal("{\"prompt\": \"a\", " + std::string(fields) + "}"), HasSubstr(reason));
  };
  refused(R"("grammar": "root ::= .", "regex": "a")", "a second restriction");
  refused(R"("json_schema": {}, "response_format": {"type": "json_object"})", "expected one of");
  refused(R"("response_format": {"type": "json_object", "schema": {}}, "ebnf": "x")",
          "a second restriction");
  refused(R"("grammar": {"type": "json", "value": {}})",
          "grammar; got an object, expected a string");
  refused(R"("grammar": "x", "grammar_lazy": true)", "grammar_lazy; got true, expected false");
  refused(R"("structural_tag": {})", "structural_tag; got an object, expected no such field");
  refused(R"("response_format": {"type": "json_object", "json_schema": {"schema": {}}})",
          "response_format.json_schema; got it beside the type 'json_object', expected the type "
          "'json_schema'");
  refused(R"("response_format": {"type": "text", "schema": {}})",
          "response_format.schema; got it beside the type 'text'");
  refused(R"("response_format": {"type": "json_schema", "schema": {}, "json_schema": {}})",
          "got it beside schema, expected one of the two");
}

TEST(ApiError, HasOpenAIsForm) {
  EXPECT_EQ(error_body(make_api_error(404, "no \"x\"", "model", "model_not_found")),
            R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"model",)"
            R"("code":"model_not_found"}})");
  const ApiError sampling = api_error(invalid_argument("[sampling] top_p; got 2, expected 1"));
  EXPECT_EQ(sampling.http_status, 400);
  EXPECT_EQ(sampling.param, "top_p");
  EXPECT_EQ(api_error(resource_exhausted("full")).http_status, 429);
  EXPECT_EQ(api_error(resource_exhausted("full")).type, "rate_limit_error");
  EXPECT_EQ(api_error(unavailable("draining")).http_status, 503);
  EXPECT_EQ(api_error(unimplemented("x")).http_status, 400);
  EXPECT_THAT(api_error(internal_error("/secret/path")).message,
              ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(error_body(make_api_error(401, "m")),
            R"({"error":{"message":"m","type":"authentication_error","param":null,"code":null}})");
}

}  // namespace
}  // namespace quire::server
