#include "api/handles.h"
#include "api/model_file.h"
#include "check/checker.h"
#include "check/render.h"
#include "ir/text.h"
#include "report/advice.h"
#include "session/session.h"

struct treadle_report {
  treadle::Report report;
  std::string source;  // of a model that is text
};

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

const Diagnostic* diagnostic_at(const treadle_report* report, size_t index) {
  return report && index < report->report.diagnostics.size() ? &report->report.diagnostics[index] : nullptr;
}

RenderOptions render_options(const treadle_report& report) {
  RenderOptions options;
  options.source = report.source;
  return options;
}

// Says why a session refuses the model, or what a session that takes it will gain. Nothing is run.
void try_session(const char* path, std::string_view bytes, Report& report) {
  SessionOptions options;
  options.threads = 1;
  options.jit = Jit::kOff;
  const auto session =
      path ? Session::open(path, options) : Session::from_bytes(std::as_bytes(std::span(bytes)), options);
  if (!session.ok()) {
    const std::string& place = session.error().place();
    report.refusal = place.empty() ? session.error().message() : place + ": " + session.error().message();
    return;
  }
  report.refusal = "";
  const auto explanation = report::explain(**session);  // of a model that cannot be planned before its inputs: none
  if (explanation.ok()) report.outlook = report::outlook_of(*explanation);
}

}  // namespace

extern "C" {

treadle_status* treadle_model_check(const char* path, const void* bytes, size_t size, int flags, treadle_report** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"out", out}}));
    auto result = std::make_unique<treadle_report>();
    TREADLE_ASSIGN(const std::shared_ptr<wire::MappedFile> file, model_file(path, bytes, size));
    CheckOptions options;
    options.full = flags & TREADLE_CHECK_FULL;
    options.custom_domains = flags & TREADLE_CHECK_CUSTOM_DOMAINS;
    options.skip_opset_compatibility = flags & TREADLE_CHECK_ANY_OPSET;
    result->report = check_model(file, options);
    if (flags & TREADLE_CHECK_RUNS) try_session(file->is_mapped() ? path : nullptr, file->bytes(), result->report);
    TREADLE_TRY(file->unchanged());
    if (ir::looks_like_text(file->bytes())) result->source = file->bytes();
    *out = result.release();
    return {};
  });
}

void treadle_report_free(treadle_report* report) {
  delete report;
}

size_t treadle_report_error_count(const treadle_report* report) {
  return report ? report->report.errors : 0;
}

size_t treadle_report_warning_count(const treadle_report* report) {
  return report ? report->report.warnings : 0;
}

const char* treadle_report_outlook(const treadle_report* report) {
  return report && report->report.refusal ? report->report.outlook.c_str() : nullptr;
}

const char* treadle_report_refusal(const treadle_report* report) {
  return report && report->report.refusal ? report->report.refusal->c_str() : nullptr;
}

size_t treadle_report_size(const treadle_report* report) {
  return report ? report->report.diagnostics.size() : 0;
}

int treadle_report_is_error(const treadle_report* report, size_t index) {
  const Diagnostic* d = diagnostic_at(report, index);
  return d && d->severity() == Severity::kError;
}

const char* treadle_report_code(const treadle_report* report, size_t index) {
  const Diagnostic* d = diagnostic_at(report, index);
  return d ? info(d->problem).name.data() : nullptr;
}

const char* treadle_report_path(const treadle_report* report, size_t index) {
  const Diagnostic* d = diagnostic_at(report, index);
  return d ? d->path.c_str() : nullptr;
}

const char* treadle_report_message(const treadle_report* report, size_t index) {
  const Diagnostic* d = diagnostic_at(report, index);
  return d ? d->message.c_str() : nullptr;
}

char* treadle_report_text(const treadle_report* report, int colour) {
  if (!report) return nullptr;
  return give_or_null([&] {
    RenderOptions options = render_options(*report);
    options.colour = colour != 0;
    return render_text(report->report, options);
  });
}

char* treadle_report_json(const treadle_report* report) {
  return report ? give_or_null([&] { return render_json(report->report, render_options(*report)); }) : nullptr;
}

}  // extern "C"
