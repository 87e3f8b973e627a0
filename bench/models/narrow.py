"""Loops over elements of 8 and 16 bits: codecs, checksums, fixed point, float16."""

from __future__ import annotations

import numpy as np

from .registry import Built, Class, constants, loop, numbers

NARROW = Class("loops over bytes, 16-bit integers and float16", 100, 2)
OPSET = 18  # the first with operators on bits
U8, I8, U16, I16, U32, F16 = np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.float16


def any_bytes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape).astype(U8)


@loop(NARROW, 4000)
def run_decoder(n: int) -> Built:
    """A byte says what kind of run begins and how long it is; the bytes of the run are taken as they are, or changed
    by the byte before. A checksum and a level go along."""
    text = f"""
    g (uint8[{n}] stream) => (uint8 mode, uint8 left, uint32 hash, int8 level, uint8 last, uint8[{n}] decoded) {{
      mode, left, hash, level, last, decoded = Scan <num_scan_inputs = 1,
          body = b (uint8 m, uint8 l, uint32 h, int8 v, uint8 p, uint8 x) =>
                   (uint8 m2, uint8 l2, uint32 h2, int8 v2, uint8 p2, uint8 o) {{
        begins = Equal(l, none)
        length = BitwiseAnd(x, low4)
        kind = BitShift <direction = "RIGHT"> (x, four)
        shorter = Sub(l, one)
        l2 = Where(begins, length, shorter)
        m2 = Where(begins, kind, m)
        plain = Less(m, eight)
        changed = BitwiseXor(x, p)
        byte = Where(plain, x, changed)
        p2 = Where(begins, none, byte)
        o = Identity(p2)
        wide = Cast <to = 12> (p2)
        mixed = BitwiseXor(h, wide)
        h2 = Mul(mixed, prime)
        step = Cast <to = 3> (byte)
        v2 = Add(v, step) }}> (none, none, basis, level0, none, stream) }}"""
    weights = constants(U8, none=0, one=1, four=4, eight=8, low4=15)
    weights |= constants(U32, prime=16777619, basis=2166136261) | constants(I8, level0=0)
    return Built(text, weights, {"stream": any_bytes(numbers("run_decoder"), n)}, n, (n,), "stream", opset=OPSET)


@loop(NARROW, 4000)
def crc16(n: int) -> Built:
    """CRC-16 as Modbus has it, by two tables of bytes."""
    text = f"""
    g (uint8[{n}] message) => (uint16 last, uint16[{n}] all) {{
      last, all = Scan <num_scan_inputs = 1, body = b (uint16 c, uint8 x) => (uint16 c2, uint16 e) {{
        low = Cast <to = 2> (c)
        mixed = BitwiseXor(low, x)
        at = Cast <to = 6> (mixed)
        high_byte = Gather(high_table, at)
        low_byte = Gather(low_table, at)
        high_word = Cast <to = 4> (high_byte)
        low_word = Cast <to = 4> (low_byte)
        up = Mul(high_word, sized)
        looked = BitwiseOr(up, low_word)
        down = Div(c, sized)
        c2 = BitwiseXor(down, looked)
        e = Identity(c2) }}> (start, message) }}"""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ 0xA001, table >> 1)
    weights = {"high_table": (table >> 8).astype(U8), "low_table": (table & 255).astype(U8)}
    weights |= constants(U16, start=0xFFFF, sized=256)
    inputs = {"message": any_bytes(numbers("crc16"), n)}
    return Built(text, weights, inputs, n, (n,), "message high_table low_table", opset=OPSET)


@loop(NARROW, 4000)
def fixed_point_filter(n: int) -> Built:
    """A filter of second order on samples of 16 bits, whose results are kept within 16 bits."""
    text = f"""
    g (int16[{n}] samples) => (int16 a, int16 b, int16 c, int16 d, int16[{n}] filtered) {{
      a, b, c, d, filtered = Scan <num_scan_inputs = 1,
          body = f (int16 x1, int16 x2, int16 y1, int16 y2, int16 x) =>
                   (int16 x1n, int16 x2n, int16 y1n, int16 y2n, int16 y) {{
        wx = Cast <to = 6> (x)
        wx1 = Cast <to = 6> (x1)
        wx2 = Cast <to = 6> (x2)
        wy1 = Cast <to = 6> (y1)
        wy2 = Cast <to = 6> (y2)
        t0 = Mul(wx, b0)
        t1 = Mul(wx1, b1)
        t2 = Mul(wx2, b2)
        t3 = Mul(wy1, a1)
        t4 = Mul(wy2, a2)
        s1 = Add(t0, t1)
        s2 = Add(s1, t2)
        s3 = Sub(s2, t3)
        s4 = Sub(s3, t4)
        scaled = Div(s4, unit)
        kept = Clip(scaled, least, most)
        y1n = Cast <to = 5> (kept)
        y2n = Identity(y1)
        x1n = Identity(x)
        x2n = Identity(x1)
        y = Identity(y1n) }}> (zero, zero, zero, zero, samples) }}"""
    weights = constants(np.int32, b0=7000, b1=9000, b2=6000, a1=-9000, a2=5000, unit=16384, least=-32768, most=32767)
    weights |= constants(I16, zero=0)
    samples = numbers("fixed_point_filter").integers(-32768, 32768, n).astype(I16)
    return Built(text, weights, {"samples": samples}, n, (n,), "samples b0 b1 b2 a1 a2", opset=OPSET)


@loop(NARROW, 1000, 64)
def blended_pixels(n: int, width: int) -> Built:
    """A picture that follows its frames slowly, byte by byte."""
    text = f"""
    g (uint8[{n},{width}] frames, uint8[{width}] start) => (uint8[{width}] last) {{
      last = Scan <num_scan_inputs = 1, body = b (uint8[{width}] s, uint8[{width}] x) => (uint8[{width}] s2) {{
        old = Cast <to = 4> (s)
        new = Cast <to = 4> (x)
        kept = Mul(old, three)
        both = Add(kept, new)
        mean = Div(both, four)
        s2 = Cast <to = 2> (mean) }}> (start, frames) }}"""
    rng = numbers("blended_pixels")
    inputs = {"frames": any_bytes(rng, n, width), "start": any_bytes(rng, width)}
    return Built(text, constants(U16, three=3, four=4), inputs, n, (n, width), "frames start", opset=OPSET)


def half_recurrence(n: int, width: int) -> Built:
    """A number, or `width` of them, that decay towards their inputs and are drawn to 0."""
    shape = (width,) if width > 1 else ()
    state = f"float16[{width}]" if shape else "float16"
    text = f"""
    g (float16[{",".join(map(str, (n, *shape)))}] xs, {state} start) => ({state} last) {{
      last = Scan <num_scan_inputs = 1, body = b ({state} s, {state} x) => ({state} s2) {{
        kept = Mul(s, decay)
        sum = Add(kept, x)
        size = Abs(sum)
        least = Min(size, most)
        s2 = Sub(sum, least) }}> (start, xs) }}"""
    xs = numbers("half_recurrence").uniform(-1, 1, (n, *shape)).astype(F16)
    start = np.broadcast_to(np.array(0.5, F16), shape)
    weights = constants(F16, decay=0.875, most=0.0625)
    return Built(
        text, weights, {"xs": xs, "start": start}, n, (n, *shape), "xs start decay most", tolerance=0.05, opset=OPSET
    )


@loop(NARROW, 4000)
def half_numbers(n: int) -> Built:
    return half_recurrence(n, 1)


@loop(NARROW, 1000, 48)
def half_vectors(n: int, width: int) -> Built:
    return half_recurrence(n, width)
