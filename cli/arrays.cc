#include "arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <type_traits>

#include "common.h"

namespace cli {

namespace {

using treadle::Value;

struct NpyType {
  const char* code;
  int element;
};
constexpr std::array<NpyType, 14> kTypes = {{{"f4", 1},
                                             {"u1", 2},
                                             {"i1", 3},
                                             {"u2", 4},
                                             {"i2", 5},
                                             {"i4", 6},
                                             {"i8", 7},
                                             {"b1", 9},
                                             {"f2", 10},
                                             {"f8", 11},
                                             {"u4", 12},
                                             {"u8", 13},
                                             {"c8", 14},
                                             {"c16", 15}}};

template <class T>
T load(std::string_view bytes, size_t at) {
  T value{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The text between `key` and the next comma that is not in brackets, in the dictionary of a .npy header.
std::string_view field(std::string_view header, std::string_view key) {
  size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  at = header.find(':', at);
  if (at == std::string_view::npos) return {};
  const size_t begin = header.find_first_not_of(" :", at);
  size_t end = begin;
  for (int depth = 0; end < header.size(); ++end) {
    const char c = header[end];
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if ((c == ',' || c == '}') && depth == 0) break;
  }
  return begin < end ? header.substr(begin, end - begin) : std::string_view();
}

// Parses "(2, 3)", "(2,)" or "()", as Python writes a tuple; no value for anything else.
std::optional<std::vector<int64_t>> parse_shape(std::string_view text) {
  std::vector<int64_t> shape;
  if (!text.starts_with('(')) return std::nullopt;
  const size_t close = text.find(')');
  if (close == std::string_view::npos) return std::nullopt;
  text = text.substr(1, close - 1);
  for (size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
    int64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (failure != std::errc() || number < 0) return std::nullopt;
    shape.push_back(number);
    at = text.find_first_not_of(' ', static_cast<size_t>(end - text.data()));
    if (at >= text.size()) break;
    if (text[at++] != ',') return std::nullopt;
  }
  return shape;
}

void swap_bytes(char* data, size_t count, size_t width) {
  for (size_t i = 0; i < count; ++i) std::reverse(data + i * width, data + (i + 1) * width);
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xc0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3f))};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xe0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3f)),
            static_cast<char>(0x80 | (c & 0x3f))};
  } else {
    out += {static_cast<char>(0xf0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 0x3f)),
            static_cast<char>(0x80 | ((c >> 6) & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
  }
}

Value read_unicode(std::string_view data, size_t length, const std::vector<int64_t>& shape, size_t count) {
  std::vector<std::string> texts(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < length; ++k) {
      const auto c = load<uint32_t>(data, (i * length + k) * 4);
      if (c == 0) break;
      append_utf8(texts[i], c);
    }
  }
  return Value::texts(texts, shape);
}

// Column-major order has the same bytes as row-major order with reversed sizes, so it is transposed.
void to_row_major(std::string_view from, char* to, const std::vector<int64_t>& shape, size_t count, size_t width) {
  const size_t rank = shape.size();
  std::vector<int64_t> index(rank, 0);
  for (size_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t axis = rank; axis-- > 0;) at = at * shape[axis] + index[axis];
    std::memcpy(to + i * width, from.data() + static_cast<size_t>(at) * width, width);
    for (size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

size_t checked_count(const std::vector<int64_t>& shape, size_t width, size_t available, const std::string& name) {
  size_t count = 1;
  for (const int64_t d : shape) {
    if (__builtin_mul_overflow(count, static_cast<size_t>(d), &count)) count = SIZE_MAX / 2;
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, width, &bytes) || bytes > available) {
    throw InputError(fmt::format("{}: the array is cut off", name));
  }
  return count;
}

}  // namespace

