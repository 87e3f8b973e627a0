// Elements of what a row reads and makes, all but sums.

#include <algorithm>

#include "jit/dynamic_shapes.h"

namespace treadle::jit {

void LoopWriter::DynamicShapeWriter::allocate_results(Block* otherwise) {
  std::vector<plan::NativeValue> wanted;
  std::vector<uint32_t> slots;
  Values sizes;
  for (const uint32_t s : order_) {
    const Tensor& of = tensors_.at(s);
    if (!of.is_placed) continue;
    wanted.push_back(
        {of.pc, static_cast<uint32_t>(of.output), static_cast<uint32_t>(of.sizes.size()), code(of.pc).appends});
    slots.push_back(s);
    sizes.insert(sizes.end(), of.sizes.begin(), of.sizes.end());
  }
  Value* const list = w_.stack(std::max<size_t>(sizes.size(), 1) * sizeof(int64_t));
  for (size_t i = 0; i < sizes.size(); ++i) {
    w_.b_.CreateStore(sizes[i], w_.offset(list, static_cast<int64_t>(i * sizeof(int64_t))));
  }
  Value* const places = w_.stack(std::max<size_t>(slots.size(), 1) * sizeof(void*));
  Value* const found = w_.call_host(offsetof(plan::NativeHost, make),
                                    {w_.context_, w_.constant_values(wanted),
                                     w_.b_.getInt32(static_cast<uint32_t>(wanted.size())), list, bytes_, places});
  Block* next = Block::Create(w_.b_.getContext(), "places", w_.function_, w_.exit_);
  w_.b_.CreateCondBr(w_.b_.CreateICmpEQ(found, w_.b_.getInt32(plan::kNativeElsewhere)), otherwise, next);
  w_.b_.SetInsertPoint(next);
  w_.leave_unless_zero(found);
  for (size_t i = 0; i < slots.size(); ++i) {
    tensors_.at(slots[i]).place =
        w_.b_.CreateLoad(w_.b_.getPtrTy(), w_.offset(places, static_cast<int64_t>(i * sizeof(void*))));
  }
  for (const uint32_t s : read_) tensors_.at(s).data = w_.pointer(s);  // what has grown may lie elsewhere
}

// Of a part: where its elements lie in what it is a part of.
void LoopWriter::DynamicShapeWriter::find_data(uint32_t s) {
  auto& b = w_.b_;
  Tensor& to = tensors_.at(s);
  const Tensor& from = input(to.pc, 0);
  llvm::Type* const scalar = element_ir_type(b.getContext(), to.type);
  const auto moved = [&](Value* data, Value* repeats, Value* stride) {
    return b.CreateGEP(scalar, data, b.CreateMul(repeats, stride));
  };
  to.data = from.data;
  switch (to.code->rule) {
    case SizeRule::kSlice:
      to.strides = from.strides;
      for (size_t i = 0; i < to.code->axes.size(); ++i) {
        const auto axis = static_cast<size_t>(to.code->axes[i]);
        to.data = moved(to.data, to.begins[axis], from.strides[axis]);
        to.strides[axis] = b.CreateMul(from.strides[axis], number(to.code->steps[i]));
      }
      break;
    case SizeRule::kSplit: {
      const auto axis = static_cast<size_t>(to.code->axis);
      to.strides = from.strides;
      Value* const before = b.CreateMul(number(static_cast<int64_t>(to.output)), to.sizes[axis]);
      to.data = moved(to.data, before, from.strides[axis]);
      break;
    }
    case SizeRule::kSqueeze:
      for (size_t d = 0; d < from.strides.size(); ++d) {
        if (!to.code->has_axis(d)) to.strides.push_back(from.strides[d]);
      }
      break;
    case SizeRule::kUnsqueeze:
      for (size_t d = 0, next = 0; d < to.sizes.size(); ++d) {
        to.strides.push_back(to.code->has_axis(d) ? number(0) : from.strides[next++]);
      }
      break;
    default:
      to.strides = row_major(to.sizes);
  }
}

// fn(i) for i = 0, ..., count - 1.
void LoopWriter::DynamicShapeWriter::each(Value* count, const std::function<void(Value*)>& fn) {
  if (is_number(count, 0)) return;
  if (llvm::isa<llvm::ConstantInt>(count)) {
    return w_.count_to(llvm::cast<llvm::ConstantInt>(count)->getSExtValue(), fn);
  }
  Block* some = Block::Create(w_.b_.getContext(), "some", w_.function_, w_.exit_);
  Block* done = Block::Create(w_.b_.getContext(), "done", w_.function_, w_.exit_);
  w_.b_.CreateCondBr(w_.b_.CreateICmpSGT(count, number(0)), some, done);
  w_.b_.SetInsertPoint(some);
  w_.count_up_to(count, fn);
  w_.b_.CreateBr(done);
  w_.b_.SetInsertPoint(done);
}

// fn(at) for every place of all axes but the last; `at` has one number for each.
void LoopWriter::DynamicShapeWriter::each_row(Tensor& to, size_t d, Values& at,
                                              const std::function<void(Values&)>& fn) {
  if (d + 1 >= to.sizes.size()) return fn(at);
  each(to.sizes[d], [&](Value* i) {
    at[d] = i;
    each_row(to, d + 1, at, fn);
  });
}

// Whole vectors, the last of which ends with the row; elements one by one where there are fewer than a vector has.
// What is written does not depend on what is written before, so some of it may be written twice.
void LoopWriter::DynamicShapeWriter::along_row(Value* n, const std::function<void(Value* first, unsigned lanes)>& fn) {
  auto& b = w_.b_;
  const unsigned lanes = w_.chunks_.full;
  if (is_number(n, 1)) return fn(number(0), 1);
  Block* vectors = Block::Create(b.getContext(), "vectors", w_.function_, w_.exit_);
  Block* few = Block::Create(b.getContext(), "few", w_.function_, w_.exit_);
  Block* done = Block::Create(b.getContext(), "row", w_.function_, w_.exit_);
  b.CreateCondBr(b.CreateICmpSGE(n, number(lanes)), vectors, few);
  b.SetInsertPoint(vectors);
  Value* const last = b.CreateSub(n, number(lanes));
  Value* const repeats = b.CreateUDiv(b.CreateAdd(n, number(lanes - 1)), number(lanes));
  w_.count_up_to(repeats, [&](Value* i) {
    Value* const first = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateMul(i, number(lanes)), last);
    fn(first, lanes);
  });
  b.CreateBr(done);
  b.SetInsertPoint(few);
  each(n, [&](Value* i) { fn(i, 1); });
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

LoopWriter::Value* LoopWriter::DynamicShapeWriter::address(const Tensor& of, const Values& at) const {
  Value* offset = number(0);
  for (size_t d = 0; d < at.size(); ++d) offset = w_.b_.CreateAdd(offset, w_.b_.CreateMul(at[d], of.strides[d]));
  return w_.b_.CreateGEP(element_ir_type(w_.b_.getContext(), of.type), of.data, offset);
}

// `lanes` neighbours along the last axis.
LoopWriter::Value* LoopWriter::DynamicShapeWriter::load(const Tensor& of, const Values& at, unsigned lanes) {
  auto& b = w_.b_;
  Value* const from = address(of, at);
  if (lanes == 1) return w_.load_at(from, of.type, 1);
  Value* const stride = of.strides.back();
  if (is_number(stride, 1)) return w_.load_at(from, of.type, lanes);
  if (is_number(stride, -1)) {
    const int64_t width = static_cast<int64_t>(byte_width(of.type));
    return b.CreateVectorReverse(w_.load_at(w_.offset(from, -static_cast<int64_t>(lanes - 1) * width), of.type, lanes));
  }
  if (is_number(stride, 0)) return b.CreateVectorSplat(lanes, w_.load_at(from, of.type, 1));
  llvm::Type* const scalar = element_ir_type(b.getContext(), of.type);
  Value* vector = llvm::PoisonValue::get(lanes_of(scalar, lanes));
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value* const place = b.CreateGEP(scalar, from, b.CreateMul(stride, number(lane)));
    vector = b.CreateInsertElement(vector, w_.load_at(place, of.type, 1), lane);
  }
  return vector;
}

