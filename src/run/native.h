#pragma once
// The native tier of a plan: which of its loops are, or will be, native code.
//
// The compiler is a shared object that is loaded on first use (plan/native.h). It is not needed for code that an
// earlier process has put into the cache (run/native_cache.h). Without either, the interpreter runs the loop, and `why`
// gives the reason.

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

// Executable code in memory, which is not writable while it is executable.
class NativeCode {
 public:
  using Function = uint32_t (*)(plan::NativeFrame*);

  // Errors: a blob that does not fit the program, or no memory.
  static Result<std::unique_ptr<NativeCode>> load(const plan::NativeBlob& blob, const plan::Program& program);
  ~NativeCode();
  NativeCode(const NativeCode&) = delete;
  NativeCode& operator=(const NativeCode&) = delete;

  // Exceptions cannot pass through native code. One that a kernel throws is in `thrown` afterwards.
  uint32_t run(plan::NativeFrame& frame, std::exception_ptr& thrown) const;
  size_t bytes() const { return size_; }

 private:
  NativeCode() = default;
  void* memory_ = nullptr;
  size_t size_ = 0;
  Function function_ = nullptr;
  std::vector<const void*> table_;
};

// The functions that native code calls. Their `context` is a run::LoopRunner.
const plan::NativeHost& native_host();

class NativeLoops : public std::enable_shared_from_this<NativeLoops> {
 public:
  NativeLoops(std::shared_ptr<const plan::Program> program, Jit mode, std::shared_ptr<const NativeCache> cache);
  ~NativeLoops();

  Jit mode() const { return mode_; }
  // The code of a loop; null if there is none yet.
  const NativeCode* code(uint32_t loop) const { return loops_[loop].code.load(std::memory_order_acquire); }
  // To be called before a loop is interpreted; `iterations` is 0 if their number is unknown. kAlways compiles the loop
  // now. kAuto compiles it in the background if these iterations alone are worth it.
  void before_loop(uint32_t loop, int64_t iterations);
  // Compiles, or loads from the cache, every loop that has not been asked for yet, and waits for compilations in
  // progress.
  void make_all();
  // The loop whose code would hold this one: the outermost loop around it, or the loop itself.
  uint32_t outermost(uint32_t loop) const { return outermost_[loop]; }
  // What native code would save in an interpreted iteration of a loop, without what it would save in inner loops.
  double iteration_saves_ns(uint32_t loop) const { return loops_[loop].iteration_saves_ns; }
  // What interpreting a loop may still cost before it is compiled (see `interpreted`).
  double left_to_lose_ns(uint32_t loop) const {
    return loops_[loop].compile_ns - loops_[loop].lost_ns.load(std::memory_order_relaxed);
  }
  // Reports that interpreting this loop, inner loops included, cost `lost_ns` more than native code would have. The
  // loss counts for the outermost loop around it that can be native code. That loop is compiled once its losses are
  // about the cost of compiling. While its code waits for the loop's next iteration, losses count for the inner loop
  // that is still interpreted.
  void interpreted(uint32_t loop, double lost_ns);
  // Blocks until the compile queue is empty.
  void wait() const;

  struct State {
    bool tried = false;
    bool compiled = false;
    bool from_cache = false;
    std::string why;        // why a loop that was tried was not compiled
    std::string cache_why;  // why code could not be read from the cache or stored there
    double compile_ms = 0;  // from the request to code that can run
    size_t bytes = 0;
    std::vector<uint32_t> calls;  // instructions whose kernel the code calls; the code contains the others
  };
  State state(uint32_t loop) const;
  // Why a loop that was tried is not native code; empty if it is, or was not tried.
  std::string why_not(uint32_t loop) const;
  int64_t compilations() const;  // loops that are native code, including those from the cache
  int64_t cache_loads() const;

 private:
  // The stages that a loop goes through, in order.
  enum class Asked : uint8_t { kNothing, kCache, kCompiler, kAnswered };
  struct Entry {
    std::atomic<const NativeCode*> code{nullptr};
    std::atomic<double> lost_ns{0};  // what interpreting has cost
    std::atomic<Asked> asked{Asked::kNothing};
    double compile_ns = 0, iteration_saves_ns = 0;
    double iterations_to_pay = std::numeric_limits<double>::infinity();  // a loop with at least so many iterations
                                                                         // ahead is compiled at once
    // Moves to stage `next`. True for one caller only.
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
  std::vector<uint32_t> outermost_, around_;  // by loop: the loop whose code would hold it; the next loop around that
                                              // can be native code, or kNone
  // Written under the queue's lock of results, so that a fork never leaves them locked in the child.
  std::vector<State> states_;
  std::vector<std::unique_ptr<NativeCode>> owned_;
};

}  // namespace treadle::run
