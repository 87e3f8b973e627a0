// treadle check.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "bar.h"
#include "common.h"
#include "json.h"

namespace cli {

namespace {

using Report = std::unique_ptr<treadle_report, void (*)(treadle_report*)>;

struct Check {
  Common common;
  std::vector<std::string> models;
  bool full = false, strict = false, custom_domains = false;

  int operator()() const {
    bool failed = false;
    std::vector<std::string> items;
    Bar bar("models", common.quiet || common.json);
    for (size_t i = 0; i < models.size(); ++i) {
      bar.update(static_cast<int64_t>(i), static_cast<int64_t>(models.size()), models[i]);
      failed |= check(models[i], bar, items);
    }
    if (common.json) fmt::print("{}\n", json_array(items));
    return failed ? kFailed : kOk;
  }

  // Checks a model. Whether it has errors.
  bool check(const std::string& model, Bar& bar, std::vector<std::string>& items) const {
    treadle_report* made = nullptr;
    const int flags =
        TREADLE_CHECK_RUNS | (full ? TREADLE_CHECK_FULL : 0) | (custom_domains ? TREADLE_CHECK_CUSTOM_DOMAINS : 0);
    try {
      const Source source = source_of(model);
      treadle::check(treadle_model_check(source.path, source.bytes, source.size, flags, &made));
    } catch (const treadle::Error& e) {
      bar.clear();
      const std::string problem = e.what();
      if (common.json) {
        items.push_back(
            JsonObject().text("file", model).boolean("ok", false).raw("error", to_json(failure_of(e))).str());
      } else {
        fmt::print("{} {}\n", red("error:"), message_for_people(problem));
      }
      return true;
    }
    bar.clear();
    const Report report(made, treadle_report_free);
    const size_t errors = treadle_report_error_count(made), warnings = treadle_report_warning_count(made);
    if (common.json) {
      items.push_back(treadle::detail::take(treadle_report_json(made)));
    } else {
      fmt::print("{}", treadle::detail::take(treadle_report_text(made, is_coloured())));
      print_summary(model, errors, warnings, treadle_report_refusal(made));
      if (const std::string outlook = treadle_report_outlook(made); !outlook.empty())
        fmt::print("  {}\n", message_for_people(outlook));
    }
    return errors > 0 || (strict && warnings > 0);
  }

  // Prints the last line of a refusal: for a model that is text, an excerpt precedes it.
  void print_summary(const std::string& model, size_t errors, size_t warnings, std::string_view refusal) const {
    const auto counted = [](size_t count, const char* noun) {
      return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
    };
    const std::string counts = errors + warnings == 0
                                   ? std::string()
                                   : fmt::format(" ({}, {})", counted(errors, "error"), counted(warnings, "warning"));
    const std::string runs = refusal.empty() ? "treadle runs it"
                                             : red("treadle does not run it") + ": " +
                                                   message_for_people(refusal.substr(0, refusal.find('\n')));
    fmt::print("{}: {}{}; {}\n", model, errors > 0 ? red("wrong") : green("ok"), counts, runs);
  }
};

}  // namespace

void add_check(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("check", "Say everything that is wrong or surprising about models");
  const auto check = std::make_shared<Check>();
  command.add_option("models", check->models, "The models; - is standard input")->required()->type_name("MODEL");
  command.add_flag("--full", check->full, "Infer types as well, and hold them against what is declared");
  command.add_flag("--strict", check->strict, "Take warnings for errors");
  command.add_flag("--custom-domains", check->custom_domains, "An operator of an unknown domain is an error");
  add_json(command, check->common);
  add_quiet(command, check->common);
  command.callback([check, &status] { status = (*check)(); });
}

}  // namespace cli
