/* Feeds a signal to a model in blocks, without an allocation once the stream has begun: stream MODEL */
#include <stdio.h>
#include <treadle/treadle.h>

static int failed(treadle_status* status) {
  if (!status) return 0;
  fprintf(stderr, "%s\n", treadle_status_text(status));
  treadle_status_free(status);
  return 1;
}

int main(int count, char** arguments) {
  treadle_session* session = NULL;
  treadle_stream_options* options = NULL;
  treadle_stream* stream = NULL;
  treadle_value *x = NULL, *y = NULL;
  float signal[] = {0, 4, 4, 4, 0, 0}, block[2];
  const int64_t dims[] = {2, 1}, sizes[] = {2};
  const char* input = "x";
  int status = 1;

  if (count != 2) return fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  if (failed(treadle_session_open(arguments[1], NULL, &session))) goto done;
  if (failed(treadle_stream_options_create(&options))) goto done;
  if (failed(treadle_stream_options_time(options, "x", 0))) goto done;
  if (failed(treadle_stream_create(session, options, &stream))) goto done;
  if (failed(treadle_stream_warm(stream, sizes, 1))) goto done; /* no push has to plan or to compile */
  if (failed(treadle_tensor_borrow(1, dims, 2, block, sizeof block, true, NULL, NULL, &x))) goto done;
  for (int at = 0; at < 6; at += 2) {
    block[0] = signal[at], block[1] = signal[at + 1];
    /* From the second push on the outputs are written where those of the first lie. */
    if (failed(treadle_stream_push(stream, NULL, &input, (const treadle_value* const*)&x, 1, &y, NULL))) goto done;
    for (int i = 0; i < 2; ++i) printf("%.3f ", ((const float*)treadle_tensor_data(y))[i]);
  }
  printf("\n");
  status = 0;
done:
  treadle_value_free(y);
  treadle_value_free(x);
  treadle_stream_free(stream);
  treadle_stream_options_free(options);
  treadle_session_free(session);
  return status;
}
