"""Orderings over seeds."""

import numpy as np
import pytest

from ackclock.paper import order


def test_what_is_more_in_every_run_is_more_although_the_runs_lie_far_apart():
    base = np.array([100.0, 300.0, 500.0, 700.0, 900.0])
    more = base + np.array([3, 4, 5, 4, 3])
    assert order.above(more, base)
    assert order.below(base, more)
    # The same five numbers beside others in their order: the differences are as wide as the numbers.
    assert not order.above(base + 4, base[::-1])


def test_a_difference_that_chance_makes_is_none():
    # Mean 1, deviation 3.16, five runs: t = 0.71, and 2.13 is needed at 5 %.
    assert not order.above(np.array([5.0, -3, 1, 3, -1]), np.zeros(5))
    # Mean 4: t = 2.83.
    assert order.above(np.array([8.0, 0, 4, 6, 2]), np.zeros(5))


def test_of_one_run_or_equal_differences_the_sign_decides():
    assert order.above(np.array([2.0]), np.array([1.0]))
    assert order.above(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    assert not order.above(np.array([1.0, 2.0]), np.array([1.0, 2.0]))


def test_a_missing_number_orders_nothing():
    missing = np.array([np.nan, 9.0])
    assert not order.above(missing, np.zeros(2))
    assert not order.below(missing, np.zeros(2))


def test_the_first_may_be_as_good_as_others_within_a_percent():
    full = np.array([727.0, 725.0, 726.0])
    assert order.leads(full, [full, full + 5, full - 100])
    assert not order.leads(full, [full + 10])
    assert order.gain(np.array([150.0]), np.array([100.0])) == pytest.approx(50)
