// The values of a chat template. They are Python's values as far as a template can observe them.
//
//   Value::dict({{"role", Value::string("user")}, {"content", Value::string(text)}})
//
// A string records which of its bytes came from a request (MarkedText). Operations keep these
// marks, or mark more: bytes that a template derives from a request never count as the template's.
//
// Values are immutable and cheap to copy. Values built by a caller may be shared by threads.
// Objects (last part) are the values with behaviour, which templates call, iterate lazily or
// modify.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/marked_text.h"
#include "jinja/budget.h"

namespace quire::jinja {

class Interpreter;
class Value;
struct Object;

struct Text : MarkedText {  // always valid UTF-8
  size_t num_chars = 0;     // code points: what Python counts and indexes
  bool markup = false;      // made by `safe` or `escape`: texts that are joined to it are escaped
  MemoryCharge charge{};

  bool ascii() const { return num_chars == text.size(); }
};

struct Sequence {
  enum class Type { kList, kTuple, kGroup /* a pair of `groupby`: .grouper, .list */ };
  Sequence(std::vector<Value> the_items, Type the_type);

  std::vector<Value> items;
  Type type;
  int depth = 1;  // of nesting, this level included
  MemoryCharge charge{};
};

// A dict in order of insertion. Lookups are a binary search over a sorted index, so that no choice
// of keys makes them slow.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  // As in Python, a repeated key keeps its first position and its last value.
  static std::shared_ptr<Dict> build(std::vector<Entry> entries, Budget* budget = nullptr);
  const std::vector<Entry>& entries() const { return entries_; }
  const Value* find(std::string_view key, Budget& budget) const;
  // Fails if the key is not hashable.
  const Value* find(const Value& key, Budget* budget) const;
  int depth() const { return depth_; }

  MemoryCharge charge;

 private:
  std::vector<Entry> entries_;
  std::vector<uint32_t> order_;  // indices of entries, sorted by key
  int depth_ = 1;
};

// The reason why a value is undefined: the error text if the template uses the value.
struct UndefinedReason {
  std::string message;
  MemoryCharge charge{};
};

class Value {
 public:
  enum class Kind { kUndefined, kNone, kBool, kInt, kFloat, kString, kSequence, kDict, kObject };
  struct None {
    bool operator==(const None&) const = default;
  };
  using UndefinedPtr = std::shared_ptr<const UndefinedReason>;
  using TextPtr = std::shared_ptr<const Text>;
  using SequencePtr = std::shared_ptr<const Sequence>;
  using DictPtr = std::shared_ptr<const Dict>;
  using ObjectPtr = std::shared_ptr<Object>;

  Value() : data_(None{}) {}
  static Value none() { return {}; }
  // `reason` is a string literal. For a reason built at run time, see Interpreter::make_undefined.
  static Value undefined(const char* reason = "value is undefined");
  static Value boolean(bool flag) { return Value(Data(flag)); }
  static Value integer(int64_t number) { return Value(Data(number)); }
  static Value real(double number) { return Value(Data(number)); }
  // Text of a request. Invalid UTF-8 in it becomes U+FFFD. A text that is the name of a role counts
  // as the template's own, because templates build control tokens with it ('<|' + message.role +
  // '|>'). By itself it is not a control token. `owner` is the message that the text is from, see
  // ByteSpans.
  static Value string(std::string_view text, uint32_t owner = 0);
  // Text with marks of its own, which must be valid UTF-8.
  static Value marked(MarkedText text);
  // Text of the template or the checkpoint, from which the tokenizer may take control tokens.
  static Value literal(std::string_view text);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(const std::vector<std::pair<std::string, Value>>& entries);
  template <typename T>
  static Value of(std::shared_ptr<T> shared) {
    return Value(Data(std::move(shared)));
  }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_undefined() const { return kind() == Kind::kUndefined; }
  bool is_none() const { return kind() == Kind::kNone; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int() const { return kind() == Kind::kInt; }
  bool is_float() const { return kind() == Kind::kFloat; }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_integral() const { return is_bool() || is_int(); }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_sequence() const { return kind() == Kind::kSequence; }
  bool is_list() const { return is_sequence() && sequence()->type == Sequence::Type::kList; }
  bool is_tuple() const { return is_sequence() && sequence()->type != Sequence::Type::kList; }
  bool is_dict() const { return kind() == Kind::kDict; }
  bool is_object() const { return kind() == Kind::kObject; }

  // Each function may be called only for the kind in its name.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is_bool() ? int64_t{as_bool()} : std::get<int64_t>(data_); }
  double as_float() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
  }
  const std::string& as_string() const { return text()->text; }
  const std::string& undefined_reason() const;
  const TextPtr& text() const { return std::get<TextPtr>(data_); }
  const SequencePtr& sequence() const { return std::get<SequencePtr>(data_); }
  const std::vector<Value>& items() const { return sequence()->items; }
  const DictPtr& dict() const { return std::get<DictPtr>(data_); }
  const ObjectPtr& object() const { return std::get<ObjectPtr>(data_); }
  template <typename T>
  T* object_as() const {
    return is_object() ? dynamic_cast<T*>(object().get()) : nullptr;
  }

