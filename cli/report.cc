// treadle report: a page about a model. The Python package makes it; this command reads or draws the inputs.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "common.h"
#include "in_python.h"
#include "inputs.h"
#include "temporary_folder.h"

namespace cli {

namespace {

namespace fs = std::filesystem;

struct Report : Inputs {
  std::string out = "report.html", netron;
  std::vector<std::string> time, state;
  int runs = 5, hop = 0, context = 0;
  double rate = 0;

  int operator()() {
    const TemporaryFolder folder;
    if (model == "-") model = folder.add("model.onnx", read_input(model));
    std::vector<std::string> words = {fs::absolute(model).string(), "--out", out, "--runs", std::to_string(runs)};
    size_t count = 0;
    for (const auto& [name, value] : inputs_of_model()) {
      words.push_back(fmt::format("--feed={}={}", name, folder.add(fmt::format("{}.pb", count++), value.to_pb(name))));
    }
    for (const std::string& axis : time) words.push_back("--time=" + axis);
    for (const std::string& pair : state) words.push_back("--state=" + pair);
    if (!netron.empty()) words.push_back("--netron=" + netron);
    if (hop > 0) words.push_back(fmt::format("--hop={}", hop));
    if (context > 0) words.push_back(fmt::format("--context={}", context));
    if (rate > 0) words.push_back(fmt::format("--rate={}", rate));
    return run_in_python("treadle.report", words);
  }

 private:
  // Without values and without --random nothing is run, and a model that cannot be opened gets its page as well.
  treadle::Feeds inputs_of_model() const {
    if (values.empty() && random->count() == 0) return {};
    return feeds(open_session(model, common));
  }
};

}  // namespace

void add_report(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand(
      "report", "Write a page about a model: what would make it faster, its loops, times, and values over iterations");
  const auto report = std::make_shared<Report>();
  report->add(command);
  command.add_option("-o,--out", report->out, "The page")->type_name("FILE.html")->capture_default_str();
  command
      .add_option("--netron", report->netron,
                  "Also write the model, with times and ranges of values as metadata of nodes")
      ->type_name("FILE.onnx");
  command.add_option("--runs", report->runs, "Runs of the profile")->capture_default_str()->check(above_zero());
  command.add_option("--time", report->time, "Push this input in pieces along its axis, and show how long pushes take")
      ->type_name("INPUT=AXIS")
      ->allow_extra_args(false);
  command.add_option("--state", report->state, "Of the stream: the output that is the input's next value")
      ->type_name("INPUT=OUTPUT")
      ->allow_extra_args(false);
  command.add_option("--hop", report->hop, "Of the stream: samples of a push")->check(above_zero());
  command.add_option("--context", report->context, "Of the stream: samples that are seen again")->check(above_zero());
  command.add_option("--rate", report->rate, "Of the stream: samples per second")->check(above_zero());
  command.callback([report, &status] { status = (*report)(); });
}

}  // namespace cli
