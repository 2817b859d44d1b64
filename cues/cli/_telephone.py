"""Cues as a telephone carries them."""

from dataclasses import replace

from cues.cue import Cue
from cues.library.bank import Bank
from cues.meters.loudness import measure
from cues.meters.telephone import RATE_HZ, over_telephone

__all__ = ["telephone_bank"]


def telephone_bank(bank: Bank) -> Bank:
    """The cues of a bank at 24 kHz as a telephone carries them; one outside its band becomes silence.

    At 8 kHz a bank would have other cues: each is leveled without what lies above 4 kHz.
    """
    return bank.with_cues({name: _carried(cue) for name, cue in bank.items()}, sample_rate=RATE_HZ)


def _carried(cue: Cue) -> Cue:
    x = over_telephone(cue.samples, cue.sample_rate, loop=cue.loop and not cue.phrases)
    phrases = tuple(map(_carried, cue.phrases))
    return replace(cue, samples=x, sample_rate=RATE_HZ, spec=None, measured=measure(x, RATE_HZ), phrases=phrases)
