// Values with behaviour, which templates call, iterate lazily or modify.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace quire::jinja {

class Interpreter;

using NamedValues = std::vector<std::pair<std::string, Value>>;
// The index of `name`; charges for the search.
std::optional<size_t> find_named(const NamedValues& values, std::string_view name, Budget& budget);

struct Args {
  std::vector<Value> positional;
  NamedValues keyword;

  // Removes and returns a keyword argument.
  std::optional<Value> take(std::string_view name, Budget& budget);
};

struct Object {
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter& interpreter, Args args);
  // nullopt: there is no such attribute or item, or the object has no length or cannot be iterated.
  virtual std::optional<Value> attribute(Interpreter& interpreter, std::string_view name);
  virtual std::optional<Value> item(const Value& key, Budget& budget);
  virtual std::optional<int64_t> length(Budget& budget);
  virtual std::optional<std::vector<Value>> iterate(Interpreter& interpreter);
  virtual bool truthy() const { return true; }
  virtual bool equals(const Object& other, Budget* budget) const;
  virtual void write_repr(TextBuilder& out, int depth) const;
  // Drops all references. Called after a render to break cycles of mutable objects.
  virtual void clear() {}

  int depth = 0;
  MemoryCharge charge;
};

// keys(), values() and items() of a dict.
struct DictView : Object {
  enum class Part { kKeys, kValues, kItems };
  DictView(Value::DictPtr the_dict, Part the_part);
  std::string type_name() const override;
  std::optional<int64_t> length(Budget& budget) override;
  std::optional<std::vector<Value>> iterate(Interpreter& interpreter) override;
  bool truthy() const override { return !dict->entries().empty(); }
  void write_repr(TextBuilder& out, int level) const override;
  Value element(size_t idx) const;

  Value::DictPtr dict;
  Part part;
};

struct Range : Object {
  Range(int64_t the_start, int64_t the_stop, int64_t the_step);
  std::string type_name() const override { return "range"; }
  std::optional<Value> item(const Value& key, Budget& budget) override;
  std::optional<int64_t> length(Budget& budget) override {
    (void)budget;
    return size();
  }
  std::optional<std::vector<Value>> iterate(Interpreter& interpreter) override;
  bool truthy() const override { return size() > 0; }
  bool equals(const Object& other, Budget* budget) const override;
  void write_repr(TextBuilder& out, int level) const override;
  int64_t size() const;
  int64_t at(int64_t idx) const { return start + idx * step; }

  int64_t start, stop, step;
};

// A value that behaves as Python's generators: it can be iterated once and has no length.
struct Iterator : Object {
  explicit Iterator(std::vector<Value> the_items);
  std::string type_name() const override { return "generator"; }
  std::optional<std::vector<Value>> iterate(Interpreter& interpreter) override;
  std::optional<Value> next();

  std::vector<Value> items;
  size_t position = 0;
};

struct Namespace : Object {
  std::string type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override;
  void write_repr(TextBuilder& out, int level) const override;
  void clear() override { attributes.clear(); }
  void set(const std::string& name, Value value, Budget& budget);

  NamedValues attributes;
};

struct Cycler : Object, std::enable_shared_from_this<Cycler> {
  explicit Cycler(std::vector<Value> the_items);
  std::string type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Interpreter& interpreter, std::string_view name) override;

  std::vector<Value> items;
  size_t position = 0;
};

struct Joiner : Object {
  explicit Joiner(Value the_separator) : separator(std::move(the_separator)) {
    depth = separator.depth() + 1;
  }
  std::string type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Args args) override;

  Value separator;
  bool used = false;
};

}  // namespace quire::jinja
