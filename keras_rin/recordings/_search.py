"""The one search: what is tried on validation, and trained for the test."""

import itertools
import time
import typing

import numpy as np
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
    """What a training gave, and whether the clock cut it."""

    candidate: Candidate
    rate: float
    outputs: np.ndarray
    updates: int
    is_cut: bool
    file: typing.Any  # of weights and outputs


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
        self.trials: list[Training] = []
        self.finals = dict[str, list[Training]]()  # by family
        self.needed = self.reserve = 0.0

    def run(self):
        """Trains what fits into the time: one candidate in any case."""
        self._measure()
        planned = self._planned()
        with tqdm(total=len(planned), unit="training") as self.bar:
            for candidate in planned:
                if not self.trials or self._fits(candidate, False):
                    self._try(candidate, candidate.rates[0])
            families = [*dict.fromkeys(c.candidate.family for c in self.trials)]
            self.bar.total += len(families) * (2 + len(self.seeds))
            for family in families:
                candidate = self.best(family).candidate
                for rate in candidate.rates[1:]:
                    if self._fits(candidate, False):
                        self._try(candidate, rate)
            self.finals = {family: [] for family in families}
            for seed in self.seeds:
                for family, finals in self.finals.items():
                    candidate, rate, *_ = self.best(family)
                    if not finals or self._fits(candidate, True):
                        finals.append(self._train(candidate, rate, seed, True))

    def best(self, family):
        """The trial with the highest score, of those that the clock let end."""
        trials = [
            trial for trial in self.trials if trial.candidate.family == family
        ]
        whole = [trial for trial in trials if not trial.is_cut] or trials
        return max(whole, key=lambda trial: self.score(trial.outputs))

    def tested(self, family):
        """Final trainings that the clock let end, or the best trial, tested."""
        whole = [
            training for training in self.finals[family] if not training.is_cut
        ]
        best = self.best(family)
        if not whole:
            outputs = self.loaded(best).outputs(True)
        return whole or [best._replace(outputs=outputs)]

    def loaded(self, training):
        """The network with the weights of a training."""
        network = self._network(training.candidate)
        with np.load(training.file) as arrays:
            names = [f"arr_{n}" for n in range(len(arrays) - 1)]
            network.model.set_weights([arrays[name] for name in names])
        return network

    def table(self):
        """Rows of a table: the trials, the best first, and what was cut."""
        trials = sorted(
            self.trials, key=lambda trial: -self.score(trial.outputs)
        )
        finals = itertools.chain(*self.finals.values())
        cut = [training for training in finals if training.is_cut]
        return [
            {
                "training": training.candidate.name,
                "rate": training.rate,
                "validation": self.score(training.outputs)
                if training in trials
                else None,
                "updates": f"{training.updates}"
                + (", cut" if training.is_cut else ""),
            }
            for training in [*trials, *cut]
        ]

    def missing(self):
        """What the clock left out, in a sentence, or an empty string."""
        finals = [*itertools.chain(*self.finals.values())]
        families = {
            candidate.family: len(candidate.rates) - 1
            for candidate in self.candidates
        }
        trainings = len(self.candidates) + sum(families.values())
        trainings += len(families) * len(self.seeds)
        done = [
            training
            for training in [*self.trials, *finals]
            if not training.is_cut
        ]
        cut = len(self.trials) + len(finals) - len(done)
        if len(done) == trainings:
            return ""
        return (
            f"{len(done)} of {trainings} trainings fitted into the time, {cut} "
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
            case = candidate, candidate.rates[0], self.seeds[0], False
            record = self.store.records.get(self._name(*case))
            if np.isinf(self.end):
                self.costs[candidate.name] = 0.0
            elif record:
                self.costs[candidate.name] = record["seconds"] / self.updates
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
        families: dict = {}
        for family, name, *_ in candidates:
            cost = max(families.get(family, 0), self.costs[name])
            families[family] = cost
        trials = self.updates * sum(
            self.costs[candidate.name] for candidate in candidates
        )
        finals = self.final_updates * sum(families.values())
        return SLACK * trials, SLACK * finals

    def _fits(self, candidate, is_final):
        trial, final = self._seconds([candidate])
        seconds = final if is_final else trial + self.reserve
        return time.monotonic() + seconds <= self.end

    def _try(self, candidate, rate):
        self.trials.append(self._train(candidate, rate, self.seeds[0], False))

    def _name(self, candidate, *case):
        count = self.updates, self.final_updates
        return self.store.name(candidate.name, *case, count)

    def _train(self, candidate, rate, seed, is_final):
        """A training, which may have been kept."""
        name = self._name(candidate, rate, seed, is_final)
        file, record = self.store.file(name), self.store.records.get(name)
        planned = self.final_updates if is_final else self.updates
        self.bar.set_description(f"{candidate.name}, rate {rate:g}")
        self.bar.update()
        if record:
            outputs, updates = np.load(file)["outputs"], record["updates"]
            return Training(candidate, rate, outputs, updates, False, file)
        start, network = time.monotonic(), self._network(candidate)
        end = self.end if is_final else self.end - self.reserve
        updates = network.train(is_final, rate, seed, planned, end)
        outputs = network.outputs(is_final)
        np.savez(file, *network.model.get_weights(), outputs=outputs)
        is_cut = updates < planned and bool(np.isfinite(outputs).all())
        if not is_cut:
            seconds = time.monotonic() - start
            self.store.add(name, {"updates": updates, "seconds": seconds})
        return Training(candidate, rate, outputs, updates, is_cut, file)
