#include "cli/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/gsm8k.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/sampling_flags.h"
#include "engine/engine_internals.h"
#include "engine/sampling_defaults.h"

namespace quire::cli {
namespace {

// The default limit without a chat template; in a chat template, a reply may take the rest of the
// context.
constexpr int kDefaultMaxTokens = 256;
// The prompt of a run without arguments, which demonstrates the embedded model.
constexpr const char* kExampleProblem =
    "Maya has 3 bags with 24 marbles in each. She puts 12 aside. 5 children share the others "
    "equally. How many does every child get?";

struct GenerateOptions {
  EngineConfig engine;
  SamplingFlags sampling{
      fmt::format("the rest of the context in a chat template, else {}", kDefaultMaxTokens)};
  std::vector<std::string> prompts;
  std::vector<std::vector<int32_t>> prompt_ids;
  std::string input;
  std::string message;  // the words of the command line, or the text on standard input
  std::optional<std::string> first_word;  // of the command line
  bool has_other_words = false;
  std::string format = "text";
  bool chat = false;

  bool has_prompt() const {
    return !prompts.empty() || !prompt_ids.empty() || !input.empty() || !message.empty();
  }
};

// Stores a word of the command line. The first word is the model if it names one; all other words
// are the message.
Status take_word(std::string_view word, GenerateOptions& options) {
  const bool is_first = !options.first_word;
  if (is_first) options.first_word = word;
  if (is_first && names_model(word)) return set_model(word, &options.engine);
  QUIRE_RETURN_IF_ERROR(parse_text(word).status());
  if (!is_first) options.has_other_words = true;
  if (!options.message.empty()) options.message += ' ';
  options.message += word;
  return {};
}

// Reads the message from standard input, if standard input is a pipe or a file.
Status read_message(GenerateOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                         read_piped_text("quire generate", "message"));
  if (text) options.message = trimmed(*text);
  return {};
}

void write_position(JsonWriter& json, const PositionLogprobs& position, const DecodeToken& decode) {
  if (position.empty()) return json.null();
  json.begin_array();
  for (const TokenLogprob& token : position) {
    json.begin_object();
    json.field("token_id", token.token_id);
    json.field("logprob", double{token.logprob});
    json.field("rank", token.rank);
    json.field("decoded_token", decode(token.token_id));
    json.end_object();
  }
  json.end_array();
}

void write_logprobs(JsonWriter& json, std::string_view name,
                    const std::vector<PositionLogprobs>& positions, const DecodeToken& decode) {
  if (positions.empty()) return;
  json.key(name);
  json.begin_array();
  for (const PositionLogprobs& position : positions) write_position(json, position, decode);
  json.end_array();
}

std::string sample_line(size_t prompt_idx, const RequestResult& result, size_t idx,
                        const DecodeToken& decode) {
  const SampleResult& sample = result.samples[idx];
  JsonWriter json;
  json.begin_object();
  json.field("index", prompt_idx);
  if (result.samples.size() > 1) json.field("sample_index", idx);
  json.key("prompt_token_ids");
  json.ids(result.prompt_token_ids);
  json.key("token_ids");
  json.ids(sample.token_ids);
  json.field("text", sample.text);
  json.key("finish_reason");
  if (sample.finish_reason) {
    json.value(finish_reason_name(*sample.finish_reason));
  } else {
    json.null();
  }
  if (!sample.error.ok()) json.field("error", sample.error.message());
  if (!sample.stop_reason.empty()) json.field("stop_reason", sample.stop_reason);
  write_logprobs(json, "logprobs", sample.logprobs, decode);
  write_logprobs(json, "prompt_logprobs", result.prompt_logprobs, decode);
  json.end_object();
  return json.text() + "\n";
}

// Prefixes an error with the file and line of its prompt.
Status with_source(const Prompt& prompt, const Status& error) {
  if (error.ok() || prompt.source.empty()) return error;
  return {error.code(), fmt::format("[input] {}: {}", prompt.source, error.message())};
}

// Prints the outputs in the order of the prompts. A finished output waits until all earlier ones
// are printed.
class Printer {
 public:
  Printer(const Engine& engine, const GenerateOptions& options, const std::vector<Prompt>& prompts)
      : engine_(engine),
        prompts_(prompts),
        is_json_(options.format == "json"),
        pending_(prompts.size()) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (prompts[i].error.ok()) {
        prompt_of_request_.push_back(i);
      } else {
        report_error(i, prompts[i].error);
      }
    }
    // Sorts by priority here, because the engine orders only the requests that it has, and the
    // others are submitted later (RunOptions::max_in_flight).
    std::stable_sort(prompt_of_request_.begin(), prompt_of_request_.end(), [&](size_t a, size_t b) {
      return prompts[a].request.priority < prompts[b].request.priority;
    });
    const bool one_sample =
        prompts.size() == 1 && prompts[0].error.ok() && prompts[0].request.sampling.n == 1;
    streams_ = one_sample && !is_json_;
  }

  bool on_output(const Output& output) {
    if (!streams_ || output.text.empty()) return can_print_;
    has_text_ = true;
    ends_with_newline_ = output.text.ends_with('\n');
    return can_print_ = write_stdout(shown(output.text));
  }

  void on_done(size_t request_idx, const RequestResult& result) {
    const size_t prompt_idx = prompt_of_request_[request_idx];
    if (!result.error.ok())
      return report_error(prompt_idx, with_source(prompts_[prompt_idx], result.error));
    const bool has_failed = report_samples(prompt_idx, result.samples);
    if (is_json_) return print(prompt_idx, json_text(prompt_idx, result));
    if (!streams_) return print(prompt_idx, plain_text(prompt_idx, result));
    if (has_text_ && !ends_with_newline_) print(prompt_idx, "\n");
    if (!has_text_ && !has_failed && !result.was_cancelled()) {
      report_empty_text(prompts_[prompt_idx]);
    }
  }

  // The indices of the prompts in the order of submission.
  const std::vector<size_t>& prompt_of_request() const { return prompt_of_request_; }
  bool can_print() const { return can_print_; }
  size_t num_failed() const { return num_failed_; }

 private:
  void report_error(size_t prompt_idx, const Status& error) {
    const bool was_run = error.code() != StatusCode::kCancelled;  // run() reports the interrupt
    if (was_run) ++num_failed_;
    if (is_json_) return print(prompt_idx, error_line(prompt_idx, error));
    if (was_run) {
      print_stderr("quire generate: prompt {}: {}\n", prompt_idx, one_line(engine_message(error)));
    }
    print(prompt_idx, "");
  }

  // Counts the request as failed if a sample failed, and returns whether one did. Prints the errors
  // for text; JSON lines contain them.
  bool report_samples(size_t prompt_idx, const std::vector<SampleResult>& samples) {
    bool any_failed = false;
    for (size_t i = 0; i < samples.size(); ++i) {
      const Status& error = samples[i].error;
      if (error.ok()) continue;
      any_failed = true;
      if (is_json_) continue;
      print_stderr("quire generate: prompt {}, sample {}: {}\n", prompt_idx, i,
                   one_line(engine_message(error)));
    }
    num_failed_ += any_failed ? 1 : 0;
    return any_failed;
  }

  void report_empty_text(const Prompt& prompt) const {
    const bool may_chat = !prompt.in_template && !engine_.chat_template().empty();
    print_stderr("quire generate: the text is empty: the model ended it at once{}\n",
                 may_chat ? "; --chat puts the prompt into the model's chat template" : "");
  }

  std::string json_text(size_t prompt_idx, const RequestResult& result) const {
    return result_lines(prompt_idx, result,
                        [&](int32_t id) { return engine_.decode({id}, false); });
  }

  std::string plain_text(size_t prompt_idx, const RequestResult& result) const {
    std::string text;
    for (size_t i = 0; i < result.samples.size(); ++i) {
      const bool is_only = result.samples.size() == 1;
      text += fmt::format("==> prompt {}{} <==\n", prompt_idx,
                          is_only ? "" : fmt::format(", sample {}", i));
      text += shown(result.samples[i].text);
      if (!text.ends_with('\n')) text += '\n';
    }
    return text;
  }

  void print(size_t prompt_idx, std::string text) {
    pending_[prompt_idx] = std::move(text);
    for (; next_ < pending_.size() && pending_[next_]; ++next_) {
      can_print_ = write_stdout(*pending_[next_]) && can_print_;
      pending_[next_].reset();
    }
  }

  const Engine& engine_;
  const std::vector<Prompt>& prompts_;
  const bool is_json_;
  std::vector<std::optional<std::string>> pending_;
  std::vector<size_t> prompt_of_request_;
  size_t next_ = 0;
  bool streams_ = false;
  bool has_text_ = false;
  bool ends_with_newline_ = false;
  bool can_print_ = true;
  size_t num_failed_ = 0;
};

