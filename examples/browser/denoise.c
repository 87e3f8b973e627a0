// Takes noise out of a signal, a hop of samples at a time: windows of the signal go through a Fourier transform, through
// the model that build.py has written as model.c, and back; half windows are added up. It needs no C library.
//
// The page writes samples to heard(), calls push(), and reads given(). look() is for its pictures.
#include <string.h>

#include "model.h"
#include "states.h"  // SPECTRUM, CLEAN, BINS, RATE and STATES of this model

#define EXPORT(name) __attribute__((export_name(#name))) name

enum { kWindow = 2 * (BINS - 1), kHop = kWindow / 2 };

typedef struct {
  float re, im;
} Complex;

#define ROOM(before, after, elements) float before[elements];
#define READ(before, after, elements) .before = was->before,
#define WRITE(before, after, elements) .after = next->before,
typedef struct {
  STATES(ROOM)
} States;

static Complex turns[kWindow];    // exp(-i pi k / kWindow)
static float signal[kWindow];     // the samples of a window
static float added[kHop];         // the second half of the last window of the result
static float last_amount = 1.0f;  // what the last hop ended with
static States states[2];          // of the last window and of the next one, in turns
static int now;
static float spectrum[2 * BINS], clean[2 * BINS];
static float heard_samples[kHop], given_samples[kHop], window_samples[kWindow], powers[BINS];
static _Alignas(64) unsigned char scratch[MODEL_SCRATCH_BYTES];

// By halving a right angle, and by multiplication from the smallest angle on.
static void find_turns(void) {
  double c = 0, s = 1, re = 1, im = 0;
  for (int n = kHop; n > 1; n /= 2) {
    const double half = __builtin_sqrt((1 + c) / 2);
    s /= 2 * half;
    c = half;
  }
  for (int k = 0; k < kWindow; ++k) {
    turns[k] = (Complex){(float)re, (float)im};
    const double next = re * c + im * s;
    im = im * c - re * s;
    re = next;
  }
}

// The root of a Hann window.
static float window(int i) { return -turns[i].im; }

// The discrete Fourier transform in place, by halves.
static void transform(Complex* x) {
  for (int i = 1, j = 0; i < kWindow; ++i) {  // j: the bits of i in the other order
    int bit = kWindow / 2;
    for (; j & bit; bit /= 2) j -= bit;
    j += bit;
    if (i < j) {
      const Complex kept = x[i];
      x[i] = x[j];
      x[j] = kept;
    }
  }
  for (int half = 1; half < kWindow; half *= 2) {
    for (int begin = 0; begin < kWindow; begin += 2 * half) {
      for (int k = 0; k < half; ++k) {
        const Complex w = turns[k * (kWindow / half)], a = x[begin + k], b = x[begin + k + half];
        const Complex turned = {w.re * b.re - w.im * b.im, w.re * b.im + w.im * b.re};
        x[begin + k] = (Complex){a.re + turned.re, a.im + turned.im};
        x[begin + k + half] = (Complex){a.re - turned.re, a.im - turned.im};
      }
    }
  }
}

float* EXPORT(heard)(void) { return heard_samples; }
float* EXPORT(given)(void) { return given_samples; }
float* EXPORT(window_to_look_at)(void) { return window_samples; }
int EXPORT(rate)(void) { return RATE; }
int EXPORT(hop)(void) { return kHop; }

// Begins a signal.
void EXPORT(begin)(void) {
  find_turns();
  memset(signal, 0, sizeof signal);
  memset(added, 0, sizeof added);
  memset(states, 0, sizeof states);
}

// Takes the hop that heard() holds, and gives the hop before it. `amount`: 1 is the model's result, 0 the signal as it
// came; a change takes one hop, so that it is not heard as a click. Returns 0, or the model's error: then the signal
// passes as it came.
int EXPORT(push)(float amount) {
  Complex x[kWindow];
  memcpy(signal + kHop, heard_samples, sizeof heard_samples);
  for (int i = 0; i < kWindow; ++i) x[i] = (Complex){signal[i] * window(i), 0};
  transform(x);
  for (int k = 0; k < BINS; ++k) {
    spectrum[2 * k] = x[k].re;
    spectrum[2 * k + 1] = x[k].im;
  }
  const States* const was = &states[now];
  States* const next = &states[!now];
  const model_inputs inputs = {.SPECTRUM = spectrum, STATES(READ)};
  const model_outputs outputs = {.CLEAN = clean, STATES(WRITE)};
  const int error = model_run(&inputs, &outputs, scratch);
  if (error) amount = last_amount = 0;
  else now = !now;

  // The inverse of a transform is the transform of conjugates, but for the size. The spectrum of real numbers mirrors
  // itself.
  for (int k = 0; k < BINS; ++k) x[k] = (Complex){clean[2 * k], k % kHop ? -clean[2 * k + 1] : 0};
  for (int k = BINS; k < kWindow; ++k) x[k] = (Complex){x[kWindow - k].re, -x[kWindow - k].im};
  transform(x);
  for (int i = 0; i < kHop; ++i) {
    const float result = added[i] + x[i].re / (float)kWindow * window(i);
    const float share = last_amount + (amount - last_amount) * (float)(i + 1) / (float)kHop;
    given_samples[i] = share == 1 ? result : share == 0 ? signal[i] : signal[i] + share * (result - signal[i]);
    added[i] = x[i + kHop].re / (float)kWindow * window(i + kHop);
  }
  last_amount = amount;
  memcpy(signal, signal + kHop, sizeof heard_samples);
  return error;
}

// The power of each frequency in window_to_look_at() under a Hann window, where a sine of full scale has 1.
const float* EXPORT(look)(void) {
  Complex x[kWindow];
  const float whole = (float)kWindow / 4;
  for (int i = 0; i < kWindow; ++i) x[i] = (Complex){window_samples[i] * window(i) * window(i), 0};
  transform(x);
  for (int k = 0; k < BINS; ++k) powers[k] = (x[k].re * x[k].re + x[k].im * x[k].im) / (whole * whole);
  return powers;
}
