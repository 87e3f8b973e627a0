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

void Document::refuse(const Cursor& at) {
  charged_ = limits_.structure_bytes;
  fail(at, Code::kLimit,
       fmt::format("the model's structure would take more than {} bytes of memory", limits_.structure_bytes));
}

void Document::fail(const Cursor& at, Code code, std::string_view what) {
  if (status_.ok()) status_ = Status(code, std::string(what)).in(at.place());
}

void Cursor::fail_tag() {
  fail(Code::kInvalidFile, "a field's tag is cut off or longer than ten bytes");
}

void Cursor::fail_field(uint64_t tag) {
  if (tag > UINT32_MAX || tag >> 3 == 0) {
    return fail(Code::kInvalidFile, fmt::format("expected a field, found the impossible tag {}", tag));
  }
  field_ = static_cast<uint32_t>(tag >> 3);
  fail(Code::kInvalidFile, fmt::format("field {} has wire type {}, which ONNX files do not use", field_, tag & 7));
}

void Cursor::fail_type(WireType type) {
  if (!document_.ok()) return;
  fail(Code::kInvalidFile, fmt::format("expected a {} value in field {}, found a {} one", wire_type_name(type), field_,
                                       wire_type_name(wire_type_)));
}

void Cursor::fail_length(uint64_t length) {
  fail(Code::kInvalidFile, fmt::format("field {} claims {} bytes, but only {} are left", field_, length,
                                       static_cast<size_t>(end_ - position_)));
}

size_t Cursor::count_row(size_t most) const {
  const char* position = field_begin_;
  size_t count = 0;
  if (wire_type_ != WireType::kBytes || static_cast<uint8_t>(*field_begin_) >= 0x80) return 1;
  while (count < most && end_ - position >= 2 && *position == *field_begin_) {
    const auto length = static_cast<uint8_t>(position[1]);
    if (length >= 0x80 || length > end_ - position - 2) break;
    position += 2 + length;
    ++count;
  }
  return count;
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
