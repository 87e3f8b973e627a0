#include "run/native.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

#include "base/thread_locals.h"
#include "base/uninterrupted.h"
#include "kernels/dispatch.h"
#include "plan/native_key.h"
#include "run/context.h"
#include "run/native_library.h"

namespace treadle::run {

using plan::NativeBlob;
using plan::NativeHost;
using plan::NativeRef;

namespace {

// A loop is worth a look for code in the cache once it has taken about as long as that will take.
constexpr int64_t kUnitsBeforeLooking = static_cast<int64_t>(0.2e6 / plan::kPollUnitNs);

// --- what code asks for

const void* row_function(kernels::ElementwiseOp op, ElementType type, int form) {
  const kernels::ElementwiseRows& rows = kernels::elementwise_rows(op, compute_type(type));
  return reinterpret_cast<const void*>(form == 0 ? rows.vv : form == 1 ? rows.vs : rows.sv);
}

uint32_t fail_kernel(uint32_t code, int64_t found, int64_t limit) {
  return fail(static_cast<KernelError>(code), found, limit);
}

// Functions of the C library that LLVM makes calls of.
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

// Where the native code that this thread is in wants exceptions of kernels.
thread_local std::exception_ptr* thrown_by_kernels = nullptr;

// In place of an instruction's kernel, whose state is then the instruction.
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

// Blobs come from files as well, so nothing in them is taken for granted.
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
// The sanitizer looks for a type in front of a function, where native code has none, nor memory that can be read.
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

// --- compiling in the background -------------------------------------------------------------------------------------

// One thread for the process, there while there is work.
class CompileQueue {
 public:
  static CompileQueue& get() {
    static CompileQueue* queue = [] {
      auto* made = new CompileQueue;  // outlives every thread
      std::atexit([] { get().drain(); });
      pthread_atfork([] { get().mutex_.lock(), get().results_.lock(); },
                     [] { get().results_.unlock(), get().mutex_.unlock(); }, [] { get().start_over(); });
      return made;
    }();
    return *queue;
  }

  // Throws where there is no memory or no thread.
  void add(std::shared_ptr<NativeLoops> loops, uint32_t loop, NativeLoops::Asked whom) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    work_.push_back({std::move(loops), loop, whom});
    if (running_) return;
    try {
      std::thread([this] { run(); }).detach();
    } catch (...) {
      work_.pop_back();
      throw;
    }
    running_ = true;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return !running_; });
  }

  // What has been compiled, in every session.
  std::mutex& results() { return results_; }

 private:
  struct Work {
    std::shared_ptr<NativeLoops> loops;
    uint32_t loop = 0;
    NativeLoops::Asked whom{};
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (!work_.empty()) {
      current_ = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      current_.loops->make(current_.loop, current_.whom);
      lock.lock();
      Work done = std::exchange(current_, {});
      lock.unlock();
      done.loops.reset();
      lock.lock();
    }
    running_ = false;
    idle_.notify_all();
  }
  // At exit: what is being compiled is finished, what waits is dropped.
  void drain() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    work_.clear();
    idle_.wait(lock, [this] { return !running_; });
  }
  // In the child of a fork, where the thread is not.
  void start_over() {
    running_ = false;
    new (&idle_) std::condition_variable;
    results_.unlock();
    mutex_.unlock();
    if (current_.loops) work_.push_back(std::exchange(current_, {}));
    for (Work& lost : work_) lost.loops->loops_[lost.loop].asked = NativeLoops::Asked::kNothing;
    work_.clear();
  }

  std::mutex mutex_, results_;
  std::condition_variable idle_;
  std::deque<Work> work_;
  Work current_;
  bool running_ = false, closed_ = false;
};

// --- what native code calls, and calling it --------------------------------------------------------------------------

struct NativeHostFunctions {
  // What goes wrong is kept in the context: nothing can be thrown through native code.
  template <class Step>
  static uint32_t run(void* context, Step&& step) {
    Context& c = *static_cast<Context*>(context);
    try {
      Status status = step(c);
      if (status.ok()) return 0;
      c.native_status_ = std::move(status);
    } catch (...) {
      c.native_failure_ = std::current_exception();
    }
    return plan::kNativeStopped;
  }

