// Delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002) over the items of
// each step: first all items at once, then halves, then quarters, down to single ones, from the last item to the first.
// Rounds over all steps end when no step helps. No two candidates are alike, so that the search ends although steps
// may undo each other.

#include "reduce/search.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "reduce/step.h"
#include "reduce/tensors.h"
#include "wire/clone.h"
#include "wire/serialize.h"

namespace treadle::reduce {

namespace {

Digest digest_of(std::string_view bytes) {
  Digester digester;
  digester.add(bytes);
  return digester.finish();
}

Progress sizes_of(wire::ModelProto& model, size_t bytes) {
  Progress progress;
  const std::vector<Scope> scopes = scopes_of(model);
  for (const Scope& scope : scopes) progress.nodes += scope.nodes().size();
  progress.bodies = scopes.size() - (model.graph ? 1 : 0);
  progress.bytes = bytes;
  for (const wire::TensorProto* tensor : tensors_of(model)) progress.data_tensors += is_external(*tensor);
  return progress;
}

// The smallest model so far, and what is known of it.
struct Best {
  std::string bytes;
  wire::Parsed<wire::ModelProto> model;
  Facts facts;
};

Result<std::unique_ptr<Best>> read_best(std::string bytes, const std::string& folder) {
  auto best = std::make_unique<Best>();
  best->bytes = std::move(bytes);
  TREADLE_ASSIGN(best->model, wire::parse_model(best->bytes));
  learn(*best->model, best->bytes, folder, best->facts);
  return best;
}

// The order in which a step's items are tried in pieces of one length.
struct Cursor {
  size_t end, length, way = 0;

  bool done() const { return end == 0; }
  size_t first() const { return end - std::min(length, end); }
  void next(size_t ways) {
    if (++way < ways) return;
    way = 0;
    end = first();
  }
};

class Search {
 public:
  Search(const Options& options, const Fails& fails) : options_(options), fails_(fails) {}

  Result<Reduced> run(const wire::MappedFile& file) {
    TREADLE_ASSIGN(best_, read_best(std::string(file.bytes()), options_.folder));
    progress_ = sizes_of(*best_->model, best_->bytes.size());
    progress_.attempts = 1;
    stopped_ = fails_(best_->bytes, progress_) != Verdict::kFails;
    see_best();
    for (bool progress = true; progress && goes_on();) {
      progress = false;
      for (const auto& step : steps()) progress |= step->is_tail() ? bisect(*step) : shrink(*step);
    }
    return Reduced{std::move(best_->bytes), progress_};
  }

 private:
  struct Attempt {
    std::string bytes;
    Digest digest;
    Cursor next;  // where to go on if it passes
    size_t first;
    Verdict verdict = Verdict::kPasses;
    std::exception_ptr failure = nullptr;
  };

  bool goes_on() const { return !stopped_ && progress_.attempts < options_.attempts; }

  // The model as it is, and as it would be written, need not be tried again.
  void see_best() {
    seen_.insert(digest_of(best_->bytes));
    if (auto written = wire::serialize(*best_->model); written.ok()) seen_.insert(digest_of(*written));
  }

  // Nothing if the step cannot do that, or if the result has been tried before.
  std::optional<Attempt> make(const Step& step, size_t first, size_t last, size_t way) const {
    Candidate candidate(best_->facts);
    candidate.model = wire::clone(*best_->model, candidate.arena);
    if (!step.apply(candidate, first, last, way)) return std::nullopt;
    auto bytes = wire::serialize(candidate.model);
    if (!bytes.ok()) return std::nullopt;
    const Digest digest = digest_of(*bytes);
    if (seen_.contains(digest)) return std::nullopt;
    return Attempt{std::move(*bytes), digest, {}, first};
  }

