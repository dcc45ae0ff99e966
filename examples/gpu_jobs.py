"""GPU jobs that need memory and cards, with redis-py: `python3 examples/gpu_jobs.py 6379`."""

import sys

import redis


def add(queue):
    """Three jobs; the lower the priority, the sooner."""
    for id, priority, gb, cards in [("train-a", 10, 40, 2), ("render-b", 20, 8, 1), ("render-c", 20, 8, 1)]:
        queue.execute_command(
            "TASK.ADD", "gpu", priority, id + ".json", "ID", id, "MAXTRIES", 3,
            "NEEDS", "gb", gb, "cards", cards)


def work(queue, free_gb, free_cards, run, patience_ms=30000):
    """Runs jobs that fit; ends when none has come for a while."""
    while True:
        taken = queue.execute_command(
            "TASK.TAKE", "gpu", "HAVING", "gb", free_gb, "cards", free_cards,
            "LEASE", 60000, "BLOCK", patience_ms)
        if taken is None:
            return
        id, priority, tries, needs, payload, token, *_ = taken[0]
        try:
            run(payload)
        except Exception:
            queue.execute_command("TASK.NACK", "gpu", id, "DELAY", 500 * tries, "TOKEN", token)
        else:
            queue.execute_command("TASK.ACK", "gpu", id, "TOKEN", token)


def main():
    queue = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
    failures = ["render-b.json"]

    def run(payload):
        if payload in failures:
            failures.remove(payload)
            raise RuntimeError("out of memory")
        print("done:", payload, flush=True)

    add(queue)
    print("a small machine", flush=True)
    work(queue, 16, 1, run, patience_ms=1500)
    print("a large machine", flush=True)
    work(queue, 80, 4, run, patience_ms=100)
    print("left:", queue.execute_command("TASK.LEN", "gpu"), flush=True)


if __name__ == "__main__":
    main()
