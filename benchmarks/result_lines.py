"""A file of results, a JSON line each, that a benchmark adds to and goes on from."""

import json
import os


def read(path):
    """Returns the lines of a results file, none where there is no file: list of dict."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def add(path, result):
    """Adds a dict to a results file, as its last line."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
