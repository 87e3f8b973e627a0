// treadle triton-config: the configuration of a model for Triton Inference Server.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>

#include "common.h"
#include "feeds.h"

namespace cli {

namespace {

using treadle::Session;
using treadle::Type;

namespace fs = std::filesystem;

// Triton's name of an element type, by ONNX's number.
std::string triton_type(const std::string& name, const Type& type) {
  static constexpr std::pair<int, const char*> kTypes[] = {
      {1, "FP32"},   {2, "UINT8"}, {3, "INT8"},  {4, "UINT16"}, {5, "INT16"},   {6, "INT32"},   {7, "INT64"},
      {8, "STRING"}, {9, "BOOL"},  {10, "FP16"}, {11, "FP64"},  {12, "UINT32"}, {13, "UINT64"}, {16, "BF16"}};
  for (const auto& [element, triton] : kTypes) {
    if (type.kind() == TREADLE_TENSOR && element == type.element()) return std::string("TYPE_") + triton;
  }
  throw InputError(fmt::format("'{}' is a {}, for which Triton has no data_type", name, type.text()));
}

// Quotes a text for config.pbtxt.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::pair<std::string, std::string> assigned(const char* option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageError(fmt::format("{} takes NAME=VALUE, not '{}'", option, text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::optional<int64_t> number_of(const std::string& text) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// The folder of the backend: beside this tool in a build folder, or as both are installed. Empty: none.
std::string backend_folder() {
  std::error_code failed;
  const fs::path tool = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const fs::path& folder : {tool / "../lib/backends", tool / TREADLE_TOOL_TO_BACKENDS}) {
    if (!failed && fs::exists(folder / "treadle/libtriton_treadle.so", failed)) return fs::canonical(folder).string();
  }
  return {};
}

constexpr int64_t kBatch = 64;

struct TritonConfig {
  Common common;
  std::string model, name, repository, out, strategy = "oldest";
  std::vector<std::string> time, bind, state;
  int64_t hop = 0, context = 0, max_batch = 0, capacity = 4096, instances = 1, threads = 1;
  double idle = 60;
  bool alone = false, no_snapshots = false, server_state = false;
  std::vector<const CLI::Option*> of_sequences;

  // An input or output in the configuration.
  struct Tensor {
    std::string name, type;
    std::vector<int64_t> dims;  // including the batch
    std::string more;
  };

  int operator()() const {
    const Session session = open_session(model, common);
    const std::string text = config(session);
    if (repository.empty()) {
      write_file(out.empty() ? "-" : out, text);
    } else {
      write_repository(text);
    }
    return kOk;
  }

  std::string model_name() const {
    if (!name.empty()) return name;
    if (model == "-") throw UsageError("a model from standard input needs a --name");
    return fs::path(model).stem().string();
  }

  // Parses values in texts of parameters, which are separated by commas.
  static treadle::Feeds bound(const Session& session, const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      const auto [input, text] = assigned("--bind", value);
      if (text.front() != '[' && text.find_first_not_of("0123456789+-.eE") != std::string::npos && text != "true" &&
          text != "false") {
        throw UsageError(fmt::format("--bind takes NAME=NUMBER or NAME=[NUMBER,...], not '{}'", value));
      }
    }
    return read_feeds(session, values);
  }

  treadle::StreamOptions stream_options(const treadle::Feeds& bound) const {
    treadle::StreamOptions options;
    for (const std::string& item : time) {
      const auto [input, axis] = assigned("--time", item);
      if (const auto number = number_of(axis)) {
        options.time(input, *number);
      } else {
        options.time(input, axis);
      }
    }
    for (const std::string& item : state) {
      const auto [input, output] = assigned("--state", item);
      options.state(input, output);
    }
    for (const auto& [input, value] : bound) options.bind(input, value);
    options.hop(hop, context);
    return options;
  }

  // The axis that --time gives an input; -1: none.
  int64_t time_axis(const std::string& input, const Type& type) const {
    for (const std::string& item : time) {
      const auto [timed, axis] = assigned("--time", item);
      if (timed != input) continue;
      if (const auto number = number_of(axis)) return *number < 0 ? *number + type.rank() : *number;
      for (int64_t i = 0; i < type.rank(); ++i) {
        if (type.symbol(i) == axis) return i;
      }
    }
    return -1;
  }

  static std::vector<int64_t> dims_of(const std::string& tensor, const Type& type) {
    if (type.rank() < 0) {
      throw InputError(fmt::format(
          "the model does not say what rank '{}' has: infer its types first (treadle infer --out)", tensor));
    }
    std::vector<int64_t> dims;
    for (int64_t axis = 0; axis < type.rank(); ++axis) dims.push_back(type.dim(axis));
    return dims;
  }

