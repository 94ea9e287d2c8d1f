#include "server/openai/answer_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sample/sampler.h"
#include "sample/sampling_fields.h"

namespace quire::server {
namespace {

constexpr size_t kMaxSaltBytes = 1024;

template <auto Member>
FieldError read_flag(GenerationRequest& call, const Path& path, Element value) {
  return read_bool(path, value, call.*Member);
}

}  // namespace

FieldError read_sampling_field(const Path& path, Element value, SamplingParams& params) {
  const SamplingField* field = find_sampling_field(path.name);
  const Status status = set_sampling_field(*field, value, params);
  if (status.ok()) return {};
  std::string_view what = status.message();
  constexpr std::string_view kExpected = "expected ";
  if (what.starts_with(kExpected)) what.remove_prefix(kExpected.size());
  return unexpected(path, value, what);
}

FieldError AnswerFields::read_sampling(const Path& path, Element value) {
  return read_sampling_field(path, value, request_.sampling);
}

// OpenAI's and vLLM's seeds are signed. The bounds are the last integers that a JSON reader with
// numbers as doubles can distinguish from integers beyond 64 bits.
FieldError AnswerFields::read_seed(const Path& path, Element value) {
  constexpr int64_t kLeast = INT64_MIN + 1024;
  constexpr uint64_t kMost = UINT64_MAX - 2047;
  int64_t number = 0;
  uint64_t large = 0;
  double real = 0;
  if (!value.get_int64().get(number) && number >= kLeast) {
    request_.sampling.seed = static_cast<uint64_t>(number);
  } else if (!value.get_uint64().get(large) && large <= kMost) {
    request_.sampling.seed = large;
  } else if (value.type() == simdjson::dom::element_type::DOUBLE && !value.get_double().get(real) &&
             real == std::trunc(real) && real >= static_cast<double>(kLeast) &&
             real <= static_cast<double>(kMost)) {
    // an integer in the form 5.0 or 1e19
    request_.sampling.seed =
        real < 0 ? static_cast<uint64_t>(static_cast<int64_t>(real)) : static_cast<uint64_t>(real);
  } else {
    return unexpected(path, value, fmt::format("an integer from {} to {}", kLeast, kMost));
  }
  return {};
}

FieldError AnswerFields::read_stream_options(const Path& path, Element value) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  for (const auto& [name, option] : fields) {
    if (option.is_null()) continue;
    const Path at(path, name);
    if (name == "include_usage") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(at, option, call_.streaming.include_usage));
    } else if (name == "continuous_usage_stats") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(at, option, call_.streaming.continuous_usage_stats));
    }
  }
  return {};
}

