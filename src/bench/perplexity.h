// The perplexity of a text: how well a model predicts each token from the tokens before it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measurement.h"
#include "quire/engine.h"

namespace quire::bench {

struct PerplexityOptions {
  std::string data = {};  // a text file; "-": standard input
  int context = 0;        // most tokens that the model reads before the one it predicts, with the
                          // BOS; 0: 512, or all that the model has
  int stride = 0;         // tokens from one window to the next; 0: half of the context, rounded up
  int max_tokens = 0;     // of the text, from its start; 0: all
};

struct WindowSizes {
  int context;
  int stride;
};
// Fails if windows of this stride would leave tokens out.
Status check_stride(int stride, int context);
// The sizes after defaults. Fails unless stride <= context < max_model_len.
Result<WindowSizes> window_sizes(const PerplexityOptions& options, int max_model_len);

// A part of the text that the model reads at once. It scores the tokens in [first_scored, end).
struct Window {
  size_t begin;
  size_t first_scored;
  size_t end;

  bool operator==(const Window&) const = default;
};
// Windows begin at multiples of the stride, and each scores the tokens that no earlier window
// scores: at most `context` tokens in the first window and `stride` in each later one. Together
// they score every token that has a token before it: all tokens of the text if each window begins
// with a BOS, otherwise all but the first. The BOS is one of the tokens of the context.
std::vector<Window> split_windows(size_t num_tokens, const WindowSizes& sizes, bool has_bos);

// Reads a text. Fails if it is empty or not valid UTF-8.
Result<std::string> load_text(const std::string& path);

struct TokenizedText {
  std::vector<int32_t> ids;    // without special tokens
  std::optional<int32_t> bos;  // begins each window, if the tokenizer puts it before a text
  // The tokenizer adds a space before the text, so one byte of the first token is not in the text.
  bool adds_space = false;
};
// Fails if the model has no tokenizer, and if the text has fewer than 2 tokens.
Result<TokenizedText> tokenize_text(const Engine& engine, std::string_view text,
                                    const PerplexityOptions& options);

struct PerplexityResult {
  std::vector<double> nlls;  // negative log-likelihoods in nats, in the order of the text
  int64_t num_bytes = 0;     // of the text of the scored tokens
  int64_t num_read = 0;      // tokens that the model read, with tokens that only give context
  size_t num_windows = 0;
  WindowSizes sizes = {};
  bool has_bos = false;
  double latency_s = 0.0;

  double mean_nll() const;
  // The standard error of the mean, as if tokens were independent. NaN for a single token.
  double nll_error() const;
  double perplexity() const;
  double perplexity_error() const;
  double bits_per_byte() const;
  double tokens_per_s() const;  // scored
};

// Fails for an embedding model, if the engine fails, and after an interrupt.
Result<PerplexityResult> evaluate_perplexity(Engine& engine, const PerplexityOptions& options,
                                             const TokenizedText& text, const Hooks& hooks);
std::string to_text(const PerplexityResult& result);
std::string to_json(const PerplexityResult& result, const ModelInfo& model);

}  // namespace quire::bench
