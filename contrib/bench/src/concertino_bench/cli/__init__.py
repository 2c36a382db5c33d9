"""`concertino bench`: generate questions and check them; run systems over tasks, compare them, and show the results."""

from __future__ import annotations

from .group import bench

__all__ = ["bench"]
