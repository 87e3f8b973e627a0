// Native code in memory: the addresses of this process that the code refers to, and the functions that it calls.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/dispatch.h"
#include "run/loop_runner.h"
#include "run/native.h"

namespace treadle::run {

using plan::NativeBlob;
using plan::NativeHost;
using plan::NativeRef;

namespace {

const void* row_function(kernels::ElementwiseOp op, ElementType type, int form) {
  const kernels::ElementwiseRows& rows = kernels::elementwise_rows(op, compute_type(type));
  return reinterpret_cast<const void*>(form == 0 ? rows.vv : form == 1 ? rows.vs : rows.sv);
}

uint32_t fail_kernel(uint32_t code, int64_t found, int64_t limit) {
  return fail(static_cast<KernelError>(code), found, limit);
}

// Functions of the C library that LLVM generates calls to.
void* import(const std::string& name) {
  struct Named {
    const char* name;
    void* address;
  };
#define TREADLE_IMPORT(function, type) {#function, reinterpret_cast<void*>(static_cast<type>(function))}
  using Float = float (*)(float);
  using Double = double (*)(double);
  static const Named known[] = {
      TREADLE_IMPORT(floorf, Float),
      TREADLE_IMPORT(floor, Double),
      TREADLE_IMPORT(ceilf, Float),
      TREADLE_IMPORT(ceil, Double),
      TREADLE_IMPORT(rintf, Float),
      TREADLE_IMPORT(rint, Double),
      TREADLE_IMPORT(memcpy, void* (*)(void*, const void*, size_t)),
      TREADLE_IMPORT(memset, void* (*)(void*, int, size_t)),
      TREADLE_IMPORT(memmove, void* (*)(void*, const void*, size_t)),
  };
#undef TREADLE_IMPORT
  for (const Named& one : known) {
    if (name == one.name) return one.address;
  }
  return nullptr;
}

// Where native code of this thread puts exceptions of kernels.
thread_local std::exception_ptr* thrown_by_kernels = nullptr;

// Called in place of an instruction's kernel. The kernel's state is then the instruction.
uint32_t run_kernel(const void* instruction, void* const* slots, const uint32_t* operands) {
  const auto& in = *static_cast<const plan::Instruction*>(instruction);
  try {
    return in.run(in.state, slots, operands);
  } catch (...) {
    *thrown_by_kernels = std::current_exception();
    return plan::kNativeStopped;
  }
}

const void* packed_constant(const plan::Program& program, uint32_t pc) {
  const plan::KernelCall* call = plan::kernel_of(program, pc);
  return call && call->code ? call->code->packed : nullptr;
}

const void* resolve(const NativeRef& ref, const plan::Program& program) {
  switch (ref.kind) {
    case NativeRef::Kind::kHost: {
      const void* address = nullptr;
      std::memcpy(&address, reinterpret_cast<const std::byte*>(&native_host()) + ref.index, sizeof address);
      return address;
    }
    case NativeRef::Kind::kRun:
      return reinterpret_cast<const void*>(run_kernel);
    case NativeRef::Kind::kState:
      return &program.code[ref.index];
    case NativeRef::Kind::kOperands:
      return program.code[ref.index].operands;
    case NativeRef::Kind::kPacked:
      return packed_constant(program, ref.index);
    case NativeRef::Kind::kRow:
      return row_function(static_cast<kernels::ElementwiseOp>(ref.index), ref.type, 0);
  }
  return nullptr;
}

}  // namespace

// --- code ------------------------------------------------------------------------------------------------------------

namespace {

// Blobs come from files as well, so every number in them is checked.
bool fits(const NativeBlob& blob, const plan::Program& program) {
  if (blob.bytes.empty() || blob.entry >= blob.bytes.size()) return false;
  const bool imports = std::all_of(blob.imports.begin(), blob.imports.end(), [&](const NativeBlob::Import& import) {
    return import.offset <= blob.bytes.size() && blob.bytes.size() - import.offset >= sizeof(void*);
  });
  return imports && std::all_of(blob.refs.begin(), blob.refs.end(), [&](const NativeRef& ref) {
           if (ref.kind == NativeRef::Kind::kHost) {
             return ref.index % sizeof(void*) == 0 && ref.index < sizeof(NativeHost);
           }
           if (ref.kind == NativeRef::Kind::kRow) {
             return ref.index < kernels::kElementwiseOpCount && static_cast<int>(ref.type) < kElementTypeCount;
           }
           return ref.index < program.code.size();
         });
}

}  // namespace

Result<std::unique_ptr<NativeCode>> NativeCode::load(const NativeBlob& blob, const plan::Program& program) {
  if (!fits(blob, program)) return error(Code::kInternal, "the code is for another program");
  std::unique_ptr<NativeCode> code(new NativeCode);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  code->size_ = (blob.bytes.size() + page - 1) / page * page;
  void* memory = mmap(nullptr, code->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return error(Code::kLimit, "no memory for {} bytes of code", code->size_);
  code->memory_ = memory;
  std::memcpy(memory, blob.bytes.data(), blob.bytes.size());
  for (const NativeBlob::Import& wanted : blob.imports) {
    void* address = import(wanted.name);
    if (!address) return error(Code::kNotImplemented, "the code calls '{}'", wanted.name);
    std::memcpy(static_cast<std::byte*>(memory) + wanted.offset, &address, sizeof address);
  }
  if (mprotect(memory, code->size_, PROT_READ | PROT_EXEC) != 0) {
    return error(Code::kRuntime, "memory cannot be made executable: {}", std::strerror(errno));
  }
  for (const NativeRef& ref : blob.refs) {
    code->table_.push_back(resolve(ref, program));
    const bool missing = ref.kind == NativeRef::Kind::kPacked && !code->table_.back();
    if (missing) return error(Code::kInternal, "the code is for another program");
  }
  code->function_ = reinterpret_cast<Function>(static_cast<std::byte*>(memory) + blob.entry);
  return code;
}

#if defined(__clang__)
// The sanitizer reads type information in front of a function. Native code has none, and the memory there may be
// unreadable.
__attribute__((no_sanitize("function")))
#endif
uint32_t
NativeCode::run(plan::NativeFrame& frame, std::exception_ptr& thrown) const {
  frame.table = table_.data();
  std::exception_ptr* const outer = std::exchange(thrown_by_kernels, &thrown);
  const uint32_t result = function_(&frame);
  thrown_by_kernels = outer;
  return result;
}

NativeCode::~NativeCode() {
  if (memory_) munmap(memory_, size_);
}

// --- callbacks of native code, and calls of native code --------------------------------------------------------------

struct NativeHostFunctions {
  // Keeps errors and exceptions in the LoopRunner: exceptions cannot pass through native code.
  template <class Step>
  static uint32_t run(void* context, Step&& step) {
    LoopRunner& runner = *static_cast<LoopRunner*>(context);
    try {
      Status status = step(runner);
      if (status.ok()) return 0;
      runner.native_status_ = std::move(status);
    } catch (...) {
      runner.native_failure_ = std::current_exception();
    }
    return plan::kNativeStopped;
  }

  static uint32_t poll(void* context) {
    return run(context, [](LoopRunner& runner) { return runner.polls_.poll(); });
  }
  static uint32_t grow_rows(void* context, uint32_t loop) {
    return run(context, [&](LoopRunner& runner) { return runner.loops_.grow_rows(loop); });
  }
  static uint32_t dynamic(void* context, uint32_t first, uint32_t end) {
    const plan::Instruction* const code = static_cast<LoopRunner*>(context)->program_.code.data();
    const plan::Instruction* in = code + first;
    const uint32_t result = run(context, [&](LoopRunner& runner) { return runner.dynamic_.run(in, code + end); });
    if (result != 0) static_cast<LoopRunner*>(context)->native_failed_ = in;
    return result;
  }
  static uint32_t loop_begin(void* context, uint32_t loop, uint8_t* runs) {
    bool any = false;
    const uint32_t result = run(context, [&](LoopRunner& runner) { return runner.begin_loop(loop, any); });
    *runs = any;
    return result;
  }
  static uint32_t loop_next(void* context, uint32_t loop, uint8_t* again) {
    bool more = false;
    const uint32_t result = run(context, [&](LoopRunner& runner) { return runner.loops_.next(loop, more); });
    *again = more;
    return result;
  }
  static uint32_t loop_end(void* context, uint32_t loop) {
    return run(context, [&](LoopRunner& runner) { return runner.end_loop(loop); });
  }
  static uint32_t read_flag(void* context, uint32_t slot, uint8_t* value) {
    bool flag = false;
    const uint32_t result =
        run(context, [&](LoopRunner& runner) { return runner.frame_.read_flag(slot, "cond", flag); });
    *value = flag;
    return result;
  }
  static uint32_t sizes(void* context, const plan::NativeValue* values, uint32_t count, int64_t* sizes) {
    const LoopRunner& runner = *static_cast<LoopRunner*>(context);
    return runner.dynamic_.find_sizes({values, count}, sizes) ? 0 : plan::kNativeElsewhere;
  }
  static uint32_t make(void* context, const plan::NativeValue* results, uint32_t count, const int64_t* sizes,
                       int64_t bytes, void** places) {
    bool made = false;
    const uint32_t result = run(context, [&](LoopRunner& runner) -> Status {
      TREADLE_ASSIGN(made, runner.dynamic_.make_results({results, count}, sizes, bytes, places));
      return {};
    });
    return result == 0 && !made ? plan::kNativeElsewhere : result;
  }
};

const NativeHost& native_host() {
  using F = NativeHostFunctions;
  static constexpr NativeHost kHost{F::poll,     F::grow_rows, fail_kernel,  F::dynamic, F::loop_begin, F::loop_next,
                                    F::loop_end, F::read_flag, row_function, F::sizes,   F::make};
  return kHost;
}

Status LoopRunner::run_native(const NativeCode& code, Budget& budget, const plan::Instruction*& failed) {
  plan::NativeFrame frame;
  frame.slots = frame_.slots();
  frame.counters = loops_.counters();
  frame.context = this;
  frame.poll_units = &budget.units;
  frame.iterations = &budget.iterations;
  std::exception_ptr thrown;  // exceptions of kernels; other threads may run code of other loops of this run
  const uint32_t result = code.run(frame, thrown);
  failed = native_failed_ ? std::exchange(native_failed_, nullptr) : program_.code.data() + frame.failed_at;
  if (thrown) std::rethrow_exception(thrown);
  if (native_failure_) std::rethrow_exception(std::exchange(native_failure_, nullptr));
  if (result == 0) return {};
  return result == plan::kNativeStopped ? std::exchange(native_status_, Status()) : kernel_status(result);
}

}  // namespace treadle::run
