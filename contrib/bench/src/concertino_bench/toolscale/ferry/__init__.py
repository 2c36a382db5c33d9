"""The shipped domain: a ferry company with twenty tools and 55 tasks, written by hand, which needs no model."""

from .company import Ferry
from .data import TODAY, database
from .tasks import TASKS, FerryTask

__all__ = ["TASKS", "TODAY", "Ferry", "FerryTask", "database"]
