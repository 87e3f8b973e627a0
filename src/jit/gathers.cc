// Gather by indices that are known at run time. The index is checked as in the kernel, and elements are read one by
// one.

#include "jit/gathers.h"

#include "jit/loop_writer.h"

namespace treadle::jit {

namespace {

// Written out, each with its check. 4 take a third of the time of a loop over them, 16 to 64 take 0.8 (measured); each
// is code to compile.
constexpr int64_t kMostIndices = 16;

bool fits_vectors(const plan::GatherCode& code, const Chunks& chunks) {
  return code.count <= kMostIndices && chunks.is_short(code.outer * code.count * code.row);
}

}  // namespace

bool gathers(const plan::GatherCode& code) {
  constexpr int64_t kMostElements = 8192;  // the kernel is as fast from 2048 on (measured), and can be stopped
  return code.outer * code.count * code.row <= kMostElements;
}

bool gathers_to_memory(const plan::GatherCode& code, const Chunks& chunks) {
  return !fits_vectors(code, chunks);
}

// The first element of the row that the index selects.
LoopWriter::Value* LoopWriter::gathered_row(const plan::GatherCode& code, Value* index) {
  Value* at = checked_index(b_.CreateSExt(index, b_.getInt64Ty()), code.n);
  return b_.CreateMul(at, b_.getInt64(static_cast<uint64_t>(code.row)));
}

void LoopWriter::write_other(const plan::GatherCode& code) {
  const ElementType index_type = code.wide ? ElementType::kInt64 : ElementType::kInt32;
  llvm::Type* scalar = element_ir_type(b_.getContext(), code.type);
  const auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
  if (fits_vectors(code, chunks_)) {
    std::vector<Value*> rows;
    for (int64_t c = 0; c < code.count; ++c) rows.push_back(gathered_row(code, element(code.index, index_type, c)));
    std::vector<Value*> elements;
    for (int64_t o = 0; o < code.outer; ++o) {
      for (Value* row : rows) {
        for (int64_t r = 0; r < code.row; ++r) {
          Value* at = b_.CreateAdd(row, number(o * code.n * code.row + r));
          elements.push_back(load_at(b_.CreateGEP(scalar, pointer(code.data), at), code.type, 1));
        }
      }
    }
    return write_flat(code.to, code.type, lanes_.of(elements));
  }
  count_to(code.count, [&](Value* c) {
    Value* index_at = b_.CreateGEP(element_ir_type(b_.getContext(), index_type), pointer(code.index), c);
    Value* row = gathered_row(code, load_at(index_at, index_type, 1));
    Value* to = b_.CreateMul(c, number(code.row));
    count_to(code.outer, [&](Value* o) {
      Value* from = b_.CreateAdd(b_.CreateMul(o, number(code.n * code.row)), row);
      Value* place = b_.CreateAdd(b_.CreateMul(o, number(code.count * code.row)), to);
      const llvm::Align align(byte_width(code.type));
      b_.CreateMemCpy(b_.CreateGEP(scalar, pointer(code.to), place), align,
                      b_.CreateGEP(scalar, pointer(code.data), from), align,
                      static_cast<uint64_t>(code.row) * byte_width(code.type));
    });
  });
}

}  // namespace treadle::jit
