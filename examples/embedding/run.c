/* Runs a model over a whole signal: run MODEL */
#include <stdio.h>
#include <treadle/treadle.h>

static int failed(treadle_status* status) {
  if (!status) return 0;
  fprintf(stderr, "%s\n", treadle_status_text(status)); /* where it happened, and what */
  treadle_status_free(status);
  return 1;
}

int main(int count, char** arguments) {
  treadle_session* session = NULL;
  treadle_value *x = NULL, *y = NULL;
  float signal[] = {0, 4, 4, 4, 0, 0};
  const int64_t dims[] = {6, 1};
  const char* input = "x";
  int status = 1;

  if (count != 2) return fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  if (failed(treadle_session_open(arguments[1], NULL, &session))) goto done;
  /* The tensor refers to the memory of `signal`: element type 1 is float. */
  if (failed(treadle_tensor_borrow(1, dims, 2, signal, sizeof signal, false, NULL, NULL, &x))) goto done;
  if (failed(treadle_session_run(session, NULL, &input, (const treadle_value* const*)&x, 1, NULL, 0, &y))) goto done;
  for (int64_t i = 0; i < treadle_tensor_count(y); ++i) {
    printf("%.3f ", ((const float*)treadle_tensor_data(y))[i]);
  }
  printf("\n");
  status = 0;
done:
  treadle_value_free(y);
  treadle_value_free(x);
  treadle_session_free(session);
  return status;
}
