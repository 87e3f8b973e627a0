// treadle compile: a model as C.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "common.h"
#include "feeds.h"
#include "json.h"
#include "signal_stream.h"

namespace cli {

namespace {

struct Compile {
  Common common;
  std::string model, out, prefix, weights;
  std::vector<std::string> dims, fixed;
  StreamFlags stream;
  bool streams = false, no_end = false, no_fma = false, libm = false;

  int operator()() const {
    if (!out.ends_with(".c")) throw UsageError(fmt::format("the source is called NAME.c, found '{}'", out));
    const std::string stem = out.substr(0, out.size() - 2);
    const std::string name = stem.substr(stem.find_last_of('/') + 1);
    std::vector<std::string> options{"prefix=" + (prefix.empty() ? name : prefix)};
    for (const std::string& size : dims) options.push_back("dim=" + size);
    if (no_fma) options.emplace_back("fma=0");
    if (libm) options.emplace_back("libm=1");
    if (!weights.empty()) options.push_back("weights=" + weights);
    const treadle::Session session = open_session(model, common);
    const auto [source, written_header] = streams || stream.is_given()
                                              ? written_stream(session, std::move(options))
                                              : session.write_c(options, read_feeds(session, fixed));
    const std::string header = stem + ".h";
    write_file(out, with_header(source, prefix.empty() ? name : prefix, name));
    write_file(header, written_header);
    if (common.json) {
      JsonObject json;
      json.text("source", out).text("header", header);
      json.integer("source_bytes", static_cast<long long>(source.size()));
      fmt::print("{}\n", json.str());
    } else {
      fmt::print("{} ({} KB), {}\n", out, (source.size() + 1023) / 1024, header);
    }
    return kOk;
  }

 private:
  std::pair<std::string, std::string> written_stream(const treadle::Session& session,
                                                     std::vector<std::string> options) const {
    if (stream.push > 0) options.push_back(fmt::format("samples={}", stream.push));
    if (no_end) options.emplace_back("end=0");
    SignalFeeds values{.feeds = read_feeds(session, fixed)};
    return treadle::Stream(session, stream_options(session, stream, std::move(values))).write_c(options);
  }

  // The source includes its header by the name of the file.
  static std::string with_header(std::string source, const std::string& prefix, const std::string& name) {
    const std::string line = fmt::format("#include \"{}.h\"", prefix);
    const size_t at = source.find(line);
    if (prefix != name && at != std::string::npos)
      source.replace(at, line.size(), fmt::format("#include \"{}.h\"", name));
    return source;
  }
};

}  // namespace

void add_compile(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("compile", "Write a model as C source that needs no runtime");
  const auto compile = std::make_shared<Compile>();
  command.add_option("model", compile->model, "The model; - is standard input")->required()->type_name("MODEL");
  command.add_option("-o,--out", compile->out, "The source; its header lies beside it")
      ->required()
      ->type_name("NAME.c");
  command
      .add_option("--prefix", compile->prefix, "Begins all names that the header declares (default: the file's name)")
      ->type_name("NAME");
  command
      .add_option("--dim", compile->dims,
                  "An open size, by the model's name for it (N=80) or as input and axis (x:0=80); may be repeated")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  command
      .add_option("--fix", compile->fixed,
                  "An input that always has this value, and is no input of the C: NAME=VALUE or NAME=FILE.npy; may be "
                  "repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_flag("--stream", compile->streams,
                   "As a stream, which carries states from push to push; the options about time say so as well");
  compile->stream.add_roles(command);
  command.add_flag("--no-end", compile->no_end, "Leaves out the function for the end of a stream's signal");
  command.add_flag("--no-fma", compile->no_fma,
                   "For processors without fused multiply-add: a product and a sum round separately everywhere");
  command.add_flag("--libm", compile->libm, "Operations for which the engine has no formula may call <math.h>");
  command
      .add_option("--weights", compile->weights,
                  "A file for constants of 64 bytes and more, whose contents the C takes as an argument")
      ->type_name("FILE");
  add_json(command, compile->common);
  command.callback([compile, &status] { status = (*compile)(); });
}

}  // namespace cli
