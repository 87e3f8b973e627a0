#include "wire/cursor.h"

#include <algorithm>

#include "base/stop.h"

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

bool Document::look(const Cursor& at) {
  if (charged_ > limits_.structure_bytes) {
    charged_ = limits_.structure_bytes;
    fail(at, Code::kLimit,
         fmt::format("the model's structure would take more than {} bytes of memory", limits_.structure_bytes));
  } else if (stop_requested()) {
    fail(at, Code::kCancelled, stopped().message());
  }
  next_look_ = std::min(charged_ + kBetweenLooks, limits_.structure_bytes);
  return ok();
}

void Document::fail(const Cursor& at, Code code, std::string_view what) {
  if (!status_.ok()) return;
  status_ = Status(code, std::string(what));
  failed_at_ = static_cast<size_t>(at.field_begin() - bytes_.data());
}

void Document::failed_in(std::string_view field, size_t index) {
  std::string path(field);
  if (index != kNoIndex) path += fmt::format("[{}]", index);
  if (!path_.empty()) path += '.';
  path_.insert(0, path);
}

Status Document::take_status() {
  if (status_.ok()) return {};
  const std::string place = fmt::format("byte {}", failed_at_);
  return std::move(status_).in(path_.empty() ? place : fmt::format("{}, {}", place, path_));
}

bool Cursor::read_long_tag() {
  uint64_t tag = 0;
  position_ = field_begin_;
  if (!read_varint(position_, end_, tag)) {
    fail(Code::kInvalidFile, "a field's tag is cut off or longer than ten bytes");
    return false;
  }
  tag_ = static_cast<uint32_t>(tag);
  if (tag <= UINT32_MAX) return true;
  fail_field(tag);
  return false;
}

bool Cursor::read_length(uint64_t& length) {
  if (read_varint(position_, end_, length)) return true;
  fail(Code::kInvalidFile, "a length is cut off or longer than ten bytes");
  return false;
}

void Cursor::fail_field(uint64_t tag) {
  if (tag > UINT32_MAX || tag >> 3 == 0) {
    return fail(Code::kInvalidFile, fmt::format("expected a field, found the impossible tag {}", tag));
  }
  fail(Code::kInvalidFile, fmt::format("field {} has wire type {}, which ONNX files do not use", tag >> 3, tag & 7));
}

void Cursor::fail_type(WireType type) {
  if (!document_.ok()) return;
  fail(Code::kInvalidFile, fmt::format("expected a {} value in field {}, found a {} one", wire_type_name(type), field(),
                                       wire_type_name(wire_type())));
}

void Cursor::fail_length(uint64_t length) {
  fail(Code::kInvalidFile, fmt::format("field {} claims {} bytes, but only {} are left", field(), length,
                                       static_cast<size_t>(end_ - position_)));
}

size_t Cursor::count_row(size_t most) const {
  const char* position = field_begin_;
  const char tag = *position;
  size_t count = 0;
  if (wire_type() != WireType::kBytes || static_cast<uint8_t>(tag) >= 0x80) return 1;
  while (count < most && end_ - position >= 2 && *position == tag) {
    uint64_t length = static_cast<uint8_t>(*++position);
    if (length < 0x80) {
      ++position;
    } else if (!read_varint(position, end_, length)) {
      break;
    }
    if (length > static_cast<size_t>(end_ - position)) break;
    position += length;
    ++count;
  }
  return count;
}

void Cursor::skip() {
  switch (wire_type()) {
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

}  // namespace treadle::wire
