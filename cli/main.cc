// treadle: the command-line tool.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "common.h"

int main(int argc, char** argv) {
  CLI::App app("treadle: an ONNX engine for models that loop", "treadle");
  app.set_version_flag("--version", std::string("treadle ") + treadle_version());
  app.require_subcommand(1);
  int status = cli::kOk;
  cli::add_run(app, status);
  cli::add_check(app, status);
  cli::add_infer(app, status);
  cli::add_show(app, status);
  cli::add_convert(app, status);
  cli::add_ops(app, status);
  cli::add_test(app, status);
  cli::add_bench(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? cli::kOk : cli::kUsage;
  } catch (const cli::UsageError& e) {
    cli::end_progress();
    fmt::print(stderr, "treadle: {}\n", e.what());
    return cli::kUsage;
  } catch (const std::exception& e) {
    cli::end_progress();
    fmt::print(stderr, "treadle: {}\n", e.what());
    return cli::kFailed;
  }
  return status;
}
