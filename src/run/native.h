#pragma once
// The native tier of a plan: which of its loops are, or will be, native code.
//
// The compiler is a shared object that is loaded on first use (plan/native.h), unless the code is found where an
// earlier process has left it (run/native_cache.h). Where neither gives any, the interpreter runs as ever and `why`
// says so.

#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "plan/native.h"
#include "run/native_cache.h"
#include "run/options.h"

namespace treadle::run {

// Code in memory that can be executed, never while it can be written.
class NativeCode {
 public:
  using Function = uint32_t (*)(plan::NativeFrame*);

  // Errors: a blob that does not fit the program, or no memory.
  static Result<std::unique_ptr<NativeCode>> load(const plan::NativeBlob& blob, const plan::Program& program);
  ~NativeCode();
  NativeCode(const NativeCode&) = delete;
  NativeCode& operator=(const NativeCode&) = delete;

  // What a kernel throws on the way is in `thrown` afterwards: nothing can be thrown through native code.
  uint32_t run(plan::NativeFrame& frame, std::exception_ptr& thrown) const;
  size_t bytes() const { return size_; }

 private:
  NativeCode() = default;
  void* memory_ = nullptr;
  size_t size_ = 0;
  Function function_ = nullptr;
  std::vector<const void*> table_;
};

// The functions that native code calls; their `context` is a run::Trips.
const plan::NativeHost& native_host();

class NativeLoops : public std::enable_shared_from_this<NativeLoops> {
 public:
  NativeLoops(std::shared_ptr<const plan::Program> program, Jit mode, std::shared_ptr<const NativeCache> cache);
  ~NativeLoops();

  Jit mode() const { return mode_; }
  // The code of a loop, if there is any now.
  const NativeCode* code(uint32_t loop) const { return loops_[loop].code.load(std::memory_order_acquire); }
  // A loop is about to be interpreted, so many trips if that is known, else 0. kAlways compiles it now; kAuto in the
  // background, if these trips alone are worth it.
  void before_loop(uint32_t loop, int64_t trips);
  // Compiles, or finds in the cache, whatever has not been asked for yet, and waits for the rest.
  void make_all();
  // The loop whose code would hold this one: itself, or the outermost one around it that can be native code.
  uint32_t outermost(uint32_t loop) const { return outermost_[loop]; }
  // What native code would have saved in a trip of a loop that was interpreted, without what loops inside do.
  double trip_saves_ns(uint32_t loop) const { return loops_[loop].trip_saves_ns; }
  // A loop, and loops inside of it, were interpreted, which native code would have done in so much less time. That
  // counts for the outermost loop around that can be native code: it is compiled once that would have saved about as
  // much as it costs. While its code waits for its next trip, the same goes for the loop inside that is still
  // interpreted.
  void interpreted(uint32_t loop, double lost_ns);
  // Until nothing is being compiled, or waits for it.
  void wait() const;

  struct State {
    bool tried = false;
    bool compiled = false;
    bool from_cache = false;
    std::string why;        // tried, but not compiled
    std::string cache_why;  // what stood in the way of finding or keeping the code in the cache
    double compile_ms = 0;  // from the request to code that can run
    size_t bytes = 0;
    std::vector<uint32_t> calls;  // instructions whose kernel is called; the others are in the code
  };
  State state(uint32_t loop) const;
  // Why a loop that was tried is not native code.
  std::string why_not(uint32_t loop) const;
  int64_t compilations() const;  // loops that are native code, those from the cache included
  int64_t cache_loads() const;

 private:
  // How far a loop has come, in this order.
  enum class Asked : uint8_t { kNothing, kCache, kCompiler, kAnswered };
  struct Entry {
    std::atomic<const NativeCode*> code{nullptr};
    std::atomic<double> lost_ns{0};  // by interpreting
    std::atomic<Asked> asked{Asked::kNothing};
    double compile_ns = 0, trip_saves_ns = 0;
    double trips_to_pay = std::numeric_limits<double>::infinity();  // these ahead are worth compiling at once
    // True once for each step.
    bool ask(Asked next);
  };
  friend class CompileQueue;
  void make_in_background(uint32_t loop, Asked whom);
  void make(uint32_t loop, Asked whom);
  std::unique_ptr<NativeCode> make_code(uint32_t loop, Asked whom, State& state) const;

  std::shared_ptr<const plan::Program> program_;
  Jit mode_;
  std::shared_ptr<const NativeCache> cache_;
  std::vector<Entry> loops_;
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> outermost_, around_;  // by loop: loops that can be native code; itself, kNone: there is none
  // Written where the queue's lock of results is held, so that no child of a fork finds them locked.
  std::vector<State> states_;
  std::vector<std::unique_ptr<NativeCode>> owned_;
};

}  // namespace treadle::run
