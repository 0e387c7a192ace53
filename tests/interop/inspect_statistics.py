"""Compares the statistics of `deftool eval` with those of Inspect, a library for evaluations.

Both get the same tables: passes and runs of each ask. A figure must be equal to that of Inspect, or have one of `REASONS`,
which also states to which other figure of Inspect it must be equal then. The figures are compared with
inspect_statistics.md; `--update` writes it.
"""

import difflib
import importlib.metadata
import importlib.util
import json
import math
import pathlib
import random
import subprocess
import sys
import types
from collections import Counter

# The packages import all of Inspect, with clients of clouds and a terminal interface. Only the modules below are loaded.
(ROOT,) = importlib.util.find_spec("inspect_ai").submodule_search_locations
for name in ["inspect_ai", "inspect_ai.scorer", "inspect_ai.log", "inspect_ai.model"]:
    package = types.ModuleType(name)
    package.__path__ = [str(pathlib.Path(ROOT, *name.split(".")[1:]))]
    sys.modules[name] = package
# The registry of metrics tests whether one of their parameters is a model.
models = types.ModuleType("inspect_ai.model._model")
models.Model = type("Model", (), {})
sys.modules[models.__name__] = models

from inspect_ai.scorer._metric import CORRECT, INCORRECT, SampleScore, Score
from inspect_ai.scorer._metrics.mean import mean
from inspect_ai.scorer._metrics.std import ci, ci_wilson, stderr
from inspect_ai.scorer._reducer.reducer import mean_score, pass_at, pass_k

EXPECTED = pathlib.Path(__file__).parent / "inspect_statistics.md"
ROUNDING = 1e-9
RANDOM_TABLES = 1000

TABLES = {
    "no ask": [],
    "one ask, one run": [(1, 1)],
    "one ask": [(7, 10)],
    "one ask, no run passes": [(0, 10)],
    "two asks": [(5, 5), (3, 5)],
    "all pass": [(5, 5)] * 10,
    "none passes": [(0, 5)] * 3,
    "each ask passes half of its runs": [(1, 2)] * 4,
    "the same share of uneven runs": [(1, 2), (2, 4), (3, 6)],
    "one run each": [(1, 1), (1, 1), (0, 1), (1, 1), (1, 1), (1, 1), (0, 1), (1, 1)],
    "all runs of an ask have the same result": [(5, 5), (5, 5), (0, 5), (5, 5), (5, 5), (0, 5)],
    "asks of different difficulty": [(5, 5), (5, 5), (0, 5), (3, 5), (4, 5), (5, 5)],
    "less variation than by chance": [(2, 4), (3, 4), (2, 4), (2, 4), (1, 4)],
    "one failure in 50": [(5, 5)] * 9 + [(4, 5)],
    "uneven runs": [(1, 1), (9, 10), (2, 2), (0, 3)],
    "an ask without runs": [(2, 3), (0, 0), (3, 3)],
    "many runs": [(900, 1000), (990, 1000), (999, 1000)],
    "many asks": [(min(index % 7, 3), 3) for index in range(400)],
}


def random_tables():
    """Returns tables with asks that always, sometimes or never pass; half of the tables have uneven runs."""
    source = random.Random(1)
    for index in range(RANDOM_TABLES):
        all_runs, asks = source.randint(1, 8), []
        for _ in range(source.randint(1, 30)):
            runs = source.randint(1, 8) if index % 2 else all_runs
            chance = source.choice([0.0, 0.5, 0.9, 1.0, 1.0])
            asks.append((sum(source.random() < chance for _ in range(runs)), runs))
        yield asks


def sizes(asks):
    """Returns the values of k for a table."""
    most = max((runs for _, runs in asks), default=1)
    return [k for k in [1, 3, 5, 10, 100] if k <= most]


