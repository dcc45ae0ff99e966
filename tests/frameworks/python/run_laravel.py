"""Laravel's queue, of Debian's packages: two workers, and commands of the program ../php/laravel.php."""

import json
import os
import subprocess
import time

from scenario import PATIENCE_S, Worker, end, folder, notes, port, seconds_waited, wait_until, while_killed

program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "php", "laravel.php")
environment = {**os.environ, "SCENARIO_PORT": str(port), "SCENARIO_FOLDER": folder}


def laravel(*words):
    done = subprocess.run(["php", program, *words], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{words}: {done.stdout} {done.stderr}")
    return done.stdout.strip()


def enqueue(name):
    """As a program does that must not lose what it has to say."""
    deadline = time.time() + PATIENCE_S
    while True:
        try:
            return laravel("push", "Work", name)
        except SystemExit:
            if time.time() > deadline:
                raise
            time.sleep(0.1)


def report():
    return json.loads(laravel("report"))


def queue_work(name):
    return Worker("php", program, "queue:work", "redis", "--queue=work", "--sleep=1", "--tries=1", name=name)


started = time.time()
laravel("push:later", "later", "2")
workers = [queue_work("worker-1"), queue_work("worker-2")]
while_killed(enqueue, workers=2)
wait_until("all have run", lambda: len(set(notes("ran"))) == 30)
wait_until("the later job has run", lambda: notes("later"))

laravel("push", "Again", "2")
laravel("push", "Hopeless", "x")
laravel("push:chain", "first", "second", "third")
wait_until("the failing job succeeds", lambda: len(notes("again")) == 3)
wait_until("the hopeless job fails", lambda: notes("failed"))
wait_until("the chain has run", lambda: notes("third"))
wait_until("nothing is left", lambda: report()["size"] == 0)
failed = report()["failed"]
cache = json.loads(laravel("use:cache"))
laravel("queue:retry", "all")
wait_until("the hopeless job fails once more", lambda: len(notes("failed")) == 2)
before = [worker.process for worker in workers]
laravel("queue:restart")
wait_until("the workers end", lambda: all(process.poll() is not None for process in before))
for worker in workers:
    worker.stop()

laravel("push", "Unique", "one", "one", "two")
size_with_unique = report()["size"]
laravel("push:later", "never", "3600")
size_with_later = report()["size"]
cleared = laravel("queue:clear", "redis", "--queue=work", "--force")
laravel("cache:clear")

last_report = report()
end(
    {
        "again": len(notes("again")),
        "hopeless": len(notes("hopeless")),
        "chain": [notes(name) != [] for name in ["first", "second", "third"]],
        "on time": 1 <= seconds_waited("later", started) < 60,
        "failed": [[queue, error.split(" in ")[0]] for queue, error in failed],
        "cache": cache,
        "unique": size_with_unique,
        "with a later one": size_with_later,
        "cleared": cleared,
        "left": [last_report["size"], sorted(last_report["keys"])],
    }
)
