"""The weights of the built-in tiers' classifier, measured on questions that they never saw, or learned anew before.

    python -m bench.learn_tiers [CORPORA]

With CORPORA it learns and replaces stream/services/learned.int8, which takes a few minutes and 1 GB. CORPORA is a
folder with clones of four public repositories: github.com/clinc/oos-eval (CLINC150, CC BY 3.0),
github.com/xliuhw/NLU-Evaluation-Data (CC BY 4.0), github.com/pswietojanski/slurp (the text is CC BY 4.0) and
github.com/brmson/dataset-factoid-webquestions (WebQuestions, CC BY 4.0). The project's own questions and templates
are in tests/stream/data/questions.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from stream.services import KeywordClassifier, load_tiers
from stream.services.learned import BUCKETS, GENERAL, LEARNED, buckets
from stream.services.wording import WORD, plain

ROOT = Path(__file__).parents[1]
QUESTIONS = ROOT / "tests" / "stream" / "data" / "questions"
WEIGHTS = ROOT / "stream" / "services" / "learned.int8"
TIERS = (*LEARNED, GENERAL)
OWN, VARIED, TEMPLATE, PUBLIC = 3.0, 1.0, 0.4, 0.15  # how much a question counts
EACH = 30  # questions of a template
KEPT = 0.4  # of the public general questions, which are many
DECAY = 1 / 200
ROUNDS = 150

Labelled = tuple[str, str, float]  # tier, question, how much it counts
INTENTS = {"smart_home": "device", "time": "datetime", "date": "datetime", "datetime_query": "datetime"}
UNCLEAR = re.compile(
    "timezone|next_holiday|find_phone|reset_settings|sync_device|gas|tire_pressure|mpg|change_volume|oil_change_when"
    "|next_song|cancel|datetime_convert|audio_volume.*"
)
"""Intents that may belong to either of two tiers."""


def own() -> Iterator[tuple[str, str]]:
    """The project's labelled questions but the newest."""
    table = tomllib.loads((QUESTIONS / "learned.toml").read_text(encoding="utf-8"))
    yield from ((tier, question) for tier, questions in table.items() for question in questions)


def public(corpora: Path) -> Iterator[tuple[str, str]]:
    """The questions of the public corpora by tier."""
    clinc = json.loads((corpora / "oos-eval" / "data" / "data_full.json").read_text(encoding="utf-8"))
    pairs = [(intent, text) for rows in clinc.values() for text, intent in rows]
    luis = (corpora / "NLU-Evaluation-Data").glob("CrossValidation/out4LuisReal/**/merged/Luis_KFold_*.json")
    folds = [json.loads(file.read_text(encoding="utf-8"))["utterances"] for file in sorted(luis)]
    pairs += dict.fromkeys((one["intent"], one["text"]) for fold in folds for one in fold)
    spoken = [corpora / "slurp" / "dataset" / "slurp" / f"{part}.jsonl" for part in ("devel", "test")]
    rows = [json.loads(line) for file in spoken for line in file.read_text(encoding="utf-8").split("\n") if line]
    pairs += dict.fromkeys((one["intent"], one["sentence"]) for one in rows)
    web = sorted((corpora / "dataset-factoid-webquestions" / "main").glob("*.json"))
    pairs += [("fact", one["qText"]) for file in web for one in json.loads(file.read_text(encoding="utf-8"))]
    for intent, text in pairs:
        if not UNCLEAR.fullmatch(intent):
            yield "device" if intent.startswith("iot_") else INTENTS.get(intent, GENERAL), text