class Inspected:
    """The figures of Inspect for one table."""

    def __init__(self, asks):
        self.asks = asks
        self.samples = [
            [Score(value=CORRECT if run < passes else INCORRECT) for run in range(runs)] for passes, runs in asks
        ]
        self.scores = [
            SampleScore(score=score, sample_id=ask, sample_metadata={"ask": ask})
            for ask, scores in enumerate(self.samples)
            for score in scores
        ]
        self.error = float(stderr(cluster="ask")(self.scores))
        self.by_error = estimate(ci(cluster="ask"), self.scores)
        self.by_wilson = estimate(ci_wilson(cluster="ask"), self.scores)

    def reduced(self, reducer):
        """Returns the score of each ask with a run, as Inspect reduces the epochs of each sample."""
        return [SampleScore(score=reducer(scores)) for scores in self.samples if scores]

    def mean_of(self, reducer):
        """Returns the mean over the asks for which the reducer has a value: Inspect leaves out others."""
        return mean()([one for one in self.reduced(reducer) if not math.isnan(one.score.value)])

    def has_error(self):
        return self.error > ROUNDING

    def follows_from_error(self, interval):
        """Whether both limits are t standard errors from the rate, if at the limit a standard error is that of as many
        independent runs as have the clustered one at the rate, at most all.
        """
        rate, _, upper = self.by_error
        t, runs = (upper - rate) / self.error, min(rate * (1 - rate) / self.error**2, len(self.scores))
        return all(abs((rate - limit) ** 2 - t**2 * limit * (1 - limit) / runs) < ROUNDING for limit in interval)


def estimate(interval, scores):
    """Returns the mean of scores and the limits of its interval; `None` if Inspect rejects the scores."""
    try:
        found = interval(scores)
    except ValueError:
        return None
    return mean()(scores), float(found["lower"]), float(found["upper"])


# Why figures differ: in words, whether the reason applies to a table and k, and the figures that deftool must have then.
REASONS = {
    "no run": (
        "deftool has no figure; Inspect has 0, or rejects the scores",
        lambda inspected, k: not inspected.scores,
        lambda inspected: None,
    ),
    "one ask": (
        "Inspect rejects a single cluster; deftool has the interval that Inspect has without clusters",
        lambda inspected, k: sum(runs > 0 for _, runs in inspected.asks) == 1,
        lambda inspected: estimate(ci_wilson(), inspected.scores),
    ),
    "no variation": (
        "all asks have the same share of passes: Inspect counts the runs as independent; deftool counts each ask once, "
        "and has the interval that Inspect has for the means of the asks",
        lambda inspected, k: not inspected.has_error(),
        lambda inspected: estimate(ci_wilson(), inspected.reduced(mean_score())),
    ),
    "fewer than k runs": (
        "an ask has fewer than k runs: deftool has no figure; Inspect has that of the other asks",
        lambda inspected, k: any(runs < k for _, runs in inspected.asks),
        lambda inspected: None,
    ),
}


def is_near(one, other):
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and all(abs(one - other) < ROUNDING for one, other in zip(one, other, strict=True))


def difference(ours, theirs, inspected, k=0):
    """Returns the reason why figures differ, "none" if they are equal."""
    if theirs is not None and is_near(ours, theirs):
        return "none"
    for name, (_, applies, expected) in REASONS.items():
        if applies(inspected, k) and is_near(ours, expected(inspected)):
            return name
    sys.exit(f"deftool has {ours}, Inspect {theirs}, and no reason applies to {inspected.asks}, k = {k}")


def measured(tables):
    """Returns the statistics of deftool for each table."""
    lines = [json.dumps({"asks": asks, "k": sizes(asks)}) for asks in tables]
    program = pathlib.Path(__file__).parents[2] / "target/debug/examples/statistics"
    output = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def text(figures):
    """Writes a figure, or a rate with its interval."""
    match figures:
        case None:
            return "–"
        case (rate, low, high):
            return f"{rate:.4f} ({low:.4f} to {high:.4f})"
        case _:
            return f"{figures:.4f}"


