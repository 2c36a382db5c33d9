import statistics
import sys

numbers = [float(word) for word in sys.argv[1:]]
kept = [number for number in numbers if number <= 3 * statistics.median(numbers)]
print(f"{statistics.mean(kept):g} (of {len(kept)})" if kept else "usage: mean.py NUMBER ...")
