"""Speed and memory, each figure beside the raw driver doing the same in the same run. `python -m benchmarks --help`."""
