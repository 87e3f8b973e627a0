// treadle show, infer, ops.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "common.h"
#include "json.h"
#include "text.h"

namespace cli {

namespace {

using treadle::Session;

constexpr std::pair<treadle_role, const char*> kRoles[] = {
    {TREADLE_INPUT, "input"}, {TREADLE_OVERRIDABLE, "default"}, {TREADLE_OUTPUT, "output"}};

// Takes a text from the library, and frees it.
std::string take(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owned(text, treadle_free);
  return owned ? owned.get() : std::string();
}

// The graph with its bodies and the types of all values.
std::string typed_tree(const std::string& model, unsigned flags) {
  char* text = nullptr;
  const Source source = source_of(model);
  treadle::check(treadle_model_tree(source.path, source.bytes, source.size, flags, &text));
  return take(text);
}

struct Show {
  Common common;
  std::string model;
  bool summary = false;
  bool as_text = false;
  bool as_tree = false;
  int64_t max_elements = 16;

  int operator()() const {
    if (as_text) return print_text();
    if (as_tree) return print_tree();
    const Session session = open_session(model, common);
    if (common.json) return print_json(session);
    fmt::print("{}\n", bold(model));
    for (const char* field :
         {"producer_name", "producer_version", "ir_version", "domain", "model_version", "graph_name", "description"}) {
      const std::string text = session.metadata(field);
      if (!text.empty()) fmt::print("  {:<17} {}\n", field, message_for_people(text));
    }
    for (size_t i = 0; i < treadle_session_opset_count(session.get()); ++i) {
      const std::string domain = treadle_session_opset_domain(session.get(), i);
      fmt::print("  {:<17} {} {}\n", "operator set", domain.empty() ? "ai.onnx" : message_for_people(domain),
                 treadle_session_opset_version(session.get(), i));
    }
    for (size_t i = 0; i < treadle_session_property_count(session.get()); ++i) {
      fmt::print("  {:<17} {}\n", message_for_people(treadle_session_property_key(session.get(), i)),
                 message_for_people(treadle_session_property_value(session.get(), i)));
    }
    for (const auto& [role, name] : kRoles) {
      for (size_t i = 0; i < session.count(role); ++i) {
        fmt::print("  {:<17} {}  {}\n", name, bold(session.name(role, i)),
                   message_for_people(session.type(role, i).text()));
      }
    }
    if (!summary) print_lines(session.dump_graph());
    return kOk;
  }

  // Prints the types as far as they are known, whether or not operators run and nodes follow the rules.
  int print_tree() const {
    const std::string tree = typed_tree(model, TREADLE_INFER_LENIENT);
    if (common.json) {
      fmt::print("{}\n", JsonObject().text("model", model).text("tree", tree).str());
    } else {
      print_lines(tree);
    }
    return kOk;
  }

  // Prints the file as it is, whether or not its operators run.
  int print_text() const {
    const std::string written = model_text(read_input(model), model, max_elements);
    if (common.json) {
      fmt::print("{}\n", JsonObject().text("model", model).text("text", written).str());
    } else {
      print_lines(written);
    }
    return kOk;
  }

  int print_json(const Session& session) const {
    JsonObject object;
    object.text("model", model);
    for (const char* field :
         {"producer_name", "producer_version", "domain", "graph_name", "description", "ir_version", "model_version"}) {
      object.text(field, session.metadata(field));
    }
    JsonObject opsets;
    for (size_t i = 0; i < treadle_session_opset_count(session.get()); ++i) {
      opsets.integer(treadle_session_opset_domain(session.get(), i), treadle_session_opset_version(session.get(), i));
    }
    object.raw("operator_sets", opsets.str());
    for (const auto& [role, name] : kRoles) {
      std::vector<std::string> items;
      for (size_t i = 0; i < session.count(role); ++i) {
        items.push_back(
            JsonObject().text("name", session.name(role, i)).text("type", session.type(role, i).text()).str());
      }
      object.raw(std::string(name) + "s", json_array(items));
    }
    if (!summary) object.text("graph", session.dump_graph());
    fmt::print("{}\n", object.str());
    return kOk;
  }
};

struct Infer {
  Common common;
  std::string model, out, rules = "treadle";
  bool lenient = false, no_contents = false;

  int operator()() const {
    if (out == "-" && common.json) throw UsageError("--out - and --json both take standard output");
    unsigned flags = TREADLE_INFER_TYPES;
    if (lenient) flags |= TREADLE_INFER_LENIENT;
    if (no_contents) flags |= TREADLE_INFER_NO_CONTENTS;
    if (rules == "onnx") flags |= TREADLE_INFER_AS_ONNX;
    if (!out.empty()) {
      char* bytes = nullptr;
      size_t size = 0;
      const Source source = source_of(model);
      treadle::check(treadle_model_infer(source.path, source.bytes, source.size, flags, &bytes, &size));
      const std::unique_ptr<char, void (*)(void*)> owned(bytes, treadle_free);
      write_file(out, {bytes, size});
    }
    const std::vector<std::string> unknown = unknown_operators(model);
    if (common.json || out.empty()) {
      const std::string tree = typed_tree(model, flags);
      print_lines(common.json ? json(tree, unknown) + "\n" : tree);
    }
    for (const std::string& node : unknown)
      fmt::print(stderr, "{} {}\n", red("not inferred:"), message_for_people(node));
    return unknown.empty() || lenient ? kOk : kFailed;
  }

