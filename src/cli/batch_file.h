// The files of `quire batch`, in the format of OpenAI's Batch API: a line per request, and a line
// per response.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/locked_file.h"
#include "base/text_input.h"
#include "quire/status.h"
#include "server/http/http.h"

namespace quire::cli {

// A line of the input.
struct BatchRequest {
  std::string custom_id = {};  // empty: the line has no valid one
  http::Request request = {};
  Status error = {};  // not ok: the line is not a valid request
};

// Reads lines such as {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body":
// {…}}, in their order. A bad line does not affect the others.
class BatchReader {
 public:
  // `path` names the input in errors. The text must outlive the reader.
  BatchReader(std::string_view text, std::string path);

  size_t num_requests() const { return lines_.size(); }
  size_t num_read() const { return num_read_; }
  // Reads the next request. num_read() must be less than num_requests().
  BatchRequest next();

 private:
  std::string path_;
  std::vector<Line> lines_;
  size_t num_read_ = 0;
  std::unordered_map<std::string, size_t> line_of_id_;
};

// Return a line of the output, with its line end. `number` is the position in the input, from 1.
std::string batch_response_line(size_t number, std::string_view custom_id,
                                const http::Response& response);
std::string batch_error_line(size_t number, std::string_view custom_id, const Status& error);

// The output of a batch. It has one line per request, in the order of the input and without gaps,
// so that its number of lines is the position at which an interrupted batch continues.
class BatchOutput {
 public:
  // Opens or creates the file, and locks it against other processes. Skips the requests that have a
  // line. Fails if a line has another custom_id than the request at the same position. Removes an
  // incomplete last line, which a killed process may leave.
  static Result<BatchOutput> open(const std::string& path, BatchReader& requests);

  size_t num_failed() const { return num_failed_; }  // lines without a response of status 200
  Status append(std::string_view line, bool has_succeeded);

 private:
  BatchOutput(LockedFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Status read_back(BatchReader& requests);

  LockedFile file_;
  std::string path_;
  size_t num_failed_ = 0;
};

}  // namespace quire::cli