constexpr std::string_view kLogprobsNeedJson =
    "--logprobs and --prompt-logprobs need --format json";

// Checks the request against the engine and the output format, and applies the chat template.
Status prepare(const Engine& engine, const GenerateOptions& options, Prompt& prompt) {
  Request& request = prompt.request;
  const bool is_text = request.prompt_token_ids.empty();
  if (options.format != "json" && asks_for_logprobs(request.sampling)) {
    return invalid_argument(std::string(kLogprobsNeedJson));
  }
  const bool has_tokenizer = engine.encode("", false).ok();
  if (is_text && !has_tokenizer) {
    return invalid_argument(
        "the model has no tokenizer; expected --prompt-ids 1,2,3, or prompt_token_ids in --input");
  }
  if (!prompt.in_template) return {};
  if (!is_text) {
    return invalid_argument(
        "--chat and prompt_token_ids do not go together: a template takes text");
  }
  QUIRE_ASSIGN_OR_RETURN(request.prompt_token_ids, engine.encode_chat({{"user", request.prompt}}));
  request.prompt.clear();
  return {};
}

void show_example(const GenerateOptions& options, Request& request) {
  request.prompt = bench::question_prompt({.question = kExampleProblem, .answer = ""});
  request.sampling.temperature = 0.0F;
  request.sampling.max_tokens = kDefaultMaxTokens;
  request.sampling.stop = bench::gsm8k_stops();
  request.sampling = options.sampling.applied_to(request.sampling);
  print_stderr("No prompt given, so here is a word problem for the embedded model.\n\n{}",
               request.prompt);
}