  // Python's `is`: the same object, or equal scalars of one type.
  bool is_same(const Value& other) const { return data_ == other.data_; }
  int depth() const;              // 0: holds no other value
  std::string type_name() const;  // Python's: "str", "dict", "NoneType"

 private:
  using Data = std::variant<UndefinedPtr, None, bool, int64_t, double, TextPtr, SequencePtr,
                            DictPtr, ObjectPtr>;
  explicit Value(Data data) : data_(std::move(data)) {}

  Data data_;
};

// ---- Python's rules for values. `budget` (not null during a render) is charged for the work.

bool truthy(const Value& value);
bool equal(const Value& left, const Value& right, Budget* budget);
// Python's `<`, for sorting and comparing. Fails if the types have no order.
bool less(const Value& left, const Value& right, Budget& budget, std::string_view op = "<");
bool is_hashable(const Value& value);
void require_hashable(const Value& value);
// A total order of keys, in which equal keys are equal by Python's ==.
int compare_keys(const Value& left, const Value& right, Budget* budget);

std::string float_repr(double number);
// str() and repr(). The output is charged to the budget.
MarkedText to_str(const Value& value, Budget& budget);
MarkedText to_repr(const Value& value, Budget& budget);
void write_str(const Value& value, TextBuilder& out);
void write_repr(const Value& value, TextBuilder& out, int depth = 0);

// ---- objects

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
  // nullopt: there is no such attribute, or the object has no length or cannot be iterated.
  virtual std::optional<Value> attribute(Interpreter&, std::string_view) { return std::nullopt; }
  virtual std::optional<int64_t> length() const { return std::nullopt; }
  virtual std::optional<std::vector<Value>> iterate(Interpreter&) { return std::nullopt; }
  virtual bool truthy() const { return true; }
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
  std::optional<int64_t> length() const override {
    return static_cast<int64_t>(dict->entries().size());
  }
  std::optional<std::vector<Value>> iterate(Interpreter& interpreter) override;
  bool truthy() const override { return *length() > 0; }
  void write_repr(TextBuilder& out, int level) const override;

  Value::DictPtr dict;
  Part part;
};

struct Range : Object {
  Range(int64_t the_start, int64_t the_stop, int64_t the_step);
  std::string type_name() const override { return "range"; }
  std::optional<int64_t> length() const override { return size(); }
  std::optional<std::vector<Value>> iterate(Interpreter& interpreter) override;
  bool truthy() const override { return size() > 0; }
  bool operator==(const Range& other) const;
  void write_repr(TextBuilder& out, int level) const override;
  int64_t size() const;
  int64_t at(int64_t idx) const { return start + idx * step; }

  int64_t start, stop, step;
};

// A value that behaves like Python's generators: it can be iterated once and has no length.
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

}  // namespace quire::jinja
