"""`concertino bench`: generate questions and check them; run systems over tasks and look at what came of it."""

from ._generate import bench

__all__ = ["bench"]
