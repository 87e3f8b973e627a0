#include "tool.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "bar.h"
#include "common.h"
#include "json.h"
#include "misspelt.h"

namespace {

// Reports an error: for people on standard error, as JSON on standard output.
int fail(bool json, const cli::Failure& failure, int status) {
  if (json) {
    fmt::print("{}\n", cli::JsonObject().raw("error", cli::to_json(failure)).str());
  } else {
    const std::string place = failure.path.empty() ? "" : failure.path + ": ";
    fmt::print(stderr, "treadle: {}\n", cli::message_for_people(place + failure.message));
  }
  return status;
}

int run(int argc, char** argv) {
  // Searched here, since an error may come before the options are read.
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* arg) { return std::string_view(arg) == "--json"; });
  CLI::App app("treadle: an ONNX engine for models that loop", "treadle");
  app.set_version_flag("--version", std::string("treadle ") + treadle_version());
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 it worked; 1 the model, the input or a case failed; 2 the command line makes no sense; 130 it "
      "was "
      "ended by Ctrl-C.");
  int status = cli::kOk;
  cli::add_run(app, status);
  cli::add_check(app, status);
  cli::add_infer(app, status);
  cli::add_show(app, status);
  cli::add_convert(app, status);
  cli::add_compile(app, status);
  cli::add_ops(app, status);
  cli::add_options(app, status);
  cli::add_test(app, status);
  cli::add_bench(app, status);
  cli::add_stream(app, status);
  cli::add_serve(app, status);
  cli::add_explain(app, status);
  cli::add_profile(app, status);
  cli::add_bisect(app, status);
  cli::add_compare(app, status);
  cli::add_report(app, status);
  cli::add_reduce(app, status);
  cli::add_triton_config(app, status);
  cli::add_onnxruntime_lib(app);
  cli::add_describe(app);
  if (const std::string unknown = cli::unknown_command(app, argc, argv); !unknown.empty()) {
    return fail(json, {.code = "usage", .message = unknown}, cli::kUsage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const bool asked = e.get_exit_code() == 0;  // --help, --version
    std::string wrong = asked ? "" : cli::unknown_words(app);
    if (wrong.empty()) wrong = cli::wrong_value(app, e);
    if (!wrong.empty()) return fail(json, {.code = "usage", .message = wrong}, cli::kUsage);
    if (json && !asked) return fail(json, {.code = "usage", .message = e.what()}, cli::kUsage);
    return app.exit(e) == 0 ? cli::kOk : cli::kUsage;
  } catch (const cli::UsageError& e) {
    return fail(json, {.code = "usage", .message = e.what()}, cli::kUsage);
  } catch (const cli::InputError& e) {
    return fail(json, {.code = "input", .message = e.what()}, cli::kFailed);
  } catch (const cli::Interrupted& e) {
    return fail(json, {.code = "interrupted", .message = e.what()}, cli::kInterrupted);
  } catch (const treadle::Error& e) {
    if (cli::interrupted()) return fail(json, {.code = "interrupted", .message = e.what()}, cli::kInterrupted);
    return fail(json, cli::failure_of(e), cli::kFailed);
  } catch (const std::filesystem::filesystem_error& e) {
    return fail(json, {.code = "input", .message = e.what()}, cli::kFailed);
  } catch (const std::system_error&) {
    throw;  // nothing can be printed
  } catch (const std::exception& e) {
    return fail(json, {.code = "internal", .message = e.what()}, cli::kFailed);
  }
  return status;
}

}  // namespace

int cli::run_tool(int argc, char** argv) {
  try {
    const int status = run(argc, argv);
    cli::finish_output();
    return status;
  } catch (const std::system_error& e) {
    fmt::print(stderr, "treadle: standard output: {}\n", e.what());
    return cli::kFailed;
  }
}
