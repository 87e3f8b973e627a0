// treadle serve. The Python package does the work; this command has its options, for help, completion and manual pages.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common.h"
#include "in_python.h"

namespace cli {

namespace {

// An option of python -m treadle.serving.kserve. tests/services/serving/check_command.py holds the table against it.
struct ServeOption {
  const char *name, *type, *text;  // type: empty for a flag
  bool repeats = false;
};
constexpr ServeOption kOptions[] = {
    {"--model_name", "NAME", "The name of the only model; else that of its file"},
    {"--time", "INPUT=AXIS", "The axis that an input is cut along", true},
    {"--state", "INPUT=OUTPUT", "A state that is carried", true},
    {"--no_find_state", "", "Look for no states but those of --state"},
    {"--bind", "INPUT=VALUE", "An input that stays the same, in JSON", true},
    {"--hop", "SAMPLES", "Samples of a run, for models over windows"},
    {"--context", "SAMPLES", "Samples of the window before that a run sees again"},
    {"--capacity", "COUNT", "Streams of each model (4096)"},
    {"--idle_s", "SECONDS", "Seconds without a step after which a stream leaves (300)"},
    {"--max_delay_s", "SECONDS", "Seconds that a step may wait for others (0)"},
    {"--sample_rate", "HERTZ", "Samples a second of the sound that the page sends (16000)"},
    {"--no_page", "", "Have no page for browsers at /v2/models/NAME/page"},
    {"--allow_origin", "ORIGIN", "Pages of another site that may use WebSockets; * for all", true},
    {"--host", "ADDRESS", "The address to listen at (127.0.0.1); 0.0.0.0 for all"},
    {"--http_port", "PORT", "Of REST and WebSockets (8080)"},
    {"--grpc_port", "PORT", "Of gRPC (8081); 0 for none"},
    {"--drain_s", "SECONDS", "Seconds to hand streams out at the end (10)"},
    {"--max_message_bytes", "BYTES", "Of a request and of a frame (16777216)"},
    {"--repository_token_file", "FILE", "A file with a text; callers that send it may load and unload models"},
    {"--log_level", "LEVEL", "Of Python's logging (WARNING, and one line when the server listens)"},
};

struct Serve {
  std::vector<std::string> models;
  std::vector<std::vector<std::string>> values{std::size(kOptions)};

  int operator()() const {
    std::vector<std::string> words = models;
    for (size_t i = 0; i < values.size(); ++i) {
      for (const std::string& value : values[i]) {
        const bool is_flag = *kOptions[i].type == 0;
        words.push_back(is_flag ? kOptions[i].name : fmt::format("{}={}", kOptions[i].name, value));
      }
    }
    return run_in_python("treadle.serving.kserve", words);
  }
};

}  // namespace

void add_serve(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("serve", "Serve live streams by REST, gRPC and WebSockets, with a page");
  const auto serve = std::make_shared<Serve>();
  command.add_option("models", serve->models, "Models, or NAME=FILE; a file that ends in .json lists models")
      ->required()
      ->type_name("MODEL");
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    const ServeOption& option = kOptions[i];
    std::vector<std::string>& values = serve->values[i];
    if (*option.type == 0) {
      command.add_flag(option.name, [&values](int64_t) { values = {""}; }, option.text);
      continue;
    }
    CLI::Option* added = command.add_option(option.name, values, option.text)->type_name(option.type);
    added->allow_extra_args(false);
    if (!option.repeats) added->expected(1);
  }
  command.footer(
      "As in: treadle serve vad.onnx --time input=1 --hop 512 --context 64 --bind sr=16000. The Python package treadle "
      "with its part for servers does the work (pip install \"treadle[kserve]\"); TREADLE_PYTHON names the Python that "
      "has it.");
  command.callback([serve, &status] { status = (*serve)(); });
}

}  // namespace cli
