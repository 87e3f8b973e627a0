#include "model/tensor_reader.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "model/packing.h"
#include "model/types.h"
#include "type/shared_tensor.h"

namespace treadle::model {

namespace {

BufferRef keep_alive(std::shared_ptr<wire::MappedFile> file) {
  const std::string_view bytes = file->bytes();
  using Kept = std::shared_ptr<wire::MappedFile>;
  auto kept = std::make_unique<Kept>(std::move(file));
  const auto drop = [](void* context) { delete static_cast<Kept*>(context); };
  BufferRef buffer = BufferRef::wrap(const_cast<char*>(bytes.data()), bytes.size(), false, drop, kept.get());
  [[maybe_unused]] const Kept* const owned = kept.release();  // the buffer owns it
  return buffer;
}

// Kernels that move complex numbers access them as words of eight bytes.
size_t alignment_of(ElementType type) {
  return std::min<size_t>(byte_width(type), 8);
}

// Bytes of `count` packed elements; nullopt on overflow.
std::optional<size_t> packed_size(ElementType type, int64_t count) {
  const size_t n = static_cast<size_t>(count);
  if (is_sub_byte(type)) return packed_bytes(type, n);
  size_t bytes = 0;
  if (__builtin_mul_overflow(n, byte_width(type), &bytes)) return std::nullopt;
  return bytes;
}

// Contents up to this size share memory, so that models with many constants need few allocations.
constexpr size_t kSmallTensor = 256;

bool has_other_than_0_and_1(std::string_view bytes) {
  unsigned seen = 0;
  for (const char c : bytes) seen |= static_cast<uint8_t>(c);
  return seen > 1;
}

// Copies values of a typed field, truncated to Out bit by bit.
template <class Out, class In>
Result<Tensor> from_field(ElementType type, Dims dims, size_t expected, const wire::Runs<In>& field,
                          std::string_view field_name) {
  size_t found = 0;
  if (!field.count(found)) return error(Code::kInvalidFile, "the values in {} are cut off", field_name);
  if (found != expected) {
    return error(Code::kInvalidModel, "expected {} values in {} for {}{}, found {}", expected, field_name, name(type),
                 to_string(dims), found);
  }
  TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(type, std::move(dims)));
  Out* out = tensor.mutable_data<Out>();
  field.for_each([&](const In& value) { *out++ = static_cast<Out>(value); });
  return tensor;
}

// 2- and 4-bit elements are packed here too, one byte in each value.
Result<Tensor> from_packed_int32(ElementType type, Dims dims, size_t count, const wire::Runs<int32_t>& field) {
  const size_t bytes = packed_bytes(type, count);
  TREADLE_ASSIGN(const Tensor packed,
                 from_field<uint8_t>(ElementType::kUint8, {static_cast<int64_t>(bytes)}, bytes, field, "int32_data"));
  TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(type, std::move(dims)));
  unpack(type, packed.data<uint8_t>(), count, tensor.mutable_data<uint8_t>());
  return tensor;
}

Result<Tensor> from_int32_data(ElementType type, Dims dims, size_t count, const wire::Runs<int32_t>& field) {
  const unsigned bits = info(type).file_bits;
  if (bits < 6) return from_packed_int32(type, std::move(dims), count, field);
  if (bits == 6) {
    TREADLE_ASSIGN(Tensor tensor, from_field<uint8_t>(type, std::move(dims), count, field, "int32_data"));
    for (size_t i = 0; i < count; ++i) tensor.mutable_data<uint8_t>()[i] &= 0x3f;
    return tensor;
  }
  if (type == ElementType::kBool) return from_field<bool>(type, std::move(dims), count, field, "int32_data");
  switch (byte_width(type)) {
    case 1:
      return from_field<uint8_t>(type, std::move(dims), count, field, "int32_data");
    case 2:
      return from_field<uint16_t>(type, std::move(dims), count, field, "int32_data");
    default:
      return from_field<int32_t>(type, std::move(dims), count, field, "int32_data");
  }
}

