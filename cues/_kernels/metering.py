"""Loops of the meters: K-weighted energy of a signal in slots of a millisecond, and its peak at four times the rate.

Each has a twin in plain numpy that it is held against: `cues.meters.kweighting.k_weighted`,
`cues.meters.true_peak.interpolated_peak`.
"""

# ruff: noqa: ANN001, ANN202, PLR0917  (numba infers the types and takes positions; the callers in cues/ state both)
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from cues._kernels.compiling import fused_kernel

__all__ = ["LANES", "LONGEST_SLOT", "lane_energies", "peak_4x", "slot_energies"]

LANES = 16
"""Parts of one signal that are filtered side by side."""
LONGEST_SLOT = 256
"""Room for the samples of one millisecond: 192 at the highest rate."""
_GROUP_SAMPLES = 256
_BLOCK = 256
_TAPS = 12


@fused_kernel
def slot_energies(samples, coefficients, state, position, sample_rate, energies):
    """Filter the next `samples` of a signal, store the energy of each slot that they finish, return how many did.

    samples : float32 (n,); coefficients : float64 (6,); state : float64 (5,), the filters' four and the energy
    of the slot begun; position : samples before these; energies : float64, room for each slot that may end here.
    """
    c0, c1, c2, c3, c4, c5 = coefficients
    s0, s1, s2, s3, energy = state
    n_done = 0
    i = 0
    # Slot k ends before sample (k + 1)·rate // 1000: exact for rates that are no multiple of 1000 too.
    slot = ((position + 1) * 1000 - 1) // sample_rate
    while i < len(samples):
        end = (slot + 1) * sample_rate // 1000 - position
        stop = min(end, len(samples))
        for j in range(i, stop):
            x = np.float64(samples[j])
            y = x + s0
            z = y + s2
            s0 = (c0 * x + s1) - c2 * y
            s1 = c1 * x - c3 * y
            s2 = (s3 - 2.0 * y) - c4 * z
            s3 = y - c5 * z
            energy += z * z
        if stop == end:
            energies[n_done] = energy
            energy = 0.0
            n_done += 1
            slot += 1
        i = stop
    state[0], state[1], state[2], state[3], state[4] = s0, s1, s2, s3, energy
    return n_done


@fused_kernel
def lane_energies(samples, coefficients, state, sample_rate, n_slots, n_settle, energies):
    """Filter `LANES` equal parts of a signal side by side: one part's recursion cannot be vectorized, sixteen can.

    Each lane starts `n_settle` slots before its part, from rest, so that its filters have settled when it counts. The
    first lane starts on silence, as the signal does. Leaves the state of the last lane in `state`, to go on from.

    samples : float32 (n,), of which `LANES·n_slots` slots are read; n_slots : slots of a lane, a whole number of
    samples; energies : float64 (LANES·n_slots,).
    """
    c0, c1, c2, c3, c4, c5 = coefficients
    length = n_slots * sample_rate // 1000
    # One flat array for the filters' states and the energy: with a single base address the inner loop vectorizes.
    lanes = np.zeros(5 * LANES)
    # Some slots are copied at a time: sixteen streams in short pieces would outrun the prefetcher.
    group = max(1, _GROUP_SAMPLES * 1000 // sample_rate)
    block = np.zeros((_GROUP_SAMPLES + LONGEST_SLOT) * LANES, np.float32)
    for first_slot in range(-n_settle, n_slots, group):
        last_slot = min(first_slot + group, n_slots)
        start = first_slot * sample_rate // 1000
        count = last_slot * sample_rate // 1000 - start
        silent = min(max(-start, 0), count)
        for k in range(LANES):
            skipped = silent if k == 0 else 0
            for j in range(skipped):
                block[j * LANES] = 0.0
            # Slices here and below: indices that cannot be negative are not checked for it, and the loop vectorizes.
            lane = samples[start + k * length + skipped : start + k * length + count]
            column = block[skipped * LANES + k :]
            for j in range(count - skipped):
                column[j * LANES] = lane[j]
        for slot in range(first_slot, last_slot):
            for k in range(LANES):
                lanes[4 * LANES + k] = 0.0
            begin, end = slot * sample_rate // 1000 - start, (slot + 1) * sample_rate // 1000 - start
            rows = block[begin * LANES : end * LANES]
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
                    energies[k * n_slots + slot] = lanes[4 * LANES + k]
    for k in range(4):
        state[k] = lanes[k * LANES + LANES - 1]


@fused_kernel
def peak_4x(samples, even, odd, middle):
    """Largest magnitude, as its float32 bit pattern, of a signal and of the three points between each two samples.

    The point at 3/4 mirrors the one at 1/4, so that both come from the same sums (`even`) and differences (`odd`) of
    the samples left and right. Bit patterns of magnitudes order as the magnitudes do, NaN above all, and integers
    compare without the branches that keep float maxima from being vectorized.

    samples : float32 (n,); even, odd, middle : float32 (6,), half filters, the outermost taps first.
    """
    e0, e1, e2, e3, e4, e5 = even
    o0, o1, o2, o3, o4, o5 = odd
    m0, m1, m2, m3, m4, m5 = middle
    x = np.zeros(_BLOCK + _TAPS, np.float32)
    points = np.zeros(3 * _BLOCK, np.float32)
    sample_bits, point_bits = x.view(np.int32), points.view(np.int32)
    peak = np.int32(0)
    half = _TAPS // 2
    for start in range(1 - half, len(samples), _BLOCK):
        first, last = max(start, 0), min(start + _BLOCK + _TAPS - 1, len(samples))
        x[: first - start] = 0.0
        x[first - start : last - start] = samples[first:last]
        x[last - start :] = 0.0
        for i in range(_BLOCK):
            a0, a1, a2, a3, a4, a5 = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5]
            b5, b4, b3, b2, b1, b0 = x[i + 6], x[i + 7], x[i + 8], x[i + 9], x[i + 10], x[i + 11]
            s0, s1, s2, s3, s4, s5 = a0 + b0, a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5
            d0, d1, d2, d3, d4, d5 = a0 - b0, a1 - b1, a2 - b2, a3 - b3, a4 - b4, a5 - b5
            left = (e0 * s0 + e1 * s1 + e2 * s2) + (e3 * s3 + e4 * s4 + e5 * s5)
            right = (o0 * d0 + o1 * d1 + o2 * d2) + (o3 * d3 + o4 * d4 + o5 * d5)
            points[i] = left + right
            points[_BLOCK + i] = (m0 * s0 + m1 * s1 + m2 * s2) + (m3 * s3 + m4 * s4 + m5 * s5)
            points[2 * _BLOCK + i] = left - right
        for i in range(_BLOCK + _TAPS):
            peak = max(peak, sample_bits[i] & np.int32(0x7FFFFFFF))
        for i in range(3 * _BLOCK):
            peak = max(peak, point_bits[i] & np.int32(0x7FFFFFFF))
    return peak
