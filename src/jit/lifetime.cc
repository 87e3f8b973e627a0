// LLVM's static objects are never destroyed, because a thread may still be compiling while the process ends.
//
// Static objects register their destructors with __cxa_atexit. This definition replaces the C library's within this
// shared object only. NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the name is given
extern "C" [[gnu::visibility("hidden")]] int __cxa_atexit(void (*)(void*), void*, void*);

extern "C" int __cxa_atexit(void (* /*destroy*/)(void*), void* /*object*/, void* /*library*/) {
  return 0;
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
