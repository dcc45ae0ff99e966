"""The dict of dicts of the task document, written from its description: priority -> id -> task.

Prints the mean and the deviation of the time of one get_task() call, in seconds, for both of the
document's cases: python3 dict_of_dicts.py TASKS PRIORITIES RESOURCES CALLS
"""

import random
import statistics
import sys
import time


class TaskQueue:
    def __init__(self):
        self.storage = {}

    def add_task(self, id, priority, needs):
        self.storage.setdefault(priority, {})[id] = needs

    def get_task(self, having):
        for priority in sorted(self.storage):
            group = self.storage[priority]
            for id, needs in group.items():
                if all(need <= has for need, has in zip(needs, having)):
                    del group[id]
                    if not group:
                        del self.storage[priority]
                    return id
        return None


def measure(queue, calls, having, again=None):
    times = []
    for _ in range(calls):
        has = having()
        start = time.perf_counter()
        found = queue.get_task(has)
        times.append(time.perf_counter() - start)
        if again:
            again(found)
    return statistics.mean(times), statistics.stdev(times)


def main():
    tasks, priorities, resources, calls = map(int, sys.argv[1:5])
    draw = random.Random(1)
    amounts = lambda least, most: tuple(draw.randint(least, most) for _ in range(resources))
    queue = TaskQueue()
    for id in range(tasks):
        queue.add_task(id, draw.randrange(priorities), amounts(1, 100))
    mean, deviation = measure(queue, calls, lambda: amounts(1, 100))
    print(f"random {mean:.9f} {deviation:.9f}")
    queue = TaskQueue()
    for id in range(tasks - 1):
        queue.add_task(id, draw.randrange(priorities), amounts(11, 100))
    last = lambda id: queue.add_task(id, priorities, (10,) * resources)
    last(tasks)
    mean, deviation = measure(queue, calls, lambda: (10,) * resources, last)
    print(f"worst {mean:.9f} {deviation:.9f}")


main()