const FieldHandlers<AnswerFields>& AnswerFields::handlers() {
  using F = AnswerFields;
  using P = const Path&;
  using E = Element;
  static const FieldHandlers<AnswerFields> table = [] {
    FieldHandlers<AnswerFields> handlers = {
        {"model", [](F& f, P p, E v) { return read_text(p, v, f.call_.model); }},
        {"n",
         [](F& f, P p, E v) {
           return read_int(p, v, 1, std::min(f.limits_.max_sequences, kMaxSequencesPerPrompt),
                           f.request_.sampling.n);
         }},
        {"best_of",
         [](F& f, P p, E v) { return read_int(p, v, 1, f.limits_.max_sequences, f.best_of_); }},
        {"seed", [](F& f, P p, E v) { return f.read_seed(p, v); }},
        {"stop",
         [](F& f, P p, E v) {
           simdjson::dom::array items;
           if (v.is_array()) {
             const auto most = static_cast<size_t>(f.limits_.max_stops);
             QUIRE_RETURN_IF_FIELD_ERROR(read_list(p, v, most, items));
           }
           return f.read_sampling(p, v);
         }},
        {"logit_bias",
         [](F& f, P p, E v) {
           simdjson::dom::object biases;
           QUIRE_RETURN_IF_FIELD_ERROR(read_object(p, v, biases));
           if (biases.size() <= static_cast<size_t>(f.limits_.max_biases)) {
             return f.read_sampling(p, v);
           }
           return unexpected(p, v, fmt::format("at most {} biases", f.limits_.max_biases));
         }},
        {"max_tokens",
         [](F& f, P p, E v) {
           f.has_max_tokens_ = true;
           return f.read_sampling(p, v);
         }},
        {"prompt_logprobs",
         [](F& f, P p, E v) {
           f.call_.return_prompt_logprobs = true;
           int number = 0;
           QUIRE_RETURN_IF_FIELD_ERROR(read_int(p, v, 0, f.limits_.max_logprobs, number));
           f.request_.sampling.prompt_logprobs = number;
           return FieldError();
         }},
        {"stream", [](F& f, P p, E v) { return read_bool(p, v, f.call_.streaming.stream); }},
        {"stream_options",
         [](F& f, P p, E v) {
           f.has_stream_options_ = true;
           return f.read_stream_options(p, v);
         }},
        {"return_token_ids",
         [](F& f, P p, E v) {
           return read_flag<&GenerationRequest::return_token_ids>(f.call_, p, v);
         }},
        {"return_tokens_as_token_ids",
         [](F& f, P p, E v) {
           return read_flag<&GenerationRequest::return_tokens_as_token_ids>(f.call_, p, v);
         }},
        {"add_special_tokens",
         [](F& f, P p, E v) { return read_bool(p, v, f.request_.add_special_tokens); }},
        {"priority",
         [](F& f, P p, E v) { return read_int(p, v, INT_MIN, INT_MAX, f.request_.priority); }},
        {"cache_salt",
         [](F& f, P p, E v) {
           QUIRE_RETURN_IF_FIELD_ERROR(read_text(p, v, f.request_.cache_salt));
           const size_t size = f.request_.cache_salt.size();
           if (size > 0 && size <= kMaxSaltBytes) return FieldError();
           return unexpected(p, v, fmt::format("1 to {} bytes of text", kMaxSaltBytes));
         }},
        {"response_format",
         [](F& f, P p, E v) { return read_response_format(p, v, f.limits_, f.call_.restriction); }},
        {"structured_outputs",
         [](F& f, P p, E v) {
           return read_structured_outputs(p, v, f.limits_, f.call_.restriction);
         }},
        {"use_beam_search", [](F&, P p, E v) { return refuse_unless_false(p, v); }},
        {"length_penalty",
         [](F&, P p, E v) {
           double number = 0;
           if (!v.get_double().get(number) && number == 1) return FieldError();
           return unexpected(p, v, "1: this server does not do beam search");
         }},
        {"guided_whitespace_pattern", [](F&, P p, E v) { return refuse_whitespace_pattern(p, v); }},
    };
    for (const char* name : {"guided_json", "guided_regex", "guided_choice", "guided_grammar"}) {
      handlers[name] = [](F& f, P p, E v) {
        return read_restriction(p.name.substr(p.name.find('_') + 1), p, v, f.limits_,
                                f.call_.restriction);
      };
    }
    for (const char* name : {"prompt_embeds", "logits_processors", "truncate_prompt_tokens"}) {
      handlers[name] = [](F&, P p, E v) {
        return unexpected(p, v, "nothing: this server does not have that field");
      };
    }
    for (const SamplingField& field : sampling_fields()) {
      handlers.emplace(field.name, [](F& f, P p, E v) { return f.read_sampling(p, v); });
    }
    return handlers;
  }();
  return table;
}

FieldError AnswerFields::read(std::string_view name, Element value) {
  const auto found = handlers().find(name);
  return found == handlers().end() ? FieldError() : found->second(*this, Path(name), value);
}

FieldError AnswerFields::finish(int max_tokens, size_t num_prompts) {
  SamplingParams& sampling = request_.sampling;
  if (best_of_ != 0 && best_of_ != sampling.n) {
    return field_error("best_of",
                       fmt::format("got {}, expected n, which is {}: every answer that is "
                                   "made is returned",
                                   best_of_, sampling.n));
  }
  if (has_stream_options_ && !call_.streaming.stream) {
    return field_error("stream_options", "got some without stream, expected stream to be true");
  }
  const size_t num_ids = sampling.allowed_token_ids.size() + sampling.stop_token_ids.size();
  if (num_ids > limits_.max_listed_ids / std::max<size_t>(num_prompts, 1)) {
    return field_error("allowed_token_ids",
                       fmt::format("got {} ids for each of {} prompts, expected at most {} in all",
                                   num_ids, num_prompts, limits_.max_listed_ids));
  }
  if (!has_max_tokens_) sampling.max_tokens = max_tokens == 0 ? INT_MAX : max_tokens;
  const Status status = validate_sampling_params(sampling, INT_MAX, INT_MAX);
  if (!status.ok()) return api_error(status);
  if (!has_max_tokens_) sampling.max_tokens = max_tokens;
  return {};
}

}  // namespace quire::server
