"""`python -m concertino` is the command `concertino`."""

from .cli import main

if __name__ == "__main__":
    main()
