#pragma once
// A GilHeld says that its thread holds the GIL, so that memory borrowed from Python can be released without acquiring
// the GIL.

namespace treadle_python {

class GilHeld {
 public:
  GilHeld() { ++depth(); }
  ~GilHeld() { --depth(); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;
  static bool here() { return depth() > 0; }

 private:
  static int& depth() {
    thread_local int count = 0;
    return count;
  }
};

}  // namespace treadle_python
