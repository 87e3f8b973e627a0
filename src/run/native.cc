#include "run/native.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <thread>

#include "base/thread_locals.h"
#include "base/uninterrupted.h"
#include "kernels/dispatch.h"
#include "plan/body_cost.h"
#include "plan/native_key.h"
#include "run/loops.h"
#include "run/native_library.h"

namespace treadle::run {

using plan::NativeBlob;
using plan::NativeRef;

namespace {

// A look into the cache takes about this long. A loop that has lost as much is looked up there.
constexpr double kLookNs = 0.1e6;

}  // namespace

// --- compiling in the background -------------------------------------------------------------------------------------

// One background thread for the process. It exists while there is work.
class CompileQueue {
 public:
  static CompileQueue& get() {
    static CompileQueue* queue = [] {
      auto* made = new CompileQueue;  // never destroyed, as other threads may still use it at exit
      std::atexit([] { get().drain(); });
      pthread_atfork([] { get().mutex_.lock(), get().results_.lock(); },
                     [] { get().results_.unlock(), get().mutex_.unlock(); }, [] { get().start_over(); });
      return made;
    }();
    return *queue;
  }

  // Errors: std::bad_alloc, std::system_error if no thread can be started.
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

  // The lock of the results of compilation of every session.
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
  // At exit: finishes the compilation that runs, and drops those that wait.
  void drain() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    work_.clear();
    idle_.wait(lock, [this] { return !running_; });
  }
  // In the child of a fork, which does not have the thread.
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

// --- loops -----------------------------------------------------------------------------------------------------------

// Compile before a loop runs if its known iterations save this many times the cost of compiling: the estimates are
// rough.
constexpr double kCertainty = 3;

NativeLoops::NativeLoops(std::shared_ptr<const plan::Program> program, Jit mode,
                         std::shared_ptr<const NativeCache> cache)
    : program_(std::move(program)),
      mode_(mode),
      cache_(std::move(cache)),
      loops_(program_->loops.size()),
      states_(program_->loops.size()) {
  CompileQueue::get();  // made here, so that wait() needs no memory
  const auto& loops = program_->loops;
  owned_.reserve(loops.size());  // so that storing compiled code needs no memory
  std::vector<uint32_t> open;    // the loops around loop i, outermost first
  for (uint32_t i = 0; i < loops.size(); ++i) {
    while (!open.empty() && loops[open.back()].last < loops[i].first) open.pop_back();
    around_.push_back(open.empty() ? kNone : open.back());
    outermost_.push_back(open.empty() ? i : open.front());
    open.push_back(i);
    const plan::NativeGain gain = plan::expected_gain(*program_, i);
    Entry& entry = loops_[i];
    entry.compile_ns = gain.compile_ns;
    entry.iteration_saves_ns = gain.saved_ns;
    if (gain.ahead_ns > 0) entry.iterations_to_pay = std::min(kCertainty * gain.compile_ns / gain.ahead_ns, 1e18);
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

void NativeLoops::before_loop(uint32_t loop, int64_t iterations) {
  Entry& entry = loops_[loop];
  if (entry.asked.load(std::memory_order_relaxed) >= Asked::kCompiler) return;
  if (mode_ >= Jit::kAlways) {
    if (entry.ask(Asked::kCompiler)) make(loop, Asked::kCompiler);
  } else if (mode_ == Jit::kAuto && static_cast<double>(iterations) >= entry.iterations_to_pay) {
    make_in_background(loop, Asked::kCompiler);
  }
}

void NativeLoops::interpreted(uint32_t loop, double lost_ns) {
  uint32_t open = kNone;
  for (uint32_t at = loop; at != kNone; at = around_[at]) {
    if (loops_[at].asked.load(std::memory_order_relaxed) != Asked::kAnswered) open = at;
  }
  if (open == kNone) return;
  Entry& entry = loops_[open];
  if (entry.asked.load(std::memory_order_relaxed) >= Asked::kCompiler) return;
  const double all = entry.lost_ns.fetch_add(lost_ns, std::memory_order_relaxed) + lost_ns;
  if (all >= entry.compile_ns) {
    make_in_background(open, Asked::kCompiler);
  } else if (all >= kLookNs && cache_->is_on()) {
    make_in_background(open, Asked::kCache);
  }
}

void NativeLoops::make_in_background(uint32_t loop, Asked whom) {
  if (code(loop) || !loops_[loop].ask(whom)) return;
  try {
    CompileQueue::get().add(shared_from_this(), loop, whom);
  } catch (const std::exception&) {
    loops_[loop].asked = Asked::kNothing;  // the interpreter goes on, and asks again later
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
  return state(loop).why;
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
  plan::NativeRequest request = plan::describe_loop(*program_, loop);
  request.isa = kernels::preferred_isa();
  request.counter_stride = sizeof(LoopPosition);
  Digest key{};
  std::optional<NativeBlob> blob;
  if (cache_->is_on()) {
    key = plan::native_key(request);
    blob = cache_->load(key, state.cache_why);
    state.from_cache = blob.has_value();
  }
  if (!blob) {
    if (whom == Asked::kCache) return nullptr;
    const plan::NativeCompiler* compiler = native_compiler(state.why);
    if (!compiler) return nullptr;
    blob.emplace();
    if (!compile_apart(*compiler, request, *blob, state.why)) return nullptr;
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
  const Uninterrupted whole;  // code stays for later runs, so a limit of this run must not leave it half made
  const auto begin = std::chrono::steady_clock::now();
  State made;
  std::unique_ptr<NativeCode> code;
  const char* const none = "no memory";  // fits the string itself, without an allocation
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
  loops_[loop].asked = Asked::kAnswered;
}

}  // namespace treadle::run
