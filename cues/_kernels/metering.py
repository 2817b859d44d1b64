"""Kernels of the meters: K-weighted energies of slots of 1 ms, the peak at four times the rate, prediction errors.

Each has a numpy twin that it is tested against: `cues.meters.kweighting.k_weighted`,
`cues.meters.true_peak.interpolated_peak`, `cues.meters.clicks.residual`. All arguments and results are words.
"""

# ruff: noqa: PLR0917  (words by position, as C takes them)

from typing import Any

import numpy as np

from cues._kernels.tools import carray, float32_at, float64_at, fused_kernel, int32_at, kernel, stack

LANES = 16
"""Parts of one signal that are filtered side by side."""
ORDER = 12
"""Coefficients of a linear predictor."""
CORRECTION = 1e-9
"""White noise that is added to the autocorrelation, relative: −90 dB keep the recursion from dividing by zero."""
TINY = 1e-100
"""Smaller filter states become zero: in digital silence they would decay to subnormal numbers, 20 times slower."""

_GROUP_SAMPLES, _LONGEST_SLOT = 256, 256
_LANE_NUMBERS = 5 * LANES
_LANE_BYTES, _BLOCK_BYTES = 8 * _LANE_NUMBERS, 4 * (_GROUP_SAMPLES + _LONGEST_SLOT) * LANES
_PEAK_BLOCK, _TAPS = 256, 12
_PEAK_WINDOW = _PEAK_BLOCK + _TAPS
_PEAK_BYTES, _POINTS_BYTES = 4 * _PEAK_WINDOW, 4 * 3 * _PEAK_BLOCK
_R_BYTES, _A_BYTES = 8 * (ORDER + 1), 8 * ORDER


@kernel
def without_tiny(state: float) -> float:
    """A filter state, or zero for one that is too small to count."""
    return 0.0 if abs(state) < TINY else state


@fused_kernel
def slot_energies(samples: int, n: int, coefficients: int, states: int, position: int, rate: int, energies: int) -> int:
    """Filter the next `n` samples of a signal, store the energy of each slot that they finish, return their number."""
    # samples : float32 (n,); coefficients : float64 (6,); states : float64 (5,), the filters' four and the energy of
    # the slot begun; position : samples before these; energies : float64, room for each slot that may end here.
    x_in, c, s, out = (
        carray(float32_at(samples), n),
        carray(float64_at(coefficients), 6),
        carray(float64_at(states), 5),
        carray(float64_at(energies), n + 1),
    )
    c0, c1, c2, c3, c4, c5 = c[0], c[1], c[2], c[3], c[4], c[5]
    s0, s1, s2, s3, energy = s[0], s[1], s[2], s[3], s[4]
    n_done: Any = np.int64(0)
    i: Any = np.int64(0)
    # Slot k ends before sample (k + 1)·rate // 1000: exact for rates that are no multiple of 1000 too.
    slot = ((position + 1) * 1000 - 1) // rate
    while i < n:
        end = (slot + 1) * rate // 1000 - position
        stop = min(end, n)
        for j in range(i, stop):
            x = np.float64(x_in[j])
            y = x + s0
            z = y + s2
            s0 = (c0 * x + s1) - c2 * y
            s1 = c1 * x - c3 * y
            s2 = (s3 - 2.0 * y) - c4 * z
            s3 = y - c5 * z
            energy += z * z
        if stop == end:
            out[n_done] = energy
            energy = 0.0
            n_done += 1
            slot += 1
            s0, s1, s2, s3 = without_tiny(s0), without_tiny(s1), without_tiny(s2), without_tiny(s3)
        i = stop
    s[0], s[1], s[2], s[3], s[4] = s0, s1, s2, s3, energy
    return int(n_done)


