// treadle convert: between binary models and ONNX text, and to models with open sizes.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "common.h"
#include "json.h"
#include "open_sizes.h"
#include "text.h"

namespace cli {

namespace {

bool ends_with_one_of(const std::string& path, std::initializer_list<std::string_view> endings) {
  for (const std::string_view ending : endings) {
    if (path.ends_with(ending)) return true;
  }
  return false;
}

struct Convert {
  Common common;
  std::string in, out, to;
  std::vector<std::string> open;
  int64_t max_elements = -1;

  bool wants_text() const {
    if (!to.empty()) return to == "text";
    if (ends_with_one_of(out, {".onnxtxt", ".txt"}) || out == "-") return true;
    if (ends_with_one_of(out, {".onnx", ".pb"})) return false;
    throw UsageError(
        fmt::format("what '{}' is to be cannot be told from its name (.onnx, .pb; .onnxtxt, .txt); say --to", out));
  }

  int operator()() const {
    const bool to_text = wants_text();
    if (!to_text && max_elements >= 0) throw UsageError("--max-elements is for texts");
    std::optional<OpenedModel> opened;
    if (!open.empty()) opened = open_sizes(in, open);
    const std::string converted = convert(opened ? opened->bytes : read_input(in), to_text);
    write_file(out, converted);
    FILE* const report = out == "-" ? stderr : stdout;
    if (common.json) {
      JsonObject json;
      json.text("in", in).text("out", out).text("format", to_text ? "text" : "binary");
      json.integer("bytes", static_cast<long long>(converted.size()));
      if (opened) json.raw("opened", opened->json).raw("runs", json_texts(opened->runs));
      fmt::print(report, "{}\n", json.str());
    } else if (opened) {
      for (const std::string& change : opened->changes) fmt::print(report, "{}\n", change);
      for (const std::string& run : opened->runs) fmt::print(report, "{}\n", run);
    }
    return kOk;
  }

  std::string convert(const std::string& bytes, bool to_text) const {
    if (to_text) return model_text(bytes, in, max_elements);
    if (treadle_is_text(bytes.data(), bytes.size())) return text_to_binary(bytes, in);
    model_text(bytes, in, 0);  // throws for bytes that are not a model
    return bytes;
  }

  static std::string json_texts(const std::vector<std::string>& texts) {
    std::vector<std::string> items;
    for (const std::string& text : texts) items.push_back(json_quote(text));
    return json_array(items);
  }
};

// The bytes that a function of the library returns; errors name the file.
template <class Call>
std::string take_bytes(const std::string& path, Call&& call) {
  char* bytes = nullptr;
  size_t size = 0;
  treadle_status* status = call(&bytes, &size);
  if (status) {
    const std::string place = treadle_status_place(status);
    const std::string message =
        fmt::format("{}{}{}: {}", path, place.empty() ? "" : ":", place, treadle_status_message(status));
    treadle_status_free(status);
    throw InputError(message);
  }
  const std::unique_ptr<char, void (*)(void*)> owned(bytes, treadle_free);
  return {bytes, size};
}

}  // namespace

std::string text_to_binary(const std::string& text, const std::string& path) {
  return take_bytes(path, [&](char** bytes, size_t* size) {
    return treadle_text_parse(TREADLE_MODEL, text.data(), text.size(), bytes, size);
  });
}

std::string model_text(const std::string& bytes, const std::string& path, int64_t max_elements) {
  if (treadle_is_text(bytes.data(), bytes.size())) return model_text(text_to_binary(bytes, path), path, max_elements);
  return take_bytes(path, [&](char** text, size_t* size) {
    return treadle_text_print(TREADLE_MODEL, bytes.data(), bytes.size(), max_elements, text, size);
  });
}

void add_convert(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand(
      "convert", "Write a model as ONNX text or binary; --open makes fixed sizes of its inputs open");
  const auto convert = std::make_shared<Convert>();
  command.add_option("in", convert->in, "The model, binary or text; - is standard input")
      ->required()
      ->type_name("MODEL");
  command.add_option("out", convert->out, "Where it goes; - is standard output, as text")
      ->required()
      ->type_name("FILE");
  command.add_option("--to", convert->to, "text or binary; otherwise by the ending of the name")
      ->type_name("FORMAT")
      ->check(one_of({"text", "binary"}));
  command.add_option("--max-elements", convert->max_elements,
                     "Leave out the values of tensors with more elements than this (in texts; they cannot be run)");
  command
      .add_option(
          "--open", convert->open,
          "Open a fixed size: axis AXIS of this input becomes SYMBOL (frames:0=batch), and nodes that hold the old "
          "size follow, or are named; may be repeated")
      ->type_name("INPUT:AXIS=SYMBOL")
      ->allow_extra_args(false);
  add_json(command, convert->common);
  command.callback([convert, &status] { status = (*convert)(); });
}

}  // namespace cli
