"""The soak itself, in small: three breaks, and the end of the run that nothing disturbs."""

import programs
import pytest


@pytest.mark.slow
def test_a_run_broken_three_times_ends_bit_for_bit_where_the_unbroken_one_does(tmp_path):
    settings = {"minutes": 0.1, "kills": 3, "folder": tmp_path}
    printed = programs.succeed(programs.run("benchmarks.soak", **settings)).stdout
    assert printed.count("\n| ") == 3  # Of the breaks; the heading is the first line.
    assert "broken 3 times, end bit for bit where the unbroken run does" in printed
