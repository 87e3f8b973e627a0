#include "drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "base/harmless.h"
#include "common.h"
#include "feeds.h"
#include "json.h"
#include "print.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Type;
using treadle::Value;

constexpr int kBool = 9;
constexpr int kElements = 3;  // of a list
constexpr int64_t kMostWhole = 9;
constexpr int64_t kOpenSizes[] = {16, 64, 256, 1024};
constexpr int64_t kMostTried = int64_t{1} << 24;         // elements of one value
constexpr double kTrialSeconds = 2, kSearchSeconds = 3;  // limit of a run; time after which no further run is tried

// Draws values with which loops run: single truth values are true, whole numbers at least 1, open sizes more than 1.
// Counts stay within open sizes, since positions are drawn by the same rule.
class Drawing {
 public:
  Drawing(uint64_t seed, const std::map<std::string, int64_t>& given, int64_t open_size)
      : random_(seed), given_(given), open_size_(open_size) {}

  // Draws the inputs without values.
  Feeds draw(const Session& session, const Feeds& given) {
    Feeds drawn;
    for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
      const std::string name = session.name(TREADLE_INPUT, i);
      const Type type = session.type(TREADLE_INPUT, i);
      const bool is_given =
          std::any_of(given.begin(), given.end(), [&](const auto& feed) { return feed.first == name; });
      if (!is_given && type.kind() != TREADLE_OPTIONAL) drawn.emplace_back(name, draw(name, type));
    }
    return drawn;
  }

  bool has_open_sizes() const { return has_open_; }
  bool is_small() const { return most_elements_ <= kMostTried; }  // small enough to be tried
  // The open sizes, by name.
  const std::map<std::string, int64_t>& sizes() const { return sizes_; }

 private:
  Value draw(const std::string& name, const Type& type) {
    switch (type.kind()) {
      case TREADLE_TENSOR:
        return draw_tensor(name, type);
      case TREADLE_SEQUENCE: {
        std::vector<Value> elements;
        for (int i = 0; i < kElements; ++i) elements.push_back(draw(name, type.child()));
        if (is_too_large()) return {};
        return Value::sequence(elements);
      }
      default:
        throw UsageError(fmt::format("input '{}' ({}) cannot be drawn at random", name, type.text()));
    }
  }

  int64_t size_of(const std::string& symbol) {
    if (const auto size = given_.find(symbol); !symbol.empty() && size != given_.end()) return size->second;
    const bool is_batch = symbol == "B" || symbol.find("batch") != std::string::npos;
    has_open_ |= !is_batch;
    const int64_t size = is_batch ? 1 : open_size_;
    if (!symbol.empty()) sizes_.emplace(symbol, size);
    return size;
  }

  Value draw_tensor(const std::string& name, const Type& type) {
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (int64_t axis = 0; axis < type.rank(); ++axis) {
      dims.push_back(type.dim(axis) >= 0 ? type.dim(axis) : size_of(type.symbol(axis)));
      if (__builtin_mul_overflow(count, dims.back(), &count)) count = INT64_MAX;
    }
    most_elements_ = std::max(most_elements_, count);
    if (is_too_large()) return {};
    if (type.element() == kString) {
      return Value::texts(std::vector<std::string>(static_cast<size_t>(count), "text"), dims);
    }
    Value value = Value::tensor(type.element(), dims);
    const size_t width = treadle_element_width(type.element());
    for (int64_t i = 0; i < count; ++i) {
      const double number = draw_number(type.element(), count == 1);
      if (!store_number(type.element(), number, value.mutable_data<char>() + static_cast<size_t>(i) * width)) {
        throw UsageError(fmt::format("input '{}' ({}) cannot be drawn at random", name, type.text()));
      }
    }
    return value;
  }

  // Whether the value is too large to be tried.
  bool is_too_large() const { return open_size_ > kOpenSizes[0] && most_elements_ > kMostTried; }

  double draw_number(int element, bool single) {
    if (element == kBool) return single || random_() % 2 ? 1 : 0;
    const bool is_whole = std::string_view(treadle_element_name(element)).find("int") != std::string_view::npos;
    return is_whole ? static_cast<double>(1 + random_() % kMostWhole) : normal_(random_);
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  const std::map<std::string, int64_t>& given_;
  int64_t open_size_;
  bool has_open_ = false;
  int64_t most_elements_ = 0;
  std::map<std::string, int64_t> sizes_;
};

// Sizes of the given values, by their names in the model.
void learn_sizes(const Session& session, const Feeds& given, std::map<std::string, int64_t>& sizes) {
  for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
    const Type type = session.type(TREADLE_INPUT, i);
    for (const auto& [name, value] : given) {
      if (name != session.name(TREADLE_INPUT, i) || value.kind() != TREADLE_TENSOR) continue;
      const std::vector<int64_t> dims = value.dims();
      for (size_t axis = 0; axis < dims.size() && static_cast<int64_t>(dims.size()) == type.rank(); ++axis) {
        const std::string symbol = type.symbol(static_cast<int64_t>(axis));
        if (!symbol.empty()) sizes.emplace(symbol, dims[axis]);
      }
    }
  }
}

