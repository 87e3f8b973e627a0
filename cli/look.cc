#include "look.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <map>

#include "common.h"
#include "json.h"
#include "npz_writer.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Value;

// The contents of watched values, until they are written.
class Contents {
 public:
  explicit Contents(size_t limit) : limit_(limit) {}

  // True: they have become too many. Then `problem` says so.
  bool add(const treadle_seen& seen) {
    Series& series = series_[seen.name];
    series.depth = seen.depth;
    treadle_value* copy = nullptr;
    treadle::check(treadle_value_copy(seen.value, &copy));
    Value value(copy);
    bytes_ += value.kind() == TREADLE_TENSOR ? value.bytes() : 0;
    if (bytes_ > limit_) {
      std::string at;
      for (size_t i = 0; i < seen.depth; ++i)
        at += fmt::format("{}{}", i == 0 ? " at iteration " : "/", seen.iterations[i]);
      problem = fmt::format(
          "the values take more than {} bytes{} of {}: choose fewer iterations (NAME@0-9), or raise "
          "--values-limit",
          limit_, at, seen.name);
      return true;
    }
    series.iterations.insert(series.iterations.end(), seen.iterations, seen.iterations + seen.depth);
    series.values.push_back(std::move(value));
    return false;
  }

  void write(const std::string& path) const {
    NpzWriter file;
    for (const auto& [name, series] : series_) series.write(name, file);
    write_file(path, file.finish());
  }

  // A line for each value.
  std::string text() const {
    std::string out;
    for (const auto& [name, series] : series_) {
      out += fmt::format("{}  {}", bold(name), series.values.front().type_text());
      if (series.values.size() > 1) {
        out += fmt::format("{}, {} times", series.have_one_type() ? "" : " at first", series.values.size());
      }
      out += "\n";
    }
    return out;
  }

  bool has(const std::string& name) const { return series_.contains(name); }

  std::string problem;

 private:
  struct Series {
    size_t depth = 0;
    std::vector<int64_t> iterations;
    std::vector<Value> values;

    bool have_one_type() const {
      for (const Value& value : values) {
        if (value.kind() != TREADLE_TENSOR || value.element() == kString || value.element() != values[0].element() ||
            value.dims() != values[0].dims()) {
          return false;
        }
      }
      return true;
    }
    std::string place(size_t sample) const {
      std::string text;
      for (size_t i = 0; i < depth; ++i) text += fmt::format("{}{}", i == 0 ? "" : ".", iterations[sample * depth + i]);
      return text;
    }
    void write(const std::string& name, NpzWriter& file) const {
      if (depth == 0) return write_one(name, values[0], file);
      const auto count = static_cast<int64_t>(values.size());
      if (have_one_type()) {
        std::vector<int64_t> dims = values[0].dims();
        dims.insert(dims.begin(), count);
        Value all = Value::tensor(values[0].element(), dims);
        for (size_t i = 0; i < values.size() && values[0].bytes() > 0; ++i) {
          std::memcpy(all.mutable_data<char>() + i * values[0].bytes(), values[i].data<char>(), values[0].bytes());
        }
        file.add(name, all);
      } else {
        for (size_t i = 0; i < values.size(); ++i) write_one(fmt::format("{}@{}", name, place(i)), values[i], file);
      }
      Value at = Value::tensor(kInt64, {count, static_cast<int64_t>(depth)});
      std::memcpy(at.mutable_data<char>(), iterations.data(), iterations.size() * sizeof(int64_t));
      file.add(name + "@", at);
    }
    static void write_one(const std::string& name, const Value& value, NpzWriter& file) {
      if (value.kind() == TREADLE_TENSOR) return file.add(name, value);
      if (value.kind() != TREADLE_SEQUENCE) {
        throw InputError(fmt::format("{} is {}, and .npz files hold tensors and sequences", name, value.type_text()));
      }
      for (size_t i = 0; i < value.sequence_size(); ++i) {
        write_one(fmt::format("{}[{}]", name, i), value.sequence_at(i), file);
      }
    }
  };
  static constexpr int kInt64 = 7;

