// The C functions of profiles. treadle_session_profile and treadle_session_run_recorded (api/session.cc) make them.

#include "report/profile.h"

#include "api/handles.h"
#include "report/kernel_events.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

extern "C" {

void treadle_profile_free(treadle_profile* profile) {
  delete profile;
}

char* treadle_profile_text(const treadle_profile* profile) {
  return profile ? give_or_null([&] { return report::to_text(profile->profile); }) : nullptr;
}

char* treadle_profile_table(const treadle_profile* profile, unsigned flags, size_t width) {
  if (!profile) return nullptr;
  const report::TextOptions options{.width = width, .utf8 = (flags & TREADLE_EXPLAIN_ASCII) == 0};
  return give_or_null([&] { return report::to_text(profile->profile, options); });
}

char* treadle_profile_json(const treadle_profile* profile) {
  return profile ? give_or_null([&] { return report::to_json(profile->profile); }) : nullptr;
}

char* treadle_profile_trace(const treadle_profile* profile) {
  return profile ? give_or_null([&] { return report::to_trace(profile->profile); }) : nullptr;
}

char* treadle_profile_kernels(const treadle_profile* profile, int64_t origin_ns) {
  if (!profile) return nullptr;
  return give_or_null([&] { return report::kernel_events(profile->profile, profile->model, origin_ns); });
}

}  // extern "C"