struct Trial {
  bool succeeds = false;          // succeeds or exceeds the time, and gives no empty tensor
  std::vector<std::string> idle;  // loops that made no iteration

  bool is_better_than(const Trial& other) const {
    return succeeds != other.succeeds ? succeeds : idle.size() < other.idle.size();
  }
};

Trial try_run(const Session& session, const Feeds& feeds) {
  Trial trial;
  treadle::RunOptions options;
  options.limit_time(kTrialSeconds);
  options.count_iterations();
  try {
    const std::vector<Value> results = session.run(feeds, {}, &options);
    trial.succeeds = std::none_of(results.begin(), results.end(), [](const Value& value) {
      return value.kind() == TREADLE_TENSOR && value.count() == 0;
    });
  } catch (const treadle::Error& e) {
    trial.succeeds = e.code() == TREADLE_LIMIT;
  }
  if (const auto json = read_json_top(options.iterations(true))) trial.idle = json->lists.at("idle");
  return trial;
}

// Parameters of drawing.
struct Choice {
  uint64_t seed;
  int64_t size = kOpenSizes[0];
  std::vector<std::string> idle = {};  // loops that made no iteration in any trial
};

// Tries sizes first, as loops over windows of a signal that is too short have no iterations. Then tries other numbers,
// as other loops end by a condition on them.
class Search {
 public:
  Search(const Session& session, uint64_t seed, const std::map<std::string, int64_t>& sizes,
         const std::function<Session()>& open, const Feeds& given)
      : session_(session), seed_(seed), sizes_(sizes), open_(open), given_(given), best_{.seed = seed} {}

  Choice run() {
    for (uint64_t draw = 0; draw < kMostDraws && !is_over(); ++draw) try_sizes(seed_ + draw * kNextSeed);
    best_.idle = found_.idle;
    return best_;
  }

 private:
  void try_sizes(uint64_t seed) {
    for (const int64_t size : kOpenSizes) {
      Drawing drawing(seed, sizes_, size);
      Feeds feeds = drawing.draw(session_, given_);
      if (feeds.empty() || !drawing.is_small()) break;
      feeds.insert(feeds.end(), given_.begin(), given_.end());
      if (!trial_) trial_.emplace(open_());
      consider({.seed = seed, .size = size}, try_run(*trial_, feeds));
      if (is_over() || !drawing.has_open_sizes()) return;
    }
  }

  void consider(Choice choice, Trial trial) {
    if (has_tried_ && !trial.is_better_than(found_)) return;
    has_tried_ = true;
    best_ = std::move(choice);
    found_ = std::move(trial);
    is_done_ = found_.succeeds && found_.idle.empty();
  }

  bool is_over() const { return is_done_ || clock_.seconds() > kSearchSeconds; }

  static constexpr uint64_t kMostDraws = 8, kNextSeed = 0x9e3779b97f4a7c15;
  const Session& session_;
  const uint64_t seed_;
  const std::map<std::string, int64_t>& sizes_;
  const std::function<Session()>& open_;
  const Feeds& given_;
  std::optional<Session> trial_;
  Choice best_;
  Trial found_;
  bool has_tried_ = false, is_done_ = false;
  Stopwatch clock_;
};

}  // namespace

std::string add_random_feeds(const Session& session, uint64_t seed, std::map<std::string, int64_t> sizes,
                             const std::function<Session()>& open, Feeds& feeds) {
  learn_sizes(session, feeds, sizes);
  const Choice choice = Search(session, seed, sizes, open, feeds).run();
  Drawing drawing(choice.seed, sizes, choice.size);
  std::string text;
  for (auto& [name, value] : drawing.draw(session, feeds)) {
    text += fmt::format("drawn  {}  {}\n", treadle::harmless(name), summary(value));
    feeds.emplace_back(name, std::move(value));
  }
  for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
    const std::string name = session.name(TREADLE_INPUT, i);
    const bool has_value =
        std::any_of(feeds.begin(), feeds.end(), [&](const auto& feed) { return feed.first == name; });
    if (!has_value) text += fmt::format("drawn  {}  nothing: it is optional\n", treadle::harmless(name));
  }
  for (const auto& [symbol, size] : drawing.sizes()) {
    text += fmt::format("drawn  {} = {}  (--dim {}=SIZE takes another)\n", treadle::harmless(symbol), size,
                        treadle::harmless(symbol));
  }
  for (const std::string& loop : choice.idle) {
    text += fmt::format("drawn  nothing that was tried makes the loop {} run\n", loop);
  }
  return text;
}

}  // namespace cli
