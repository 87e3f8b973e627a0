/* A control loop with a recurrent policy, and how punctual it is: loop MODEL [SECONDS [HERTZ [PRIORITY]]]
 *
 * In each period a pole on a cart is seen, the policy makes one step, and its force acts until the next period. The
 * cart is simulated; everything else is as with a real one: memory is locked, the thread has a real-time priority where
 * that is allowed, and sleeps until a point of the clock. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <treadle/treadle.h>

/* ---- The plant: as in policy.py */

typedef struct {
  double place, velocity, angle, turning;
} cart;

static cart advanced(cart c, double force, double seconds) {
  const double mass = 1.0, pole = 0.1, length = 0.5, gravity = 9.81;
  const double sine = sin(c.angle), cosine = cos(c.angle);
  const double pushed = (force + pole * length * c.turning * c.turning * sine) / (mass + pole);
  const double turned =
      (gravity * sine - cosine * pushed) / (length * (4.0 / 3 - pole * cosine * cosine / (mass + pole)));
  c.velocity += seconds * (pushed - pole * length * turned * cosine / (mass + pole));
  c.turning += seconds * turned;
  c.place += seconds * c.velocity;
  c.angle += seconds * c.turning;
  return c;
}

/* ---- Time */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t point) {
  const struct timespec t = {point / 1000000000, point % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

static int by_size(const void* a, const void* b) {
  const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

static void print_times(const char* what, int64_t* times, size_t count) {
  qsort(times, count, sizeof *times, by_size);
  const double at[] = {0.5, 0.99, 0.9999, 1};
  printf("%-14s", what);
  for (size_t i = 0; i < sizeof at / sizeof *at; ++i) {
    size_t rank = (size_t)ceil(at[i] * (double)count);
    printf(" %9.2f", (double)times[rank - 1] / 1000);
  }
  printf("\n");
}

/* ---- Real time: what is not allowed is said, and the loop goes on without it. */

static void be_punctual(int priority) {
  const struct sched_param wanted = {.sched_priority = priority};
  if (mlockall(MCL_CURRENT | MCL_FUTURE)) printf("memory is not locked: %s\n", strerror(errno));
  if (sched_setscheduler(0, SCHED_FIFO, &wanted)) printf("the scheduler is not SCHED_FIFO: %s\n", strerror(errno));
}

/* Pages of the stack below this function are there from now on. */
static void touch_stack(void) {
  volatile char room[256 * 1024];
  for (size_t i = 0; i < sizeof room; i += 4096) room[i] = 0;
}

/* ---- The policy */

typedef struct {
  treadle_session* session;
  treadle_stream* stream;
  treadle_value *seen, *outputs[1];
  float observation[2];
} policy;

static treadle_status* open_policy(policy* p, const char* path) {
  const int64_t dims[] = {1, 2};
  treadle_options* options = NULL;
  treadle_stream_options* roles = NULL;
  treadle_status* status = treadle_options_create(&options);
  if (!status) status = treadle_options_set(options, "threads", "1");
  if (!status) status = treadle_options_set(options, "weight_files", "copy"); /* not read from the disk in time */
  if (!status) status = treadle_session_open(path, options, &p->session);
  if (!status) status = treadle_stream_options_create(&roles);
  if (!status) status = treadle_stream_options_pair(roles, "units", "units_out");
  if (!status) status = treadle_stream_create(p->session, roles, &p->stream);
  if (!status)
    status = treadle_tensor_borrow(1, dims, 2, p->observation, sizeof p->observation, true, NULL, NULL, &p->seen);
  const char* const name = "seen";
  const treadle_value* const seen = p->seen;
  if (!status) status = treadle_stream_bind(p->stream, NULL, &name, &seen, 1, p->outputs); /* plans and compiles, too */
  treadle_stream_options_free(roles);
  treadle_options_free(options);
  return status;
}

static treadle_status* step(policy* p, const cart* c, double* force) {
  p->observation[0] = (float)c->place;
  p->observation[1] = (float)c->angle;
  treadle_status* const status = treadle_stream_step(p->stream);
  if (!status) *force = ((const float*)treadle_tensor_data(p->outputs[0]))[0];
  return status;
}

static void close_policy(policy* p) {
  treadle_value_free(p->outputs[0]);
  treadle_value_free(p->seen);
  treadle_stream_free(p->stream);
  treadle_session_free(p->session);
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: %s MODEL [SECONDS [HERTZ [PRIORITY]]]\n", argv[0]), 2;
  const double seconds = argc > 2 ? atof(argv[2]) : 10, hertz = argc > 3 ? atof(argv[3]) : 1000;
  const int priority = argc > 4 ? atoi(argv[4]) : 80;
  if (!(seconds > 0 && hertz > 0 && seconds * hertz < 1e8)) return fprintf(stderr, "no such number of periods\n"), 2;
  const size_t count = (size_t)ceil(seconds * hertz);
  const int64_t period = (int64_t)(1e9 / hertz);

  policy p = {0};
  cart c = {.place = 0.3, .angle = 0.1};
  double force = 0, farthest = 0;
  int64_t *late = calloc(count, sizeof *late), *taken = calloc(count, sizeof *taken);
  treadle_status* status = open_policy(&p, argv[1]);
  for (int i = 0; !status && i < 4; ++i) status = step(&p, &c, &force); /* the first pushes find room */
  char* why = NULL;
  if (!status && !treadle_stream_is_realtime(p.stream, 0, &why)) printf("pushes may be late: %s\n", why);
  treadle_free(why);
  if (!late || !taken) status = treadle_status_create(TREADLE_LIMIT, "no memory for the times");

  be_punctual(priority);
  touch_stack();
  struct rusage before, after;
  getrusage(RUSAGE_THREAD, &before);
  const int64_t begin = now() + period;
  size_t made = 0;
  for (; !status && made < count; ++made) {
    const int64_t point = begin + (int64_t)made * period;
    sleep_until(point);
    const int64_t awake = now();
    status = step(&p, &c, &force);
    taken[made] = now() - awake;
    late[made] = awake - point;
    c = advanced(c, force, 1 / hertz);
    if (made > count / 2 && fabs(c.angle) > farthest) farthest = fabs(c.angle);
  }
  getrusage(RUSAGE_THREAD, &after);

  if (!status) {
    printf("%zu periods of %.3f ms; in the second half the pole is at most %.2f degrees off\n", count,
           (double)period / 1e6, farthest * 57.29578);
    printf("us              median       p99    p99.99       max\n");
    print_times("awake late", late, count);
    print_times("policy", taken, count);
    printf("page faults %ld, context switches beside the sleeps %ld\n",
           after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt, after.ru_nivcsw - before.ru_nivcsw);
  } else {
    fprintf(stderr, "%s\n", treadle_status_text(status));
  }
  const int failed = status != NULL;
  treadle_status_free(status);
  close_policy(&p);
  free(late);
  free(taken);
  return failed;
}
