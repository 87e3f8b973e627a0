// Tensors: data is in the field for the type, and as long as the sizes say.
#include <algorithm>
#include <charconv>

#include "check/walk.h"

namespace treadle::checking {

namespace {

// Parses a number in an entry of external_data.
bool read_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string called(const wire::TensorProto& tensor, What what) {
  return tensor.name.empty() ? what.text() : fmt::format("{} {}", what.text(), quoted(tensor.name));
}

// The first IR version whose files may use the type.
int64_t introduced(ElementType type) {
  switch (type) {
    case ElementType::kFloat8e4m3fn:
    case ElementType::kFloat8e4m3fnuz:
    case ElementType::kFloat8e5m2:
    case ElementType::kFloat8e5m2fnuz:
      return 9;
    case ElementType::kUint4:
    case ElementType::kInt4:
      return 10;
    case ElementType::kFloat4e2m1:
      return 11;
    case ElementType::kFloat8e8m0:
      return 12;
    case ElementType::kUint2:
    case ElementType::kInt2:
      return 13;
    case ElementType::kFloat6e2m3:
    case ElementType::kFloat6e3m2:
      return 14;
    default:
      return 1;
  }
}

// Bytes of `count` elements in raw data; false if the number is too large.
bool raw_size(ElementType type, int64_t count, int64_t& bytes) {
  int64_t bits = 0;
  if (__builtin_mul_overflow(count, int64_t{info(type).file_bits}, &bits)) return false;
  bytes = bits / 8 + (bits % 8 != 0);
  return true;
}

enum Field : size_t { kFloats, kInt32s, kStrings, kInt64s, kRaw, kDoubles, kUint64s, kFieldCount };
constexpr std::string_view kFieldNames[kFieldCount] = {"float_data", "int32_data",  "string_data", "int64_data",
                                                       "raw_data",   "double_data", "uint64_data"};

struct Fields {
  explicit Fields(const wire::TensorProto& t)
      : present{!t.float_data.empty(),
                !t.int32_data.empty(),
                !t.string_data.empty(),
                !t.int64_data.empty(),
                t.raw_data && !t.raw_data->empty(),
                !t.double_data.empty(),
                !t.uint64_data.empty()} {}
  size_t count() const { return static_cast<size_t>(std::count(std::begin(present), std::end(present), true)); }
  std::string text() const {
    std::string text;
    for (size_t i = 0; i < kFieldCount; ++i) {
      if (present[i]) text += fmt::format("{}{}", text.empty() ? "" : ", ", kFieldNames[i]);
    }
    return text.empty() ? "none" : text;
  }
  bool present[kFieldCount];
};

// The field for data of a type that is not raw.
Field field_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kComplex64:
      return kFloats;
    case ElementType::kDouble:
    case ElementType::kComplex128:
      return kDoubles;
    case ElementType::kInt64:
      return kInt64s;
    case ElementType::kUint32:
    case ElementType::kUint64:
      return kUint64s;
    case ElementType::kString:
      return kStrings;
    default:
      return kInt32s;
  }
}

// Values of that field for `count` elements; false if the number is too large.
bool field_size(ElementType type, int64_t count, int64_t& values) {
  if (info(type).type_class == TypeClass::kComplex) return !__builtin_mul_overflow(count, int64_t{2}, &values);
  const int64_t packed = info(type).file_bits == 4 ? 8 : info(type).file_bits == 2 ? 16 : 1;
  values = count / packed + (count % packed != 0);
  return true;
}

bool value_count(const wire::TensorProto& tensor, Field field, size_t& count) {
  switch (field) {
    case kFloats:
      return tensor.float_data.count(count);
    case kInt32s:
      return tensor.int32_data.count(count);
    case kStrings:
      return tensor.string_data.count(count);
    case kInt64s:
      return tensor.int64_data.count(count);
    case kDoubles:
      return tensor.double_data.count(count);
    case kUint64s:
      return tensor.uint64_data.count(count);
    default:
      count = 0;
      return true;
  }
}