  std::vector<Tensor> inputs(const Session& session, const treadle::Feeds& bound,
                             const std::vector<std::string>& states) const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
      const std::string input = session.name(TREADLE_INPUT, i);
      const auto is_input = [&](const treadle::Feed& feed) { return feed.first == input; };
      if (std::ranges::any_of(bound, is_input) || std::ranges::find(states, input) != states.end()) continue;
      const Type type = session.type(TREADLE_INPUT, i);
      Tensor tensor{input, triton_type(input, type), dims_of(input, type), {}};
      const int64_t axis = time_axis(input, type);
      if (axis >= 0 && axis < type.rank()) {
        tensor.dims[static_cast<size_t>(axis)] = -1;
        tensor.more = " allow_ragged_batch: true";
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  Tensor output(const Session& session, const std::string& output) const {
    for (size_t i = 0; i < session.count(TREADLE_OUTPUT); ++i) {
      if (session.name(TREADLE_OUTPUT, i) != output) continue;
      const Type type = session.type(TREADLE_OUTPUT, i);
      return {output, triton_type(output, type), dims_of(output, type), {}};
    }
    throw UsageError(fmt::format("the model has no output '{}'", output));
  }

  // The outputs of streams. If runs are stacked, the number of runs follows the batch.
  std::vector<Tensor> outputs(const Session& session, const treadle::Stream& stream, bool has_batch) const {
    std::vector<Tensor> tensors;
    const std::vector<std::string> names = stream.output_names();
    for (size_t i = 0; i < names.size(); ++i) {
      Tensor tensor = output(session, names[i]);
      const int64_t axis = stream.output_axis(i);
      if (axis == 0 && hop > 0) {
        tensor.dims.insert(tensor.dims.begin() + (has_batch ? 1 : 0), -1);
      } else if (axis >= 0) {
        tensor.dims[static_cast<size_t>(axis)] = -1;
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  // Whether the first axis of all inputs is a batch. In streams it may have size 1, which has to be free elsewhere.
  bool has_batch(const std::vector<Tensor>& tensors, const Session& session, bool is_streamed) const {
    return std::ranges::all_of(tensors, [&](const Tensor& tensor) {
      if (tensor.dims.empty() || tensor.dims[0] > 1 || (tensor.dims[0] == 1 && !is_streamed)) return false;
      for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
        if (session.name(TREADLE_INPUT, i) == tensor.name)
          return time_axis(tensor.name, session.type(TREADLE_INPUT, i)) != 0;
      }
      return true;
    });
  }

  static std::string written(const char* field, const Tensor& tensor, bool has_batch) {
    std::vector<int64_t> dims = tensor.dims;
    if (has_batch && !dims.empty()) dims.erase(dims.begin());
    // Triton has no tensors without axes; a scalar has one axis of size 1.
    const char* reshaped = dims.empty() ? " reshape: { shape: [ ] }" : "";
    if (dims.empty()) dims = {1};
    return fmt::format("{} [ {{ name: {} data_type: {} dims: [ {} ]{}{} }} ]\n", field, quoted(tensor.name),
                       tensor.type, fmt::join(dims, ", "), reshaped, tensor.more);
  }

  static std::string parameter(const char* key, const std::string& value) {
    return fmt::format("parameters {{ key: \"{}\" value {{ string_value: {} }} }}\n", key, quoted(value));
  }

  std::string stream_parameters(bool is_sequence) const {
    std::string text;
    if (!time.empty()) text += parameter("time", fmt::format("{}", fmt::join(time, ",")));
    if (hop > 0) text += parameter("hop", fmt::to_string(hop));
    if (context > 0) text += parameter("context", fmt::to_string(context));
    if (!state.empty()) text += parameter("state", fmt::format("{}", fmt::join(state, ",")));
    if (is_sequence) text += parameter("capacity", fmt::to_string(capacity));
    return text;
  }

  std::string states_of_server(const Session& session, bool batched) const {
    std::string text;
    for (const std::string& item : state) {
      const auto [input, of] = assigned("--state", item);
      const Tensor tensor = output(session, of);
      std::vector<int64_t> dims = tensor.dims;
      if (batched && !dims.empty()) dims.erase(dims.begin());
      std::vector<int64_t> first = dims;  // open sizes are 1 at the start, as the server does it
      std::ranges::replace(first, -1, 1);
      text += fmt::format(
          "  state [ {{ input_name: {} output_name: {} data_type: {} dims: [ {} ]\n"
          "    initial_state: {{ name: \"zero\" data_type: {} dims: [ {} ] zero_data: true }} }} ]\n",
          quoted(input), quoted(of), tensor.type, fmt::join(dims, ", "), tensor.type, fmt::join(first, ", "));
    }
    return text;
  }

  std::string sequences(const std::string& states) const {
    std::string text = fmt::format("sequence_batching {{\n  max_sequence_idle_microseconds: {:.0f}\n", idle * 1e6);
    text +=
        strategy == "direct" ? "  direct { }\n" : fmt::format("  oldest {{ max_candidate_sequences: {} }}\n", capacity);
    return text + states + "}\n";
  }

  // How requests are served, by the options and the model's states.
  struct Way {
    bool is_sequence = false, is_streamed = false;
    std::vector<std::string> states;  // inputs that requests do not give
  };

  Way way_of(const Session& session, const treadle::Stream& stream, const treadle::Feeds& fixed) const {
    const bool is_cut = !time.empty() || hop > 0;
    Way way{.states = stream.state_names()};
    if (server_state) {
      if (state.empty() || is_cut) throw UsageError("--server-state goes with --state, and without --time and --hop");
      way.states.clear();
      for (const std::string& item : state) way.states.push_back(assigned("--state", item).first);
    }
    // If pairs of states would cover all inputs, they only look like states: INPUT0 and OUTPUT0.
    const bool has_input = way.states.size() + fixed.size() < session.count(TREADLE_INPUT);
    way.is_sequence = !alone && (is_cut || (!way.states.empty() && has_input));
    way.is_streamed = is_cut || (way.is_sequence && !server_state);
    if (!way.is_streamed && !server_state) way.states.clear();
    return way;
  }

  void check_options(const Way& way) const {
    if (alone && !way.is_streamed && !state.empty()) throw UsageError("--state does nothing with --no-sequences");
    const auto is_given = [](const CLI::Option* option) { return option->count() > 0; };
    const auto given = std::ranges::find_if(of_sequences, is_given);
    if (way.is_sequence || given == of_sequences.end()) return;
    throw UsageError(fmt::format("{} is for sequences, and {}", (*given)->get_name(),
                                 alone ? "--no-sequences makes each request stand for itself"
                                       : "this model has no state: say with --time or --state what a sequence is"));
  }

  std::vector<Tensor> outputs_of_runs(const Session& session) const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < session.count(TREADLE_OUTPUT); ++i) {
      const std::string of = session.name(TREADLE_OUTPUT, i);
      const auto is_state = [&](const std::string& item) { return assigned("--state", item).second == of; };
      if (!server_state || std::ranges::none_of(state, is_state)) tensors.push_back(output(session, of));
    }
    return tensors;
  }

  std::string tensors(std::vector<Tensor> taken, std::vector<Tensor> given, const Way& way, bool batched) const {
    if (way.is_sequence && !server_state && !no_snapshots) {
      const std::vector<int64_t> dims(batched ? 2 : 1, -1);
      taken.push_back({"treadle_state", "TYPE_UINT8", dims, " optional: true allow_ragged_batch: true"});
      given.push_back({"treadle_state", "TYPE_UINT8", dims, {}});
    }
    std::string text;
    for (const Tensor& tensor : taken) text += written("input", tensor, batched);
    for (const Tensor& tensor : given) text += written("output", tensor, batched);
    return text;
  }

  std::string config(const Session& session) const {
    const treadle::Feeds fixed = bound(session, bind);
    const treadle::Stream stream(session, server_state ? treadle::StreamOptions() : stream_options(fixed));
    const Way way = way_of(session, stream, fixed);
    check_options(way);
    if (way.is_streamed) fmt::print(stderr, "{}", dim(stream.text()));
    const std::vector<Tensor> taken = inputs(session, fixed, way.states);
    const bool batched = has_batch(taken, session, way.is_streamed);
    if (max_batch > 0 && !batched) {
      throw UsageError("--max-batch-size needs a model whose inputs all have a batch in front");
    }
    const int64_t entries = max_batch > 0 ? max_batch : kBatch;
    std::string text = fmt::format("name: {}\nbackend: \"treadle\"\nmax_batch_size: {}\n", quoted(model_name()),
                                   batched ? entries : 0);
    text +=
        tensors(taken, way.is_streamed ? outputs(session, stream, batched) : outputs_of_runs(session), way, batched);
    if (way.is_sequence) text += sequences(server_state ? states_of_server(session, batched) : std::string());
    if (!way.is_sequence && batched) text += "dynamic_batching { }\n";
    text += fmt::format("instance_group [ {{ count: {} kind: KIND_CPU }} ]\n", instances);
    if (way.is_streamed) text += stream_parameters(way.is_sequence);
    if (!bind.empty()) text += parameter("bind", fmt::format("{}", fmt::join(bind, ",")));
    if (threads != 1) text += parameter("threads", fmt::to_string(threads));
    return text;
  }

  // Writes FOLDER/NAME/config.pbtxt and FOLDER/NAME/1/model.onnx.
  void write_repository(const std::string& text) const {
    const fs::path folder = fs::path(repository) / model_name();
    if (fs::exists(folder / "config.pbtxt")) {
      throw InputError((folder / "config.pbtxt").string() + ": is there already; remove it, or give another --name");
    }
    fs::create_directories(folder / "1");
    const fs::path copy = folder / "1" / "model.onnx";
    write_file(copy.string(), read_input(model));
    try {
      open_session(copy.string(), common);
    } catch (const treadle::Error& error) {
      throw InputError(
          fmt::format("{}: does not open where it was copied to; if its weights are in files of their own, "
                      "copy those as well ({})",
                      copy.string(), error.what()));
    }
    write_file((folder / "config.pbtxt").string(), text);
    const std::string backends = backend_folder();
    fmt::print("{}\n", folder.string());
    fmt::print(stderr, "{}\n",
               dim(backends.empty() ? "libtriton_treadle.so is not installed beside this tool: see docs/howto/triton.md"
                                    : fmt::format("tritonserver --model-repository={} --backend-directory={}",
                                                  fs::absolute(repository).lexically_normal().string(), backends)));
  }
};

// Options on which requests belong together, and how they run.
void add_ways(CLI::App& command, TritonConfig& config) {
  const auto add_list = [&](const char* option, std::vector<std::string>& values, const char* text, const char* type) {
    command.add_option(option, values, text)->type_name(type)->allow_extra_args(false);
  };
  add_list("--time", config.time,
           "Along which axis, by number or by the name of its size, an input is cut; may be repeated", "INPUT=AXIS");
  command.add_option("--hop", config.hop, "Run the model once per so many samples")
      ->type_name("SAMPLES")
      ->check(above_zero());
  command.add_option("--context", config.context, "Samples before them that each run sees again")
      ->type_name("SAMPLES")
      ->check(above_zero())
      ->needs("--hop");
  add_list("--state", config.state,
           "A state: what an output gives is the input of the next step; pairs that are not given are found by name; "
           "may be repeated",
           "INPUT=OUTPUT");
  add_list("--bind", config.bind, "An input that is the same in every run: a number or [NUMBER,...]; may be repeated",
           "INPUT=VALUE");
  CLI::Option* alone = command.add_flag("--no-sequences", config.alone,
                                        "Each request stands for itself: a batch, or with --time a whole signal");
  CLI::Option* server = command.add_flag("--server-state", config.server_state,
                                         "The server keeps the states that --state names, not treadle");
  CLI::Option* snapshots =
      command.add_flag("--no-snapshots", config.no_snapshots,
                       "Without the input and output 'treadle_state' that hold a sequence's state");
  server->excludes(alone)->excludes(snapshots);
  config.of_sequences = {server, snapshots};
}

// Options on sizes of the server.
void add_sizes(CLI::App& command, TritonConfig& config) {
  CLI::Option* strategy =
      command.add_option("--strategy", config.strategy, "How the server forms batches of sequences: oldest or direct");
  strategy->type_name("STRATEGY")->check(one_of({"oldest", "direct"}));
  const auto add_count = [&](const char* option, int64_t& count, const char* text) {
    return command.add_option(option, count, text)->type_name("COUNT")->check(above_zero());
  };
  add_count("--max-batch-size", config.max_batch, "Requests that run together (64; 0 where inputs have no batch)");
  CLI::Option* capacity = add_count("--capacity", config.capacity, "Sequences that one instance has room for (4096)");
  CLI::Option* idle = command.add_option("--idle", config.idle,
                                         "After so many seconds without a request the server forgets a sequence (60)");
  idle->type_name("SECONDS")->check(above_zero());
  add_count("--instances", config.instances, "Instances of the model, which run beside each other (1)");
  add_count("--threads", config.threads, "Threads of each instance (1)");
  config.of_sequences.insert(config.of_sequences.end(), {strategy, capacity, idle});
}

}  // namespace

void add_triton_config(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand(
      "triton-config", "Write config.pbtxt, by which Triton Inference Server serves a model with treadle's backend");
  const auto config = std::make_shared<TritonConfig>();
  command.add_option("model", config->model, "The model; - is standard input")->required()->type_name("MODEL");
  command.add_option("--name", config->name, "What the server calls the model (the file's name)")->type_name("NAME");
  add_ways(command, *config);
  add_sizes(command, *config);
  CLI::Option* out =
      command.add_option("-o,--out", config->out, "Write it here; - is standard output")->type_name("FILE");
  command
      .add_option("--repository", config->repository,
                  "Make FOLDER/NAME/config.pbtxt and FOLDER/NAME/1/model.onnx, and say how the server is started")
      ->type_name("FOLDER")
      ->excludes(out);
  command.callback([config, &status] { status = (*config)(); });
}

}  // namespace cli
