"""The jobs of run_tasktiger.py, and its worker."""

import redis
from scenario import fails_until, note, port
from scenario import work as work_on
from tasktiger import JobTimeoutException, TaskTiger
from tasktiger.retry import fixed

CONFIG = {
    "ACTIVE_TASK_UPDATE_TIMER": 1,
    "ACTIVE_TASK_UPDATE_TIMEOUT": 4,
    "REQUEUE_EXPIRED_TASKS_INTERVAL": 1,
    "SELECT_TIMEOUT": 1,
}
tiger = TaskTiger(redis.Redis(port=port, decode_responses=True), CONFIG, setup_structlog=True)


# A task whose worker is lost fails otherwise.
@tiger.task(queue="work", retry_on=[JobTimeoutException], retry_method=fixed(0, 10))
def work(name):
    work_on(name)


@tiger.task(queue="work", retry_method=fixed(1, 3))
def again(times):
    note("again done", fails_until("again", times))


@tiger.task(queue="work")
def hopeless():
    raise ValueError("hopeless")


@tiger.task(queue="work")
def later():
    note("later", "yes")


if __name__ == "__main__":
    import tasktiger_jobs  # the jobs' names are those of the module

    tasktiger_jobs.tiger.run_worker_with_args(["-q", "work", "--no-store-tracebacks"])
