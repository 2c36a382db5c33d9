"""`python -m concertino.cli` is the command `concertino`."""

from . import main

if __name__ == "__main__":
    main()