bool is_float6(ElementType type) {
  return type == ElementType::kFloat6e2m3 || type == ElementType::kFloat6e3m2;
}

}  // namespace

std::string What::text() const {
  return name.data() ? fmt::format("{} {}", kind, quoted(name)) : std::string(kind);
}

void Walk::check_tensor(const wire::TensorProto& tensor, What what) {
  const ElementType type = element_type_from_number(tensor.data_type);
  if (type == ElementType::kUndefined) {
    Diagnostic& d = report(Problem::kTensorType, tensor.name, "{}: the element type", called(tensor, what));
    d.expected = "a number from 1 to 28";
    d.found = tensor.data_type == 0 ? "none" : std::to_string(tensor.data_type);
    return;
  }
  if (introduced(type) > ir_version_)
    note_feature(introduced(type), tensor.name, fmt::format("element type {}", name(type)));
  if (!tensor.metadata_props.empty()) check_metadata(tensor.metadata_props, "a tensor's");
  int64_t count = 1;
  if (tensor.data_location == wire::TensorProto::kExternal) return check_external(tensor, what);
  if (!check_element_count(tensor, what, count)) return;
  check_fields(tensor, what, count);
}

bool Walk::check_element_count(const wire::TensorProto& tensor, What what, int64_t& count) {
  count = 1;
  bool fits = true, empty = false;
  for (const int64_t dim : tensor.dims) {
    if (dim < 0) {
      Diagnostic& d = report(Problem::kTensorDims, tensor.name, "{}: a size", called(tensor, what));
      d.expected = "0 or more";
      d.found = std::to_string(dim);
      return false;
    }
    empty |= dim == 0;
    fits = fits && !__builtin_mul_overflow(count, dim, &count);
  }
  if (empty) count = 0;
  if (fits || empty) return true;
  report(Problem::kTensorDims, tensor.name, "{}: the product of its sizes does not fit 63 bits", called(tensor, what));
  return false;
}

void Walk::check_fields(const wire::TensorProto& tensor, What what, int64_t count) {
  const ElementType type = static_cast<ElementType>(tensor.data_type.get());
  const Fields fields(tensor);
  const Field own = field_of(type);
  const auto wrong = [&](std::string_view message) -> Diagnostic& {
    return report(Problem::kTensorData, tensor.name, "{}: {}", called(tensor, what), message);
  };
  if (count == 0) {
    if (fields.count() > 0) wrong("it has no elements, but data").found = fields.text();
    return;
  }
  if (fields.count() != 1) {
    Diagnostic& d = wrong("its data");
    d.expected = fmt::format("one field, raw_data or {}", kFieldNames[own]);
    d.found = fields.text();
    return;
  }
  if (fields.present[kRaw] && type != ElementType::kString) return check_raw(tensor, what, type, count);
  if (!fields.present[own]) {
    Diagnostic& d = wrong(fmt::format("values of type {}", name(type)));
    d.expected = kFieldNames[own];
    d.found = fields.text();
    return;
  }
  int64_t wanted = 0;
  size_t found = 0;
  if (!value_count(tensor, own, found)) {
    wrong(fmt::format("{} holds an integer that is cut off or longer than ten bytes", kFieldNames[own]));
    return;
  }
  const bool fits = field_size(type, count, wanted);
  if (fits && found == static_cast<uint64_t>(wanted)) {
    bool outside = false;
    if (is_float6(type)) tensor.int32_data.for_each([&](int32_t v) { outside |= v < 0 || v > 0x3f; });
    if (outside)
      report(Problem::kTensorBits, tensor.name, "{}: a value of six bits uses more of them", called(tensor, what));
    return;
  }
  const bool enough = fits && found > static_cast<uint64_t>(wanted);
  Diagnostic& d = report(enough ? Problem::kTensorExcess : Problem::kTensorSize, tensor.name, "{}: the values in {}",
                         called(tensor, what), kFieldNames[own]);
  d.expected = fits ? std::to_string(wanted) : "more than there can be";
  d.found = std::to_string(found);
}

