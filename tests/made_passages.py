"""Passages with questions, in files as RACE has them."""

import json

LEMONS = {
    "id": "middle1.txt",
    "article": "Mina sold lemons on Friday.",
    "questions": ["Mina sold _ .", "When did she sell?"],
    "options": [["plums", "lemons", "bread", "ice"], ["Monday", "Sunday", "Friday", "never"]],
    "answers": ["B", "C"],
}
BUS = {
    "id": "high2.txt",
    "article": "One bus.",
    "questions": ["How many?"],
    "options": [["1", "2"]],
    "answers": ["A"],
}


def write(folder, name, *passages):
    """Writes a file of passages, one a line, and its folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(passage) for passage in passages), encoding="utf-8")


def write_official(folder):
    """Writes an official folder, a file for each passage, with strays in it."""
    write(folder, "RACE/dev/middle/1.txt", LEMONS)
    write(folder, "RACE/dev/high/2.txt", BUS)
    for name in ("middle/.DS_Store", "middle/._1.txt", "high/notes.md"):
        (folder / "RACE/dev" / name).write_bytes(b"\0\xff")
