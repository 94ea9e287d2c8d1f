#include "bench/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "base/json_writer.h"
#include "base/numbers.h"
#include "base/text.h"
#include "base/text_input.h"
#include "engine/engine_internals.h"
#include "engine/run_requests.h"

namespace quire::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDefaultContext = 512;  // as in llama.cpp

size_t first_invalid_byte(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const Utf8Char c = decode_utf8(text.substr(offset));
    if (!c.valid) break;
    offset += static_cast<size_t>(c.num_bytes);
  }
  return offset;
}

// The index of the first token of the text that has a token before it; a BOS counts as one.
size_t first_scored_token(bool has_bos) {
  return has_bos ? 0 : 1;
}

// The model reads the window without its last token, and then generates that token, because the
// request allows no other. The restriction does not change log probabilities, so the log
// probabilities of prompt and output together are the window's. A window may therefore be as long
// as max_model_len.
Request make_request(const TokenizedText& text, const Window& window) {
  const auto ids = std::span(text.ids).subspan(window.begin, window.end - window.begin);
  Request request;
  if (text.bos) request.prompt_token_ids.push_back(*text.bos);
  for (const int32_t id : ids.first(ids.size() - 1)) request.prompt_token_ids.push_back(id);
  request.sampling.temperature = 0.0F;
  request.sampling.max_tokens = 1;
  request.sampling.ignore_eos = true;
  request.sampling.detokenize = false;
  request.sampling.allowed_token_ids = {ids.back()};
  request.sampling.logprobs = 0;
  request.sampling.prompt_logprobs = 0;
  return request;
}

// Stores the window's scores at the indices of their tokens. Fails if the request failed.
Status take_scores(const RequestResult& result, const TokenizedText& text, const Window& window,
                   std::vector<double>& nlls) {
  QUIRE_RETURN_IF_ERROR(result.first_error());
  const SampleResult& output = result.samples.front();
  QUIRE_CHECK(output.logprobs.size() == 1, "[eval] expected one token of output");
  const size_t num_bos = text.bos ? 1 : 0;
  for (size_t token = window.first_scored; token < window.end; ++token) {
    const bool is_output = token + 1 == window.end;
    const TokenLogprob& scored =
        is_output ? output.logprobs[0].front()
                  : result.prompt_logprobs[num_bos + token - window.begin].front();
    QUIRE_CHECK(scored.token_id == text.ids[token], "[eval] the score of another token");
    if (!std::isfinite(scored.logprob)) {
      return internal_error(
          fmt::format("[eval] the log probability of token {} of the text; got {}, expected a "
                      "number: the weights are damaged, or overflow their type",
                      token, scored.logprob));
    }
    nlls[token - first_scored_token(text.bos.has_value())] = -static_cast<double>(scored.logprob);
  }
  return {};
}

int64_t count_bytes(const Engine& engine, std::span<const int32_t> ids) {
  int64_t num_bytes = 0;
  for (const int32_t id : ids) num_bytes += std::ssize(engine.token_bytes(id));
  return num_bytes;
}

Status check_model(const ModelInfo& model) {
  if (model.embedding_size == 0) return {};
  return invalid_argument(
      fmt::format("[eval] {} embeds texts and predicts no tokens; expected a model that generates",
                  model.name));
}

}  // namespace

Status check_stride(int stride, int context) {
  if (stride <= context) return {};
  return invalid_argument(fmt::format(
      "`stride`: got {}, expected 1 to {}, the `context`, so that every token is scored", stride,
      context));
}

Result<WindowSizes> window_sizes(const PerplexityOptions& options, int max_model_len) {
  const int largest = max_model_len - 1;
  const int context = options.context > 0 ? options.context : std::min(kDefaultContext, largest);
  if (context > largest) {
    return invalid_argument(fmt::format(
        "`context`: got {}, expected 1 to {}: the engine's context of {} tokens less the one that "
        "is predicted",
        context, largest, max_model_len));
  }
  const int stride = options.stride > 0 ? options.stride : ceil_div(context, 2);
  QUIRE_RETURN_IF_ERROR(check_stride(stride, context));
  return WindowSizes{context, stride};
}

std::vector<Window> split_windows(size_t num_tokens, const WindowSizes& sizes, bool has_bos) {
  const size_t first = first_scored_token(has_bos);
  // `context` tokens that the model reads, one of which may be a BOS, and the last token, which it
  // only predicts.
  const size_t length = static_cast<size_t>(sizes.context) + first;
  std::vector<Window> windows;
  for (size_t begin = 0, scored = first; scored < num_tokens;
       begin += static_cast<size_t>(sizes.stride)) {
    const size_t end = std::min(begin + length, num_tokens);
    windows.push_back({begin, scored, end});
    scored = end;
  }
  return windows;
}

Result<std::string> load_text(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(std::string text, read_input(path));
  if (text.empty()) {
    return invalid_argument(
        fmt::format("[eval] {} is empty; expected a text", one_line(input_name(path))));
  }
  if (!is_valid_utf8(text)) {
    return invalid_argument(fmt::format(
        "[eval] {} is not valid UTF-8 at byte {}; expected a text in UTF-8, for example from iconv",
        one_line(input_name(path)), first_invalid_byte(text)));
  }
  return text;
}

