"""Classes by comparison: of the rows that share a text, one alone is of a class.

Figures so obtained are no longer those of classification, and are reported beside the plain
ones. QNLI: a question's candidate sentences are compared, and the most probable one is the
entailed one (RoBERTa, section 5.1; MT-DNN's relevance ranking, as XLNet follows it). In the
official files a question that stands on several rows has one entailed row in every case;
one that stands on one row is left to the classifier, since its rival is in another file.

WNLI: the rows of a sentence replace its pronoun by one candidate each, and the most probable
candidate is the entailed one. This is an approximation of what RoBERTa and XLNet did: they
scored candidates found by a parser (spaCy) in the sentence, with more training data from
SuperGLUE and Kocijan et al.; here the candidates are those of GLUE's own rows. A sentence
with several pronouns has several entailed rows, of which this finds one: of the 267 training
sentences that stand on several rows, 253 have just one entailed row.

n: rows.
"""

import numpy as np


def ranked(groups, probabilities, chosen):
    """Decides two classes by rank within groups.

    Args:
        groups: list of n texts or other keys; equal ones are one group.
        probabilities: float[n, 2].
        chosen: 0 or 1, the class that one row of each group belongs to.

    Returns:
        int32[n], class ids: `chosen` for the row of the highest probability of it in its group
        (of equals the first) and the other class for the rest of the group; for a row
        that is alone in its group, the more probable class.
    """
    probabilities = np.asarray(probabilities)
    numbers = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in groups])
    order = np.lexsort((np.arange(len(group)), -probabilities[:, chosen], group))
    is_first = np.ones(len(group), bool)
    is_first[1:] = group[order][1:] != group[order][:-1]
    classes = np.full(len(group), 1 - chosen, np.int32)
    classes[order[is_first]] = chosen
    is_alone = np.bincount(group)[group] == 1
    return np.where(is_alone, probabilities.argmax(axis=1), classes).astype(np.int32)
