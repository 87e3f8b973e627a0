// Every structure is taken apart by a structured binding that names all of its members, here or in plan/roles.h. So a
// member that is added does not compile before it is handled here. Members that do not affect code (addresses, memory
// that is found through the table of slots, names) are named and left out.
#include "plan/native_key.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "plan/roles.h"

namespace treadle::plan {

namespace {

constexpr int kExponentBits = 12;  // exponent and sign of a double; a short number has few other bits set

class KeyWriter {
 public:
  explicit KeyWriter(const NativeRequest& request) : request_(request), p_(*request.program) {}

  Digest write(const std::string& processor) {
    const auto& [program, loop, isa, counter_stride, dynamic] = request_;
    d_.number(native_version()).add(processor);
    d_.number(loop).number(isa).number(counter_stride).number(program->threads);
    const Loop& whole = program->loops[loop];
    for (uint32_t pc = whole.first; pc <= whole.last; ++pc) {
      add(program->code[pc]);
      const ElementwiseCode* code = request_.elementwise(pc);
      d_.number(code != nullptr);
      if (code) add(*code);
      const InstructionCode* other = request_.other(pc);
      d_.number(other != nullptr);
      if (other) add(*other);
      const auto of_any_size = dynamic.find(pc);
      d_.number(of_any_size != dynamic.end());
      if (of_any_size != dynamic.end()) add(of_any_size->second);
    }
    std::sort(slots_.begin(), slots_.end());
    slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
    for (const uint32_t s : slots_) add(s, program->slots[s]);
    return d_.finish();
  }

 private:
  void slot(uint32_t s) {
    d_.number(s);
    slots_.push_back(s);
  }
  void dims(const Dims& dims) {
    d_.number(dims.size());
    for (const int64_t dim : dims) d_.number(dim);
  }
  // Most numbers are 0, whose bits are a short number.
  void real(double value) { d_.number(std::rotl(std::bit_cast<uint64_t>(value), kExponentBits)); }
  void type(const Type& type) {
    const bool concrete = type.is_concrete();
    d_.number(type.kind).number(type.element).number(concrete).number(type.has_shape);
    if (concrete) return dims(known_dims(type.shape));
    d_.number(type.shape.size());
    for (const Dim& dim : type.shape) d_.number(dim.value_or(-1));
  }

  // Adds the members of a record that `describe` visits (plan/roles.h).
  struct Fields : RecordVisitor {
    explicit Fields(KeyWriter& key) : k(key) {}
    void slot(const SlotUse& use) { k.slot(use.slot); }
    template <class T>
    void number(const char*, T value) {
      k.d_.number(value);
    }
    void type(const char*, const Type& value) { k.type(value); }
    KeyWriter& k;
  };

  void add(const Instruction& in) {
    const auto& [code, index, target, operands, run, state] = in;
    d_.number(code).number(index).number(target);
    with_record(p_, in, [this](const auto& record) { describe(record, Fields(*this)); });
  }

  void add(const ElementwiseCode& code) {
    const auto& [count, inputs, steps, outputs, reductions, lines] = code;
    d_.number(count).number(inputs.size()).number(steps.size()).number(outputs.size()).number(reductions.size());
    const auto& [outer, n, inner] = lines;
    d_.number(outer).number(n).number(inner);
    for (const auto& [in, element, broadcast, in_dims, strides, start] : inputs) {
      slot(in);
      d_.number(element).number(broadcast).number(start);
      dims(in_dims);
      dims(strides);
    }
    for (const auto& step : steps) add(step);
    for (const auto& [step, out] : outputs) {
      d_.number(step);
      slot(out);
    }
    for (const auto& [step, out, op] : reductions) {
      d_.number(step).number(op);
      slot(out);
    }
  }

  void add(const ElementwiseCode::Step& step) {
    const auto& [converts, op, params, from, to, argument_count, arguments] = step;
    d_.number(converts).number(op).number(from).number(to).number(argument_count);
    const auto& [alpha, beta] = params;
    real(alpha);
    real(beta);
    for (size_t i = 0; i < argument_count; ++i) d_.number(arguments[i]);
  }
  void add(const DynamicCode& code) {
    const auto& [rule, step, reduce, keep, appends, axis, axes, steps, planned] = code;
    d_.number(rule).number(reduce).number(keep).number(appends).number(axis);
    add(step);
    for (const Dims* list : {&axes, &steps}) dims(*list);
    for (const Dims& sizes : planned) dims(sizes);
  }