  // Nodes whose results have unknown types.
  static std::vector<std::string> unknown_operators(const std::string& model) {
    static constexpr std::string_view kUnknown[] = {"domain-not-imported", "operator-custom", "operator-experimental",
                                                    "operator-unknown"};
    treadle_report* made = nullptr;
    const Source source = source_of(model);
    treadle::check(treadle_model_check(source.path, source.bytes, source.size, 0, &made));
    const std::unique_ptr<treadle_report, void (*)(treadle_report*)> report(made, treadle_report_free);
    std::vector<std::string> nodes;
    for (size_t i = 0; i < treadle_report_size(made); ++i) {
      const std::string_view code = treadle_report_code(made, i);
      if (std::ranges::find(kUnknown, code) == std::end(kUnknown)) continue;
      nodes.push_back(fmt::format("{}: {}", treadle_report_path(made, i), treadle_report_message(made, i)));
    }
    return nodes;
  }

  std::string json(const std::string& tree, const std::vector<std::string>& unknown) const {
    JsonObject object;
    object.text("model", model).text("graph", tree);
    std::vector<std::string> items;
    for (const std::string& node : unknown) items.push_back(json_quote(node));
    object.raw("unknown_operators", json_array(items));
    return object.str();
  }
};

struct Ops {
  Common common;
  std::string name;

  void print(size_t i) const {
    if (!name.empty()) return fmt::print("{}", take(treadle_operator_text(i)));
    std::vector<int> versions(treadle_operator_version_count(i));
    for (size_t v = 0; v < versions.size(); ++v) versions[v] = treadle_operator_version(i, v);
    const std::string domain = treadle_operator_domain(i);
    fmt::print("{:<28} {:<16} {}\n", treadle_operator_name(i), domain.empty() ? "ai.onnx" : domain,
               fmt::join(versions, " "));
  }

  int operator()() const {
    std::vector<std::string> items;
    size_t shown = 0;
    for (size_t i = 0; i < treadle_operator_count(); ++i) {
      if (!name.empty() && treadle_operator_name(i) != name) continue;
      ++shown;
      if (common.json) {
        items.push_back(take(treadle_operator_json(i)));
      } else {
        print(i);
      }
    }
    if (shown == 0 && !name.empty()) {
      const char* like = treadle_operator_like(name.c_str());
      const std::string hint = like ? fmt::format(": did you mean {}?", like) : "";
      throw InputError(fmt::format("there is no operator '{}'{}", name, hint));
    }
    if (common.json) fmt::print("{}\n", json_array(items));
    return kOk;
  }
};

}  // namespace

void add_show(CLI::App& app, int& status) {
  CLI::App& command =
      *app.add_subcommand("show", "What a model is: origin, inputs, outputs, the graph with its bodies and types");
  const auto show = std::make_shared<Show>();
  command.add_option("model", show->model, "The model; - is standard input")->required()->type_name("MODEL");
  command.add_flag("--summary", show->summary, "Without the graph");
  CLI::Option* text = command.add_flag("--text", show->as_text, "The file as ONNX text");
  CLI::Option* tree = command.add_flag("--tree", show->as_tree,
                                       "The graph as a tree of bodies with all types, also of models that do not run");
  tree->excludes(text);
  command
      .add_option("--max-elements", show->max_elements,
                  "With --text: print the values of tensors up to this size (16; negative: of all)")
      ->needs(text);
  add_session(command, show->common);
  for (const char* of_session :
       {"--summary", "--tier", "--weights", "--copy-weights", "--threads", "--option", "--dim"}) {
    text->excludes(of_session);
    tree->excludes(of_session);
  }
  add_json(command, show->common);
  command.callback([show, &status] { status = (*show)(); });
}

void add_infer(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("infer", "Infer the types of all values of a model");
  const auto infer = std::make_shared<Infer>();
  command.add_option("model", infer->model, "The model; - is standard input")->required()->type_name("MODEL");
  command.add_option("-o,--out", infer->out, "Write the model with its types here; - is standard output")
      ->type_name("FILE");
  command.add_flag("--lenient", infer->lenient, "A node that breaks a rule is no error: its outputs stay as declared");
  command.add_flag("--no-contents", infer->no_contents, "Do not carry contents of small integer tensors along");
  command.add_option("--rules", infer->rules, "treadle, or onnx: conclude what the onnx package does and not more")
      ->type_name("RULES")
      ->check(one_of({"treadle", "onnx"}));
  add_json(command, infer->common);
  command.callback([infer, &status] { status = (*infer)(); });
}

void add_ops(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand(
      "ops",
      "List the operators, or say all about one: inputs, outputs, attributes, types, and what each version changed");
  const auto ops = std::make_shared<Ops>();
  command.add_option("name", ops->name, "Only this one")->type_name("OPERATOR");
  add_json(command, ops->common);
  command.callback([ops, &status] { status = (*ops)(); });
}

}  // namespace cli
