"""The one search: what is tried on validation, and trained for the test."""

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
    build: typing.Callable  # a network, which trains and answers
    rates: tuple  # the usual one first


class Training(typing.NamedTuple):
    """What a training gave, and whether the clock cut it."""

    candidate: Candidate
    rate: float
    outputs: np.ndarray
    updates: int
    is_cut: bool
    file: typing.Any  # of its weights


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
        planned = self._plan()
        self.bar = tqdm(total=len(planned), unit="training")
        with self.bar:
            for candidate in planned:
                if not self.trials or self._fits(candidate):
                    self._try(candidate, candidate.rates[0])
            families = dict.fromkeys(of.candidate.family for of in self.trials)
            self.bar.total += len(families) * (2 + len(self.seeds))
            for family in families:
                candidate = self.best(family).candidate
                for rate in filter(
                    lambda _: self._fits(candidate), candidate.rates[1:]
                ):
                    self._try(candidate, rate)
            for seed in self.seeds:
                for family in families:
                    best, finals = self.best(family), self.finals
                    if family not in finals or self._fits(best.candidate, True):
                        training = self._train(*best[:2], seed, True)
                        finals[family] = [*finals.get(family, []), training]

    def best(self, family):
        """The trial with the highest score, of those that the clock let end."""
        trials = [of for of in self.trials if of.candidate.family == family]
        whole = [of for of in trials if not of.is_cut] or trials
        return whole[int(np.argmax([self.score(of.outputs) for of in whole]))]

    def tested(self, family):
        """Final trainings that the clock let end, or the best trial, tested."""
        whole = [of for of in self.finals[family] if not of.is_cut]
        if whole:
            return whole
        best = self.best(family)
        network = self.loaded(best)
        return [best._replace(outputs=network.outputs(True))]

    def loaded(self, training):
        """The network with the weights of a training."""
        network = self.network(training.candidate)
        with np.load(training.file) as arrays:
            count = len(arrays) - 1  # beside the outputs
            weights = [arrays[f"arr_{n}"] for n in range(count)]
        network.model.set_weights(weights)
        return network

    def table(self):
        """Rows of a table: the trials, the best first."""
        trials = sorted(self.trials, key=lambda of: -self.score(of.outputs))
        return [
            {
                "candidate": of.candidate.name,
                "rate": of.rate,
                "validation": float(self.score(of.outputs)),
                "updates": f"{of.updates}{', cut' if of.is_cut else ''}",
            }
            for of in trials
        ]

    def missing(self):
        """What the clock left out, in a sentence, or an empty string."""
        finals = [of for family in self.finals.values() for of in family]
        families = {of.family for of in self.candidates}
        trials = len(self.candidates) + sum(
            len(self.best(family).candidate.rates) - 1 for family in self.finals
        )
        trainings = trials + len(families) * len(self.seeds)
        done = [of for of in [*self.trials, *finals] if not of.is_cut]
        if len(done) == trainings:
            return ""
        cut = len(self.trials) + len(finals) - len(done)
        return (
            f"{len(done)} of {trainings} trainings fitted into the time, and "
            f"{cut} were cut by the clock; all take about "
            f"--minutes={np.ceil(self.needed / 6) / 10:g}"
        )

    def network(self, candidate):
        if candidate.name not in self.networks:
            self.networks[candidate.name] = candidate.build()
        return self.networks[candidate.name]

    def _measure(self):
        """Seconds of an update, until a part of the time is over."""
        limit = self.start + MEASURING * (self.end - self.start)
        for candidate in self.candidates:
            case = candidate.name, candidate.rates[0], self.seeds[0], False
            record = self.store.records.get(self._name(*case))
            if np.isinf(self.end):
                self.costs[candidate.name] = 0.0
            elif record:
                self.costs[candidate.name] = record["seconds"] / self.updates
            elif not self.costs or time.monotonic() < limit:
                print(f"Compiling {candidate.name}", flush=True)
                network = self.network(candidate)
                cost, begin = network.seconds(), time.monotonic()
                network.outputs(False)
                answering = time.monotonic() - begin
                self.costs[candidate.name] = cost + answering / self.updates

    def _plan(self):
        """The candidates for which there is time, which it prints."""
        measured = [of for of in self.candidates if of.name in self.costs]
        spent, left = time.monotonic() - self.start, self.end - time.monotonic()
        for count in range(len(measured), 0, -1):
            trials, finals = self._seconds(measured[:count])
            self.reserve = finals * min(FEWEST, len(self.seeds))
            if trials + self.reserve <= left:
                break
        share = len(self.candidates) / len(measured)
        trials, finals = self._seconds(measured)
        self.needed = (
            spent * share + trials * (share + 2) + finals * len(self.seeds)
        )
        print(
            f"Plan: {count} of {len(self.candidates)} candidates with "
            f"{self.updates:,} updates, and {self.final_updates:,} of the best."
            + ("" if np.isinf(left) else f" {left / 60:.2g} minutes are left, ")
            + ("" if np.isinf(left) else f"all take {self.needed / 60:.2g}."),
            flush=True,
        )
        return measured[:count]

    def _seconds(self, candidates):
        """Seconds of the trials, and of one final training of each family."""
        costs = [SLACK * self.costs[of.name] for of in candidates]
        of_family: dict = {}
        for candidate, cost in zip(candidates, costs, strict=True):
            of_family[candidate.family] = max(
                of_family.get(candidate.family, 0), cost
            )
        return self.updates * sum(costs), self.final_updates * sum(
            of_family.values()
        )

    def _fits(self, candidate, is_final=False):
        updates = self.final_updates if is_final else self.updates
        seconds = SLACK * updates * self.costs[candidate.name]
        reserve = 0 if is_final else self.reserve
        return time.monotonic() + seconds + reserve <= self.end

    def _try(self, candidate, rate):
        self.trials.append(self._train(candidate, rate, self.seeds[0], False))

    def _name(self, *case):
        return self.store.name(*case, self.updates, self.final_updates)

    def _train(self, candidate, rate, seed, is_final):
        """A training, which may have been kept."""
        name = self._name(candidate.name, rate, seed, is_final)
        file = self.store.file(name)
        planned = self.final_updates if is_final else self.updates
        self.bar.set_description(f"{candidate.name}, rate {rate:g}")
        is_cut, updates = False, planned
        if name in self.store.records:
            updates = self.store.records[name]["updates"]
            outputs = np.load(file)["outputs"]
        else:
            start, network = time.monotonic(), self.network(candidate)
            end = self.end if is_final else self.end - self.reserve
            updates = network.train(is_final, rate, seed, planned, end)
            outputs = network.outputs(is_final)
            weights = network.model.get_weights()
            np.savez(file, *weights, outputs=outputs)
            is_cut = updates < planned and bool(np.isfinite(outputs).all())
            if not is_cut:
                seconds = time.monotonic() - start
                record = {"updates": updates, "seconds": seconds}
                self.store.add(
                    name, record | {"case": repr((candidate.name, rate, seed))}
                )
        self.bar.update()
        return Training(candidate, rate, outputs, updates, is_cut, file)
