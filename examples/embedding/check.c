/* Tells what is wrong with a model: check MODEL */
#include <stdio.h>
#include <treadle/treadle.h>

int main(int count, char** arguments) {
  treadle_report* report = NULL;
  treadle_status* status;
  size_t errors;

  if (count != 2) return fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  status = treadle_model_check(arguments[1], NULL, 0, TREADLE_CHECK_FULL | TREADLE_CHECK_RUNS, &report);
  if (status) { /* the file could not be read */
    fprintf(stderr, "%s\n", treadle_status_text(status));
    treadle_status_free(status);
    return 1;
  }
  for (size_t i = 0; i < treadle_report_size(report); ++i) {
    printf("%s %s: %s: %s\n", treadle_report_is_error(report, i) ? "error" : "warning", treadle_report_code(report, i),
           treadle_report_path(report, i), treadle_report_message(report, i));
  }
  errors = treadle_report_error_count(report);
  printf("%zu errors, %zu warnings\n", errors, treadle_report_warning_count(report));
  if (treadle_report_refusal(report)[0]) printf("treadle cannot run the model: %s\n", treadle_report_refusal(report));
  treadle_report_free(report);
  return errors > 0;
}
