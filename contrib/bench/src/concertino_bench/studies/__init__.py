"""Studies: evaluations that are ready to run.

sas_mas     one model alone against many, on the five axes of MASBENCH
"""

from .sas_mas import STUDY_LEVELS, sas_mas

__all__ = ["STUDY_LEVELS", "sas_mas"]