// Returns a request with the sampling values and without a prompt.
Request default_request(const Engine& engine, const GenerateOptions& options, bool in_template) {
  SamplingDefaults defaults =
      engine.sampling_defaults(in_template ? SamplingFallback::kChat : SamplingFallback::kNone);
  defaults.params.max_tokens = in_template ? engine.model_info().max_model_len : kDefaultMaxTokens;
  defaults = options.sampling.applied_to(std::move(defaults));
  log_info("[generate] sampling {}: {}", in_template ? "in the chat template" : "of texts",
           describe(defaults));
  Request request;
  request.sampling = std::move(defaults.params);
  return request;
}

std::vector<Prompt> collect_prompts(const Engine& engine, const GenerateOptions& options,
                                    const std::string& input) {
  std::vector<Prompt> prompts;
  if (!options.message.empty()) {
    // Without a chat template, the model continues the text.
    const bool in_template = options.chat || !engine.chat_template().empty();
    Request request = default_request(engine, options, in_template);
    request.prompt = options.message;
    prompts.push_back({.request = std::move(request), .in_template = in_template});
  }
  if (!options.prompts.empty() || !options.prompt_ids.empty() || !options.input.empty()) {
    const Request defaults = default_request(engine, options, options.chat);
    for (const std::string& text : options.prompts) {
      Request request = defaults;
      request.prompt = text;
      prompts.push_back({.request = std::move(request), .in_template = options.chat});
    }
    for (const std::vector<int32_t>& ids : options.prompt_ids) {
      Request request = defaults;
      request.prompt_token_ids = ids;
      prompts.push_back({.request = std::move(request)});
    }
    for (Prompt& prompt : prompts_from_lines(input, options.input, defaults)) {
      prompt.in_template = options.chat;
      prompts.push_back(std::move(prompt));
    }
  }
  if (!options.has_prompt()) {
    Request request;
    show_example(options, request);
    prompts.push_back({.request = std::move(request)});
  }
  for (Prompt& prompt : prompts) {
    if (!prompt.error.ok()) continue;
    prompt.error = with_source(prompt, prepare(engine, options, prompt));
  }
  return prompts;
}

