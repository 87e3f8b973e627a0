#pragma once
// A curve over a stream's pushes, drawn mark by mark in rows of text.

#include <string>

namespace cli {

class LevelStrip {
 public:
  // `seconds_per_mark`: 0 if unknown; then rows begin with the number of the mark.
  explicit LevelStrip(double seconds_per_mark);
  ~LevelStrip() { finish(); }
  LevelStrip(const LevelStrip&) = delete;
  LevelStrip& operator=(const LevelStrip&) = delete;

  // Draws a mark between 0 and `top`, or the largest level so far.
  void add(double level, double top);
  // Ends the row.
  void finish();

 private:
  std::string mark(double level) const;

  double seconds_per_mark_, top_ = 0;
  double low_ = 0, high_ = 0;  // of the row
  size_t count_ = 0, in_row_ = 0;
};

}  // namespace cli