@fused_kernel
def lane_energies(
    samples: int, coefficients: int, states: int, rate: int, n_slots: int, n_settle: int, energies: int
) -> int:
    """Filter `LANES` equal parts of a signal side by side: one part's recursion cannot be vectorized, sixteen can.

    Each lane starts `n_settle` slots before its part, from rest, so that its filters have settled when it counts. The
    first lane starts on silence, as the signal does. Leaves the state of the last lane in `states`, to go on from.

    samples : float32, of which `LANES·n_slots` slots are read; n_slots : slots of a lane, a whole number of
    samples; energies : float64 (LANES·n_slots,).
    """
    c = carray(float64_at(coefficients), 6)
    c0, c1, c2, c3, c4, c5 = c[0], c[1], c[2], c[3], c[4], c[5]
    out, left_over = carray(float64_at(energies), LANES * n_slots), carray(float64_at(states), 5)
    length = n_slots * rate // 1000
    # One flat array for the filters' states and the energy: with a single base address the inner loop vectorizes.
    lanes = carray(float64_at(stack(_LANE_BYTES)), _LANE_NUMBERS)
    for k in range(_LANE_NUMBERS):
        lanes[k] = 0.0
    # Some slots are copied at a time: sixteen streams in short pieces would outrun the prefetcher.
    group = max(1, _GROUP_SAMPLES * 1000 // rate)
    block = stack(_BLOCK_BYTES)
    first_slot = -n_settle
    while first_slot < n_slots:
        last_slot = min(first_slot + group, n_slots)
        start = first_slot * rate // 1000
        count = last_slot * rate // 1000 - start
        silent = min(max(-start, 0), count)
        for k in range(LANES):
            skipped = silent if k == 0 else 0
            column = carray(float32_at(block + 4 * k), count * LANES)
            lane = carray(float32_at(samples + 4 * (start + k * length)), count)
            for j in range(skipped):
                column[j * LANES] = 0.0
            for j in range(skipped, count):
                column[j * LANES] = lane[j]
        for slot in range(first_slot, last_slot):
            for k in range(LANES):
                lanes[4 * LANES + k] = 0.0
            begin, end = slot * rate // 1000 - start, (slot + 1) * rate // 1000 - start
            rows = carray(float32_at(block + 4 * begin * LANES), (end - begin) * LANES)
            for j in range(end - begin):
                for k in range(LANES):
                    x = np.float64(rows[j * LANES + k])
                    y = x + lanes[k]
                    z = y + lanes[2 * LANES + k]
                    lanes[k] = (c0 * x + lanes[LANES + k]) - c2 * y
                    lanes[LANES + k] = c1 * x - c3 * y
                    lanes[2 * LANES + k] = (lanes[3 * LANES + k] - 2.0 * y) - c4 * z
                    lanes[3 * LANES + k] = y - c5 * z
                    lanes[4 * LANES + k] += z * z
            if slot >= 0:
                for k in range(LANES):
                    out[k * n_slots + slot] = lanes[4 * LANES + k]
        for k in range(4 * LANES):
            lanes[k] = without_tiny(lanes[k])
        first_slot = last_slot
    for k in range(4):
        left_over[k] = lanes[k * LANES + LANES - 1]
    return 0


@fused_kernel
def peak_4x(samples: int, n: int, filters: int) -> int:
    """Largest magnitude, as its float32 bit pattern, of a signal and of the three points between each two samples.

    The point at 3/4 mirrors the one at 1/4, so that both come from the same sums (`even`) and differences (`odd`) of
    the samples left and right. Bit patterns of magnitudes order as the magnitudes do, NaN above all, and integers
    compare without the branches that keep float maxima from being vectorized.

    samples : float32 (n,); filters : float32 (18,), the half filters `even`, `odd` and `middle`, outermost taps first.
    """
    f = carray(float32_at(filters), 18)
    e0, e1, e2, e3, e4, e5 = f[0], f[1], f[2], f[3], f[4], f[5]
    o0, o1, o2, o3, o4, o5 = f[6], f[7], f[8], f[9], f[10], f[11]
    m0, m1, m2, m3, m4, m5 = f[12], f[13], f[14], f[15], f[16], f[17]
    window_at, points_at = stack(_PEAK_BYTES), stack(_POINTS_BYTES)
    x, sample_bits = carray(float32_at(window_at), _PEAK_WINDOW), carray(int32_at(window_at), _PEAK_WINDOW)
    points, point_bits = carray(float32_at(points_at), 3 * _PEAK_BLOCK), carray(int32_at(points_at), 3 * _PEAK_BLOCK)
    peak = np.int32(0)
    for start in range(1 - _TAPS // 2, n, _PEAK_BLOCK):
        first, last = max(-start, 0), min(n - start, _PEAK_WINDOW - 1)
        here = carray(float32_at(samples + 4 * (start + first)), last - first)
        there = carray(float32_at(window_at + 4 * first), last - first)
        for i in range(_PEAK_WINDOW):
            x[i] = 0.0
        for i in range(last - first):
            there[i] = here[i]
        for i in range(_PEAK_BLOCK):
            a0, a1, a2, a3, a4, a5 = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5]
            b5, b4, b3, b2, b1, b0 = x[i + 6], x[i + 7], x[i + 8], x[i + 9], x[i + 10], x[i + 11]
            s0, s1, s2, s3, s4, s5 = a0 + b0, a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5
            d0, d1, d2, d3, d4, d5 = a0 - b0, a1 - b1, a2 - b2, a3 - b3, a4 - b4, a5 - b5
            left = (e0 * s0 + e1 * s1 + e2 * s2) + (e3 * s3 + e4 * s4 + e5 * s5)
            right = (o0 * d0 + o1 * d1 + o2 * d2) + (o3 * d3 + o4 * d4 + o5 * d5)
            points[i] = left + right
            points[_PEAK_BLOCK + i] = (m0 * s0 + m1 * s1 + m2 * s2) + (m3 * s3 + m4 * s4 + m5 * s5)
            points[2 * _PEAK_BLOCK + i] = left - right
        for i in range(_PEAK_WINDOW):
            peak = max(peak, np.int32(sample_bits[i] & 0x7FFFFFFF))
        for i in range(3 * _PEAK_BLOCK):
            peak = max(peak, np.int32(point_bits[i] & 0x7FFFFFFF))
    return int(peak)


@kernel
def prediction_errors(padded: int, window: int, length: int, hop: int, scratch: int, errors: int, n_errors: int) -> int:
    """Store the prediction error of each sample of a signal, in whole hops."""
    # padded : float32, the signal between zeros: `length/2 − hop/2 + ORDER` before it, as many as the last window needs
    # after it; window : float64 (length,), a multiple of 16; scratch : float64 (2·length + hop,); errors : float32.
    eighth = length // 8
    e2, e3, e4, e5, e6, e7 = 2 * eighth, 3 * eighth, 4 * eighth, 5 * eighth, 6 * eighth, 7 * eighth
    before = (length - hop) // 2
    shape = carray(float64_at(window), length)
    weighted = carray(float64_at(scratch), length + ORDER)
    products = carray(float64_at(scratch + 8 * (length + ORDER)), eighth)
    x = carray(float64_at(scratch + 8 * (length + ORDER + eighth)), hop + ORDER)
    r = carray(float64_at(stack(_R_BYTES)), ORDER + 1)
    a, swap = carray(float64_at(stack(_A_BYTES)), ORDER), carray(float64_at(stack(_A_BYTES)), ORDER)
    for i in range(ORDER):
        weighted[length + i] = 0.0
    start: Any = np.int64(0)
    while start < n_errors:  # `range` with a variable step may raise
        around = carray(float32_at(padded + 4 * (start + ORDER)), length)
        for i in range(length):
            weighted[i] = around[i] * shape[i]
        for k in range(ORDER + 1):
            # A sum into one number cannot be vectorized; products that are folded onto each other can.
            for i in range(eighth):
                j = i + k
                first = weighted[i] * weighted[j] + weighted[i + eighth] * weighted[j + eighth]
                second = weighted[i + e2] * weighted[j + e2] + weighted[i + e3] * weighted[j + e3]
                third = weighted[i + e4] * weighted[j + e4] + weighted[i + e5] * weighted[j + e5]
                fourth = weighted[i + e6] * weighted[j + e6] + weighted[i + e7] * weighted[j + e7]
                products[i] = (first + second) + (third + fourth)
            size = eighth
            while size % 2 == 0:
                size //= 2
                for i in range(size):
                    products[i] += products[i + size]
            total = 0.0
            for i in range(size):
                total += products[i]
            r[k] = total
        durbin(r, a, swap)
        a0, a1, a2, a3, a4, a5 = a[0], a[1], a[2], a[3], a[4], a[5]
        a6, a7, a8, a9, a10, a11 = a[6], a[7], a[8], a[9], a[10], a[11]
        past, frame = (
            carray(float32_at(padded + 4 * (start + before)), hop + ORDER),
            carray(float32_at(errors + 4 * start), hop),
        )
        for i in range(hop + ORDER):
            x[i] = past[i]
        for i in range(hop):
            near = a0 * x[i + 11] + a1 * x[i + 10] + a2 * x[i + 9] + a3 * x[i + 8]
            middle = a4 * x[i + 7] + a5 * x[i + 6] + a6 * x[i + 5] + a7 * x[i + 4]
            far = a8 * x[i + 3] + a9 * x[i + 2] + a10 * x[i + 1] + a11 * x[i]
            frame[i] = x[i + 12] - (near + middle + far)
        start += hop
    return 0


@kernel
def durbin(r: Any, a: Any, swap: Any) -> None:
    """Predictor of an autocorrelation (Levinson and Durbin's recursion); all zero for silence."""
    for i in range(ORDER):
        a[i] = 0.0
    error = r[0] * (1.0 + CORRECTION)
    for m in range(ORDER):
        if error <= 0.0:
            return
        reflected = r[m + 1]
        for i in range(m):
            reflected -= a[i] * r[m - i]
        reflected /= error
        for i in range(m):
            swap[i] = a[i] - reflected * a[m - 1 - i]
        for i in range(m):
            a[i] = swap[i]
        a[m] = reflected
        error *= 1.0 - reflected * reflected


EXPORTED: Any = (slot_energies, lane_energies, peak_4x, prediction_errors)
"""The functions of the object file."""
