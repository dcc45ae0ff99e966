#!/usr/bin/env python3
"""Jobs a second of frameworks on Quoin, beside a redis-server that syncs every write.

    python3 benches/frameworks/run.py QUOIN [--rounds 3] [--jobs 1000] [--clients bullmq sidekiq]
    python3 benches/frameworks/run.py QUOIN --cluster-file FILE [--headers /usr/include]

QUOIN is a release build. The packages are those of tests/frameworks, which
`QUOIN_TEST_FRAMEWORKS=all cargo test --test frameworks` installs; Sidekiq is the machine's. Each client
runs on the two servers by turns. It says on its output where a phase begins and ends, and this program
notes the time and the processor time of the server then.

With a cluster file, QUOIN, which was built with FoundationDB, runs alone on that cluster, and what is told
are its milliseconds, round trips (trips.c), reads and commits a job. FILE's cluster should be empty.
"""

import argparse
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INSTALLED = os.path.join(HERE, "..", "..", "target", "tmp")
PYTHON = os.path.join(INSTALLED, "requirements", "bin", "python")
NODE = os.path.join(INSTALLED, "node-all")
CLIENTS = {
    "bullmq": ["node", os.path.join(NODE, "bench_bullmq.mjs")],
    "celery": [PYTHON, os.path.join(HERE, "bench_celery.py")],
    "rq": [PYTHON, os.path.join(HERE, "bench_rq.py")],
    "sidekiq": ["ruby", os.path.join(HERE, "bench_sidekiq.rb")],
}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Server:
    """A fresh server in a folder of its own."""

    def __init__(self, command, is_quoin, further=(), environment=None):
        self.folder = tempfile.mkdtemp()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        words = [command, "--port", str(self.port)]
        if is_quoin:
            words += ["--data-dir", os.path.join(self.folder, "data")]
        else:
            words += ["--dir", self.folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        log = open(os.path.join(self.folder, "log"), "w")
        self.process = subprocess.Popen([*words, *further], stdout=log, stderr=log, env=environment)
        deadline = time.time() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                if time.time() > deadline:
                    raise
                time.sleep(0.05)

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder)


def run(client, server, jobs, count=None):
    """Jobs a second, and microseconds of the server's processor time a job, for each phase. With `count`:
    the seconds, the jobs and what was counted."""
    phases = {}
    process = subprocess.Popen(
        [*CLIENTS[client], str(server.port), str(jobs)],
        stdout=subprocess.PIPE,
        stderr=open(os.path.join(server.folder, "client"), "w"),
        text=True,
        cwd=server.folder,
    )
    for line in process.stdout:
        words = line.split()
        if words[:1] == ["begin"]:
            began, cpu_before = time.time(), server.cpu_s()
            before = count() if count else ()
        elif words[:1] == ["end"]:
            seconds, cpu_s = time.time() - began, server.cpu_s() - cpu_before
            done = int(words[-1])
            figures = (done / seconds, cpu_s / done * 1e6)
            if count:
                figures = (seconds, done, *(now - then for now, then in zip(count(), before)))
            phases[" ".join(words[1:-1])] = figures
    if process.wait():
        with open(os.path.join(server.folder, "client")) as file:
            sys.exit(f"{client}: {file.read()}")
    return phases


def counts(trips):
    """Reads, round trips and commits so far."""
    with open(trips, "rb") as file:
        return struct.unpack("3Q", file.read(24))


def run_on_cluster(options):
    """Prints what the jobs of each client cost on FoundationDB."""
    folder = tempfile.mkdtemp()
    library, trips = os.path.join(folder, "trips.so"), os.path.join(folder, "trips")
    source = os.path.join(HERE, "trips.c")
    words = ["cc", "-O2", "-shared", "-fPIC", "-I", options.headers, source, "-o", library]
    subprocess.run(words, check=True)
    environment = {**os.environ, "LD_PRELOAD": library, "TRIPS": trips}
    further = ["--store", "fdb", "--cluster-file", options.cluster_file]
    print(f"{'':36} {'ms a job':>9} {'trips':>6} {'reads':>6} {'commits':>7}")
    for client in options.clients:
        server = Server(options.quoin, True, further, environment)
        try:
            # What the server does by itself.
            before = counts(trips)
            time.sleep(5)
            idle = [(now - then) / 5 for now, then in zip(counts(trips), before)]
            for phase, figures in run(client, server, options.jobs, lambda: counts(trips)).items():
                seconds, done, reads, round_trips, commits = figures
                costs = [reads - idle[0] * seconds, round_trips - idle[1] * seconds, commits - idle[2] * seconds]
                reads, round_trips, commits = (cost / done for cost in costs)
                print(
                    f"{client + ' ' + phase:36} {seconds / done * 1e3:9.2f} {round_trips:6.1f} {reads:6.1f} "
                    f"{commits:7.2f}",
                    flush=True,
                )
        finally:
            server.stop()
    shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("quoin")
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--cluster-file")
    parser.add_argument("--headers", default="/usr/include", help="the folder of foundationdb/fdb_c.h")
    options = parser.parse_args()
    if os.path.isdir(NODE):
        shutil.copy(os.path.join(HERE, "bench_bullmq.mjs"), NODE)
    if options.cluster_file:
        return run_on_cluster(options)
    print("jobs a second and server processor time a job: medians of", options.rounds, "rounds")
    print(f"{'':36} {'Quoin':>8} {'Redis':>8} {'ratio':>6}   {'Quoin':>9} {'Redis':>9}")
    for client in options.clients:
        results = {}
        for _ in range(options.rounds):
            for name, command in [("quoin", options.quoin), ("redis", "redis-server")]:
                server = Server(command, name == "quoin")
                try:
                    for phase, figures in run(client, server, options.jobs).items():
                        results.setdefault(phase, {}).setdefault(name, []).append(figures)
                finally:
                    server.stop()
        for phase, by_server in results.items():
            rates = {name: statistics.median(rate for rate, _ in rounds) for name, rounds in by_server.items()}
            costs = {name: statistics.median(cost for _, cost in rounds) for name, rounds in by_server.items()}
            ratio = statistics.median(
                ours[0] / theirs[0] for ours, theirs in zip(by_server["quoin"], by_server["redis"])
            )
            print(
                f"{client + ' ' + phase:36} {rates['quoin']:8.0f} {rates['redis']:8.0f} {ratio:6.2f}   "
                f"{costs['quoin']:6.0f} us {costs['redis']:6.0f} us",
                flush=True,
            )


main()