LoopWriter::Value* LoopWriter::DynamicShapeWriter::elements(uint32_t s, const Values& at, unsigned lanes, Seen& seen) {
  auto& b = w_.b_;
  if (const auto it = seen.find(s); it != seen.end()) return it->second;
  const Tensor& of = tensors_.at(s);
  Value* result = nullptr;
  if (of.data) {
    result = load(of, at, lanes);
  } else if (of.code->rule == SizeRule::kRange) {
    llvm::Type* const scalar = element_ir_type(b.getContext(), of.type);
    const auto spread = [&](Value* x) {
      Value* const narrow = b.CreateTrunc(x, scalar);
      return lanes == 1 ? narrow : b.CreateVectorSplat(lanes, narrow);
    };
    result = spread(b.CreateAdd(of.start, b.CreateMul(at.back(), of.step)));
    if (lanes > 1) {
      result = b.CreateAdd(result, b.CreateMul(b.CreateStepVector(result->getType()), spread(of.step)));
    }
  } else {
    const plan::ElementwiseCode::Step& step = of.code->step;
    llvm::SmallVector<Value*, 3> arguments;
    for (size_t i = 0; i < step.argument_count; ++i) {
      const uint32_t argument = inputs_.at(of.pc)[step.arguments[i]];
      const Values& sizes = tensors_.at(argument).sizes;
      Values own(at.end() - static_cast<std::ptrdiff_t>(sizes.size()), at.end());
      for (size_t d = 0; d < own.size(); ++d) {
        if (is_number(sizes[d], 1)) own[d] = number(0);
      }
      const auto is_only = [](const Value* size) { return is_number(size, 1); };
      const bool spreads = !sizes.empty() && is_only(sizes.back()) && !is_number(of.sizes.back(), 1);
      const bool is_one = spreads || std::ranges::all_of(sizes, is_only);
      Seen apart;  // of one element at a time
      Value* value = elements(argument, own, is_one ? 1 : lanes, is_one && lanes > 1 ? apart : seen);
      if (is_one && lanes > 1) value = b.CreateVectorSplat(lanes, value);
      arguments.push_back(value);
    }
    result = w_.step_of(step, arguments);
  }
  if (lanes > 1 || of.sizes.empty() || !is_number(of.sizes.back(), 1)) seen[s] = result;
  return result;
}

