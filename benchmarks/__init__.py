"""Speed and memory, each figure beside the raw driver doing the same in the same run, and the quality of answers. `python -m benchmarks --help`."""