  // Judges the attempts at the same time. Returns the index of the first that fails, or their number if none does.
  // Those behind the first that fails do not count.
  size_t judge(std::vector<Attempt>& attempts, const Step& step) {
    const auto judge_one = [&](Attempt& attempt, size_t number) {
      Progress progress = progress_;
      progress.step = step.name();
      progress.attempts += number + 1;
      try {
        attempt.verdict = fails_(attempt.bytes, progress);
      } catch (...) {
        attempt.failure = std::current_exception();
      }
    };
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < attempts.size(); ++i) threads.emplace_back(judge_one, std::ref(attempts[i]), i);
    judge_one(attempts[0], 0);
    threads.clear();  // waits for them
    size_t index = 0;
    for (; index < attempts.size(); ++index) {
      const Attempt& attempt = attempts[index];
      if (attempt.failure) std::rethrow_exception(attempt.failure);
      ++progress_.attempts;
      seen_.insert(attempt.digest);
      stopped_ = attempt.verdict == Verdict::kStop;
      if (stopped_ || attempt.verdict == Verdict::kFails) break;
    }
    return stopped_ ? attempts.size() : index;
  }

  // Whether the model can be read again: its structure may be too large for that.
  bool accept(Attempt& attempt) {
    auto best = read_best(std::move(attempt.bytes), options_.folder);
    if (!best.ok()) return false;
    best_ = std::move(*best);
    const size_t attempts = progress_.attempts;
    progress_ = sizes_of(*best_->model, best_->bytes.size());
    progress_.attempts = attempts;
    see_best();
    return true;
  }

  size_t count(const Step& step) { return step.count(*best_->model); }

  // Whether the step has made the model smaller.
  bool shrink(const Step& step) {
    bool progress = false;
    for (size_t length = count(step); length > 0 && goes_on(); length = std::min(length, 2 * count(step)) / 2) {
      Cursor cursor{count(step), length};
      while (!cursor.done() && goes_on()) progress |= try_pieces(step, cursor);
    }
    return progress;
  }

  // Tries pieces from the cursor on, as many at once as there are jobs, and moves the cursor behind them or, if one is
  // accepted, behind that.
  bool try_pieces(const Step& step, Cursor& cursor) {
    const size_t most = std::min(std::max<size_t>(options_.jobs, 1), options_.attempts - progress_.attempts);
    std::vector<Attempt> attempts;
    while (attempts.size() < most && !cursor.done()) {
      std::optional<Attempt> attempt = make(step, cursor.first(), cursor.end, cursor.way);
      cursor.next(step.ways());
      if (!attempt || is_among(attempts, attempt->digest)) continue;
      attempts.push_back(std::move(*attempt));
    }
    if (attempts.empty()) return false;
    const size_t failed = judge(attempts, step);
    if (failed == attempts.size()) return false;
    const size_t first = attempts[failed].first;
    if (!accept(attempts[failed])) return false;
    cursor = Cursor{std::min(first, count(step)), cursor.length};
    return true;
  }
  static bool is_among(const std::vector<Attempt>& attempts, const Digest& digest) {
    return std::any_of(attempts.begin(), attempts.end(), [&](const Attempt& a) { return a.digest == digest; });
  }

  // Finds the first item from which on all can go.
  bool bisect(const Step& step) {
    bool progress = false;
    size_t passes = 0, fails = count(step);  // with so many items kept
    while (fails - passes > 1 && goes_on()) {
      const size_t middle = passes + (fails - passes) / 2;
      std::optional<Attempt> made = make(step, middle, count(step), 0);
      std::vector<Attempt> attempts;
      if (made) attempts.push_back(std::move(*made));
      if (attempts.empty() || judge(attempts, step) == 1 || !accept(attempts[0])) {
        passes = middle;
        continue;
      }
      fails = std::min(middle, count(step));
      progress = true;
    }
    return progress;
  }

  const Options& options_;
  const Fails& fails_;
  std::unique_ptr<Best> best_;
  Progress progress_;
  std::set<Digest> seen_;
  bool stopped_ = false;
};

}  // namespace

Result<Reduced> reduce(const wire::MappedFile& file, const Options& options, const Fails& fails) {
  return Search(options, fails).run(file);
}

}  // namespace treadle::reduce