class Writer:
    """Writes questions from templates, and varies questions."""

    def __init__(self, table: dict[str, Any], seed: int) -> None:
        self._table, self._words, self._vary = table, table["words"], table["variations"]
        self._chance = random.Random(seed)

    def written(self) -> Iterator[tuple[str, str]]:
        """`EACH` questions of each template, or fewer where it has no more."""
        for tier, templates in self._table["templates"].items():
            for template in templates:
                yield from ((tier, one) for one in dict.fromkeys(self._filled(template) for _ in range(EACH)))

    def _filled(self, text: str) -> str:
        pick, before = self._chance.choice, ""
        while text != before:
            before = text
            text = re.sub(r"\{([^{}]*)\}", lambda found: pick(found[1].split("|")), text)
            text = re.sub(r"<([a-z]+)>", lambda found: pick(self._words[found[1]]), text)
        return " ".join(text.split())

    def varied(self, text: str) -> str:
        """The question in other words, or with the mistakes of a recognizer or of typing."""
        chance, pick, vary = self._chance.random, self._chance.choice, self._vary
        way = chance()
        if way < 0.24:
            beside, joint = pick(vary["beside"]), pick([", ", ". ", " "])
            text = beside + joint + text if way < 0.12 else text + joint + beside
        elif way < 0.36:
            text = f"{pick(vary['before'])} {text}"
        elif way < 0.48:
            text = f"{text} {pick(vary['after'])}"
        if chance() < 0.5:
            text = text.lower()
        if chance() < 0.25:
            text = self._misheard(text)
        if chance() < 0.15:
            for said, typed in vary["typed"].items():
                text = re.sub(rf"(?<![\w'.]){said}(?![\w'.])", pick(typed), text)
        if chance() < 0.1:
            text = re.sub(r"\b(the|a|an|my) ", "", text, count=2)
        if chance() < 0.08:
            at = self._chance.randrange(len(text))
            text = text[:at] + pick(["", 2 * text[at]]) + text[at + 1 :]
        return text

    def _misheard(self, text: str) -> str:
        words, known = text.split(), self._vary["misheard"]
        places = [at for at, word in enumerate(words) if word.lower() in known]
        if places:
            at = self._chance.choice(places)
            words[at] = self._chance.choice(known[words[at].lower()])
        return " ".join(words)


def examples(corpora: Path) -> Iterator[Labelled]:
    """All that is learned from."""
    writer = Writer(tomllib.loads((QUESTIONS / "templates.toml").read_text(encoding="utf-8")), seed=7)
    for tier, text in writer.written():
        yield tier, text, TEMPLATE
        yield tier, writer.varied(text), TEMPLATE
    chance = random.Random(7)
    for tier, text in public(corpora):
        if tier != GENERAL or chance.random() < KEPT:
            yield tier, text, PUBLIC
    for tier, text in own():
        yield tier, text, OWN
        yield from ((tier, writer.varied(text), VARIED) for _ in range(2))


def learned(labelled: list[Labelled]) -> NDArray[np.int8]:
    """Weights by multinomial logistic regression; those of the general tier stay 0. int8, shape (BUCKETS, 3)."""
    rows = [sorted(buckets(WORD.findall(plain(text)))) for _, text, _ in labelled]
    lengths = np.array([len(row) for row in rows])
    data = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths).astype(np.float32)
    x = csr_array((data, np.concatenate(rows), np.r_[0, np.cumsum(lengths)]), shape=(len(rows), BUCKETS))
    transposed = x.T.tocsr()
    y = np.eye(len(TIERS), dtype=np.float32)[[TIERS.index(tier) for tier, _, _ in labelled]]
    counts = np.array([[count] for _, _, count in labelled], dtype=np.float32)

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        sums = np.c_[x @ flat.reshape(BUCKETS, -1).astype(np.float32), np.zeros(len(rows), np.float32)]
        sums -= sums.max(axis=1, keepdims=True)
        total = np.exp(sums).sum(axis=1, keepdims=True)
        slope = transposed @ (counts * (np.exp(sums) / total - y))[:, :-1]
        lost = -(counts * y * (sums - np.log(total))).sum(dtype=np.float64)
        return float(lost + DECAY / 2 * flat @ flat), slope.ravel() + DECAY * flat

    options = {"maxiter": ROUNDS, "maxcor": 6, "ftol": 1e-7, "gtol": 1e-4}
    found = minimize(loss, np.zeros(BUCKETS * len(LEARNED)), jac=True, method="L-BFGS-B", options=options).x
    return np.round(127 * found / np.abs(found).max()).astype(np.int8).reshape(BUCKETS, -1)


def main() -> int:
    """Learn and write if there are corpora; print how many of the newest questions go to their tier, and how fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", type=Path, nargs="?")
    options = parser.parse_args()
    if options.corpora is not None:
        labelled = list(examples(options.corpora))
        weights = learned(labelled)
        print(f"{len(labelled)} questions, {np.count_nonzero(weights)} weights of {weights.size}")
        WEIGHTS.write_bytes(weights.tobytes())
    start_s = time.perf_counter()
    classifier = KeywordClassifier(load_tiers())
    classifier.classify("Turn the lamp off.")
    print(f"the first question: {1000 * (time.perf_counter() - start_s):.1f} ms")
    newest = tomllib.loads((QUESTIONS / "newest.toml").read_text(encoding="utf-8"))
    start_s = time.perf_counter()
    found = {question: classifier.classify(question) for questions in newest.values() for question in questions}
    print(f"a question: {1000 * (time.perf_counter() - start_s) / len(found):.2f} ms")
    for tier, questions in newest.items():
        wrong = [(found[question], question) for question in questions if found[question] != tier]
        print(f"{tier}: {len(questions) - len(wrong)} of {len(questions)}", *wrong, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
