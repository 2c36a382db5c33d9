"""Make the tiny models that the tests of servers ask, both at once, so that no test waits for them.

    PYTHONPATH=scripts python tests/servers/models.py

The invariant: nothing is made twice, and whatever fails here fails in the test that needs the model. There it is told
with its reason, or the test skips.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import application_model
import launch
from servers import Absent


def main() -> None:
    """Make those that are not there; say of each that cannot be made why."""
    with ThreadPoolExecutor() as pool:
        for made in [pool.submit(make) for make in (launch.model, application_model.model)]:
            try:
                made.result()
            except (Absent, launch.NotReady) as failure:
                sys.stdout.write(f"{failure}\n")


if __name__ == "__main__":
    main()
