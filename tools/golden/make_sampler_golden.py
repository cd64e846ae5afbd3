"""Writes tests/data/sampler/golden.json: what each sampler leaves, computed with numpy in f64.

The rules are those of llama.cpp's samplers, written here from their definitions and independently of src/generate.
Needs numpy 2. Run: python tools/golden/make_sampler_golden.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "sampler" / "golden.json"


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def best_first(ids: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Positions by falling logit, lowest id first among equals."""
    return np.lexsort((ids, -logits))


class Left:
    """The candidates that are left: ids and logits."""

    def __init__(self, logits: list[float]) -> None:
        self.logits = np.array(logits, dtype=np.float64)
        self.ids = np.arange(len(logits))

    def keep(self, positions: np.ndarray) -> None:
        self.ids, self.logits = self.ids[positions], self.logits[positions]

    def penalties(self, o: dict, history: list[int]) -> None:
        n = o["repeat_last_n"]
        recent = history if n < 0 else history[len(history) - min(n, len(history)) :]
        for i, token in enumerate(self.ids):
            count = recent.count(int(token))
            if count:
                r = o["repeat_penalty"]
                self.logits[i] = self.logits[i] / r if self.logits[i] > 0 else self.logits[i] * r
                self.logits[i] -= count * o["frequency_penalty"] + o["presence_penalty"]

    def top_n_sigma(self, o: dict, _: list[int]) -> None:
        if o["top_n_sigma"] > 0:
            least = self.logits.max() - o["top_n_sigma"] * self.logits.std()
            self.keep(np.flatnonzero(self.logits >= least))

    def top_k(self, o: dict, _: list[int]) -> None:
        if o["top_k"] > 0:
            self.keep(best_first(self.ids, self.logits)[: o["top_k"]])

    def typ_p(self, o: dict, _: list[int]) -> None:
        if o["typical_p"] < 1:
            p = softmax(self.logits)
            information = -np.log(p)
            distance = np.abs(information - (p * information).sum())
            order = np.argsort(distance, kind="stable")
            n = int((np.cumsum(p[order]) <= o["typical_p"]).sum()) + 1
            self.keep(order[: max(n, o["min_keep"])])

    def top_p(self, o: dict, _: list[int]) -> None:
        if o["top_p"] < 1:
            order = best_first(self.ids, self.logits)
            n = int((np.cumsum(softmax(self.logits)[order]) < o["top_p"]).sum()) + 1
            self.keep(order[: max(n, o["min_keep"])])

    def min_p(self, o: dict, _: list[int]) -> None:
        if o["min_p"] > 0:
            order = best_first(self.ids, self.logits)
            p = softmax(self.logits)[order]
            n = int((p >= o["min_p"] * p[0]).sum())
            self.keep(order[: max(n, o["min_keep"])])

    def xtc(self, o: dict, _: list[int]) -> None:
        """With probability 1 (the chance itself is tested elsewhere)."""
        if o["xtc_probability"] == 1 and o["xtc_threshold"] <= 0.5:
            order = best_first(self.ids, self.logits)
            n = max(int((softmax(self.logits) >= o["xtc_threshold"]).sum()) - 1, 0)
            if len(order) - n >= o["min_keep"]:
                self.keep(order[n:])

    def temperature(self, o: dict, _: list[int]) -> None:
        if o["temperature"] > 0:
            self.logits = self.logits / o["temperature"]
        else:
            self.keep(best_first(self.ids, self.logits)[:1])


DEFAULTS = {
    "temperature": 0.8,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "typical_p": 1.0,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "min_keep": 0,
}
CHAIN = "penalties;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"
CASES: list[tuple[str, dict]] = [
    ("penalties", {"repeat_penalty": 1.3}),
    ("penalties", {"repeat_penalty": 1.1, "repeat_last_n": 5}),
    ("penalties", {"presence_penalty": 0.7, "frequency_penalty": 0.4}),
    ("penalties", {"presence_penalty": -0.5, "repeat_penalty": 0.9, "repeat_last_n": -1}),
    ("penalties", {"repeat_penalty": 1.3, "repeat_last_n": 0}),
    ("top_n_sigma", {"top_n_sigma": 1.0}),
    ("top_n_sigma", {"top_n_sigma": 2.5}),
    ("top_k", {"top_k": 1}),
    ("top_k", {"top_k": 7}),
    ("top_k", {"top_k": 0}),
    ("top_k", {"top_k": 1000}),
    ("typ_p", {"typical_p": 0.2}),
    ("typ_p", {"typical_p": 0.9}),
    ("typ_p", {"typical_p": 0.1, "min_keep": 6}),
    ("top_p", {"top_p": 0.1}),
    ("top_p", {"top_p": 0.5}),
    ("top_p", {"top_p": 0.95}),
    ("top_p", {"top_p": 0.3, "min_keep": 9}),
    ("top_p", {"top_p": 0.0}),
    ("min_p", {"min_p": 0.05}),
    ("min_p", {"min_p": 0.5}),
    ("min_p", {"min_p": 0.9, "min_keep": 4}),
    ("xtc", {"xtc_probability": 1.0, "xtc_threshold": 0.02}),
    ("xtc", {"xtc_probability": 1.0, "xtc_threshold": 0.1}),
    ("xtc", {"xtc_probability": 1.0, "xtc_threshold": 0.02, "min_keep": 60}),
    ("temperature", {"temperature": 0.3}),
    ("temperature", {"temperature": 1.7}),
    (CHAIN, {}),
    (CHAIN, {"repeat_penalty": 1.2, "typical_p": 0.8, "top_n_sigma": 1.5, "temperature": 1.4}),
    (CHAIN, {"top_k": 12, "top_p": 0.7, "min_p": 0.2, "min_keep": 3}),
    ("temperature;top_p;top_k", {"temperature": 2.0, "top_p": 0.6, "top_k": 11}),
]


def main() -> None:
    random = np.random.default_rng(20261121)
    cases = []
    for i, (order, options) in enumerate(CASES):
        full = DEFAULTS | options
        logits = np.round(random.normal(0, 2.5, 64), 3)
        logits[random.integers(0, 64, 6)] = logits[random.integers(0, 64)]  # ties
        logits32 = logits.astype(np.float32).astype(np.float64)
        history = [int(x) for x in random.integers(0, 12, 20)]
        left = Left(list(logits32))
        for name in order.split(";"):
            getattr(left, name)(full, history)
        by_id = np.argsort(left.ids)
        cases.append(
            {
                "case": f"{i}: {order} {json.dumps(options)}",
                "order": order,
                "options": full,
                "logits": [float(x) for x in logits],
                "history": history,
                "ids": [int(x) for x in left.ids[by_id]],
                "probabilities": [float(f"{x:.9g}") for x in softmax(left.logits)[by_id]],
            }
        )
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
