// treadle test: folders in the layout of the backend tests.
//
//   CASE/model.onnx
//   CASE/test_data_set_N/{input,output}_I.pb
//   CASE/meta.json    optional: "rtol", "atol", "inputs" (names, in the order of the input files)

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "bar.h"
#include "common.h"
#include "compare.h"
#include "json.h"

namespace cli {

namespace {

namespace fs = std::filesystem;
using treadle::Feeds;
using treadle::Session;
using treadle::Value;

struct Outcome {
  std::string name, tier, problem;
  double largest = 0, seconds = 0;
  bool passed() const { return problem.empty(); }
};

std::vector<fs::path> find_cases(const std::vector<std::string>& roots) {
  std::vector<fs::path> cases;
  for (const std::string& root : roots) {
    if (!fs::is_directory(root)) throw UsageError(fmt::format("{} is no folder", root));
    if (fs::exists(fs::path(root) / "model.onnx")) {
      cases.emplace_back(root);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.path().filename() == "model.onnx") cases.push_back(entry.path().parent_path());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().rfind("test_data_set_", 0) == 0) {
      sets.push_back(entry.path());
    }
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

struct Slot {
  std::string name;
  const treadle_type* type;
};

// The inputs to which the files input_I.pb belong.
std::vector<Slot> input_slots(const Session& session, const JsonTop& meta) {
  std::vector<Slot> slots;
  for (const treadle_role role : {TREADLE_INPUT, TREADLE_OVERRIDABLE}) {
    for (size_t i = 0; i < session.count(role); ++i) {
      slots.push_back({session.name(role, i), session.type(role, i).get()});
    }
  }
  const auto order = meta.lists.find("inputs");
  if (order == meta.lists.end()) return slots;
  std::vector<Slot> ordered;
  for (const std::string& name : order->second) {
    const auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.name == name; });
    if (slot == slots.end()) throw InputError(fmt::format("meta.json names an input '{}' that the model lacks", name));
    ordered.push_back(*slot);
  }
  return ordered;
}

std::string run_set(const Session& session, const fs::path& set, const JsonTop& meta, const Tolerance& tolerance,
                    const treadle::RunOptions& watched, double& largest) {
  const std::vector<Slot> slots = input_slots(session, meta);
  Feeds feeds;
  for (size_t i = 0; fs::exists(set / fmt::format("input_{}.pb", i)); ++i) {
    if (i == slots.size()) throw InputError(fmt::format("more input files than the model's {} inputs", slots.size()));
    feeds.emplace_back(slots[i].name,
                       Value::from_pb_file((set / fmt::format("input_{}.pb", i)).string(), slots[i].type));
  }
  const std::vector<Value> results = session.run(feeds, {}, &watched);
  size_t i = 0;
  for (; fs::exists(set / fmt::format("output_{}.pb", i)); ++i) {
    if (i == results.size()) return fmt::format("{} outputs, more are expected", results.size());
    const treadle_type* type = session.type(TREADLE_OUTPUT, i).get();
    const Value expected = Value::from_pb_file((set / fmt::format("output_{}.pb", i)).string(), type);
    const std::string problem = compare(expected, results[i], tolerance, largest);
    if (!problem.empty()) {
      return fmt::format("{}: output '{}' {}", set.filename().string(), session.name(TREADLE_OUTPUT, i), problem);
    }
  }
  return i == 0 ? fmt::format("{}: no expected outputs", set.filename().string()) : "";
}

Outcome run_case(const fs::path& folder, const std::string& name, const Common& common, const std::string& tier,
                 const treadle::RunOptions& watched) {
  Outcome outcome;
  outcome.name = name;
  outcome.tier = tier;
  const Stopwatch watch;
  try {
    JsonTop meta;
    if (fs::exists(folder / "meta.json")) {
      const auto read = read_json_top(treadle::read_file((folder / "meta.json").string()));
      if (!read) throw InputError("meta.json is no JSON object");
      meta = *read;
    }
    Tolerance tolerance;
    if (meta.numbers.count("rtol")) tolerance.relative = meta.numbers["rtol"];
    if (meta.numbers.count("atol")) tolerance.absolute = meta.numbers["atol"];
    Common with_tier = common;
    with_tier.tier = tier;
    const Session session((folder / "model.onnx").string(), session_options(with_tier));
    const std::vector<fs::path> sets = data_sets(folder);
    if (sets.empty()) throw InputError("no test_data_set_N");
    for (const fs::path& set : sets) {
      outcome.problem = run_set(session, set, meta, tolerance, watched, outcome.largest);
      if (!outcome.problem.empty()) break;
    }
  } catch (const std::exception& e) {
    outcome.problem = *e.what() ? e.what() : "failed";
  }
  outcome.seconds = watch.seconds();
  return outcome;
}

struct Test {
  Common common;
  std::vector<std::string> folders;

