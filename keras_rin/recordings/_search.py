"""The one search: what is tried on validation, and trained for the test."""

import time
import typing

import numpy as np
import pandas as pd
from tqdm import tqdm

MEASURING = 0.3  # of the time, after which no other candidate is compiled
FEWEST = 2  # seeds of a final training, for which candidates give way
SLACK = 1.15  # by which the clock may become slower


class Candidate(typing.NamedTuple):
    """A model to try; of each family the best one is trained for the test."""

    family: str
    name: str
    build: typing.Callable  # a network
    rates: tuple  # the usual one first


class Training(typing.NamedTuple):
    """What a training gave, and whether it was cut or diverged."""

    candidate: Candidate
    rate: float
    is_final: bool
    weights: list
    outputs: np.ndarray
    updates: int
    end: str  # "cut" by the clock, "diverged", or ""


class Search:
    """Trains candidates, and says before how many fit into the seconds.

    `score` gives the score of outputs on the validation. Without `seconds` all
    are trained.
    """

    def __init__(self, candidates, store, score, seeds, updates, seconds):
        self.candidates, self.store, self.score = candidates, store, score
        self.seeds, (self.updates, self.final_updates) = seeds, updates
        self.start = time.monotonic()
        self.end = self.start + (seconds or np.inf)
        self.networks, self.costs = dict[str, typing.Any](), dict[str, float]()
        self.trainings: list[Training] = []
        self.families: list[str] = []
        self.needed = self.reserve = 0.0
        rates = {candidate.family: candidate.rates for candidate in candidates}
        others = [len(rates[family]) - 1 + len(seeds) for family in rates]
        self.total = len(candidates) + sum(others)

    def run(self):
        """Trains what fits into the time: one candidate in any case."""
        self._measure()
        planned, seed = self._planned(), self.seeds[0]
        with tqdm(total=self.total, unit="training") as self.bar:
            for candidate in planned:
                is_needed = candidate is planned[0]
                self._train(
                    candidate, candidate.rates[0], seed, False, is_needed
                )
            families = (trial.candidate.family for trial in self.trainings)
            self.families = [*dict.fromkeys(families)]
            for family in self.families:
                candidate = self.best(family).candidate
                for rate in candidate.rates[1:]:
                    self._train(candidate, rate, seed, False, False)
            for seed in self.seeds:
                for family in self.families:
                    candidate, rate, *_ = self.best(family)
                    is_needed = seed == self.seeds[0]
                    self._train(candidate, rate, seed, True, is_needed)

    def _trained(self, family, is_final):
        return [
            training
            for training in self.trainings
            if training.candidate.family == family
            and training.is_final == is_final
        ]

    def best(self, family):
        """The trial with the highest score, of those that the clock let end."""
        return max(
            self._trained(family, False),
            key=lambda trial: (trial.end != "cut", self.score(trial.outputs)),
        )

    def tested(self, family):
        """Final trainings that the clock let end, or the best trial, tested."""
        finals = self._trained(family, True)
        ended = [training for training in finals if training.end != "cut"]
        if ended:
            return ended
        best = self.best(family)
        return [best._replace(outputs=self.loaded(best).outputs(True))]

    def loaded(self, training):
        """The network with the weights of a training."""
        network = self._network(training.candidate)
        network.model.set_weights(training.weights)
        return network

    def table(self):
        """The trials, the best first, and final trainings that did not end."""
        rows = [
            {
                "training": training.candidate.name,
                "rate": training.rate,
                "validation": None
                if training.is_final
                else self.score(training.outputs),
                "updates": training.updates,
                "end": training.end,
            }
            for training in self.trainings
            if training.end or not training.is_final
        ]
        return pd.DataFrame(rows).sort_values(
            "validation", ascending=False, kind="stable"
        )

    def missing(self):
        """What the clock left out, in a sentence, or an empty string."""
        cut = sum(training.end == "cut" for training in self.trainings)
        ended = len(self.trainings) - cut
        if ended == self.total:
            return ""
        return (
            f"{ended} of {self.total} trainings fitted into the time, {cut} "
            "were cut by the clock; all take about "
            f"--minutes={np.ceil(self.needed / 6) / 10:g}"
        )

    def _network(self, candidate):
        if candidate.name not in self.networks:
            self.networks[candidate.name] = candidate.build()
        return self.networks[candidate.name]

    def _measure(self):
        """Seconds of an update, until a part of the time is over."""
        limit = self.start + MEASURING * (self.end - self.start)
        for candidate in self.candidates:
            if np.isinf(self.end):
                self.costs[candidate.name] = 0.0
            elif not self.costs or time.monotonic() < limit:
                print(f"Compiling {candidate.name}", flush=True)
                network = self._network(candidate)
                network.outputs(False)  # compiles it
                cost, begin = network.seconds(), time.monotonic()
                network.outputs(False)
                cost += (time.monotonic() - begin) / self.updates
                self.costs[candidate.name] = cost

    def _planned(self):
        """The candidates for which there is time, which it prints."""
        measured = [
            candidate
            for candidate in self.candidates
            if candidate.name in self.costs
        ]
        spent = time.monotonic() - self.start
        left = self.end - time.monotonic()
        for count in range(len(measured), 0, -1):
            trials, finals = self._seconds(measured[:count])
            self.reserve = finals * min(FEWEST, len(self.seeds))
            if trials + self.reserve <= left:
                break
        else:  # a trial and a final training, which the clock may cut
            self.reserve = left * finals / (trials + finals)
        share = len(self.candidates) / len(measured)
        trials, finals = self._seconds(measured)
        self.needed = (spent + 2 * trials) * share + finals * len(self.seeds)
        text = f"Plan: {count} of {len(self.candidates)} candidates with "
        text += f"{self.updates:,} updates, {self.final_updates:,} of the best."
        if np.isfinite(left):
            text += f" {left / 60:.2g} minutes are left; all would take about "
            text += f"{self.needed / 60:.2g}."
        print(text, flush=True)
        return measured[:count]

    def _seconds(self, candidates):
        """Seconds of the trials, and of a final training of each family."""
        costs = [self.costs[candidate.name] for candidate in candidates]
        families = [candidate.family for candidate in candidates]
        finals = pd.Series(costs).groupby(families).max().sum()
        trials = self.updates * sum(costs)
        return SLACK * trials, SLACK * self.final_updates * finals

    def _fits(self, candidate, is_final):
        trial, final = self._seconds([candidate])
        seconds = final if is_final else trial + self.reserve
        return time.monotonic() + seconds <= self.end

    def _train(self, candidate, rate, seed, is_final, is_needed):
        """Adds a training that was stored, is needed or fits."""
        planned = self.final_updates if is_final else self.updates
        case = candidate.name, rate, seed, is_final, planned, self.updates
        stored = self.store.load(case)
        if not (stored or is_needed or self._fits(candidate, is_final)):
            return
        self.bar.set_description(f"{candidate.name}, rate {rate:g}")
        if stored:
            weights, outputs, updates = stored
        else:
            network = self._network(candidate)
            limit = self.end if is_final else self.end - self.reserve
            updates = network.train(is_final, rate, seed, planned, limit)
            weights = network.model.get_weights()
            outputs = network.outputs(is_final)
        end = "cut" if updates < planned else ""
        if not np.isfinite(outputs).all():
            end = "diverged"
        if end != "cut":
            self.store.save(case, weights, outputs, updates)
        result = weights, outputs, updates, end
        self.trainings.append(Training(candidate, rate, is_final, *result))
        self.bar.update()
