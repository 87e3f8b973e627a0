#include "feeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "arrays.h"
#include "common.h"
#include "wave.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Type;
using treadle::Value;

bool ends_with(const std::string& text, const char* end) {
  const size_t size = std::strlen(end);
  return text.size() >= size && text.compare(text.size() - size, size, end) == 0;
}

const treadle_type* type_of_input(const Session& session, const std::string& name) {
  for (const treadle_role role : {TREADLE_INPUT, TREADLE_OVERRIDABLE}) {
    for (size_t i = 0; i < session.count(role); ++i) {
      if (session.name(role, i) == name) return session.type(role, i).get();
    }
  }
  throw UsageError(fmt::format("the model has no input '{}'", name));
}

bool has_feed(const Feeds& feeds, const std::string& name) {
  return std::any_of(feeds.begin(), feeds.end(), [&](const auto& feed) { return feed.first == name; });
}

std::string next_input(const Session& session, const Feeds& feeds) {
  for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
    if (!has_feed(feeds, session.name(TREADLE_INPUT, i))) return session.name(TREADLE_INPUT, i);
  }
  throw UsageError(fmt::format("more values than the model's {} inputs", session.count(TREADLE_INPUT)));
}

enum class Stored { kYes, kNoNumber, kNoPlainForm };

template <class T>
Stored put_integer(std::string_view text, char* at) {
  T value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return Stored::kNoNumber;
  std::memcpy(at, &value, sizeof value);
  return Stored::kYes;
}

double largest(int element) {
  switch (element) {
    case 1:
      return static_cast<double>(std::numeric_limits<float>::max());
    case 10:
      return 65504;
    case 16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<double>::max();
  }
}

// Stores a number as an element of the given type, which it must fit; floats are rounded.
Stored store_text(int element, std::string_view text, char* at) {
  switch (element) {
    case 2:
      return put_integer<uint8_t>(text, at);
    case 3:
      return put_integer<int8_t>(text, at);
    case 4:
      return put_integer<uint16_t>(text, at);
    case 5:
      return put_integer<int16_t>(text, at);
    case 6:
      return put_integer<int32_t>(text, at);
    case 7:
      return put_integer<int64_t>(text, at);
    case 9:
      if (text != "true" && text != "1" && text != "false" && text != "0") return Stored::kNoNumber;
      *at = text == "true" || text == "1";
      return Stored::kYes;
    case 12:
      return put_integer<uint32_t>(text, at);
    case 13:
      return put_integer<uint64_t>(text, at);
    default:
      break;
  }
  const std::string terminated(text);
  char* end = nullptr;
  const double number = std::strtod(terminated.c_str(), &end);
  if (end == terminated.c_str() || *end != 0) return Stored::kNoNumber;
  const bool is_finite = text.find_first_of("nN") == std::string_view::npos;  // the text is neither nan nor inf
  if (is_finite && std::fabs(number) > largest(element)) return Stored::kNoNumber;
  return store_number(element, number, at) ? Stored::kYes : Stored::kNoPlainForm;
}

// Parses "3" or "[1, 2.5]" as the declared type. With unknown rank or rank 0, a number is a scalar.
Value read_literal(const Type& type, const std::string& name, const std::string& text) {
  if (type.element() == kString) {
    return Value::texts({text}, std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(type.rank(), 0)), 1));
  }
  std::vector<std::string_view> numbers;
  const bool list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  std::string_view rest = text;
  if (list) rest = rest.substr(1, rest.size() - 2);
  bool between = false;  // a comma stands between two numbers
  for (size_t begin = rest.find_first_not_of(' '); begin < rest.size(); begin = rest.find_first_not_of(' ', begin)) {
    const bool is_comma = rest[begin] == ',';
    if (is_comma && (between || numbers.empty())) {
      throw UsageError(fmt::format("'{}' for input '{}' has a comma without a number before it", text, name));
    }
    between = is_comma;
    const size_t end = is_comma ? begin + 1 : std::min(rest.find_first_of(", ", begin), rest.size());
    if (!is_comma) numbers.push_back(rest.substr(begin, end - begin));
    begin = end;
  }
  if (!list && numbers.size() != 1) throw UsageError(fmt::format("'{}' for input '{}' is no number", text, name));
  std::vector<int64_t> dims(static_cast<size_t>(std::max<int64_t>(type.rank(), list ? 1 : 0)), 1);
  if (!dims.empty()) dims.back() = static_cast<int64_t>(numbers.size());
  Value value = Value::tensor(type.element() ? type.element() : 1, dims);
  const size_t width = treadle_element_width(value.element());
  for (size_t i = 0; i < numbers.size(); ++i) {
    switch (store_text(value.element(), numbers[i], value.mutable_data<char>() + i * width)) {
      case Stored::kYes:
        continue;
      case Stored::kNoNumber:
        throw UsageError(fmt::format("'{}' for input '{}' ({}) is neither a file nor a number of that type", numbers[i],
                                     name, type.text()));
      case Stored::kNoPlainForm:
        throw UsageError(fmt::format("input '{}' ({}) needs a file", name, type.text()));
    }
  }
  return value;
}

