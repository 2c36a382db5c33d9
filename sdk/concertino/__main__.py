"""`python -m concertino` is the command `concertino`.

Python puts the working folder before everything else. It is taken off again before any other import, so that no file
that lies there is run; `python -P -m concertino` never puts it there.
"""

import os
import sys

if __name__ == "__main__":
    if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 (nothing more is imported before)
        del sys.path[0]
    from concertino.cli import main

    main()