Value read_npy(std::string_view bytes, const std::string& name) {
  if (bytes.substr(0, 6) != "\x93NUMPY" || bytes.size() < 12) throw InputError(fmt::format("{}: no .npy file", name));
  const bool is_v1 = bytes[6] == 1;
  const size_t header_size = is_v1 ? load<uint16_t>(bytes, 8) : load<uint32_t>(bytes, 8);
  const size_t header_at = is_v1 ? 10 : 12;
  if (header_at + header_size > bytes.size()) throw InputError(fmt::format("{}: the header is cut off", name));
  const std::string_view header = bytes.substr(header_at, header_size);
  const std::string_view data = bytes.substr(header_at + header_size);
  std::string_view type = field(header, "'descr'");
  const size_t quote = type.empty() || type.front() != '\'' ? 0 : std::min(type.find('\'', 1), type.size());
  if (quote < 3 || quote == type.size()) throw InputError(fmt::format("{}: records are not read", name));
  type = type.substr(1, quote - 1);
  const std::string_view sizes = field(header, "'shape'");
  const std::optional<std::vector<int64_t>> read = parse_shape(sizes);
  if (!read) throw InputError(fmt::format("{}: expected a shape like (2, 3), found {}", name, sizes));
  const std::vector<int64_t>& shape = *read;
  const char order = type.front();
  const std::string code(type.substr(1));
  if (code[0] == 'U') {
    const size_t length = static_cast<size_t>(std::strtoul(code.c_str() + 1, nullptr, 10));
    if (length == 0) throw InputError(fmt::format("{}: strings of no size are not read", name));
    return read_unicode(data, length, shape, checked_count(shape, length * 4, data.size(), name));
  }
  for (const NpyType& candidate : kTypes) {
    if (code != candidate.code) continue;
    const size_t width = treadle_element_width(candidate.element);
    const size_t count = checked_count(shape, width, data.size(), name);
    Value value = Value::tensor(candidate.element, shape);
    char* to = value.mutable_data<char>();
    if (field(header, "'fortran_order'").substr(0, 4) == "True") {
      to_row_major(data, to, shape, count, width);
    } else if (count > 0) {
      std::memcpy(to, data.data(), count * width);
    }
    if (order == '>') {
      const size_t part = code[0] == 'c' ? width / 2 : width;
      swap_bytes(to, count * (width / part), part);
    }
    return value;
  }
  throw InputError(fmt::format("{}: arrays of '{}' are not read", name, std::string(type)));
}

std::string write_npy(const Value& value) {
  const char* code = nullptr;
  for (const NpyType& candidate : kTypes) {
    if (candidate.element == value.element()) code = candidate.code;
  }
  if (!code) throw InputError(fmt::format(".npy has no type for {}; write .pb", value.type_text()));
  std::string shape;
  for (const int64_t d : value.dims()) shape += fmt::format("{}, ", d);
  const bool one_byte = code[1] == '1' && code[2] == 0;
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", one_byte ? '|' : '<', code, shape);
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(value.data<char>(), value.bytes());
  return out;
}

std::vector<std::pair<std::string, Value>> read_npz(std::string_view bytes, const std::string& name) {
  const size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string_view::npos) throw InputError(fmt::format("{}: no .npz file", name));
  const auto count = load<uint16_t>(bytes, end + 10);
  size_t at = load<uint32_t>(bytes, end + 16);
  std::vector<std::pair<std::string, Value>> members;
  for (int i = 0; i < count; ++i) {
    if (at + 46 > bytes.size() || bytes.substr(at, 4) != "PK\x01\x02") {
      throw InputError(fmt::format("{}: the directory is broken", name));
    }
    const auto method = load<uint16_t>(bytes, at + 10);
    const auto size = load<uint32_t>(bytes, at + 24);
    const auto name_size = load<uint16_t>(bytes, at + 28);
    const size_t skip = size_t{load<uint16_t>(bytes, at + 30)} + load<uint16_t>(bytes, at + 32);
    const auto local = load<uint32_t>(bytes, at + 42);
    std::string member(bytes.substr(std::min(at + 46, bytes.size()), name_size));
    at += 46 + name_size + skip;
    if (method != 0) throw InputError(fmt::format("{}: '{}' is compressed; write it with numpy.savez", name, member));
    const size_t data =
        size_t{local} + 30 + load<uint16_t>(bytes, size_t{local} + 26) + load<uint16_t>(bytes, size_t{local} + 28);
    if (data > bytes.size() || size > bytes.size() - data)
      throw InputError(fmt::format("{}: '{}' is cut off", name, member));
    if (member.size() > 4 && member.substr(member.size() - 4) == ".npy") member.resize(member.size() - 4);
    members.emplace_back(member, read_npy(bytes.substr(data, size), fmt::format("{}: {}", name, member)));
  }
  return members;
}

}  // namespace cli