  int operator()() const {
    const CatchInterrupts here;
    const std::vector<fs::path> cases = find_cases(folders);
    if (cases.empty()) throw UsageError("no folder with a model.onnx was found");
    std::vector<std::string> tiers = {common.tier.empty() ? "program" : common.tier};
    if (common.tier == "all") tiers = {"program", "native", "reference"};
    size_t width = 0;
    std::vector<std::string> names;
    for (const fs::path& folder : cases) {
      const std::string base = folders.size() == 1 ? fs::relative(folder, folders[0]).string() : folder.string();
      names.push_back(base == "." ? folder.filename().string() : base);
      width = std::max(width, names.back().size());
    }
    size_t passed = 0, failed = 0;
    std::vector<std::string> items;
    Bar bar("cases", common.quiet || common.json);
    for (size_t i = 0; i < cases.size(); ++i) {
      for (const std::string& tier : tiers) {
        const auto show = [&](const auto&...) {
          bar.update(static_cast<int64_t>(i), static_cast<int64_t>(cases.size()), names[i]);
          return false;
        };
        treadle::RunOptions watched;
        watch(watched);
        watched.progress(show);
        show();
        const Outcome outcome = run_case(cases[i], names[i], common, tier, watched);
        if (interrupted())
          throw Interrupted(fmt::format("interrupted in {} ({}), after {}", names[i], tier, bar.where()));
        bar.clear();
        ++(outcome.passed() ? passed : failed);
        if (common.json) {
          items.push_back(to_json(outcome));
        } else {
          print(outcome, width);
        }
      }
    }
    if (common.json) {
      fmt::print("{}\n", JsonObject()
                             .integer("passed", static_cast<long long>(passed))
                             .integer("failed", static_cast<long long>(failed))
                             .raw("cases", json_array(items))
                             .str());
    } else {
      fmt::print("{} passed, {} failed\n", passed, failed);
    }
    return failed == 0 ? kOk : kFailed;
  }

  static std::string to_json(const Outcome& outcome) {
    return JsonObject()
        .text("name", outcome.name)
        .text("tier", outcome.tier)
        .boolean("passed", outcome.passed())
        .number("largest_difference", outcome.largest)
        .number("seconds", outcome.seconds)
        .text("problem", outcome.problem)
        .str();
  }

  static void print(const Outcome& outcome, size_t width) {
    fmt::print("{:<{}}  {:<7}  {}  {:9.1f} ms  {}\n", outcome.name, width, outcome.tier,
               outcome.passed() ? green("pass") : red("FAIL"), outcome.seconds * 1e3,
               outcome.passed() ? fmt::format("{:.2g}", outcome.largest) : message_for_people(outcome.problem));
    std::fflush(stdout);
  }
};

}  // namespace

void add_test(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("test", "Run cases in the layout of the ONNX backend tests");
  const auto test = std::make_shared<Test>();
  command.add_option("folders", test->folders, "Cases, or folders with cases at any depth")
      ->required()
      ->type_name("FOLDER");
  add_session(command, test->common, {"program", "native", "reference", "all"});
  command.get_option("--tier")->description("How to run: program, native, reference, or all");
  add_json(command, test->common);
  add_quiet(command, test->common);
  command.callback([test, &status] { status = (*test)(); });
}

}  // namespace cli
