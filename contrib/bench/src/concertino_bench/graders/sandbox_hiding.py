# No `from __future__` here: this text goes into the sandbox behind that of another script.
# ruff: noqa: PTH108, PTH110, PTH109
"""How a script in the sandbox keeps what it knows from the program that it tries. Its text goes along with the script.

The invariant: after `hide`, no process of the same user can read this one's memory or its file.
"""

import os
import sys


def hide() -> None:
    """Let no other process look into this one, and load nothing from where the program can write.

    Raises:
        OSError: the system refuses.
    """
    import ctypes

    # Otherwise a process of the same user reads this one's memory, with the tests and the word, in /proc.
    if ctypes.CDLL(None).prctl(4, 0, 0, 0, 0):  # PR_SET_DUMPABLE
        raise OSError("this process cannot be hidden from the program's")
    own = os.path.realpath(os.getcwd())
    # The program could write a `numpy.py` into its folder, which a test would then import into this process.
    sys.path[:] = [each for each in sys.path if each and os.path.realpath(each) != own]
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script and os.path.exists(script):
        # The script's file holds the tests and the word.
        os.unlink(script)


def told(error: BaseException) -> str:
    """An error in words."""
    try:
        text = str(error)
    except BaseException:
        text = ""
    return (type(error).__name__ + (": " + text if text else ""))[:300]
