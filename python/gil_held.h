#pragma once
// While a GilHeld lives, its thread is known to hold the GIL: what values have borrowed from Python is given back
// without asking for it.

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
