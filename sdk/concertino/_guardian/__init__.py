"""One guardian of child processes: a program ends with the process that started it, whatever happens to either.

process   `ChildProcess`, as its owner sees it
guard     the small process between owner and child; a plain script, which this package does not import
"""

from subprocess import PIPE

from .process import TAIL_BYTES, ChildProcess, awaitable, minimal_environment

__all__ = ["PIPE", "TAIL_BYTES", "ChildProcess", "awaitable", "minimal_environment"]