Result<Tensor> from_typed_fields(ElementType type, Dims dims, int64_t elements, const wire::TensorProto& proto) {
  const size_t count = static_cast<size_t>(elements);
  switch (type) {
    case ElementType::kFloat:
      return from_field<float>(type, std::move(dims), count, proto.float_data, "float_data");
    case ElementType::kComplex64:
      return from_field<float>(type, std::move(dims), 2 * count, proto.float_data, "float_data");
    case ElementType::kDouble:
      return from_field<double>(type, std::move(dims), count, proto.double_data, "double_data");
    case ElementType::kComplex128:
      return from_field<double>(type, std::move(dims), 2 * count, proto.double_data, "double_data");
    case ElementType::kInt64:
      return from_field<int64_t>(type, std::move(dims), count, proto.int64_data, "int64_data");
    case ElementType::kUint32:
      return from_field<uint32_t>(type, std::move(dims), count, proto.uint64_data, "uint64_data");
    case ElementType::kUint64:
      return from_field<uint64_t>(type, std::move(dims), count, proto.uint64_data, "uint64_data");
    case ElementType::kString:
      return from_field<String>(type, std::move(dims), count, proto.string_data, "string_data");
    default:
      return from_int32_data(type, std::move(dims), count, proto.int32_data);
  }
}

Result<Dims> checked_dims(const wire::List<int64_t>& dims) {
  if (dims.size() > kMaxRank) {
    return error(Code::kLimit, "expected at most {} dimensions, found {}", kMaxRank, dims.size());
  }
  for (const int64_t size : dims) {
    if (size < 0) return error(Code::kInvalidModel, "expected sizes of 0 or more, found {}", size);
  }
  return Dims(dims.begin(), dims.end());
}

// The decimal number of entry `key`; `otherwise` if there is no such entry.
Result<uint64_t> number_entry(const wire::TensorProto& proto, std::string_view key, uint64_t otherwise) {
  for (const wire::StringStringEntry& entry : proto.external_data) {
    if (entry.key != key) continue;
    uint64_t number = 0;
    const char* end = entry.value.end();
    const auto [stop, failure] = std::from_chars(entry.value.begin(), end, number);
    if (failure == std::errc() && stop == end && !entry.value.empty()) return number;
    return error(Code::kInvalidModel, "expected a number as {} of external data, found \"{}\"", key, entry.value);
  }
  return otherwise;
}

}  // namespace

TensorReader::Source::Source(std::shared_ptr<wire::MappedFile> mapped)
    : file(std::move(mapped)), buffer(keep_alive(file)) {}

TensorReader::TensorReader(std::shared_ptr<wire::MappedFile> file, std::vector<std::string> folders)
    : file_(std::move(file)), folders_(std::move(folders)) {}

TensorReader::TensorReader(std::shared_ptr<wire::MappedFile> file, Folder folder)
    : file_(std::move(file)), folder_(std::move(folder.path)) {}

Result<Tensor> TensorReader::read(const wire::TensorProto& proto) {
  TREADLE_ASSIGN(const ElementType type, read_element_type(proto.data_type));
  TREADLE_ASSIGN(Dims dims, checked_dims(proto.dims));
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  if (proto.segment) return error(Code::kNotImplemented, "tensors stored in segments are not implemented");
  if (proto.data_location == wire::TensorProto::kExternal) {
    return read_external(proto, type, std::move(dims), count);
  }
  if (proto.raw_data) return from_raw(type, std::move(dims), count, file_, *proto.raw_data);
  return from_typed_fields(type, std::move(dims), count, proto);
}

