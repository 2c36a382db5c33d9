"""Where plugin code runs, and what happens when it does not stop: threads, processes, orphans, stalls."""
