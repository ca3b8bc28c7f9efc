"""What is left out of a table of cases leaves no pair of values untried."""

import itertools

import pytest
from cases import table

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("sizes", [(3,), (4, 2), (8, 5, 2), (2, 2, 2, 3)])
def test_any_two_values_meet_and_each_is_tried_by_default(sizes):
    axes = [[f"{n}{value}" for value in range(n)] for n in sizes]
    cases = table(*axes)
    default = [case.values for case in cases if not case.marks]
    assert len(default) == max(sizes)
    for position, axis in enumerate(axes):
        assert {values[position] for values in default} == set(axis)
    for first, second in itertools.combinations(range(len(axes)), 2):
        met = {(c.values[first], c.values[second]) for c in cases}
        assert met == set(itertools.product(axes[first], axes[second]))
    assert len({case.values for case in cases}) == len(cases)
