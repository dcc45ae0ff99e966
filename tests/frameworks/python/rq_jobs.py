"""The jobs of run_rq.py."""

from scenario import fails_until, note, work  # noqa: F401
import time


def again(times):
    return fails_until("again", times)


def hopeless():
    raise ValueError("hopeless")


def later():
    note("later", time.time())
    return "later"


def after():
    return "after"


def tick():
    note("tick", time.time())
