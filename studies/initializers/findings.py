"""Findings of the study of initializers."""

from engine import verdicts


def noise_increases_the_lead_of_a_chain(study, where):
    """Chain vs. orthogonal initialization, most noise vs. none."""
    if len(study.outcomes) < len(study.protocol.variants):
        return []
    levels = {outcome.variant["noise"] for outcome in study.outcomes}

    def leads(noise):
        chain, orthogonal = (
            outcome.test_losses
            for layer in ("chain", "orthogonal")
            for outcome in study.outcomes
            if outcome.variant.matches({"layer": layer, "noise": noise})
        )
        return [orthogonal[seed] - chain[seed] for seed in chain]

    return [verdicts.difference(leads(max(levels)), leads(min(levels)))]