  void add(const InstructionCode& code) {
    d_.number(code.index());
    std::visit([this](const auto& one) { add(one); }, code);
  }
  void add(const ReductionCode& code) {
    const auto& [op, from, to, element, columns, kept, kept_strides, reduced, reduced_strides] = code;
    slot(from);
    slot(to);
    d_.number(op).number(element).number(columns);
    for (const Dims* list : {&kept, &kept_strides, &reduced, &reduced_strides}) dims(*list);
  }
  void add(const ArgReductionCode& code) {
    const auto& [from, to, element, outer, n, inner, greatest, last] = code;
    slot(from);
    slot(to);
    d_.number(element).number(outer).number(n).number(inner).number(greatest).number(last);
  }
  void add(const GatherCode& code) {
    const auto& [data, index, to, element, wide, outer, n, row, count] = code;
    for (const uint32_t s : {data, index, to}) slot(s);
    d_.number(element).number(wide).number(outer).number(n).number(row).number(count);
  }
  void add(const ProductCode& code) {
    // Native code computes in the type that is stored.
    const auto& [a, b, bias, c, element, stored, shape, a_count, b_count, bias_count, c_count, stack, panels] = code;
    for (const uint32_t s : {a, b, bias, c}) slot(s);
    d_.number(element);
    const auto& [m, n, k, a_row, a_col, b_row, b_col, c_row, bias_row, bias_col, alpha, beta, b_packed, b_half, b_bytes,
                 low, high] = shape;
    for (const int64_t number : {m, n, k, a_row, a_col, b_row, b_col, c_row, bias_row, bias_col}) d_.number(number);
    for (const double number : {alpha, beta, static_cast<double>(low), static_cast<double>(high)}) real(number);
    d_.number(b_packed).number(b_half).number(b_bytes);
    for (const int64_t count : {a_count, b_count, bias_count, c_count}) d_.number(count);
    const auto& [columns, rows] = panels;
    d_.number(columns).number(rows).number(stack.size());
    for (const auto& [size, of_a, of_b, of_c] : stack) d_.number(size).number(of_a).number(of_b).number(of_c);
  }
  void add(const MoveCode& code) {
    const auto& [element, is_listed, inputs, outputs, constants, regions] = code;
    d_.number(is_listed).number(regions.size());
    for (const auto& [from, to, in_start, out_start, sizes, in_strides, out_strides, bits] : regions) {
      slot(from);
      slot(to);
      d_.number(in_start).number(out_start).number(bits);
      for (const Dims* list : {&sizes, &in_strides, &out_strides}) dims(*list);
    }
    d_.number(element).number(inputs.size()).number(outputs.size()).number(constants.size());
    for (const auto& [in, count] : inputs) {
      slot(in);
      d_.number(count);
    }
    for (const auto& [out, from] : outputs) {
      slot(out);
      d_.number(from.size());
      d_.add(std::as_bytes(std::span(from)));
    }
    d_.add(std::as_bytes(std::span(constants)));
  }

  void add(uint32_t s, const Slot& slot) {
    const auto& [storage, index, offset, bytes, slot_type, constant, first, last, value] = slot;
    d_.number(s).number(storage).number(bytes);
    type(slot_type);
    if (storage != Storage::kConstant) return;
    const size_t size = is_string(constant.type()) ? 0 : constant.byte_size();
    d_.number(size);
    if (size <= kMaxLiteralBytes) d_.add(std::span(static_cast<const std::byte*>(constant.raw()), size));
  }

  const NativeRequest& request_;
  const Program& p_;
  Digester d_;
  std::vector<uint32_t> slots_;  // in the order of the instructions, with repetitions
};

}  // namespace

Digest native_key(const NativeRequest& request, const std::string& processor) {
  return KeyWriter(request).write(processor);
}

}  // namespace treadle::plan
