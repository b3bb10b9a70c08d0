import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from browsing import chromium

settings.register_profile("rowcol", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("rowcol")


@pytest.fixture
def rng():
    return np.random.default_rng(20140620)


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one