Result<TokenizedText> tokenize_text(const Engine& engine, std::string_view text,
                                    const PerplexityOptions& options) {
  QUIRE_RETURN_IF_ERROR(check_model(engine.model_info()));
  if (!engine.has_tokenizer()) {
    return invalid_argument("[eval] the model has no tokenizer; give one with `tokenizer`");
  }
  TokenizedText tokens;
  QUIRE_ASSIGN_OR_RETURN(tokens.bos, find_bos(*EngineInternals::tokenizer(engine)));
  QUIRE_ASSIGN_OR_RETURN(tokens.ids, engine.encode(text, false));
  if (tokens.ids.size() < 2) {
    return invalid_argument(fmt::format("[eval] tokens of {}; got {}, expected at least 2",
                                        one_line(input_name(options.data)), tokens.ids.size()));
  }
  tokens.adds_space = engine.token_bytes(tokens.ids.front()).starts_with(' ') &&
                      count_bytes(engine, tokens.ids) == std::ssize(text) + 1;
  if (options.max_tokens > 0) {
    tokens.ids.resize(std::min(tokens.ids.size(), static_cast<size_t>(options.max_tokens)));
  }
  return tokens;
}

double PerplexityResult::mean_nll() const {
  return mean(nlls);
}

double PerplexityResult::nll_error() const {
  return standard_deviation(nlls) / std::sqrt(static_cast<double>(nlls.size()) - 1);
}

double PerplexityResult::perplexity() const {
  return std::exp(mean_nll());
}

double PerplexityResult::perplexity_error() const {
  return perplexity() * nll_error();
}

double PerplexityResult::bits_per_byte() const {
  const double nats = std::accumulate(nlls.begin(), nlls.end(), 0.0);
  return nats / std::numbers::ln2 / static_cast<double>(num_bytes);
}

double PerplexityResult::tokens_per_s() const {
  return static_cast<double>(nlls.size()) / latency_s;
}

Result<PerplexityResult> evaluate_perplexity(Engine& engine, const PerplexityOptions& options,
                                             const TokenizedText& text, const Hooks& hooks) {
  QUIRE_CHECK(text.ids.size() >= 2, "[eval] a text without a token to score");
  const ModelInfo& model = engine.model_info();
  QUIRE_RETURN_IF_ERROR(check_model(model));
  PerplexityResult summary;
  QUIRE_ASSIGN_OR_RETURN(summary.sizes, window_sizes(options, model.max_model_len));
  summary.has_bos = text.bos.has_value();
  const std::vector<Window> windows =
      split_windows(text.ids.size(), summary.sizes, summary.has_bos);
  summary.num_windows = windows.size();
  std::vector<Request> requests;
  for (const Window& window : windows) {
    requests.push_back(make_request(text, window));
    summary.num_read += std::ssize(requests.back().prompt_token_ids);
  }
  const size_t first = first_scored_token(summary.has_bos);
  summary.nlls.resize(text.ids.size() - first);
  size_t num_done = 0;
  Status failure;
  const RunOptions run_options = {
      // Twice the sequences of a step, so that a step never waits for the next submission.
      .max_in_flight = 2 * static_cast<size_t>(model.max_num_running()),
      .frees_done = true,
      .on_done =
          [&](size_t idx, const RequestResult& result) {
            if (!failure.ok() || result.was_cancelled()) return;
            failure = take_scores(result, text, windows[idx], summary.nlls);
            hooks.on_progress(++num_done, windows.size(), [] { return "windows"; });
          },
      .interrupted = [&] { return !failure.ok() || hooks.interrupted(); }};
  const Clock::time_point start = Clock::now();
  run_requests(engine_port(engine), std::move(requests), run_options);
  summary.latency_s = std::chrono::duration<double>(Clock::now() - start).count();
  QUIRE_RETURN_IF_ERROR(failure);
  if (num_done < windows.size()) {
    return cancelled(
        fmt::format("[eval] interrupted after {} of {} windows", num_done, windows.size()));
  }
  summary.num_bytes = count_bytes(engine, std::span(text.ids).subspan(first));
  if (first == 0 && text.adds_space) --summary.num_bytes;
  return summary;
}

std::string to_text(const PerplexityResult& result) {
  return fmt::format(
      "Perplexity: {:.4f} +/- {:.4f}\n"
      "Mean negative log-likelihood: {:.6f} +/- {:.6f} nats per token\n"
      "Bits per byte: {:.6f}\n"
      "Tokens: {} scored ({} bytes), {} read\n"
      "Windows: {} of context {} and stride {}, {} BOS\n"
      "Latency: {:.3f} s\n"
      "Throughput: {:.1f} tokens/s scored\n",
      result.perplexity(), result.perplexity_error(), result.mean_nll(), result.nll_error(),
      result.bits_per_byte(), result.nlls.size(), result.num_bytes, result.num_read,
      result.num_windows, result.sizes.context, result.sizes.stride,
      result.has_bos ? "each after a" : "without a", result.latency_s, result.tokens_per_s());
}

std::string to_json(const PerplexityResult& result, const ModelInfo& model) {
  JsonWriter json;
  json.begin_object();
  json.field("task", "perplexity");
  json.field("perplexity", result.perplexity());
  json.field("perplexity_stderr", result.perplexity_error());
  json.field("mean_nll", result.mean_nll());
  json.field("mean_nll_stderr", result.nll_error());
  json.field("bits_per_byte", result.bits_per_byte());
  json.field("num_scored", result.nlls.size());
  json.field("num_read", result.num_read);
  json.field("num_bytes", result.num_bytes);
  json.field("num_windows", result.num_windows);
  json.field("context", result.sizes.context);
  json.field("stride", result.sizes.stride);
  json.field("has_bos", result.has_bos);
  json.field("weight_dtype", model.weight_dtype);
  json.field("kv_cache_dtype", model.kv_cache_dtype);
  json.field("latency", result.latency_s);
  json.field("throughput", result.tokens_per_s());
  json.end_object();
  return json.text() + "\n";
}

}  // namespace quire::bench
