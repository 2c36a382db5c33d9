"""`python -m concertino.cli` is the command `concertino`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("concertino", run_name="__main__")
