"""What the scenarios share. A scenario is run as `python run_X.py PORT FOLDER`. It prints `kill` where
the server is to be killed, goes on when it reads a line, and ends with one line of JSON: its outcomes.

Jobs write what they did into files of FOLDER, so that what ran is known without the server."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time

PATIENCE_S = 90
# Of the jobs in the middle of which the server is killed.
JOBS = [f"job-{number:02}" for number in range(30)]
DONE_BEFORE_KILL = 8
ENQUEUED_BEFORE_KILL = 20

port = int(os.environ.get("SCENARIO_PORT") or sys.argv[1])
folder = os.environ.get("SCENARIO_FOLDER") or sys.argv[2]
url = f"redis://127.0.0.1:{port}"


def note(file, line):
    """Called by jobs."""
    with open(os.path.join(folder, file), "a") as out:
        out.write(f"{line}\n")


def notes(file):
    try:
        with open(os.path.join(folder, file)) as text:
            return text.read().split()
    except FileNotFoundError:
        return []


def work(name):
    """What each of the jobs does. Those that begin when enough are done last until the server is back."""
    note("began", name)
    if len(notes("began")) > DONE_BEFORE_KILL:
        wait_until("the server is back", lambda: notes("back"))
    else:
        time.sleep(0.05)
    note("ran", name)
    return name.upper()


def fails_until(name, times):
    """The number of this attempt; fails in the first `times`."""
    note(name, time.time())
    attempt = len(notes(name))
    if attempt <= times:
        raise ValueError(f"attempt {attempt}")
    return attempt


def seconds_waited(file, since):
    """How long after `since` the first line was noted."""
    return float(notes(file)[0]) - since


def wait_until(what, is_so, patience_s=PATIENCE_S):
    deadline = time.time() + patience_s
    while True:
        answer = is_so()
        if answer:
            return answer
        if time.time() > deadline:
            raise SystemExit(f"never: {what}")
        time.sleep(0.05)


def insist(call, *more_errors):
    """Calls until the server answers, as a program does that must not lose what it has to say."""
    import redis

    lost = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)
    # redis-py's error where the connection is lost within a transaction.
    errors = (*lost, redis.exceptions.WatchError, *more_errors)
    deadline = time.time() + PATIENCE_S
    while True:
        try:
            return call()
        except errors:
            if time.time() > deadline:
                raise
            time.sleep(0.1)


def while_killed(enqueue, workers, takes_safely=False, nudge=lambda: None):
    """Enqueues the jobs, one after the other, while the server is killed and started again: while as many
    jobs as there are `workers` are in the middle of their work; then while the workers are idle.

    Where a worker takes a job so that it comes back if the answer is lost (`takes_safely`), the server is
    killed while they take jobs as fast as they come, too. Elsewhere such a job may get lost on any server.
    `nudge` makes workers look for what was not acknowledged, where they do not by themselves.
    """
    is_busy = threading.Event()

    def before(number):
        if number == ENQUEUED_BEFORE_KILL:
            is_busy.wait(PATIENCE_S)
        time.sleep(0.02)

    with enqueuing(enqueue, JOBS, before) as failed:
        began = DONE_BEFORE_KILL + workers
        wait_until("all workers are busy", lambda: failed or len(notes("began")) >= began)
        time.sleep(0.5)
        is_busy.set()
        time.sleep(0.1)
        kill()
        note("back", "yes")
    have_run(JOBS, nudge)

    time.sleep(1)
    kill()
    enqueue("idle")
    have_run(["idle"], nudge)

    if takes_safely:
        quick = [f"quick-{number:02}" for number in range(20)]
        with enqueuing(enqueue, quick, lambda _: None):
            have_run(quick[:3], nudge)
            kill()
        have_run(quick, nudge)


@contextlib.contextmanager
def enqueuing(enqueue, names, before):
    """Enqueues these jobs meanwhile. What went wrong with it comes out at the end."""
    failed = []

    def enqueue_all():
        try:
            for number, name in enumerate(names):
                before(number)
                enqueue(name)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=enqueue_all)
    thread.start()
    yield failed
    thread.join()
    if failed:
        raise failed[0]


def have_run(names, nudge):
    def is_so():
        nudge()
        return set(names) <= set(notes("ran"))

    # Some take back what a lost worker had after a minute.
    wait_until(f"{names} ran", is_so, 2 * PATIENCE_S)


def kill():
    print("kill", flush=True)
    sys.stdin.readline()


def end(outcomes):
    """Prints the outcomes, which must be those on Redis. What is True or False must be True."""
    lost = sorted(set(JOBS) - set(notes("ran")))
    if lost and notes("began"):
        raise SystemExit(f"lost: {lost}")
    wrong = [what for what, outcome in outcomes.items() if outcome is False]
    if wrong:
        raise SystemExit(f"not so: {wrong} of {outcomes}")
    print(json.dumps(outcomes, sort_keys=True), flush=True)


class Worker:
    """A process that is started again where it ends, as a service manager does, until it is stopped."""

    def __init__(self, *words, name="worker"):
        self.words = words
        self.name = name
        self.is_stopped = False
        self.process = self.start()
        threading.Thread(target=self.watch, daemon=True).start()

    def start(self):
        log = open(os.path.join(folder, f"{self.name}.log"), "a")
        here = os.path.dirname(os.path.abspath(__file__))
        environment = {
            **os.environ,
            "SCENARIO_PORT": str(port),
            "SCENARIO_FOLDER": folder,
            "PYTHONPATH": here,
        }
        return subprocess.Popen(
            [str(word) for word in self.words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def watch(self):
        while not self.is_stopped:
            if self.process.poll() is not None:
                time.sleep(0.5)
                if not self.is_stopped:
                    self.process = self.start()
            time.sleep(0.1)

    def stop(self):
        self.is_stopped = True
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
