#include "kv_events/event_batch.h"

#include <bit>
#include <cstdint>
#include <string_view>

namespace quire {
namespace {

// Writes msgpack as msgspec does: every number and length in the fewest bytes.
class Msgpack {
 public:
  void nil() { put(0xc0, 1); }
  void integer(uint64_t value) {
    if (value < 0x80) return put(value, 1);
    if (value <= UINT8_MAX) return sized(0xcc, value, 1);
    if (value <= UINT16_MAX) return sized(0xcd, value, 2);
    if (value <= UINT32_MAX) return sized(0xce, value, 4);
    sized(0xcf, value, 8);
  }
  void number(double value) { sized(0xcb, std::bit_cast<uint64_t>(value), 8); }
  void text(std::string_view value) {
    head({.inline_type = 0xa0, .num_inline = 32, .type8 = 0xd9, .type16 = 0xda}, value.size());
    text_ += value;
  }
  void bytes(std::string_view value) {
    head({.num_inline = 0, .type8 = 0xc4, .type16 = 0xc5}, value.size());
    text_ += value;
  }
  void begin_array(size_t size) {
    head({.inline_type = 0x90, .num_inline = 16, .type16 = 0xdc}, size);
  }
  void begin_map(size_t size) {
    head({.inline_type = 0x80, .num_inline = 16, .type16 = 0xde}, size);
  }

  std::string take() { return std::move(text_); }

 private:
  // The first bytes of a type with a length. The first byte for a 32-bit length is type16 + 1.
  struct Types {
    unsigned inline_type = 0;  // includes a length below num_inline
    size_t num_inline = 0;
    unsigned type8 = 0;  // 0: the type has no 8-bit length
    unsigned type16 = 0;
  };
  void head(const Types& types, size_t size) {
    if (size < types.num_inline) return put(types.inline_type | size, 1);
    if (size <= UINT8_MAX && types.type8 != 0) return sized(types.type8, size, 1);
    if (size <= UINT16_MAX) return sized(types.type16, size, 2);
    sized(types.type16 + 1, size, 4);
  }
  void sized(unsigned type, uint64_t value, int size) {
    put(type, 1);
    put(value, size);
  }
  void put(uint64_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
      text_ += static_cast<char>(value >> shift & 0xff);
    }
  }

  std::string text_;
};

class EventWriter {
 public:
  EventWriter(const KvEventForm& form, Msgpack& out) : form_(form), out_(out) {}

  void operator()(const BlocksStored& event) {
    const KvEventTable& table = form_.tables.at(static_cast<size_t>(event.table));
    begin("BlockStored",
          11 + (table.window > 0 ? size_t{1} : 0) + (event.ahead.empty() ? 0 : size_t{1}));
    hashes(event.hashes);
    out_.text("parent_block_hash");
    if (event.parent) {
      hash(*event.parent);
    } else {
      out_.nil();
    }
    out_.text("token_ids");
    ids(event.token_ids);
    out_.text("block_size");
    out_.integer(static_cast<uint64_t>(form_.block_size));
    out_.text("lora_id");
    out_.nil();
    out_.text("medium");
    out_.text(form_.medium);
    out_.text("lora_name");
    out_.nil();
    extra_keys(event);
    out_.text("group_idx");
    out_.integer(static_cast<uint64_t>(event.table));
    out_.text("kv_cache_spec_kind");
    out_.text(table.kind);
    if (table.window > 0) {
      out_.text("kv_cache_spec_sliding_window");
      out_.integer(static_cast<uint64_t>(table.window));
    }
    if (!event.ahead.empty()) tokens_ahead(event);
  }

  void operator()(const BlocksRemoved& event) {
    begin("BlockRemoved", 4);
    hashes(event.hashes);
    out_.text("medium");
    out_.text(form_.medium);
    out_.text("group_idx");
    out_.integer(static_cast<uint64_t>(event.table));
  }

  void operator()(const AllBlocksCleared& /*event*/) { begin("AllBlocksCleared", 1); }

 private:
  void begin(std::string_view type, size_t num_fields) {
    out_.begin_map(num_fields);
    out_.text("type");
    out_.text(type);
  }

  void hashes(std::span<const BlockHash> all) {
    out_.text("block_hashes");
    out_.begin_array(all.size());
    for (const BlockHash& one : all) hash(one);
  }

  void hash(const BlockHash& value) {
    if (!form_.has_int_hashes) {
      return out_.bytes({reinterpret_cast<const char*>(value.data()), value.size()});
    }
    uint64_t number = 0;
    for (const std::byte byte : std::span(value).last<8>()) {
      number = number << 8 | std::to_integer<uint64_t>(byte);
    }
    out_.integer(number);
  }

  void ids(std::span<const int32_t> all) {
    out_.begin_array(all.size());
    for (const int32_t id : all) out_.integer(static_cast<uint64_t>(id));
  }

  // One entry per block. The salt is a key of a sequence's first block.
  void extra_keys(const BlocksStored& event) {
    out_.text("extra_keys");
    out_.begin_array(event.hashes.size());
    for (size_t i = 0; i < event.hashes.size(); ++i) {
      if (i > 0 || event.salt.empty()) {
        out_.nil();
        continue;
      }
      out_.begin_array(1);
      out_.text(event.salt);
    }
  }

  void tokens_ahead(const BlocksStored& event) {
    out_.text("lookahead_token_ids");
    out_.begin_array(event.hashes.size());
    const size_t count = event.ahead.size() / event.hashes.size();
    for (size_t i = 0; i < event.hashes.size(); ++i) {
      ids(std::span(event.ahead).subspan(i * count, count));
    }
  }

  const KvEventForm& form_;
  Msgpack& out_;
};

}  // namespace

std::string encode_batch(double timestamp, std::span<const KvEvent> events,
                         const KvEventForm& form) {
  Msgpack out;
  out.begin_array(3);
  out.number(timestamp);
  out.begin_array(events.size());
  for (const KvEvent& event : events) std::visit(EventWriter(form, out), event);
  out.integer(static_cast<uint64_t>(form.rank));
  return out.take();
}

}  // namespace quire
