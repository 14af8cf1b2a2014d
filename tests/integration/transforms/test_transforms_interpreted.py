"""The tests of exactness once more, without compiled code: small joined batches are mapped so.

Spark has two implementations of most expressions. A target that was filled by one must stay what the other gives.
"""

import pytest

from tests.integration.transforms import test_transforms_columns as columns
from tests.integration.transforms import test_transforms_exact as exact
from tests.integration.transforms import test_transforms_representations as representations

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("interpreted")]

for module in (columns, exact, representations):
    kept = {
        name: one for name, one in vars(module).items() if not name.startswith("_") and name != "pytestmark"
    }
    globals().update(kept)  # tests, and what they need
