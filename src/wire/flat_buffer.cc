#include "wire/flat_buffer.h"

#include <fmt/format.h>

namespace treadle::wire {

namespace {

constexpr uint32_t kReferenceBytes = 4;
constexpr uint64_t kTableCost = 16;  // cost of a table, about the size of the smallest one in a real file
// The limit of all reads. Files share names of operators and domains, but no real file comes close to it.
constexpr uint64_t kReadsOfAByte = 4, kFreeBytes = uint64_t{1} << 20;

}  // namespace

FlatBuffer::FlatBuffer(std::string_view bytes) : bytes_(bytes), budget_(kReadsOfAByte * bytes.size() + kFreeBytes) {
  if (bytes.size() > UINT32_MAX / 2) {
    status_ = error(Code::kLimit, "the buffer has {} bytes, more than offsets of 32 bits reach", bytes.size());
    bytes_ = {};
  }
}

void FlatBuffer::fail(std::string_view message, size_t at) {
  if (status_.ok()) status_ = error(Code::kInvalidFile, "{}", message).in(fmt::format("byte {}", at));
}

bool FlatBuffer::charge(uint64_t cost, size_t at) {
  if (!status_.ok()) return false;
  if (cost > budget_) {
    status_ = error(Code::kLimit, "the parts that the file refers to are more than {} times the file", kReadsOfAByte)
                  .in(fmt::format("byte {}", at));
    return false;
  }
  budget_ -= cost;
  return true;
}

FlatBuffer::Table FlatBuffer::root() {
  if (!status_.ok()) return {};
  if (!inside(0, kReferenceBytes)) return fail("the file ends before its first table", 0), Table();
  return table_at(follow(0));
}

uint32_t FlatBuffer::follow(uint32_t at) {
  if (!status_.ok()) return 0;
  const uint32_t offset = load<uint32_t>(at);
  if (offset == 0 || !inside(uint64_t{at} + offset, kReferenceBytes)) {
    fail(fmt::format("expected a reference into the file, found an offset of {}", offset), at);
    return 0;
  }
  return at + offset;
}

FlatBuffer::Table FlatBuffer::table_at(uint32_t at) {
  if (at == 0 || !charge(kTableCost, at)) return {};
  const int64_t fields = int64_t{at} - load<int32_t>(at);
  constexpr uint32_t kHead = 4;  // the sizes of the list and of the table, two bytes each
  if (fields < 0 || !inside(static_cast<uint64_t>(fields), kHead)) {
    return fail("a table's list of fields lies outside of the file", at), Table();
  }
  const auto fields_at = static_cast<uint32_t>(fields);
  const uint16_t fields_size = load<uint16_t>(fields_at), size = load<uint16_t>(fields_at + 2);
  if (fields_size < kHead || !inside(fields_at, fields_size) || !inside(at, size)) {
    return fail("a table or its list of fields reaches beyond the end of the file", at), Table();
  }
  return {at, fields_at + kHead, fields_at + fields_size};
}

uint32_t FlatBuffer::place(const Table& table, unsigned field, size_t size) {
  if (!status_.ok() || !table) return 0;
  const uint32_t entry = table.fields_at + 2 * field;
  if (entry + 2 > table.fields_end) return 0;
  const uint16_t offset = load<uint16_t>(entry);
  if (offset == 0) return 0;
  if (!inside(uint64_t{table.at} + offset, size)) return fail("a field lies beyond the end of the file", table.at), 0;
  return table.at + offset;
}

uint32_t FlatBuffer::reference(const Table& table, unsigned field) {
  const uint32_t at = place(table, field, kReferenceBytes);
  return at ? follow(at) : 0;
}

FlatBuffer::Vector FlatBuffer::vector_at(uint32_t at, size_t element_size) {
  if (at == 0 || !status_.ok()) return {};
  const uint32_t count = load<uint32_t>(at);
  const uint64_t size = uint64_t{count} * element_size;
  if (!inside(uint64_t{at} + kReferenceBytes, size)) {
    return fail(fmt::format("a list of {} elements reaches beyond the end of the file", count), at), Vector();
  }
  if (!charge(size, at)) return {};
  return {at + kReferenceBytes, count};
}

std::string_view FlatBuffer::text_at(uint32_t at) {
  const Vector vector = vector_at(at, 1);
  return vector.at ? bytes(vector) : std::string_view();
}

}  // namespace treadle::wire
