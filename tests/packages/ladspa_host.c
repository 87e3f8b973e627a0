/* A host that watches a LADSPA plugin: ladspa_host PLUGIN RATE IN OUT [SEED]. IN and OUT hold float32 samples.
 *
 * The plugin gets the signal in place, in blocks of random sizes from 1 to 1000. Inside of its run() each request for
 * memory and each lock is counted; they are printed beside the latency that the plugin reports. For the second half of
 * the signal a filter of the kernel kills the process at any system call but write and exit_group. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ladspa.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void __libc_free(void* memory);

static _Thread_local int watched;
static long requests, locks;
static int (*lock)(pthread_mutex_t* mutex);

void* malloc(size_t size) {
  requests += watched;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  requests += watched;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  requests += watched;
  return __libc_realloc(memory, size);
}
void free(void* memory) {
  requests += watched && memory;
  __libc_free(memory);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  locks += watched;
  if (!lock) lock = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_lock");
  return lock(mutex);
}

static int forbid_system_calls(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static float* read_samples(const char* path, size_t* count) {
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) return NULL;
  *count = (size_t)ftell(file) / sizeof(float);
  rewind(file);
  float* samples = malloc(*count * sizeof(float));
  const size_t got = fread(samples, sizeof(float), *count, file);
  fclose(file);
  return got == *count ? samples : NULL;
}

int main(int argc, char** argv) {
  size_t count = 0;
  float* samples = argc >= 5 ? read_samples(argv[3], &count) : NULL;
  FILE* result = samples ? fopen(argv[4], "wb") : NULL;
  void* library = result ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) return fprintf(stderr, "%s\n", samples ? dlerror() : "no samples"), 2;
  const LADSPA_Descriptor* plugin = ((LADSPA_Descriptor_Function)dlsym(library, "ladspa_descriptor"))(0);
  LADSPA_Handle instance = plugin->instantiate(plugin, strtoul(argv[2], NULL, 10));
  if (!instance) return 3;
  float amount = 1, latency = 0;
  plugin->connect_port(instance, 2, &amount);
  plugin->connect_port(instance, 3, &latency);
  plugin->activate(instance);
  unsigned seed = argc > 5 ? (unsigned)atoi(argv[5]) : 1;
  int filtered = 0;
  for (size_t at = 0; at < count;) {
    if (!filtered && at > count / 2) filtered = forbid_system_calls() == 0 ? 1 : -1;
    size_t block = 1 + (size_t)rand_r(&seed) % 1000;
    if (block > count - at) block = count - at;
    plugin->connect_port(instance, 0, samples + at);
    plugin->connect_port(instance, 1, samples + at);
    watched = 1;
    plugin->run(instance, block);
    watched = 0;
    at += block;
  }
  char text[200];
  const int length = snprintf(text, sizeof text, "%ld requests for memory, %ld locks, system calls %s, latency %.0f\n",
                              requests, locks, filtered == 1 ? "forbidden" : "not watched", (double)latency);
  /* The file's buffer would ask for memory with system calls that are forbidden by now. */
  const char* bytes = (const char*)samples;
  for (size_t left = count * sizeof(float); left > 0;) {
    const ssize_t written = write(fileno(result), bytes, left);
    if (written <= 0) return 4;
    bytes += written;
    left -= (size_t)written;
  }
  if (write(STDOUT_FILENO, text, (size_t)length) != length) return 4;
  _exit(0);
}