Result<Type> TensorReader::type_of(const wire::TensorProto& proto) {
  TREADLE_ASSIGN(const ElementType type, read_element_type(proto.data_type));
  TREADLE_ASSIGN(const Dims dims, checked_dims(proto.dims));
  TREADLE_TRY(std::move(element_count(dims)).status());
  return Type::tensor(type, to_shape(dims));
}

Result<Tensor> TensorReader::from_raw(ElementType type, Dims dims, int64_t count, const Source& source,
                                      std::string_view bytes) {
  if (is_string(type)) return error(Code::kInvalidModel, "strings cannot be stored as raw data");
  const std::optional<size_t> expected = packed_size(type, count);
  if (!expected || bytes.size() != *expected) {
    return error(Code::kInvalidModel, "expected {} bytes for {}{}, found {}",
                 expected ? std::to_string(*expected) : "more than 2^63", name(type), to_string(dims), bytes.size());
  }
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignment_of(type) == 0;
  const bool as_is = !is_sub_byte(type) && !(type == ElementType::kBool && has_other_than_0_and_1(bytes));
  const bool stays = !copies_ || !source.file->is_mapped();
  if (as_is && aligned && stays && !bytes.empty()) {
    return Tensor::from_buffer(type, std::move(dims), source.buffer, bytes.data());
  }
  if (as_is && !bytes.empty() && bytes.size() <= kSmallTensor) {
    std::byte* room = small_room(bytes.size());
    std::memcpy(room, bytes.data(), bytes.size());
    return Tensor::from_buffer(type, std::move(dims), small_, room);
  }
  const auto copy = [&] { return copied(type, dims, source, bytes, as_is); };
  return shares_ ? shared_copy(type, dims, bytes, copy) : copy();
}

Result<Tensor> TensorReader::copied(ElementType type, const Dims& dims, const Source& source, std::string_view bytes,
                                    bool as_is) {
  TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(type, dims));
  auto* out = tensor.mutable_data<uint8_t>();
  const auto* in = reinterpret_cast<const uint8_t*>(bytes.data());
  if (is_sub_byte(type)) {
    unpack(type, in, static_cast<size_t>(tensor.element_count()), out);
  } else if (!as_is) {
    for (size_t i = 0; i < bytes.size(); ++i) out[i] = in[i] != 0;
  } else {
    TREADLE_TRY(source.file->copy(bytes, out));
  }
  return tensor;
}