  static uint32_t poll(void* context) {
    return run(context, [](Context& c) { return c.poll(); });
  }
  static uint32_t grow_rows(void* context, uint32_t loop) {
    return run(context, [&](Context& c) { return c.grow_rows(c.program_->loops[loop], c.loops_[loop]); });
  }
  static uint32_t dynamic(void* context, uint32_t pc) {
    return run(context, [&](Context& c) { return c.run_dynamic(c.program_->code[pc]); });
  }
  static uint32_t loop_begin(void* context, uint32_t loop, uint8_t* runs) {
    bool any = false;
    const uint32_t result = run(context, [&](Context& c) { return c.loop_begin(loop, any); });
    *runs = any;
    return result;
  }
  static uint32_t loop_next(void* context, uint32_t loop, uint8_t* again) {
    bool more = false;
    const uint32_t result = run(context, [&](Context& c) { return c.loop_next(loop, more); });
    *again = more;
    return result;
  }
  static uint32_t loop_end(void* context, uint32_t loop) {
    return run(context, [&](Context& c) -> Status {
      TREADLE_TRY(c.loop_end(loop));
      c.release(c.program_->loops[loop].releases, c.program_->loops[loop].in_loop);
      return {};
    });
  }
  static uint32_t read_flag(void* context, uint32_t slot, uint8_t* value) {
    bool flag = false;
    const uint32_t result = run(context, [&](Context& c) { return c.read_flag(slot, "cond", flag); });
    *value = flag;
    return result;
  }
};

const NativeHost& native_host() {
  using F = NativeHostFunctions;
  static constexpr NativeHost kHost{F::poll,      F::grow_rows, fail_kernel,  F::dynamic,  F::loop_begin,
                                    F::loop_next, F::loop_end,  F::read_flag, row_function};
  return kHost;
}

Status Context::run_native(const NativeCode& code, Budget& budget, const plan::Instruction*& failed) {
  plan::NativeFrame frame;
  frame.slots = slots_.data();
  frame.counters = reinterpret_cast<std::byte*>(static_cast<plan::LoopCounters*>(loops_.data()));
  frame.context = this;
  frame.poll_units = &budget.units;
  frame.trips = &budget.trips;
  std::exception_ptr thrown;  // by kernels; other threads may be in code of other loops of this run
  const uint32_t result = code.run(frame, thrown);
  failed = program_->code.data() + frame.failed_at;
  if (thrown) std::rethrow_exception(thrown);
  if (native_failure_) std::rethrow_exception(std::exchange(native_failure_, nullptr));
  if (result == 0) return {};
  return result == plan::kNativeStopped ? std::exchange(native_status_, Status()) : kernel_status(result);
}

// --- loops -----------------------------------------------------------------------------------------------------------

// How many times over the trips ahead have to pay for compiling: the estimates are rough.
constexpr double kCertainty = 3;

NativeLoops::NativeLoops(std::shared_ptr<const plan::Program> program, Jit mode,
                         std::shared_ptr<const NativeCache> cache)
    : program_(std::move(program)),
      mode_(mode),
      cache_(std::move(cache)),
      loops_(program_->loops.size()),
      states_(program_->loops.size()) {
  CompileQueue::get();  // is there from now on: asking how far it is takes no memory
  const auto& loops = program_->loops;
  owned_.reserve(loops.size());  // taking in code asks for no memory
  for (uint32_t i = 0; i < loops.size(); ++i) {
    uint32_t outermost = i;
    for (uint32_t k = 0; k < i && outermost == i; ++k) {
      if (loops[k].step.simple && loops[k].first < loops[i].first && loops[i].last < loops[k].last) outermost = k;
    }
    outermost_.push_back(outermost);
    const plan::NativeGain gain = plan::expected_gain(*program_, i);
    loops_[i].units_to_pay = static_cast<int64_t>(gain.compile_ns * gain.trip_ns / gain.saved_ns / plan::kPollUnitNs);
    loops_[i].trips_to_pay = static_cast<int64_t>(kCertainty * gain.compile_ns / gain.saved_ns);
  }
}

NativeLoops::~NativeLoops() = default;

bool NativeLoops::Entry::ask(Asked next) {
  Asked before = asked.load(std::memory_order_relaxed);
  while (before < next) {
    if (asked.compare_exchange_weak(before, next)) return true;
  }
  return false;
}

void NativeLoops::before_loop(uint32_t loop, int64_t trips) {
  Entry& entry = loops_[loop];
  if (entry.asked.load(std::memory_order_relaxed) == Asked::kCompiler) return;
  if (mode_ >= Jit::kAlways) {
    if (entry.ask(Asked::kCompiler)) make(loop, Asked::kCompiler);
  } else if (mode_ == Jit::kAuto && outermost_[loop] == loop && trips >= entry.trips_to_pay) {
    make_in_background(loop, Asked::kCompiler);
  }
}

