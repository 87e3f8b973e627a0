/* Many signals at once, whose blocks run together as one batch: pool MODEL */
#include <stdio.h>
#include <treadle/treadle.h>

enum { kStreams = 3, kBlock = 2 };

static int failed(treadle_status* status) {
  if (!status) return 0;
  fprintf(stderr, "%s\n", treadle_status_text(status));
  treadle_status_free(status);
  return 1;
}

int main(int count, char** arguments) {
  treadle_session* session = NULL;
  treadle_stream_options* options = NULL;
  treadle_pool* pool = NULL;
  treadle_value *x[kStreams] = {NULL}, *y[kStreams] = {NULL};
  float signal[kStreams][kBlock];
  const int64_t ids[kStreams] = {1, 2, 3}, dims[] = {kBlock, 1};
  const char* input = "x";
  int status = 1;

  if (count != 2) return fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  if (failed(treadle_session_open(arguments[1], NULL, &session))) goto done;
  if (failed(treadle_stream_options_create(&options))) goto done;
  if (failed(treadle_stream_options_time(options, "x", 0))) goto done;
  if (failed(treadle_pool_create(session, options, 8, &pool))) goto done;
  for (int i = 0; i < kStreams; ++i) {
    if (failed(treadle_tensor_borrow(1, dims, 2, signal[i], sizeof signal[i], false, NULL, NULL, &x[i]))) goto done;
  }
  for (int block = 0; block < 3; ++block) {
    for (int i = 0; i < kStreams; ++i) signal[i][0] = signal[i][1] = (float)(ids[i] * block);
    /* A stream joins with its first chunk. */
    if (failed(treadle_pool_push(pool, NULL, ids, kStreams, &input, 1, (const treadle_value* const*)x, y))) goto done;
    for (int i = 0; i < kStreams; ++i) {
      const float* level = treadle_tensor_data(y[i]);
      printf("%d: %.3f %.3f  ", (int)ids[i], level[0], level[1]);
      treadle_value_free(y[i]), y[i] = NULL;
    }
    printf("\n");
  }
  for (int i = 0; i < kStreams; ++i) {
    if (failed(treadle_pool_leave(pool, ids[i]))) goto done;
  }
  printf("%d runs, %d streams\n", (int)treadle_pool_runs(pool), (int)treadle_pool_size(pool));
  status = 0;
done:
  for (int i = 0; i < kStreams; ++i) treadle_value_free(y[i]), treadle_value_free(x[i]);
  treadle_pool_free(pool);
  treadle_stream_options_free(options);
  treadle_session_free(session);
  return status;
}