// Puts the elements of a value where they are read from, or has that done with what comes next.
void LoopWriter::DynamicShapeWriter::compute(uint32_t s) {
  if (tensors_.at(s).code->rule == SizeRule::kReduce) return reduce(s);
  put_pieces(s);
}

LoopWriter::DynamicShapeWriter::Tensor LoopWriter::DynamicShapeWriter::place_of(const Tensor& of) const {
  Tensor place;
  place.type = of.type;
  place.sizes = of.sizes;
  place.strides = row_major(of.sizes);
  place.data = of.place;
  return place;
}

void LoopWriter::DynamicShapeWriter::put_pieces(uint32_t s) {
  const Tensor& to = tensors_.at(s);
  const auto join = joins_.find(s);
  const uint32_t whole = join == joins_.end() ? s : join->second.concat;
  const Tensor& made = tensors_.at(whole);
  Tensor place = place_of(to);
  if (made.code->rule != SizeRule::kConcat) {
    put_piece({s, place});
  } else {
    place.sizes = made.sizes;
    place.strides = row_major(made.sizes);
    const auto axis = static_cast<size_t>(made.code->axis);
    for (size_t i = made.code->appends ? 1 : 0; i < inputs_.at(made.pc).size(); ++i) {
      Piece piece{inputs_.at(made.pc)[i], place};
      if (whole != s) piece.reader = s, piece.read = join->second.read;
      piece.to.sizes = tensors_.at(piece.from).sizes;
      Value* const taken = w_.b_.CreateMul(piece.to.sizes[axis], place.strides[axis]);
      place.data = w_.b_.CreateGEP(element_ir_type(w_.b_.getContext(), to.type), place.data, taken);
      put_piece(std::move(piece));
    }
  }
  filled_.push_back(s);
}

// With the pieces before it where these have its sizes.
void LoopWriter::DynamicShapeWriter::put_piece(Piece piece) {
  size_t cost = tensors_.at(piece.from).code ? tensors_.at(piece.from).cost : 1;
  if (piece.reader != UINT32_MAX) {
    const size_t whole = tensors_.at(piece.reader).cost, part = tensors_.at(piece.read).cost;
    cost += whole > part ? whole - part : whole;
  }
  const bool is_next = !pieces_.empty() && pieces_.size() < kMostPieces && pieces_cost_ + cost <= kMostInOneLoop &&
                       same_sizes(pieces_.front().to, piece.to);
  if (!is_next) write_pieces();
  pieces_cost_ += cost;
  pieces_.push_back(std::move(piece));
}

void LoopWriter::DynamicShapeWriter::write_pieces() {
  const std::vector<Piece> pieces = std::exchange(pieces_, {});
  pieces_cost_ = 0;
  if (!pieces.empty()) {
    Tensor all = pieces.front().to;
    Values at(all.sizes.size());
    each_row(all, 0, at, [&](Values& row) {
      const auto store = [&](Value* first, unsigned lanes) {
        if (!row.empty()) row.back() = first;
        Seen seen;
        for (const Piece& piece : pieces) {
          Value* value = elements(piece.from, row, lanes, seen);
          if (piece.reader != UINT32_MAX) {
            Seen joined{{piece.read, value}};
            value = elements(piece.reader, row, lanes, joined);
          }
          w_.store_at(address(piece.to, row), piece.to.type, value);
        }
      };
      if (row.empty()) return store(nullptr, 1);
      along_row(all.sizes.back(), store);
    });
  }
  for (const uint32_t s : std::exchange(filled_, {})) {
    Tensor& to = tensors_.at(s);
    const Tensor place = place_of(to);
    to.data = to.code->appends ? w_.pointer(s) : place.data;
    to.strides = place.strides;
  }
}

// Whether a value is made of what is still to be written.
bool LoopWriter::DynamicShapeWriter::reads_pieces(uint32_t s) const {
  const Tensor& made = tensors_.at(s);
  return std::ranges::any_of(inputs_.at(made.pc), [&](uint32_t name) {
    const auto it = tensors_.find(name);
    if (it == tensors_.end() || !it->second.code) return false;
    if (std::ranges::find(filled_, name) != filled_.end()) return true;
    return !it->second.is_placed && reads_pieces(name);
  });
}

}  // namespace treadle::jit