void Walk::check_raw(const wire::TensorProto& tensor, What what, ElementType type, int64_t count) {
  const std::string_view raw = *tensor.raw_data;
  int64_t bytes = 0;
  const bool fits = raw_size(type, count, bytes);
  if (!fits || raw.size() != static_cast<uint64_t>(bytes)) {
    const bool enough = fits && raw.size() > static_cast<uint64_t>(bytes);
    Diagnostic& d = report(enough ? Problem::kTensorExcess : Problem::kTensorSize, tensor.name,
                           "{}: the bytes in raw_data", called(tensor, what));
    d.expected = fits ? std::to_string(bytes) : "more than there can be";
    d.found = std::to_string(raw.size());
    if (!enough) return;
  }
  const int used = static_cast<int>(count % 4) * 6 % 8;
  if (!is_float6(type) || used == 0) return;
  if (static_cast<uint8_t>(raw[static_cast<size_t>(bytes) - 1]) >> used != 0) {
    report(Problem::kTensorBits, tensor.name, "{}: bits behind its last element are set", called(tensor, what));
  }
}

void Walk::check_external(const wire::TensorProto& tensor, What what) {
  const auto wrong = [&](Problem problem, std::string_view message) -> Diagnostic& {
    return report(problem, tensor.name, "{}: {}", called(tensor, what), message);
  };
  if (const Fields fields(tensor); fields.count() > 0) {
    wrong(Problem::kTensorData, "it is stored externally, but has data here as well").found = fields.text();
  }
  if (tensor.data_type == static_cast<int32_t>(ElementType::kString)) {
    wrong(Problem::kExternalData, "strings cannot be stored externally");
  }
  const std::string_view* location = nullptr;
  uint64_t offset = 0, length = 0;
  bool has_length = false;
  for (const wire::StringStringEntry& entry : tensor.external_data) {
    if (entry.key == "location") {
      location = &entry.value;
    } else if (entry.key == "offset" || entry.key == "length") {
      const bool is_length = entry.key == "length";
      if (!read_number(entry.value, is_length ? length : offset)) {
        Diagnostic& d = wrong(Problem::kExternalData, fmt::format("the {} of its external data", entry.key));
        d.expected = "a number of bytes";
        d.found = quoted(entry.value);
        return;
      }
      has_length |= is_length;
    }
  }
  if (!location) {
    wrong(Problem::kExternalData, "it is stored externally, but does not say where").hint =
        "add \"location\" to its external_data";
    return;
  }
  const ExternalFile& file = external_files_.look_at(*location);
  if (!file.problem.empty()) {
    Diagnostic& d = wrong(Problem::kExternalData, file.problem);
    d.expected = quoted(file.expected);
    d.found = quoted(file.found);
    return;
  }
  int64_t count = 0, bytes = 0;
  if (!check_element_count(tensor, what, count)) return;
  const bool fits = raw_size(static_cast<ElementType>(tensor.data_type.get()), count, bytes);
  if (!fits || (has_length && length != static_cast<uint64_t>(bytes))) {
    Diagnostic& d = wrong(fits && length > static_cast<uint64_t>(bytes) ? Problem::kTensorExcess : Problem::kTensorSize,
                          "the length of its external data");
    d.expected = fits ? std::to_string(bytes) : "more than there can be";
    d.found = std::to_string(length);
  }
  if (!external_files_.has_folder()) return;
  const uint64_t needed = has_length ? length : static_cast<uint64_t>(bytes);
  if (offset <= file.size && needed <= file.size - offset) return;
  Diagnostic& d = wrong(Problem::kExternalRange, fmt::format("its external data in {}", quoted(*location)));
  d.expected = fmt::format("bytes within its {}", file.size);
  d.found = fmt::format("{} bytes from byte {} on", needed, offset);
}

}  // namespace treadle::checking
