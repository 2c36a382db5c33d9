"""What long trainings need: a folder, figures, curves, traces, monitors, and a way to stop.

folder       the output folder and its lock
checkpoints  numbered folders, and which are kept
metrics      figures by step, in a file that survives a crash
trackers     TensorBoard, trackio and the like, off by default
figures      a step of rollouts in numbers
monitors     signs of collapse, and what to try
traces       rollouts as trace files
curves       figures drawn as SVG
progress     what a person sees
signals      stopping in good order
launch       the command for several processes
quiet        no progress bars of other libraries
ranks        which process this is
callback     listens to a trainer of transformers, which it imports
"""

from .metrics import read_metrics
from .progress import Reporter

__all__ = [
    "Reporter",
    "read_metrics",
]