void NativeLoops::worked(uint32_t loop, int64_t units) {
  loop = outermost_[loop];
  Entry& entry = loops_[loop];
  if (mode_ != Jit::kAuto || entry.asked.load(std::memory_order_relaxed) == Asked::kCompiler) return;
  const int64_t all = entry.units.fetch_add(units, std::memory_order_relaxed) + units;
  if (all >= entry.units_to_pay) {
    make_in_background(loop, Asked::kCompiler);
  } else if (all >= kUnitsBeforeLooking && cache_->is_on()) {
    make_in_background(loop, Asked::kCache);
  }
}

void NativeLoops::make_in_background(uint32_t loop, Asked whom) {
  if (code(loop) || !loops_[loop].ask(whom)) return;
  try {
    CompileQueue::get().add(shared_from_this(), loop, whom);
  } catch (const std::exception&) {
    loops_[loop].asked = Asked::kNothing;  // the interpreter goes on, and asks again
  }
}

void NativeLoops::make_all() {
  for (uint32_t loop = 0; loop < loops_.size(); ++loop) {
    if (outermost_[loop] == loop && loops_[loop].ask(Asked::kCompiler)) make(loop, Asked::kCompiler);
  }
  wait();
}

void NativeLoops::wait() const {
  CompileQueue::get().wait();
}

NativeLoops::State NativeLoops::state(uint32_t loop) const {
  std::lock_guard lock(CompileQueue::get().results());
  return states_[loop];
}

std::string NativeLoops::why_not(uint32_t loop) const {
  State of = state(loop);
  if (!of.tried) plan::describe_loop(*program_, loop, of.why);
  return of.why;
}

int64_t NativeLoops::compilations() const {
  std::lock_guard lock(CompileQueue::get().results());
  return static_cast<int64_t>(owned_.size());
}

int64_t NativeLoops::cache_loads() const {
  std::lock_guard lock(CompileQueue::get().results());
  return std::count_if(states_.begin(), states_.end(), [](const State& state) { return state.from_cache; });
}

std::unique_ptr<NativeCode> NativeLoops::make_code(uint32_t loop, Asked whom, State& state) const {
  auto request = plan::describe_loop(*program_, loop, state.why);
  if (!request) return nullptr;
  request->isa = kernels::preferred_isa();
  request->counter_stride = sizeof(LoopPosition);
  Digest key{};
  std::optional<NativeBlob> blob;
  if (cache_->is_on()) {
    key = plan::native_key(*request);
    blob = cache_->load(key, state.cache_why);
    state.from_cache = blob.has_value();
  }
  if (!blob) {
    if (whom == Asked::kCache) return nullptr;
    const plan::NativeCompiler* compiler = native_compiler(state.why);
    if (!compiler) return nullptr;
    blob.emplace();
    if (!compile_apart(*compiler, *request, *blob, state.why)) return nullptr;
    std::string unkept;
    if (cache_->is_on() && !cache_->store(key, *blob, unkept)) state.cache_why = unkept;
  }
  auto loaded = NativeCode::load(*blob, *program_);
  if (!loaded.ok()) {
    state.why = std::move(loaded).status().message();
    return nullptr;
  }
  for (const NativeRef& ref : blob->refs) {
    if (ref.kind == NativeRef::Kind::kRun) state.calls.push_back(ref.index);
  }
  return std::move(loaded).value();
}

void NativeLoops::make(uint32_t loop, Asked whom) {
  if (this->code(loop)) return;
  const Uninterrupted packing;  // what a compiler looks at may pack weights
  const auto begin = std::chrono::steady_clock::now();
  State made;
  std::unique_ptr<NativeCode> code;
  const char* const none = "no memory";  // short enough to need none
  try {
    if (make_thread_locals()) {
      code = make_code(loop, whom, made);
    } else {
      made.why = none;
    }
  } catch (const std::bad_alloc&) {
    made.why = none;
  }
  if (!code && whom == Asked::kCache) return;
  made.tried = true;
  made.compiled = code != nullptr;
  made.from_cache &= made.compiled;
  made.bytes = code ? code->bytes() : 0;
  made.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const NativeCode* ready = code.get();
  {
    const std::lock_guard lock(CompileQueue::get().results());
    states_[loop] = std::move(made);
    if (code) owned_.push_back(std::move(code));
  }
  loops_[loop].code.store(ready, std::memory_order_release);
}

}  // namespace treadle::run