class Comparison:
    """The rows of the tables of the page, and how many figures differ for which reason."""

    def __init__(self):
        self.rates, self.sets = [], []
        self.counts = {"rates": Counter(), "sets": Counter()}

    def add(self, name, asks, statistics):
        """Compares the figures for a table, with rows if it has a name."""
        inspected, rate = Inspected(asks), statistics["pass_rate"]
        ours = rate and (rate["rate"], rate["interval"]["low"], rate["interval"]["high"])
        reason = difference(ours, inspected.by_wilson, inspected)
        self.counts["rates"][reason] += 1
        if inspected.has_error() and not inspected.follows_from_error(ours[1:]):
            sys.exit(f"{ours} does not follow from Inspect's standard error {inspected.error} for {asks}")
        if name:
            cells = [text(inspected.error), *map(text, [inspected.by_error, inspected.by_wilson, ours])]
            self.rates.append([name, *cells, reason])
        for k, all_pass, any_passes in zip(sizes(asks), statistics["pass_hat_k"], statistics["pass_at_k"], strict=True):
            ours = None if all_pass is any_passes is None else (all_pass, any_passes)
            theirs = inspected.mean_of(pass_k(k)), inspected.mean_of(pass_at(k))
            reason = difference(ours, theirs, inspected, k)
            self.counts["sets"][reason] += 1
            if name:
                self.sets.append([name, k, *map(text, [all_pass, theirs[0], any_passes, theirs[1]]), reason])

    def page(self):
        rates, sets = self.counts["rates"], self.counts["sets"]
        reasons = {"none": "equal to nine decimals"} | {name: words for name, (words, *_) in REASONS.items()}
        counted = [[name, words, rates[name], sets[name]] for name, words in reasons.items()]
        return f"""\
# The statistics of `deftool eval` and Inspect {importlib.metadata.version("inspect-ai")}

Both get the passes and runs of each ask in {rates.total()} tables: those below, and {RANDOM_TABLES} random ones.

{rows(["difference", "meaning", "pass rates with intervals", "pass^k and pass@k"], counted)}
## Pass rates

The standard error is that of `stderr(cluster="ask")`, with the interval of `ci(cluster="ask")`. deftool has an interval of
Wilson's form, as `ci_wilson(cluster="ask")`: its limits are as many standard errors from the rate as those of `ci`, but with
the standard error at the limit, which keeps them between 0 and 1.

{rows(["asks", "standard error", "Inspect: `ci`", "Inspect: `ci_wilson`", "deftool", "difference"], self.rates)}
## pass^k and pass@k

Inspect's are the means over asks of the reducers `pass_k` and `pass_at`.

{rows(["asks", "k", "pass^k of deftool", "of Inspect", "pass@k of deftool", "of Inspect", "difference"], self.sets)}"""


def rows(head, body):
    lines = ["| " + " | ".join(map(str, cells)) + " |\n" for cells in [head, *body]]
    return "".join([lines[0], "|" + "---|" * len(head) + "\n", *lines[1:]])


def main():
    tables = [*TABLES.items(), *((None, asks) for asks in random_tables())]
    comparison = Comparison()
    for (name, asks), statistics in zip(tables, measured([asks for _, asks in tables]), strict=True):
        comparison.add(name, asks, statistics)
    page = comparison.page()
    expected = EXPECTED.read_text() if EXPECTED.exists() else ""
    if "--update" in sys.argv:
        EXPECTED.write_text(page)
    elif page != expected:
        lines = difflib.unified_diff(expected.splitlines(), page.splitlines(), EXPECTED.name, "measured", lineterm="")
        print("\n".join(lines))
        sys.exit(f"the figures differ from tests/interop/{EXPECTED.name}; `tests/interop/run --update` updates it")
    counts = sum(comparison.counts.values(), Counter())
    print(f"deftool and Inspect agree about {counts['none']} of {counts.total()} figures; {EXPECTED.name} lists the others")


if __name__ == "__main__":
    main()