// Samples of one channel, with leading axes of size 1 up to the declared rank.
Value fit_wave(const Type& type, const Value& samples) {
  std::vector<int64_t> dims = samples.dims();
  while (static_cast<int64_t>(dims.size()) < type.rank()) dims.insert(dims.begin(), 1);
  return reshaped(samples, dims);
}

// The format of standard input, as the ending of a file.
std::string format_of(std::string_view bytes) {
  if (bytes.starts_with("\x93NUMPY")) return ".npy";
  if (bytes.starts_with("PK")) return ".npz";
  return bytes.starts_with("RIFF") ? ".wav" : ".pb";
}

// Reads a value from standard input.
Value read_value(const Type& type, const std::string& bytes) {
  const std::string format = format_of(bytes);
  if (format == ".npy") return read_npy(bytes, "standard input");
  if (format == ".wav") return fit_wave(type, read_wav(bytes, "standard input").samples);
  treadle_value* value = nullptr;
  treadle::check(treadle_value_from_pb(bytes.data(), bytes.size(), type.get(), &value));
  return Value(value);
}

Value read_value(const Type& type, const std::string& name, const std::string& text) {
  if (ends_with(text, ".npy")) return read_npy(treadle::read_file(text), text);
  if (ends_with(text, ".pb")) return Value::from_pb_file(text, type.get());
  if (ends_with(text, ".wav")) return fit_wave(type, read_wav(treadle::read_file(text), text).samples);
  return read_literal(type, name, text);
}

// The float16 nearest to a number, ties to even. Written by hand: compilers call a function of a libgcc that is newer
// than the systems on which treadle runs.
uint16_t half_of(double number) {
  const unsigned sign = std::signbit(number) ? 0x8000 : 0;
  const double size = std::abs(number);
  if (std::isnan(number)) return static_cast<uint16_t>(sign | 0x7e00);
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  const int exponent = size > 0 ? std::max(std::ilogb(size), -14) : -14;
  const auto steps = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<uint16_t>(sign | ((static_cast<unsigned>(exponent + 14) << 10) + steps));
}

}  // namespace

bool store_number(int element, double number, char* at) {
  const auto put = [at](auto value) {
    std::memcpy(at, &value, sizeof value);
    return true;
  };
  switch (element) {
    case 1:
      return put(static_cast<float>(number));
    case 2:
    case 9:
      return put(static_cast<uint8_t>(number));
    case 3:
      return put(static_cast<int8_t>(number));
    case 4:
      return put(static_cast<uint16_t>(number));
    case 5:
      return put(static_cast<int16_t>(number));
    case 6:
      return put(static_cast<int32_t>(number));
    case 7:
      return put(static_cast<int64_t>(number));
    case 10:
      return put(half_of(number));
    case 11:
      return put(number);
    case 12:
      return put(static_cast<uint32_t>(number));
    case 13:
      return put(static_cast<uint64_t>(number));
    case 16: {
      const auto single = static_cast<float>(number);
      uint32_t bits = 0;
      std::memcpy(&bits, &single, sizeof bits);
      if (!std::isnan(single)) bits += 0x7fff + (bits >> 16 & 1);  // to nearest, ties to even
      return put(static_cast<uint16_t>(bits >> 16));
    }
    default:
      return false;
  }
}

Value reshaped(const Value& value, const std::vector<int64_t>& dims) {
  Value result = Value::tensor(value.element(), dims);
  if (result.bytes() != value.bytes()) throw InputError("a value cannot be brought into the shape of its input");
  if (value.bytes() > 0) std::memcpy(result.mutable_data<char>(), value.data<char>(), value.bytes());
  return result;
}

Feeds read_feeds(const Session& session, const std::vector<std::string>& arguments, Feeds feeds) {
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const bool named = equals != std::string::npos;
    const std::string text = named ? argument.substr(equals + 1) : argument;
    const std::string piped = text == "-" ? read_input(text) : "";
    if (ends_with(text, ".npz") || format_of(piped) == ".npz") {
      if (named) throw UsageError(fmt::format("'{}': the names of inputs are those in the file", argument));
      for (auto& [name, value] : read_npz(piped.empty() ? treadle::read_file(text) : piped, text)) {
        type_of_input(session, name);
        if (has_feed(feeds, name)) throw UsageError(fmt::format("input '{}' is given twice", name));
        feeds.emplace_back(name, std::move(value));
      }
      continue;
    }
    const std::string name = named ? argument.substr(0, equals) : next_input(session, feeds);
    if (has_feed(feeds, name)) throw UsageError(fmt::format("input '{}' is given twice", name));
    const Type type(type_of_input(session, name));
    feeds.emplace_back(name, text == "-" ? read_value(type, piped) : read_value(type, name, text));
  }
  return feeds;
}

void require_feeds(const Session& session, const Feeds& feeds) {
  for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
    const std::string name = session.name(TREADLE_INPUT, i);
    const Type type = session.type(TREADLE_INPUT, i);
    if (has_feed(feeds, name) || type.kind() == TREADLE_OPTIONAL) continue;
    throw InputError(
        fmt::format("input '{}' is missing: expected {}; give {}=FILE, or --random SEED to draw what is "
                    "not given",
                    name, type.text(), name));
  }
}

}  // namespace cli
