#pragma once
// A repeated scalar field that is left where it is in the file. A model with weights in `float_data` thus opens as
// quickly as one with `raw_data`. Protobuf allows values packed in one block or one by one; a Run is either.

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <type_traits>

#include "wire/cursor.h"
#include "wire/list.h"

namespace treadle::wire {

struct Run {
  std::string_view bytes;  // packed: values only; otherwise tags and values
  bool packed;
};

// T: float, double, int32_t, int64_t, uint64_t, or std::string_view for bytes.
template <class T>
class Runs {
 public:
  static constexpr bool kIsBytes = std::is_same_v<T, std::string_view>;
  static constexpr bool kIsFixed = std::is_floating_point_v<T>;

  bool empty() const { return runs_.empty(); }
  const List<Run>& runs() const { return runs_; }
  void add(Arena& arena, Run run) { runs_.add(arena, run); }

  // Adds the current field of `in`, one value or a packed block.
  void read(Cursor& in) {
    const bool packed = !kIsBytes && in.wire_type() == WireType::kBytes;
    const char* begin = in.field_begin();
    if (packed) {
      const std::string_view block = in.bytes();
      if (kIsFixed && block.size() % sizeof(T) != 0) {
        return in.fail(Code::kInvalidFile, fmt::format("expected packed values of {} bytes, found a block of {} bytes",
                                                       sizeof(T), block.size()));
      }
      if (in.document().charge(in, sizeof(Run))) add(in.document().arena(), {block, true});
      return;
    }
    skip_value(in);
    if (!in.document().ok()) return;
    const size_t size = static_cast<size_t>(in.position() - begin);
    if (!runs_.empty() && !runs_.back().packed && runs_.back().bytes.end() == begin) {
      runs_.back().bytes = {runs_.back().bytes.data(), runs_.back().bytes.size() + size};
    } else if (in.document().charge(in, sizeof(Run))) {
      add(in.document().arena(), {{begin, size}, false});
    }
  }

  // Calls fn(value) in order. False if a packed varint is cut off: blocks of packed varints are first checked here.
  template <class Fn>
  bool for_each(Fn&& fn) const {
    for (const Run& run : runs_) {
      const char* position = run.bytes.data();
      const char* end = position + run.bytes.size();
      while (position != end) {
        uint64_t tag = 0;
        if (!run.packed && !read_varint(position, end, tag)) return false;
        T value{};
        if (!read_value(position, end, value)) return false;
        fn(value);
      }
    }
    return true;
  }

  // Counts the values; false if the field is broken.
  bool count(size_t& result) const {
    result = 0;
    if (kIsFixed && runs_.size() == 1 && runs_[0].packed) {
      result = runs_[0].bytes.size() / sizeof(T);
      return true;
    }
    return for_each([&](const T&) { ++result; });
  }

 private:
  static void skip_value(Cursor& in) {
    if constexpr (kIsBytes) {
      in.bytes();
    } else if constexpr (std::is_same_v<T, float>) {
      in.fixed32();
    } else if constexpr (std::is_same_v<T, double>) {
      in.fixed64();
    } else {
      in.varint();
    }
  }
  static bool read_value(const char*& position, const char* end, T& value) {
    if constexpr (kIsFixed) {
      if (static_cast<size_t>(end - position) < sizeof(T)) return false;
      std::memcpy(&value, position, sizeof(T));
      position += sizeof(T);
    } else {
      uint64_t number = 0;
      if (!read_varint(position, end, number)) return false;
      if constexpr (kIsBytes) {
        if (number > static_cast<size_t>(end - position)) return false;
        value = {position, static_cast<size_t>(number)};
        position += number;
      } else {
        value = static_cast<T>(number);
      }
    }
    return true;
  }

  List<Run> runs_;
};

}  // namespace treadle::wire
