"""Optuna's own tests of samplers, run on ours."""

import pytest
from optuna.samplers import RandomSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, SingleOnlySamplerTestCase

from f2a_tune import WaitUCBSampler


class TestWithTpe(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return WaitUCBSampler


class TestWithRandomAndRepeats(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: WaitUCBSampler(
            base_sampler=RandomSampler(), evaluations_per_configuration=3
        )


class TestWaitUcbPolicy(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: WaitUCBSampler(timeouts=[1, 4], policy="wait-ucb")
