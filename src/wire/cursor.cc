#include "wire/cursor.h"

namespace treadle::wire {

namespace {

std::string_view wire_type_name(WireType type) {
  switch (type) {
    case WireType::kVarint:
      return "varint";
    case WireType::kFixed64:
      return "64-bit";
    case WireType::kBytes:
      return "length-delimited";
    case WireType::kFixed32:
      return "32-bit";
  }
  return "unknown";
}

}  // namespace

bool Document::charge(const Cursor& at, size_t bytes) {
  charged_ += bytes;
  if (charged_ <= limits_.structure_bytes) return ok();
  fail(at, Code::kLimit,
       fmt::format("the model's structure would take more than {} bytes of memory", limits_.structure_bytes));
  return false;
}

void Document::fail(const Cursor& at, Code code, std::string_view what) {
  if (status_.ok()) status_ = Status(code, std::string(what)).in(at.place());
}

bool Cursor::next() {
  if (!document_.ok() || position_ == end_) return false;
  field_begin_ = position_;
  name_ = {};
  uint64_t tag = 0;
  if (!read_varint(position_, end_, tag)) {
    fail(Code::kInvalidFile, "a field's tag is cut off or longer than ten bytes");
    return false;
  }
  if (tag > UINT32_MAX || tag >> 3 == 0) {
    fail(Code::kInvalidFile, fmt::format("expected a field, found the impossible tag {}", tag));
    return false;
  }
  field_ = static_cast<uint32_t>(tag >> 3);
  const unsigned type = tag & 7;
  if (type == 3 || type == 4 || type > 5) {
    fail(Code::kInvalidFile, fmt::format("field {} has wire type {}, which ONNX files do not use", field_, type));
    return false;
  }
  wire_type_ = static_cast<WireType>(type);
  return true;
}

void Cursor::skip() {
  switch (wire_type_) {
    case WireType::kVarint:
      varint();
      break;
    case WireType::kFixed64:
      fixed64();
      break;
    case WireType::kBytes:
      bytes();
      break;
    case WireType::kFixed32:
      fixed32();
      break;
  }
}

bool Cursor::expect(WireType type) {
  if (!document_.ok()) return false;
  if (wire_type_ == type) return true;
  fail(Code::kInvalidFile, fmt::format("expected a {} value in field {}, found a {} one", wire_type_name(type), field_,
                                       wire_type_name(wire_type_)));
  return false;
}

uint64_t Cursor::varint() {
  uint64_t value = 0;
  if (!expect(WireType::kVarint)) return 0;
  if (read_varint(position_, end_, value)) return value;
  fail(Code::kInvalidFile, "an integer is cut off or longer than ten bytes");
  return 0;
}

std::string_view Cursor::bytes() {
  uint64_t length = 0;
  if (!expect(WireType::kBytes)) return {};
  if (!read_varint(position_, end_, length)) {
    fail(Code::kInvalidFile, "a length is cut off or longer than ten bytes");
    return {};
  }
  const size_t left = static_cast<size_t>(end_ - position_);
  if (length > left) {
    fail(Code::kInvalidFile, fmt::format("field {} claims {} bytes, but only {} are left", field_, length, left));
    return {};
  }
  const char* begin = position_;
  position_ += length;
  return {begin, static_cast<size_t>(length)};
}

std::string Cursor::place() const {
  std::string path;
  append_path(path);
  const size_t offset = static_cast<size_t>(field_begin_ - document_.bytes().data());
  return path.empty() ? fmt::format("byte {}", offset) : fmt::format("byte {}, {}", offset, path);
}

void Cursor::append_path(std::string& path) const {
  if (parent_) parent_->append_path(path);
  if (name_.empty()) return;
  if (!path.empty()) path += '.';
  path += name_;
  if (index_ != kNoIndex) path += fmt::format("[{}]", index_);
}

}  // namespace treadle::wire
