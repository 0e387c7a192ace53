import json
import statistics
import sys

numbers = json.load(sys.stdin)["numbers"]
print(json.dumps({"mean": statistics.mean(numbers), "median": statistics.median(numbers)}))