// The totals for the summary line.
struct Stats {
  using Clock = std::chrono::steady_clock;

  Clock::time_point start = Clock::now();
  Clock::time_point first_token = Clock::time_point::max();
  size_t num_prompt = 0;
  size_t num_output = 0;
  size_t num_samples = 0;
  size_t num_cut = 0;            // ended by max_tokens or the context
  size_t num_tokens_of_cut = 0;  // prompt and output of the last of these samples

  void add(const RequestResult& result) {
    num_prompt += result.prompt_token_ids.size();
    num_output += static_cast<size_t>(result.num_output_tokens());
    for (const SampleResult& sample : result.samples) {
      ++num_samples;
      if (sample.finish_reason == FinishReason::kLength) {
        ++num_cut;
        num_tokens_of_cut = result.prompt_token_ids.size() + sample.token_ids.size();
      }
      if (!sample.token_ids.empty()) first_token = std::min(first_token, sample.first_token_time);
    }
  }

  // Returns why outputs are incomplete; empty: all are complete.
  std::string describe_cut(int max_model_len) const {
    if (num_cut == 0) return "";
    if (num_samples > 1) {
      return fmt::format(" ({} of {} ended at --max-tokens or the context's end)", num_cut,
                         num_samples);
    }
    if (num_tokens_of_cut >= static_cast<size_t>(max_model_len)) {
      return fmt::format(" (ended at the context's end, {})", max_model_len);
    }
    return " (ended at --max-tokens)";
  }

  void print(int max_model_len) const {
    if (num_output == 0) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double first_ms = std::chrono::duration<double, std::milli>(first_token - start).count();
    print_stderr(
        "\n{} prompt tokens, {} output tokens in {:.2f} s: {:.1f} tokens/s, first token after "
        "{:.1f} ms{}\n",
        num_prompt, num_output, seconds, static_cast<double>(num_output) / seconds, first_ms,
        describe_cut(max_model_len));
  }
};

// Returns the exit code. With JSON, the errors of prompts are only in their output lines, so the
// number of failed prompts is an error of its own.
Result<int> outcome(const GenerateOptions& options, const Printer& printer, size_t num_prompts) {
  if (!printer.can_print()) return kExitFailure;
  if (printer.num_failed() == 0) return kExitOk;
  if (options.format != "json") return kExitFailure;
  return invalid_argument(
      fmt::format("[generate] {} of {} prompts failed; their output lines have the errors",
                  printer.num_failed(), num_prompts));
}

// Reports text on standard input that the command does not read because it has a message. Reading
// this text too would take the input of a shell's loop, which its commands inherit, and would wait
// for a pipe that stays open.
void report_unread_input(const GenerateOptions& options) {
  if (options.message.empty() || !has_unread_input()) return;
  print_stderr(
      "quire generate: standard input is not read, because the command line has a message; (echo "
      "MESSAGE; cat FILE) | quire generate MODEL sends both\n");
}

