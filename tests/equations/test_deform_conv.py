"""DeformConv and MaxRoiPool against plain numpy loops, in every version and element type."""

import itertools

import numpy as np
import pytest
from one_node import run, schemas, treadle, types_of
from test_elementwise import draw, wide
from test_training import tolerance


def sampled(plane, point):
    """Linear between pixels; 0 outside of the image."""
    low = np.floor(point).astype(int)
    total = 0.0
    for corner in itertools.product([0, 1], repeat=plane.ndim):
        at = low + corner
        if all(0 <= i < n for i, n in zip(at, plane.shape, strict=True)):
            total += plane[tuple(at)] * np.prod(np.where(corner, point - low, 1 - (point - low)))
    return total


def deform_conv(x, w, offset, b, mask, strides, pads, dilations, group, offset_group):
    axes = x.ndim - 2
    kernel, out = w.shape[2:], offset.shape[2:]
    n, channels, filters = x.shape[0], x.shape[1], w.shape[0]
    offset = offset.reshape(n, offset_group, *kernel, axes, *out)
    mask = np.ones((n, offset_group, *kernel, *out)) if mask is None else mask.reshape(n, offset_group, *kernel, *out)
    y = np.zeros((n, filters, *out))
    for i, f, p in itertools.product(range(n), range(filters), itertools.product(*map(range, out))):
        for c, tap in itertools.product(range(channels // group), itertools.product(*map(range, kernel))):
            channel = f // (filters // group) * (channels // group) + c
            g = channel // (channels // offset_group)
            moved = np.array([offset[(i, g, *tap, d, *p)] for d in range(axes)])
            point = np.array(p) * strides - pads[:axes] + np.array(tap) * dilations + moved
            y[(i, f, *p)] += w[(f, c, *tap)] * mask[(i, g, *tap, *p)] * sampled(x[i, channel], point)
    return y if b is None else y + b.reshape(-1, *[1] * axes)


CASES = [(s.since_version, t) for s in schemas("DeformConv") for t in types_of(s)]


@pytest.mark.parametrize("version, dtype", CASES, ids=str)
@pytest.mark.parametrize(
    "sizes, kernel, strides, pads, dilations, group, offset_group",
    [
        ((5, 6), (2, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1, 1),
        ((5, 6), (2, 2), (2, 1), (1, 0, 1, 2), (1, 2), 2, 1),
        ((4, 4), (2, 2), (1, 1), (1, 1, 1, 1), (1, 1), 2, 4),
        ((1, 5), (1, 3), (1, 2), (0, 1, 0, 1), (1, 1), 1, 2),
        ((7,), (3,), (2,), (1, 1), (1,), 1, 1),
        ((3, 3, 3), (2, 2, 2), (1, 1, 1), (0,) * 6, (1, 1, 1), 1, 1),
    ],
    ids=str,
)
def test_deform_conv(version, dtype, sizes, kernel, strides, pads, dilations, group, offset_group):
    rng = np.random.default_rng(0)
    axes = len(sizes)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    out = [(sizes[d] + pads[d] + pads[d + axes] - reach[d]) // strides[d] + 1 for d in range(axes)]
    x, w = draw(rng, (2, 4, *sizes), dtype), draw(rng, (2, 4 // group, *kernel), dtype)
    taps = offset_group * int(np.prod(kernel))
    offset = draw(rng, (2, taps * axes, *out), dtype)
    for bias, mask in itertools.product(
        [None, draw(rng, (2,), dtype)], [None, draw(rng, (2, taps, *out), dtype, 0, 1)]
    ):
        options = {"strides": strides, "pads": pads, "dilations": dilations}
        options |= {"group": group, "offset_group": offset_group, "kernel_shape": kernel}
        (y,) = run("DeformConv", version, [x, w, offset, bias, mask], [dtype], options)
        inputs = [None if a is None else wide(a) for a in (x, w, offset, bias, mask)]
        expected = deform_conv(*inputs, strides, pads, dilations, group, offset_group)
        np.testing.assert_allclose(wide(y), expected, **tolerance(dtype))


def test_deform_conv_refuses_offsets_that_do_not_fit():
    x, w = np.zeros((1, 1, 4, 4), np.float32), np.zeros((1, 1, 2, 2), np.float32)
    with pytest.raises(treadle.InvalidArgument, match="offset has shape"):
        run("DeformConv", 22, [x, w, np.zeros((1, 4, 3, 3), np.float32)], [np.float32])


def max_roi_pool(x, rois, pooled, scale):
    y = np.zeros((len(rois), x.shape[1], *pooled))
    for r, (image, *box) in enumerate(rois):
        left, top, right, bottom = (int(np.floor(v * scale + 0.5)) for v in box)
        for i, j in np.ndindex(*pooled):
            spans = []
            for index, count, start, end, size in (
                (i, pooled[0], top, bottom, x.shape[2]),
                (j, pooled[1], left, right, x.shape[3]),
            ):
                length = max(end - start + 1, 1)
                first, last = index * length // count, -(-(index + 1) * length // count)
                spans.append(slice(*np.clip([first + start, last + start], 0, size)))
            part = x[int(image), :, spans[0], spans[1]]
            if part[0].size:
                y[r, :, i, j] = part.max((1, 2))
    return y


@pytest.mark.parametrize(
    "version, dtype", [(s.since_version, t) for s in schemas("MaxRoiPool") for t in types_of(s)], ids=str
)
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_max_roi_pool(version, dtype, scale):
    rng = np.random.default_rng(0)
    x = draw(rng, (2, 3, 6, 7), dtype)
    rois = np.array([[0, 0, 0, 6, 5], [1, 2, 1, 4, 9], [1, 5, 5, 2, 2], [0, 20, 20, 30, 30]], dtype)
    (y,) = run("MaxRoiPool", version, [x, rois], [dtype], {"pooled_shape": [2, 3], "spatial_scale": scale})
    np.testing.assert_array_equal(wide(y), max_roi_pool(wide(x), wide(rois), (2, 3), scale))


@pytest.mark.parametrize("length", range(1, 60))
def test_max_roi_pool_bins_end_with_their_region(length):
    """A bin's end is a whole number if length times index over count is one, despite rounding of floats."""
    x = np.arange(64.0, dtype=np.float32).reshape(1, 1, 1, 64)
    rois = np.array([[0, 2, 0, length + 1, 0]], np.float32)
    for count in range(1, 50):
        (y,) = run("MaxRoiPool", 22, [x, rois], [np.float32], {"pooled_shape": [1, count]})
        np.testing.assert_array_equal(y, max_roi_pool(x, rois, (1, count), 1.0))


def test_max_roi_pool_checks_images():
    with pytest.raises(treadle.RuntimeException):
        run(
            "MaxRoiPool",
            22,
            [np.zeros((1, 1, 2, 2), np.float32), np.array([[1, 0, 0, 1, 1]], np.float32)],
            [np.float32],
            {"pooled_shape": [1, 1]},
        )
