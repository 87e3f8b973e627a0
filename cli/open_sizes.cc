#include "open_sizes.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>

#include "common.h"
#include "compare.h"
#include "drawing.h"
#include "json.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Value;

constexpr double kMostSeconds = 20;  // of a run

std::string folder_of(const Source& source) {
  if (!source.path) return {};
  const std::string folder = std::filesystem::path(source.path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Runs of the model as it was and as it is, with drawn inputs.
class Trial {
 public:
  Trial(const Source& source, const std::string& opened) : opened_(opened), folder_(folder_of(source)) {
    if (source.path) {
      before_.emplace(std::string(source.path));
    } else {
      before_.emplace(source.bytes, source.size);
    }
    find_sizes(open_after());
  }

  // What was found, a line each. Errors: InputError.
  std::vector<std::string> run() {
    const std::optional<std::vector<Value>> first = run_as_before();
    if (!first) return {fmt::format("not run: {}", failure_)};
    std::vector<std::string> lines = {fmt::format("{}: the same bits as before", text_of(sizes_))};
    size_t runs = 0;
    for (const int64_t times : {2, 3}) {
      const std::map<std::string, int64_t> sizes = larger(times);
      try {
        const Session after = open_after();
        run(after, draw(after, sizes));
        lines.push_back(text_of(sizes) + ": runs");
        ++runs;
      } catch (const treadle::Error& error) {
        failure_ = fmt::format("{}: {}", text_of(sizes), error.what());
        lines.push_back(failure_);
      }
    }
    if (runs == 0) throw InputError(fmt::format("the opened model runs with no other size: {}", failure_));
    return lines;
  }

 private:
  static std::vector<Value> run(const Session& session, const Feeds& feeds) {
    treadle::RunOptions options;
    options.limit_time(kMostSeconds);  // drawn inputs may keep a loop from ending
    return session.run(feeds, {}, &options);
  }

  Session open_after() const { return Session(opened_.data(), opened_.size(), {}, folder_); }

  // By symbol: the size that an axis of an input had before.
  void find_sizes(const Session& after) {
    for (size_t i = 0; i < after.count(TREADLE_INPUT); ++i) {
      const treadle::Type now = after.type(TREADLE_INPUT, i), old = before_->type(TREADLE_INPUT, i);
      if (now.kind() != TREADLE_TENSOR) continue;
      for (int64_t axis = 0; axis < now.rank(); ++axis) {
        if (now.dim(axis) < 0 && old.dim(axis) >= 0) sizes_.emplace(now.symbol(axis), old.dim(axis));
      }
    }
  }

  // Nothing if the model does not run with drawn inputs as it was.
  std::optional<std::vector<Value>> run_as_before() {
    const Session after = open_after();
    const Feeds feeds = draw(after, sizes_);
    std::vector<Value> expected;
    try {
      expected = run(*before_, feeds);
    } catch (const treadle::Error& error) {
      failure_ = error.what();
      return std::nullopt;
    }
    const std::vector<Value> found = run(after, feeds);
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i].to_pb() == expected[i].to_pb()) continue;
      double largest = 0;
      throw InputError(fmt::format("output '{}' of the opened model differs at {}: {}", after.name(TREADLE_OUTPUT, i),
                                   text_of(sizes_), compare(expected[i], found[i], {0, 0}, largest)));
    }
    return expected;
  }

  Feeds draw(const Session& session, const std::map<std::string, int64_t>& sizes) const {
    Feeds feeds;
    add_random_feeds(session, 1, sizes, [&] { return open_after(); }, feeds);
    return feeds;
  }

  std::map<std::string, int64_t> larger(int64_t times) const {
    std::map<std::string, int64_t> sizes = sizes_;
    for (auto& [symbol, size] : sizes) size *= times;
    return sizes;
  }

  static std::string text_of(const std::map<std::string, int64_t>& sizes) {
    std::string text;
    for (const auto& [symbol, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", symbol, size);
    return text;
  }

  std::optional<Session> before_;
  const std::string& opened_;
  const std::string folder_;
  std::map<std::string, int64_t> sizes_;
  std::string failure_;
};

}  // namespace

OpenedModel open_sizes(const std::string& model, const std::vector<std::string>& sizes) {
  const Source source = source_of(model);
  const treadle::ModelFile file =
      source.path ? treadle::ModelFile(model)
                  : treadle::ModelFile::bytes({static_cast<const char*>(source.bytes), source.size});
  OpenedModel opened;
  opened.bytes = treadle::open_sizes(file, sizes, &opened.json);
  opened.changes = read_json_top(opened.json)->lists["changes"];
  opened.runs = Trial(source, opened.bytes).run();
  return opened;
}

}  // namespace cli