// Reads the message from standard input if there is no other prompt, and returns the text of the
// --input file. Fails for a model without a prompt, before the model is loaded.
Result<std::string> read_prompts(GenerateOptions& options) {
  if (!options.has_prompt()) QUIRE_RETURN_IF_ERROR(read_message(options));
  if (!options.has_prompt() && !options.engine.model.empty()) {
    return invalid_argument(fmt::format(
        "[input] got the model {} and no prompt; expected quire generate MODEL PROMPT, a text on "
        "standard input, --prompt, --prompt-ids or --input",
        clipped(options.engine.model)));
  }
  if (options.input.empty()) return std::string();
  QUIRE_ASSIGN_OR_RETURN(std::string input, read_input(options.input));
  if (!split_lines(input).empty()) return input;
  return invalid_argument(
      fmt::format("[input] {} is empty; expected one request per line", input_name(options.input)));
}

Result<int> run(GenerateOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(std::string input, read_prompts(options));
  // Without a prompt, the embedded model solves the example.
  if (options.has_prompt()) use_default_model(&options.engine.model);
  QUIRE_RETURN_IF_ERROR(pull_missing_model(options.engine));
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(options.engine));
  report_unread_input(options);
  // A message is put into the template if the model has one, even one that cannot be used.
  const bool has_fault = !EngineInternals::template_fault(*engine).ok();
  if (options.chat || (has_fault && !options.message.empty())) {
    QUIRE_RETURN_IF_ERROR(check_chat_template(*engine));
  }
  std::vector<Prompt> prompts = collect_prompts(*engine, options, input);
  input = std::string();  // frees the input, which may be large
  const CancelScope scope;
  Printer printer(*engine, options, prompts);
  std::vector<Request> requests;
  for (const size_t idx : printer.prompt_of_request()) {
    requests.push_back(std::move(prompts[idx].request));
  }
  const size_t total = requests.size();
  Progress progress("generating");
  size_t num_done = 0;
  size_t num_tokens = 0;
  const std::function<std::string()> note = [&] { return fmt::format("{} tokens", num_tokens); };
  Stats stats;
  const RunOptions run_options = {
      // Enough requests to fill every step while the next ones are tokenized.
      .max_in_flight = 2 * static_cast<size_t>(engine->model_info().max_num_running()),
      .frees_done = true,
      .on_output =
          [&](size_t, const Output& output) {
            num_tokens += output.token_ids.size();
            if (total > 1) progress.update(num_done, total, note);
            return printer.on_output(output);
          },
      .on_done =
          [&](size_t request_idx, const RequestResult& result) {
            printer.on_done(request_idx, result);
            stats.add(result);
            if (!result.was_cancelled()) ++num_done;
          },
      .interrupted = CancelScope::interrupted};
  run_requests(engine_port(*engine), std::move(requests), run_options);
  stats.print(engine->model_info().max_model_len);
  if (CancelScope::interrupted()) {
    return cancelled(fmt::format("[generate] interrupted after {} of {} prompts", num_done, total));
  }
  return outcome(options, printer, prompts.size());
}

void check(const GenerateOptions& options, Complaints& complaints) {
  if (options.chat && !options.prompt_ids.empty()) {
    complaints.add("--chat and --prompt-ids do not go together: a template takes text");
  }
  const bool has_plain_prompts = !options.prompts.empty() || !options.input.empty();
  // Without this check, a misspelt model would become a part of the message to another model.
  const bool has_other_text =
      options.has_other_words || has_plain_prompts || !options.prompt_ids.empty();
  if (options.engine.model.empty() && options.first_word && has_other_text) {
    complaints.add(check_first_word(*options.first_word, "a message"));
  }
  const bool has_no_messages = !options.chat && has_plain_prompts && options.message.empty();
  if (has_no_messages && !options.engine.chat_template.empty()) {
    complaints.add("--chat-template needs --chat, which puts prompts into it");
  }
  if (has_no_messages && options.engine.allow_special_tokens_in_messages) {
    complaints.add(
        "--allow-special-tokens-in-messages needs --chat: other prompts may hold them anyway");
  }
  if (options.format != "json" &&
      asks_for_logprobs(options.sampling.applied_to(SamplingParams()))) {
    complaints.add(std::string(kLogprobsNeedJson));
  }
}