  size_t limit_, bytes_ = 0;
  std::map<std::string, Series> series_;
};

}  // namespace

void Look::add(CLI::App& command) {
  command
      .add_option("--find", find,
                  "Run the model as it is written, and say where such numbers first come from: nan, inf, over=LIMIT, "
                  "denormal, zero; several with commas between them")
      ->type_name("WHAT");
  command
      .add_option("--save", folder,
                  "With --find: write the node that made the first of them to this folder, as a model with its inputs "
                  "and outputs, which treadle test repeats")
      ->type_name("FOLDER")
      ->needs("--find");
  CLI::Option* const table = command.add_flag(
      "--statistics", statistics,
      "Run the model as it is written, and print the ranges of its values over all iterations, the worst first (with "
      "--json the numbers of each iteration)");
  command.add_option("--watch", watch, "With --statistics: only this value, named as in --values; may be repeated")
      ->type_name("NAME[@ITERATIONS]")
      ->allow_extra_args(false)
      ->needs(table);
  CLI::Option* const contents = command.add_option(
      "--values", values,
      "Write a value of the model, by its name, path or a pattern with *, in all iterations of the loops "
      "around it or in these: NAME@7, NAME@0-9,20, NAME@::10, NAME@2/0-9 (outer loop first); may be repeated");
  contents->type_name("NAME[@ITERATIONS]")->allow_extra_args(false)->excludes(table);
  command.add_option("--values-out", file, "The file for --values")->type_name("FILE.npz")->capture_default_str();
  command
      .add_option(
          "--every", every,
          "With --statistics or --values: look at one of so many iterations of the innermost loop around a value")
      ->type_name("COUNT")
      ->check(above_zero());
  command.add_option("--values-limit", limit, "Bytes of memory for --values or --statistics")
      ->type_name("BYTES")
      ->check(above_zero());
}

void Look::prepare(Common& common) const {
  if (!common.tier.empty() && common.tier != "program") {
    throw UsageError("--find, --statistics and --values look into the interpreted program: leave out --tier");
  }
  common.options.insert(common.options.begin(), "optimize=0");  // loading folds nothing either
}

int Look::run(const Session& session, const Feeds& feeds, treadle::RunOptions& options, bool json) const {
  treadle::TraceOptions wanted;
  Contents contents(limit);
  wanted.statistics(statistics);
  wanted.every(every);
  wanted.limit_memory(limit);
  if (!find.empty()) wanted.find(find);
  if (!folder.empty()) wanted.save(folder);
  for (const std::string& value : statistics ? watch : values) wanted.watch(value);
  if (!values.empty()) wanted.set_listener([&](const treadle_seen& seen) { return contents.add(seen); });
  treadle::Trace trace;
  const auto print = [&] {
    if (find.empty() && !statistics && !json) return;
    print_lines(json ? trace.json() + "\n" : trace.text());
  };
  try {
    session.trace(feeds, wanted, trace, &options);
  } catch (const treadle::Error&) {
    if (!contents.problem.empty()) throw InputError(contents.problem);
    if (trace.get() && trace.found() > 0) print();
    throw;
  }
  print();
  for (size_t i = 0; !values.empty() && i < trace.count(); ++i) {
    if (const std::string why = trace.missing(i); !why.empty()) {
      fmt::print(stderr, "{}: {}\n", message_for_people(trace.name(i)), why);
    } else if (!contents.has(trace.name(i))) {
      fmt::print(stderr, "{}: not computed in these iterations of this run\n", message_for_people(trace.name(i)));
    }
  }
  if (!values.empty()) {
    contents.write(file);
    if (!json) fmt::print("{}written to {}\n", contents.text(), file);
  }
  return trace.found() > 0 ? kFailed : kOk;
}

}  // namespace cli
