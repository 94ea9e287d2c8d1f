// POST /v1/responses, OpenAI's Responses API, and the responses that it stores.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "server/openai/json_fields.h"
#include "server/responses_api/responses_writer.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

// Returns the value of a parameter of a query, as received, or "".
std::string_view query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return pair.substr(equals + 1);
    }
  }
  return {};
}

ApiError unknown_response(const ServerState& state, const std::string& id) {
  return make_api_error(
      404,
      fmt::format("there is no stored response '{}'{}", clipped(id),
                  state.responses.is_enabled()
                      ? "; it may have been removed to make room"
                      : "; this server stores no responses, unless its operator allows it"),
      "response_id", "not_found");
}

std::shared_ptr<const StoredResponse> find_or_refuse(ServerState& state, RequestContext& context) {
  auto response = state.responses.find(context.key_idx, context.path_parameter);
  if (response == nullptr) context.refuse(unknown_response(state, context.path_parameter));
  return response;
}

// The page of a list of items that a query asks for.
struct Page {
  int limit = 20;
  bool is_ascending = false;
  std::string_view after;  // the id of the item before the page; empty: none
};

FieldError read_page(std::string_view query, Page& page) {
  constexpr int kMaxLimit = 100;
  const std::string_view limit = query_value(query, "limit");
  if (!limit.empty()) {
    page.limit = parse_whole<int>(limit).value_or(0);
    if (page.limit < 1 || page.limit > kMaxLimit) {
      return field_error("limit", fmt::format("got '{}', expected an integer in [1, {}]",
                                              clipped(limit), kMaxLimit));
    }
  }
  const std::string_view order = query_value(query, "order");
  if (!order.empty() && order != "asc" && order != "desc") {
    return field_error("order", fmt::format("got '{}', expected 'asc' or 'desc'", clipped(order)));
  }
  page.is_ascending = order == "asc";
  page.after = query_value(query, "after");
  return {};
}

struct Item {
  std::string_view id;
  std::string_view json;
};

// Removes the items before the page. The items must be in ascending order.
FieldError turn_to(const Page& page, std::vector<Item>& items) {
  if (!page.is_ascending) std::ranges::reverse(items);
  if (page.after.empty()) return {};
  const auto after = std::ranges::find(items, page.after, &Item::id);
  if (after == items.end()) {
    return field_error(
        "after", fmt::format("got '{}', expected the id of one of the items", clipped(page.after)));
  }
  items.erase(items.begin(), after + 1);
  return {};
}

void write_items(std::vector<Item> items, const Page& page, JsonWriter& json) {
  const auto num_shown = std::min(items.size(), static_cast<size_t>(page.limit));
  const bool has_more = items.size() > num_shown;
  items.resize(num_shown);
  json.begin_object();
  json.field("object", "list");
  json.key("data");
  json.begin_array();
  for (const Item& item : items) json.raw(item.json);
  json.end_array();
  json.key("first_id");
  json.value_or_null(items.empty() ? "" : items.front().id);
  json.key("last_id");
  json.value_or_null(items.empty() ? "" : items.back().id);
  json.field("has_more", has_more);
  json.end_object();
}

}  // namespace

void post_responses(ServerState& state, RequestContext&& context) {
  const int key_idx = context.key_idx;
  const StoredResponses stored = {
      .is_enabled = state.responses.is_enabled(),
      .find = [&](std::string_view id) { return state.responses.find(key_idx, id); }};
  Parsed<ResponsesRequest> parsed =
      parse_responses_request(context.request.body, request_defaults(state), stored);
  if (parsed.error) return context.refuse(*parsed.error);
  ResponsesRequest& request = parsed.request;
  // The id of a stored response identifies it, so no client can choose it by x-request-id.
  const std::string id = "resp_" + (request.stores ? random_id() : context.log.id);
  // The writer keeps parts of the body, so the body's share is held until the response ends.
  StoreResponse store = [&state, key_idx, id,
                         share = context.request.body_share](StoredResponse&& response) {
    state.responses.add(key_idx, id, std::move(response));
  };
  ChatRequest chat = std::move(request.chat);
  generate_chat(state, std::move(context), std::move(chat), id,
                [&](ChatRequest&& prepared, ResponseInfo&& info) {
                  request.chat = std::move(prepared);
                  return make_responses_writer(std::move(request), std::move(info),
                                               std::move(store));
                });
}

void get_response(ServerState& state, RequestContext&& context) {
  if (query_value(context.request.query, "stream") == "true") {
    return context.refuse(make_api_error(
        400, "[request] stream; got true, expected false: a stored response is complete",
        "stream"));
  }
  const auto response = find_or_refuse(state, context);
  if (response != nullptr) context.respond(response->body);
}

void delete_response(ServerState& state, RequestContext&& context) {
  const std::string& id = context.path_parameter;
  if (!state.responses.remove(context.key_idx, id)) {
    return context.refuse(unknown_response(state, id));
  }
  JsonWriter json;
  json.begin_object();
  json.field("id", id);
  json.field("object", "response");
  json.field("deleted", true);
  json.end_object();
  context.respond(json.take());
}

void get_response_items(ServerState& state, RequestContext&& context) {
  Page page;
  if (const FieldError error = read_page(context.request.query, page)) {
    return context.refuse(*error);
  }
  const auto response = find_or_refuse(state, context);
  if (response == nullptr) return;
  std::vector<JsonDocument> documents;
  std::vector<Item> items;
  for (const ItemText& item : response->items) {
    auto document = JsonDocument::parse(*item, "a stored item", {.max_depth = 128});
    if (!document.ok()) return context.refuse(api_error(document.status()));
    std::string_view id;
    if (document->root()["id"].get_string().get(id)) id = {};
    items.push_back({.id = id, .json = *item});
    documents.push_back(std::move(*document));
  }
  if (const FieldError error = turn_to(page, items)) return context.refuse(*error);
  JsonWriter json;
  write_items(std::move(items), page, json);
  context.respond(json.take());
}

}  // namespace quire::server