std::string input_details() {
  std::vector<std::string_view> names;
  for (const SamplingField& field : sampling_fields()) names.push_back(field.name);
  return fmt::format(
      "Each line of --input is a JSON object: prompt (text) or prompt_token_ids (a list), and\n"
      "optionally priority, cache_salt, add_special_tokens and any sampling flag as a field,\n"
      "which overrides the flag: {}.\n"
      "Each line of --format json is an object too: index (of the prompt, from 0), sample_index\n"
      "(with n > 1), prompt_token_ids, token_ids, text, finish_reason, stop_reason, logprobs,\n"
      "prompt_logprobs; or index and error.\n",
      fmt::join(names, ", "));
}

}  // namespace

std::string result_lines(size_t prompt_idx, const RequestResult& result,
                         const DecodeToken& decode) {
  std::string lines;
  for (size_t i = 0; i < result.samples.size(); ++i) {
    lines += sample_line(prompt_idx, result, i, decode);
  }
  return lines;
}

std::string error_line(size_t prompt_idx, const Status& error) {
  JsonWriter json;
  json.begin_object();
  json.field("index", prompt_idx);
  json.field("error", error.message());
  json.end_object();
  return json.text() + "\n";
}

Command generate_command() {
  const auto options = std::make_shared<GenerateOptions>();
  Command command;
  command.name = "generate";
  command.summary = "Complete prompts, streamed or as JSON lines";
  command.example =
      "  quire generate smollm2 'What is the capital of France?'\n"
      "  quire generate ~/models/llama-instruct < question.txt\n"
      "  quire generate ~/models/llama --input prompts.jsonl --format json > answers.jsonl";
  command.details = input_details();
  FlagSet& flags = command.flags;
  flags.begin_group("Prompts");
  flags.texts("--prompt", "TEXT", &options->prompts, "A prompt; may be repeated");
  flags.add({.name = "--prompt-ids",
             .value_name = "1,2,3",
             .help = "A prompt as token ids; may be repeated",
             .repeatable = true,
             .set = [options](std::string_view value) -> Status {
               QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, parse_ids(value));
               options->prompt_ids.push_back(std::move(ids));
               return {};
             }});
  flags.file("--input", &options->input,
             "JSON lines: prompt or prompt_token_ids, and sampling fields; - is standard input");
  flags.toggle("--chat", &options->chat, "Put each prompt into the model's chat template");
  add_chat_flags(flags, &options->engine);
  flags.choice("--format", {"text", "json"}, &options->format, "Output format");
  options->sampling.add_to(flags);
  add_setting(flags, &options->engine, "generation_config");
  add_engine_flags(flags, &options->engine, SeedFlag::kOfCommand);
  command.positional = {
      .name = "MODEL MESSAGE",
      .help = fmt::format(
          "The first of several words is the model, as --model. All others are one message, put "
          "into the model's chat template if it has one. A single word is a model if it is an "
          "existing path, begins with /, ./, ../ or ~/, ends in .gguf, reads ORG/NAME or "
          "ORG/NAME:TAG, or names a model that quire list shows. Without a prompt, the message is "
          "read from a pipe on standard input. {}",
          kPullsMissingModel),
      .kind = ValueKind::kDirectory,
      .max_words = Positional::kAnyNumber,
      .set = [options](std::string_view word) { return take_word(word, *options); }};
  command.check = [options](Complaints& complaints) { check(*options, complaints); };
  command.log->level = "warning";  // keeps info messages out of the output
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
