// Generates openapi.json from openapi_parts.json, which has the responses and the shared schemas.
// Adds the bodies of the requests from their field tables, and the errors of each route.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/check.h"
#include "base/embed.h"
#include "base/json.h"
#include "server/messages_api/messages_request.h"
#include "server/ollama_api/ollama_request.h"
#include "server/openai/field_table.h"
#include "server/pooling_api/pooling_requests.h"
#include "server/responses_api/responses_request.h"
#include "server/routes/routes.h"

QUIRE_EMBED(quire_openapi, QUIRE_ROUTES_DIR "/openapi_parts.json")

namespace quire::server {
namespace {

const Route* find_route(std::span<const Route> among, std::string_view method,
                        std::string_view path) {
  const auto found = std::ranges::find_if(among, [&](const Route& route) {
    return route.path == path && std::ranges::equal(route.method, method, [](char a, char b) {
             return to_lower(a) == b;
           });
  });
  return found == among.end() ? nullptr : &*found;
}

std::vector<std::string_view> errors_of(const Route& route) {
  std::vector<std::string_view> codes = {"400", "408", "431", "500"};
  const bool has_body = route.method == "POST";
  if (route.access == Access::kNeedsKey) codes.emplace_back("401");
  if (has_body || route.path.find('{') != std::string_view::npos) codes.emplace_back("404");
  if (has_body) codes.insert(codes.end(), {"413", "415", "503"});
  if (has_body && (route.kind != RouteKind::kOther || route.runs_on == RunsOn::kTokenizer)) {
    codes.emplace_back("429");
  }
  return codes;
}

std::string error_name(std::string_view path, std::string_view code) {
  switch (error_shape(path)) {
    case ErrorShape::kAnthropic:
      return "Anthropic";
    case ErrorShape::kOllama:
      return "Ollama";
    case ErrorShape::kOpenAi:
      return "E" + std::string(code);
  }
  return "";
}

void copy_members(simdjson::dom::object object, JsonWriter& json) {
  for (const auto& [name, value] : object) {
    json.key(name);
    json.raw(simdjson::minify(value));
  }
}

void write_reference(std::string_view kind, std::string_view name, JsonWriter& json) {
  json.begin_object();
  json.field("$ref", fmt::format("#/components/{}/{}", kind, name));
  json.end_object();
}

// Writes {"TYPE": {"schema": …}, …}; `schema` is a JSON schema or the name of one.
void write_content(Element schema, std::string_view stream, JsonWriter& json) {
  json.key("content");
  json.begin_object();
  json.key("application/json");
  json.begin_object();
  json.key("schema");
  std::string_view name;
  if (schema.get_string().get(name)) {
    json.raw(simdjson::minify(schema));
  } else {
    write_reference("schemas", name, json);
  }
  json.end_object();
  if (!stream.empty()) {
    json.key("text/event-stream");
    json.raw(R"({"schema":{"type":"object","properties":{"data":{"type":"string"}},)"
             R"("required":["data"],"description":")" +
             std::string(stream) + "\"}}");
  }
  json.end_object();
}

void write_responses(const Route& route, simdjson::dom::object operation, JsonWriter& json) {
  Element member;
  std::string_view stream;
  json.key("responses");
  json.begin_object();
  if (!operation["stream"].get(member)) stream = member.get_string().value_unsafe();
  if (!operation["response"].get(member)) {
    json.key("200");
    json.begin_object();
    json.field("description", "OK");
    write_content(member, stream, json);
    json.end_object();
  }
  if (!operation["responses"].get(member)) copy_members(member, json);
  for (const std::string_view code : errors_of(route)) {
    json.key(code);
    write_reference("responses", error_name(route.path, code), json);
  }
  json.end_object();
}

void write_parameters(const Route& route, simdjson::dom::object operation, JsonWriter& json) {
  json.key("parameters");
  json.begin_array();
  if (route.kind == RouteKind::kGeneration || route.kind == RouteKind::kEmbedding) {
    write_reference("parameters", "DataParallelRank", json);
    write_reference("parameters", "SessionId", json);
  }
  simdjson::dom::array own;
  if (!operation["parameters"].get(own)) {
    for (const Element parameter : own) json.raw(simdjson::minify(parameter));
  }
  json.end_array();
}

void write_operation(const Route& route, simdjson::dom::object operation, JsonWriter& json) {
  json.begin_object();
  if (route.access == Access::kPublic) {
    json.key("security");
    json.raw("[]");
  }
  write_parameters(route, operation, json);
  Element member;
  if (!operation["request"].get(member)) {
    json.key("requestBody");
    json.begin_object();
    json.field("required", true);
    write_content(member, "", json);
    json.end_object();
  }
  for (const std::string_view name : {"operationId", "summary"}) {
    json.field(name, std::string_view(operation[name].value_unsafe()));
  }
  write_responses(route, operation, json);
  json.end_object();
}

void write_paths(simdjson::dom::object paths, std::span<const Route> among, JsonWriter& json) {
  for (const auto& [path, operations] : paths) {
    json.key(path);
    json.begin_object();
    for (const auto& [method, operation] : simdjson::dom::object(operations)) {
      const Route* const route = find_route(among, method, path);
      QUIRE_CHECK(route != nullptr, "[server] a path is described that has no route");
      json.key(method);
      write_operation(*route, operation, json);
    }
    json.end_object();
  }
}

void write_components(simdjson::dom::object components, JsonWriter& json) {
  json.begin_object();
  for (const auto& [name, members] : components) {
    json.key(name);
    json.begin_object();
    copy_members(members, json);
    if (name == "schemas") {
      for (const ObjectSchema& object : request_schemas()) {
        json.key(object.name);
        write_schema(object, json);
      }
    }
    json.end_object();
  }
  json.end_object();
}

}  // namespace

std::vector<ObjectSchema> request_schemas() {
  std::vector<ObjectSchema> all;
  for (auto* const schemas :
       {openai_schemas, responses_schemas, messages_schemas, ollama_schemas, pooling_schemas}) {
    std::ranges::move(schemas(), std::back_inserter(all));
  }
  return all;
}

std::string openapi_json(std::span<const Route> more_routes, std::string_view more_paths) {
  const auto frame = JsonDocument::parse(QUIRE_EMBEDDED_TEXT(quire_openapi), "openapi_parts.json");
  const auto more = JsonDocument::parse(more_paths, "the further paths");
  QUIRE_CHECK(frame.ok() && more.ok(), "[server] the description of the routes is not valid JSON");
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, value] : simdjson::dom::object(frame->root())) {
    json.key(name);
    if (name == "paths") {
      json.begin_object();
      write_paths(value, routes(), json);
      write_paths(more->root(), more_routes, json);
      json.end_object();
    } else if (name == "components") {
      write_components(value, json);
    } else {
      json.raw(simdjson::minify(value));
    }
  }
  json.end_object();
  return json.take();
}

}  // namespace quire::server
