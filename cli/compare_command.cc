// treadle compare: where treadle and another engine part. The Python package does the work, since it can run other
// engines; this command reads or draws the inputs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "common.h"
#include "drawing.h"
#include "feeds.h"
#include "in_python.h"
#include "temporary_folder.h"

namespace cli {

namespace {

namespace fs = std::filesystem;
using treadle::Feeds;
using treadle::Session;

bool is_model(const std::string& word) {
  const std::string ending = fs::path(word).extension().string();
  return word.find('=') == std::string::npos && (ending == ".onnx" || ending == ".onnxtxt" || ending == ".ort");
}

struct Compare {
  Common common;
  std::string model, engine, save;
  std::vector<std::string> values, watch;
  uint64_t seed = 0;
  std::string relative, absolute;
  bool inner = false, outputs_only = false;
  size_t memory = size_t{1} << 28;
  int runs = 5;

  int operator()() {
    const std::string other = take_other();
    const TemporaryFolder folder;
    if (model == "-") model = folder.add("model.onnx", read_input(model));
    std::vector<std::string> words = {model, "--other", other};
    size_t count = 0;
    for (const auto& [name, value] : feeds()) {
      words.push_back(fmt::format("--feed={}={}", name, folder.add(fmt::format("{}.pb", count++), value.to_pb(name))));
    }
    add_options(words);
    return run_in_python("treadle._compare_command", words);
  }

 private:
  // The engine, or the second model, which is then no value of an input.
  std::string take_other() {
    const bool has_second = !values.empty() && is_model(values.front());
    if (engine.empty()) engine = has_second ? "other" : "onnxruntime";
    if (engine != "other") {
      if (has_second)
        throw UsageError(fmt::format("--with {} compares one model, and {} is a second one", engine, values[0]));
      return engine;
    }
    if (!has_second) throw UsageError("--with other compares two models: name the second one behind the first");
    const std::string second = values.front();
    values.erase(values.begin());
    return fs::absolute(second).string();
  }

  Feeds feeds() const {
    const Session session = open_session(model, common);
    Feeds fed = read_feeds(session, values);
    const auto open = [&] { return open_session(model, common); };
    fmt::print(stderr, "{}", add_random_feeds(session, seed, dimensions_of(common), open, fed));
    return fed;
  }

  void add_options(std::vector<std::string>& words) const {
    const auto add = [&](const std::string& name, const std::string& value) {
      if (!value.empty()) words.push_back(fmt::format("{}={}", name, value));
    };
    add("--rtol", relative);
    add("--atol", absolute);
    add("--inner", inner ? "always" : outputs_only ? "never" : "");
    for (const std::string& name : watch) add("--watch", name);
    add("--memory", std::to_string(memory));
    add("--runs", std::to_string(runs));
    add("--threads", std::to_string(common.threads));
    add("--save", save);
    for (const std::string& text : common.options) add("--option", text);
    if (common.json) words.emplace_back("--json");
  }
};

void add_tolerance(CLI::App& command, Compare& compare) {
  command.add_option("--rtol", compare.relative, "How far values may be off, relative to the other engine's")
      ->type_name("FLOAT")
      ->check(zero_or_more());
  command.add_option("--atol", compare.absolute, "How far values may be off beside that")
      ->type_name("FLOAT")
      ->check(zero_or_more());
}

void add_inner(CLI::App& command, Compare& compare) {
  CLI::Option* inner = command.add_flag("--inner", compare.inner, "Compare inner values although the outputs agree");
  command.add_flag("--outputs-only", compare.outputs_only, "Compare no inner values")->excludes(inner);
  command
      .add_option("--watch", compare.watch,
                  "Compare only inner values of this name, or that fit this pattern (*); may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--save", compare.save,
                  "Save the first node that differs as a model with its inputs, for treadle test")
      ->type_name("FOLDER");
  command.add_option("--memory", compare.memory, "Bytes of inner values to hold at once; more values take more runs")
      ->type_name("BYTES")
      ->check(above_zero());
}

}  // namespace

void add_compare(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("compare", "Find where treadle and another engine, or two models, part");
  const auto compare = std::make_shared<Compare>();
  command.add_option("model", compare->model, "The model; - is standard input")->required()->type_name("MODEL");
  command
      .add_option(
          "inputs", compare->values,
          "A second model to compare with, then values of inputs, as for treadle run; what is not given is drawn "
          "at random")
      ->type_name("VALUE");
  command
      .add_option("--with", compare->engine,
                  "What to compare with: onnxruntime; reference (treadle's reference interpreter); other (the second "
                  "model)")
      ->type_name("ENGINE")
      ->check(one_of({"onnxruntime", "reference", "other"}));
  command.add_option("--random", compare->seed, "The seed of what is drawn (a number)")->type_name("SEED");
  add_tolerance(command, *compare);
  add_inner(command, *compare);
  command.add_option("--runs", compare->runs, "Runs to time in each engine")->check(above_zero());
  command.add_option("--threads", compare->common.threads, "Threads of each engine; 0: as many as it likes")
      ->check(from_to(0, 4096));
  command
      .add_option("--option", compare->common.options, "Set any option of treadle's session, as in --option jit=off")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--dim", compare->common.dimensions, "Fix a symbolic size that is drawn, as in --dim batch=1")
      ->type_name("NAME=SIZE");
  add_json(command, compare->common);
  command.footer(
      "The Python package treadle does the work, and for --with onnxruntime the package onnxruntime: TREADLE_PYTHON "
      "names "
      "the Python that has them.\nStatus 0: all agrees. 1: something differs, or an engine gives no result. 2: the "
      "command line makes no sense.");
  command.callback([compare, &status] { status = (*compare)(); });
}

}  // namespace cli
