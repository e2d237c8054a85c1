"""Keeps features in a folder, under a name that depends on all that they were made from.

So a changed file or setting never meets features of before. Differs from the original: it
names the cached file by the task alone (run_classifier.py:303-307) and takes whatever has
that name.
"""

import hashlib
import json
import os
import zipfile

from data import features, files

FORMAT_VERSION = 1  # Raise it when other features come from the same files and settings.
UNREADABLE = (ValueError, KeyError, EOFError, AssertionError, zipfile.BadZipFile)


def key(contents, tokenizer, **settings):
    """Returns a name for the features that are made from some texts by some settings.

    Args:
        contents: iterable of bytes or str: the input files' contents, or the texts and
            labels read from them, in order.
        tokenizer: a Tokenizer.
        **settings: whatever else decides the features; must go into JSON.

    Returns:
        str, 64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    settings = json.dumps([FORMAT_VERSION, tokenizer.fingerprint, settings], sort_keys=True)
    for content in (settings, *contents):
        if isinstance(content, str):
            content = content.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


def cached(folder, key, make):
    """Loads features from a cache, or makes them and puts them there.

    Args:
        folder: str, or None for no cache.
        key: str, as `key` gives it.
        make: function of no arguments that returns Features.

    Returns:
        Features. What cannot be read is made again.
    """
    if not folder:
        return make()
    path = os.path.join(folder, f"features-{key[:16]}.npz")
    if files.exists(path):
        try:
            return features.load(path)
        except UNREADABLE:
            pass  # A damaged file: what is made now takes its place.
    made = make()
    made.save(path)
    return made
