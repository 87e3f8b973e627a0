// Instructions that compute in LoopWriter: a few elements in registers, more elements tile by tile.

#include <llvm/IR/MDBuilder.h>

#include "jit/lane_maths.h"
#include "jit/loop_writer.h"
#include "jit/nest_writer.h"
#include "jit/row_product.h"

namespace treadle::jit {

using plan::ElementwiseCode;
using Broadcast = ElementwiseCode::Broadcast;

namespace {

int64_t width_of(ElementType type) {
  return static_cast<int64_t>(byte_width(type));
}

unsigned lanes_in(llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector ? vector->getNumElements() : 1;
}

// Whether `numbers` are all the same element (is_splat), or consecutive elements (is_run).
bool is_splat(std::span<const int64_t> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers[0]; });
}
bool is_run(std::span<const int64_t> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != numbers[0] + static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool has_bytes_only(const ElementwiseCode& code) {
  const auto is_byte = [](ElementType type) { return byte_width(type) == 1; };
  return std::ranges::all_of(code.inputs, [&](const auto& in) { return is_byte(in.type); }) &&
         std::ranges::all_of(code.steps, [&](const auto& step) { return is_byte(step.from) && is_byte(step.to); });
}

}  // namespace

// --- elements of slots and of memory ---------------------------------------------------------------------------------

Lanes LoopWriter::read_flat(uint32_t s, ElementType type, int64_t count) {
  Lanes flat{element_ir_type(b_.getContext(), type), count, {}};
  for (size_t c = 0; c < chunks_.size(count); ++c) flat.vectors.push_back(load_chunk(s, type, count, c));
  return flat;
}

void LoopWriter::write_flat(uint32_t s, ElementType type, const Lanes& flat) {
  for (size_t c = 0; c < flat.vectors.size(); ++c) store_chunk(s, type, flat.count, c, flat.vectors[c]);
}

// Loads elements by their numbers, counted from `from`. Elements within a short stretch are loaded once and permuted.
Lanes LoopWriter::load_numbers(Value* from, ElementType type, std::span<const int64_t> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  Lanes flat{element_ir_type(b_.getContext(), type), count, {}};
  auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  const int64_t first = *low, stretch = *high - first + 1;
  Lanes read{flat.scalar, stretch, {}};
  auto load = [&](int64_t number, unsigned lanes) {
    return load_at(offset(from, number * width_of(type)), type, lanes);
  };
  for (size_t c = 0; c < chunks_.size(count); ++c) {
    const auto here = numbers.subspan(c * chunks_.full, chunks_.lanes(count, c));
    const auto lanes = static_cast<unsigned>(here.size());
    if (is_run(here)) {
      flat.vectors.push_back(load(here[0], lanes));
    } else if (is_splat(here)) {
      flat.vectors.push_back(b_.CreateVectorSplat(lanes, load(here[0], 1)));
    } else if (chunks_.is_short(stretch)) {
      if (read.vectors.empty()) {
        for (size_t r = 0; r < chunks_.size(stretch); ++r) {
          read.vectors.push_back(load(first + static_cast<int64_t>(r) * chunks_.full, chunks_.lanes(stretch, r)));
        }
      }
      Numbers relative(here.begin(), here.end());
      for (int64_t& number : relative) number -= first;
      flat.vectors.push_back(lanes_.pick(read, relative).vectors[0]);
    } else {
      Value* vector = llvm::PoisonValue::get(lanes_of(flat.scalar, lanes));
      for (unsigned lane = 0; lane < lanes; ++lane) {
        vector = b_.CreateInsertElement(vector, load(here[lane], 1), lane);
      }
      flat.vectors.push_back(vector);
    }
  }
  return flat;
}

Lanes LoopWriter::read_numbers(uint32_t s, ElementType type, int64_t available, std::span<const int64_t> numbers) {
  if (layout_.locations[s].kind != LocationKind::kRegister) return load_numbers(pointer(s), type, numbers);
  return lanes_.pick(read_flat(s, type, available), numbers);
}

void LoopWriter::store_flat(Value* to, ElementType type, const Lanes& flat) {
  for (size_t c = 0; c < flat.vectors.size(); ++c) {
    store_at(offset(to, static_cast<int64_t>(c) * chunks_.full * width_of(type)), type, flat.vectors[c]);
  }
}