std::byte* TensorReader::small_room(size_t bytes) {
  constexpr size_t kPiece = 16 * kSmallTensor;
  if (!small_ || small_used_ + bytes > kPiece) {
    auto piece = std::make_unique_for_overwrite<std::byte[]>(kPiece);
    const auto drop = [](void* kept) { delete[] static_cast<std::byte*>(kept); };
    small_ = BufferRef::wrap(piece.get(), kPiece, false, drop, piece.get());
    [[maybe_unused]] const std::byte* const owned = piece.release();  // the buffer owns it
    small_used_ = 0;
  }
  std::byte* room = small_->data() + small_used_;
  small_used_ += (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
  return room;
}

Result<Tensor> TensorReader::read_external(const wire::TensorProto& proto, ElementType type, Dims dims, int64_t count) {
  std::string_view location;
  for (const wire::StringStringEntry& entry : proto.external_data) {
    if (entry.key == "location") location = entry.value;
  }
  TREADLE_ASSIGN(const Source* source, external_file(location));
  const std::string_view all = source->file->bytes();
  TREADLE_ASSIGN(const uint64_t offset, number_entry(proto, "offset", 0));
  if (offset > all.size()) {
    return error(Code::kInvalidFile, "external data starts at byte {} of \"{}\", which has {}", offset, location,
                 all.size());
  }
  const uint64_t left = all.size() - offset;
  TREADLE_ASSIGN(const uint64_t length, number_entry(proto, "length", left));
  if (length > left) {
    return error(Code::kInvalidFile, "external data claims {} bytes from byte {} of \"{}\", which has {}", length,
                 offset, location, all.size());
  }
  return from_raw(type, std::move(dims), count, *source, all.substr(offset, length));
}

Result<const TensorReader::Source*> TensorReader::external_file(std::string_view location) {
  auto it = external_files_.find(location);
  if (it == external_files_.end()) {
    if (!folders_) folders_ = folder_.empty() ? file_.file->data_folders() : wire::canonical_folders(folder_);
    TREADLE_ASSIGN(auto file, wire::MappedFile::open_inside(location, *folders_));
    file->expect_data_reads();
    it = external_files_.emplace(location, Source(std::move(file))).first;
  }
  return &it->second;
}

Status TensorReader::unchanged() const {
  for (const auto& [location, source] : external_files_) TREADLE_TRY(source.file->unchanged());
  return file_.file->unchanged();
}

namespace {

// The position of the i-th value in the dense tensor. `indices` has positions, or one coordinate per axis.
Result<int64_t> dense_position(const Tensor& indices, int64_t i, const Dims& dims, int64_t count) {
  const bool linear = indices.rank() == 1;
  const int64_t rank = static_cast<int64_t>(dims.size());
  int64_t position = linear ? indices.data<int64_t>()[i] : 0;
  for (int64_t axis = 0; !linear && axis < rank; ++axis) {
    const int64_t coordinate = indices.data<int64_t>()[i * rank + axis];
    const int64_t size = dims[static_cast<size_t>(axis)];
    if (coordinate < 0 || coordinate >= size) {
      return error(Code::kInvalidModel, "sparse index {} is outside axis {} of size {}", coordinate, axis, size);
    }
    position = position * size + coordinate;
  }
  if (position >= 0 && position < count) return position;
  return error(Code::kInvalidModel, "sparse index {} is outside a tensor of {} elements", position, count);
}

}  // namespace

Result<Tensor> TensorReader::read_dense(const wire::SparseTensorProto& proto) {
  TREADLE_ASSIGN(Dims dims, checked_dims(proto.dims));
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  TREADLE_ASSIGN(const Tensor values, read(proto.values));
  TREADLE_ASSIGN(const Tensor indices, read(proto.indices));
  const int64_t stored = values.element_count();
  const int64_t rank = static_cast<int64_t>(dims.size());
  const bool linear = indices.rank() == 1 && indices.element_count() == stored;
  const bool coordinates = indices.rank() == 2 && indices.dims()[0] == stored && indices.dims()[1] == rank;
  if (values.rank() != 1 || indices.type() != ElementType::kInt64 || !(linear || coordinates)) {
    return error(Code::kInvalidModel, "expected n sparse values with int64 indices [n] or [n,{}], found {}{} and {}{}",
                 rank, name(values.type()), to_string(values.dims()), name(indices.type()), to_string(indices.dims()));
  }
  const size_t most = std::max(kSmallDenseBytes, kDensePerStored * (values.byte_size() + indices.byte_size()));
  if (static_cast<size_t>(count) > most / byte_width(values.type())) {
    return error(Code::kLimit, "a sparse tensor of shape {} with {} values would take more than {} bytes written out",
                 to_string(dims), stored, most);
  }
  TREADLE_ASSIGN(Tensor dense, Tensor::allocate(values.type(), dims));
  const size_t width = byte_width(values.type());
  if (!is_string(values.type()) && count > 0) std::memset(dense.mutable_raw(), 0, dense.byte_size());
  for (int64_t i = 0; i < stored; ++i) {
    TREADLE_ASSIGN(const int64_t position, dense_position(indices, i, dims, count));
    if (is_string(values.type())) {
      dense.mutable_data<String>()[position] = values.data<String>()[i];
    } else {
      std::memcpy(dense.mutable_data<std::byte>() + static_cast<size_t>(position) * width,
                  values.data<std::byte>() + static_cast<size_t>(i) * width, width);
    }
  }
  return dense;
}

}  // namespace treadle::model