// Calls fn(i) for i = 0, ..., count - 1, as a loop of the function; without a loop for a single call.
void LoopWriter::count_to(int64_t count, const std::function<void(Value*)>& fn) {
  if (count == 1) return fn(b_.getInt64(0));
  if (count > 1) count_up_to(b_.getInt64(static_cast<uint64_t>(count)), fn);
}

// The same for a count that is known at run time, at least 1.
void LoopWriter::count_up_to(Value* count, const std::function<void(Value*)>& fn) {
  auto* index = variable(b_.getInt64Ty(), "i");
  set(index, b_.getInt64(0));
  Block* head = Block::Create(b_.getContext(), "repeat", function_, exit_);
  Block* after = Block::Create(b_.getContext(), "turned", function_, exit_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  fn(get(index));
  set(index, b_.CreateAdd(get(index), b_.getInt64(1)));
  b_.CreateCondBr(b_.CreateICmpULT(get(index), count), head, after);
  b_.SetInsertPoint(after);
}

// --- elementwise -----------------------------------------------------------------------------------------------------

// The results of all steps. Each step is written for all vectors, whose operations do not wait for each other, before
// the next step.
std::vector<Lanes> LoopWriter::run_steps(const ElementwiseCode& code, std::vector<Lanes> values, int64_t count) {
  for (const ElementwiseCode::Step& step : code.steps) {
    Lanes result{element_ir_type(b_.getContext(), step.to), count, {}};
    std::vector<std::vector<Value*>> arguments;  // by vector
    for (size_t c = 0; c < chunks_.size(count); ++c) {
      auto& of_vector = arguments.emplace_back();
      for (size_t i = 0; i < step.argument_count; ++i) of_vector.push_back(values[step.arguments[i]].vectors[c]);
    }
    if (layout_.shape.functions.contains(StepKind(step))) {
      result.vectors = call_step(step, arguments);
    } else {
      for (const std::vector<Value*>& of_vector : arguments) result.vectors.push_back(step_of(step, of_vector));
    }
    values.push_back(std::move(result));
  }
  return values;
}

LoopWriter::Value* LoopWriter::step_of(const ElementwiseCode::Step& step, llvm::ArrayRef<Value*> arguments) {
  const IrScope scope(b_, lanes_in(arguments[0]->getType()), request_.isa);
  return write_step(step, arguments, *this);
}

// Calls the step's function for several vectors of the same length at a time.
std::vector<LoopWriter::Value*> LoopWriter::call_step(const ElementwiseCode::Step& step,
                                                      const std::vector<std::vector<Value*>>& arguments) {
  std::vector<Value*> results;
  for (size_t first = 0; first < arguments.size();) {
    llvm::Type* type = arguments[first][0]->getType();
    size_t last = first + 1;
    while (last < arguments.size() && last - first < vectors_of_call(step.argument_count) &&
           arguments[last][0]->getType() == type) {
      ++last;
    }
    llvm::SmallVector<Value*, 8> passed;
    for (size_t c = first; c < last; ++c) passed.append(arguments[c].begin(), arguments[c].end());
    llvm::Function* function = step_function(step, passed, last - first);
    auto* call = b_.CreateCall(function, passed);
    call->setCallingConv(function->getCallingConv());
    for (size_t c = first; c < last; ++c) {
      results.push_back(b_.CreateExtractValue(call, {static_cast<unsigned>(c - first)}));
    }
    first = last;
  }
  return results;
}

// A function that applies the step to several vectors of arguments, and returns all results.
llvm::Function* LoopWriter::step_function(const ElementwiseCode::Step& step, llvm::ArrayRef<Value*> arguments,
                                          size_t vectors) {
  llvm::Function*& function = step_functions_[{StepKind(step), arguments[0]->getType(), vectors}];
  if (function) return function;
  llvm::SmallVector<llvm::Type*, 8> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  llvm::Type* result = lanes_of(element_ir_type(b_.getContext(), step.to), lanes_in(types[0]));
  auto* type = llvm::FunctionType::get(
      llvm::StructType::get(b_.getContext(), llvm::SmallVector<llvm::Type*, 4>(vectors, result)), types, false);
  function = llvm::Function::Create(type, llvm::Function::InternalLinkage, "step", module_);
  function->setCallingConv(llvm::CallingConv::Fast);
  for (const auto attribute : {llvm::Attribute::NoUnwind, llvm::Attribute::NoInline, llvm::Attribute::WillReturn}) {
    function->addFnAttr(attribute);
  }
  function->setDoesNotAccessMemory();
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(Block::Create(b_.getContext(), "entry", function));
  Value* all = llvm::PoisonValue::get(type->getReturnType());
  for (unsigned c = 0; c < vectors; ++c) {
    llvm::SmallVector<Value*, 3> of_vector;
    for (unsigned i = 0; i < step.argument_count; ++i)
      of_vector.push_back(function->getArg(c * step.argument_count + i));
    all = b_.CreateInsertValue(all, step_of(step, of_vector), {c});
  }
  b_.CreateRet(all);
  return function;
}

// All inputs are read before any output is written, because an output may share the memory of an input.
void LoopWriter::write_short(const ElementwiseCode& code) {
  std::vector<Lanes> values;
  for (const ElementwiseCode::Input& in : code.inputs) {
    switch (in.broadcast) {
      case Broadcast::kDense:
        values.push_back(read_flat(in.slot, in.type, code.count));
        break;
      case Broadcast::kScalar:
        values.push_back(lanes_.splat(element(in.slot, in.type, 0), code.count));
        break;
      case Broadcast::kOther: {
        const Numbers numbers = input_numbers(in, code.count);
        const int64_t available = 1 + *std::max_element(numbers.begin(), numbers.end());
        const Location& place = layout_.locations[in.slot];
        values.push_back(
            read_numbers(in.slot, in.type, place.kind == LocationKind::kRegister ? place.count : available, numbers));
        break;
      }
    }
  }
  values = run_steps(code, std::move(values), code.count);
  for (const ElementwiseCode::Output& out : code.outputs) {
    write_flat(out.slot, code.steps[out.step].to, values[code.inputs.size() + out.step]);
  }
}

// --- nests -----------------------------------------------------------------------------------------------------------

LoopWriter::NestWriter::NestWriter(LoopWriter& writer, const ElementwiseCode& code, Nest nest)
    : w_(writer), code_(code), nest_(std::move(nest)), fixed_(code.inputs.size()) {}

void LoopWriter::NestWriter::write(const Sink& sink) {
  walk(0, begin(), sink);
}

LoopWriter::NestWriter::Positions LoopWriter::NestWriter::begin() {
  Positions at;
  for (size_t i = 0; i < code_.inputs.size(); ++i) {
    const ElementwiseCode::Input& in = code_.inputs[i];
    at.push_back(w_.b_.getInt64(static_cast<uint64_t>(in.start)));
    if (in.broadcast == Broadcast::kScalar) {
      fixed_[i].scalar = w_.element(in.slot, in.type, 0);
    } else if (stays(i)) {
      fixed_[i].tile = load(i, nest_.step, at.back());
    }
  }
  at.push_back(w_.b_.getInt64(0));
  return at;
}

bool LoopWriter::NestWriter::stays(size_t input) const {
  const Numbers& strides = nest_.strides[input];
  return nest_.split > 0 && std::all_of(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(nest_.split),
                                        [](int64_t stride) { return stride == 0; });
}

Lanes LoopWriter::NestWriter::load(size_t input, int64_t rows, Value* first) {
  const ElementwiseCode::Input& in = code_.inputs[input];
  Value* from = w_.b_.CreateGEP(element_ir_type(w_.b_.getContext(), in.type), w_.pointer(in.slot), first);
  return w_.load_numbers(from, in.type, nest_.tile_numbers(nest_.strides[input], rows));
}

LoopWriter::NestWriter::Positions LoopWriter::NestWriter::moved(const Positions& at, size_t d, int64_t step,
                                                                Value* repeats) {
  Positions to = at;
  auto move = [&](Value*& position, int64_t stride) {
    if (stride == 0) return;
    Value* distance = w_.b_.CreateMul(repeats, w_.b_.getInt64(static_cast<uint64_t>(stride * step)));
    position = w_.b_.CreateAdd(position, distance);
  };
  for (size_t i = 0; i < code_.inputs.size(); ++i) move(to[i], nest_.strides[i][d]);
  move(to.back(), nest_.result_strides()[d]);
  return to;
}

void LoopWriter::NestWriter::walk(size_t d, const Positions& at, const Sink& sink) {
  auto tile = [&](int64_t rows, const Positions& here) { sink(here, values(rows, here)); };
  if (nest_.split == 0) return tile(1, at);
  if (d + 1 < nest_.split) {
    w_.count_to(nest_.sizes[d], [&](Value* i) { walk(d + 1, moved(at, d, 1, i), sink); });
    return;
  }
  const int64_t repeats = nest_.sizes[d] / nest_.step, rest = nest_.sizes[d] % nest_.step;
  w_.count_to(repeats, [&](Value* i) { tile(nest_.step, moved(at, d, nest_.step, i)); });
  if (rest > 0) tile(rest, moved(at, d, nest_.step, w_.b_.getInt64(static_cast<uint64_t>(repeats))));
}

std::vector<Lanes> LoopWriter::NestWriter::values(int64_t rows, const Positions& at) {
  const int64_t count = nest_.tile_count(rows);
  std::vector<Lanes> values;
  for (size_t i = 0; i < code_.inputs.size(); ++i) {
    if (fixed_[i].scalar) {
      values.push_back(w_.lanes_.splat(fixed_[i].scalar, count));
    } else if (fixed_[i].tile && fixed_[i].tile->count == count) {
      values.push_back(*fixed_[i].tile);
    } else {
      values.push_back(load(i, rows, at[i]));
    }
  }
  return w_.run_steps(code_, std::move(values), count);
}

void LoopWriter::NestWriter::store(const Positions& at, const std::vector<Lanes>& values) {
  for (const ElementwiseCode::Output& out : code_.outputs) {
    const ElementType type = code_.steps[out.step].to;
    Value* to = w_.b_.CreateGEP(element_ir_type(w_.b_.getContext(), type), w_.pointer(out.slot), at.back());
    w_.store_flat(to, type, values[code_.inputs.size() + out.step]);
  }
}

// Writes tiles of `vectors` vectors. Values in registers between instructions have as many lanes as 32-bit values; if
// all inputs and outputs in memory are bytes, vectors are as wide as bytes allow.
void LoopWriter::write_nest(const ElementwiseCode& code, int64_t vectors) {
  const Chunks usual = chunks_;
  if (has_bytes_only(code)) chunks_.full *= sizeof(uint32_t);
  Nest nest = *common_nest(code);
  cut(nest, vectors * chunks_.full);
  NestWriter writer(*this, code, std::move(nest));
  writer.write([&](const auto& at, const std::vector<Lanes>& values) { writer.store(at, values); });
  chunks_ = usual;
}

// --- others ----------------------------------------------------------------------------------------------------------

void LoopWriter::write_other(const plan::ReductionCode& code) {
  const LaneMaths maths(lanes_, *this, request_.isa);
  const int64_t n = code.reduced.empty() ? 1 : code.reduced.back();
  int64_t count = 1;
  for (const Dims* dims : {&code.kept, &code.reduced}) {
    for (const int64_t size : *dims) count *= size;
  }
  if (chunks_.is_short(count)) {
    return write_flat(code.to, code.type, maths.reduce(code, read_flat(code.from, code.type, count)));
  }
  plan::ReductionCode part = code;
  if (!code.columns) {
    return write_rows(count / n, n, code.from, code.to, code.type, code.type, [&](int64_t some, const Lanes& from) {
      part.kept = {some};
      part.kept_strides = {n};
      return maths.reduce(part, from);
    });
  }
  const int64_t inner = code.kept.back();
  write_columns(count / n / inner, n, inner, code.from, code.to, code.type, code.type,
                [&](int64_t some, int64_t stride, const Lanes& from) {
                  part.kept = {some};
                  part.kept_strides = {1};
                  part.reduced_strides = {stride};
                  return maths.reduce(part, from);
                });
}

void LoopWriter::write_other(const plan::ArgReductionCode& code) {
  const LaneMaths maths(lanes_, *this, request_.isa);
  const int64_t n = code.n, inner = code.inner, count = code.outer * n * inner;
  const ElementType to_type = ElementType::kInt64;
  if (chunks_.is_short(count)) {
    Numbers bases;
    for (int64_t i = 0; i < code.outer * inner; ++i) bases.push_back(i / inner * n * inner + i % inner);
    return write_flat(code.to, to_type, maths.extreme(code, read_flat(code.from, code.type, count), bases, inner));
  }
  if (inner == 1) {
    return write_rows(code.outer, n, code.from, code.to, code.type, to_type,
                      [&](int64_t some, const Lanes& from) { return maths.extreme(code, from, range(some, 0, n), 1); });
  }
  write_columns(
      code.outer, n, inner, code.from, code.to, code.type, to_type,
      [&](int64_t some, int64_t stride, const Lanes& from) { return maths.extreme(code, from, range(some), stride); });
}

// Reduces [rows, n], some rows at a time.
void LoopWriter::write_rows(int64_t rows, int64_t n, uint32_t from, uint32_t to, ElementType type, ElementType to_type,
                            const std::function<Lanes(int64_t rows, const Lanes&)>& reduce) {
  const int64_t some = std::clamp<int64_t>(4 * chunks_.full / n, 1, std::min<int64_t>(rows, chunks_.full));
  auto part = [&](int64_t count, Value* first) {
    Value* start = b_.CreateMul(first, b_.getInt64(static_cast<uint64_t>(n)));
    Value* source = b_.CreateGEP(element_ir_type(b_.getContext(), type), pointer(from), start);
    const Lanes result = reduce(count, load_numbers(source, type, range(count * n)));
    store_flat(b_.CreateGEP(element_ir_type(b_.getContext(), to_type), pointer(to), first), to_type, result);
  };
  const int64_t repeats = rows / some, rest = rows % some;
  count_to(repeats, [&](Value* i) { part(some, b_.CreateMul(i, b_.getInt64(static_cast<uint64_t>(some)))); });
  if (rest > 0) part(rest, b_.getInt64(static_cast<uint64_t>(repeats * some)));
}

// Reduces [outer, n, inner], some columns at a time. Each row begins with a new vector, `stride` elements after the row
// before.
void LoopWriter::write_columns(int64_t outer, int64_t n, int64_t inner, uint32_t from, uint32_t to, ElementType type,
                               ElementType to_type,
                               const std::function<Lanes(int64_t columns, int64_t stride, const Lanes&)>& reduce) {
  const int64_t vectors = std::clamp<int64_t>(LaneMaths::kLongestChain / n, 1, 4);
  const int64_t some = std::min<int64_t>(inner, vectors * chunks_.full);
  auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
  auto part = [&](int64_t count, Value* line, Value* column) {
    Value* first = b_.CreateAdd(b_.CreateMul(line, number(n * inner)), column);
    Value* source = b_.CreateGEP(element_ir_type(b_.getContext(), type), pointer(from), first);
    Lanes rows{element_ir_type(b_.getContext(), type), 0, {}};
    for (int64_t r = 0; r < n; ++r) {
      const Lanes row = load_numbers(source, type, range(count, r * inner));
      rows.vectors.insert(rows.vectors.end(), row.vectors.begin(), row.vectors.end());
    }
    const Lanes result = reduce(count, static_cast<int64_t>(chunks_.size(count)) * chunks_.full, rows);
    Value* place = b_.CreateAdd(b_.CreateMul(line, number(inner)), column);
    store_flat(b_.CreateGEP(element_ir_type(b_.getContext(), to_type), pointer(to), place), to_type, result);
  };
  const int64_t repeats = inner / some, rest = inner % some;
  count_to(outer, [&](Value* line) {
    count_to(repeats, [&](Value* i) { part(some, line, b_.CreateMul(i, number(some))); });
    if (rest > 0) part(rest, line, number(repeats * some));
  });
}

void LoopWriter::write_other(const plan::ProductCode& code) {
  if (multiplies_rows(code, request_, chunks_, p_.threads)) return write_row_product(code);
  const LaneMaths maths(lanes_, *this, request_.isa);
  const Lanes a = read_flat(code.a, code.type, code.a_count), b = read_flat(code.b, code.type, code.b_count);
  std::optional<Lanes> bias;
  if (code.bias != plan::kNoSlot) bias = read_flat(code.bias, code.type, code.bias_count);
  write_flat(code.c, code.type, maths.product(code, a, b, bias ? &*bias : nullptr));
}

}  // namespace treadle::jit
