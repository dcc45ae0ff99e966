"""scrapy-redis: two spiders of its kind that take their addresses from the server and share its duplicate
filter, crawl a site of this program, and deliver items into a list."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis

from scenario import Worker, end, folder, insist, kill, note, notes, url, wait_until

PAGES = 20


class Site(BaseHTTPRequestHandler):
    """Each page links to the next two, and to a page that all link to."""

    def do_GET(self):
        page = int(self.path.strip("/"))
        note("pages", page)
        links = [n for n in (2 * page, 2 * page + 1) if n < PAGES] + [1]
        body = "".join(f'<a href="/{n}">{n}</a>' for n in links).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
threading.Thread(target=site.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{site.server_port}"
server = redis.Redis.from_url(url)
queues = {}
for kind in ["FifoQueue", "PriorityQueue", "LifoQueue"]:
    server.flushall()
    server.lpush("pages:start_urls", f"{address}/1")
    settings = {"REDIS_URL": url, "SCHEDULER_QUEUE_CLASS": f"scrapy_redis.queue.{kind}"}
    with open(f"{folder}/settings.json", "w") as out:
        json.dump(settings, out)
    before = len(notes("pages"))
    spiders = [Worker(sys.executable, "-m", "scrapy_spider", name=f"{kind}-{n}") for n in [1, 2]]
    if kind == "FifoQueue":
        wait_until("some pages are read", lambda: len(notes("pages")) > before + 5)
        for one in spiders:
            one.stop()
        # Stopped spiders leave their requests and what they have seen in the server.
        kept = [insist(lambda: server.llen("pages:requests")), server.scard("pages:dupefilter")]
        kill()
        after = [insist(lambda: server.llen("pages:requests")), server.scard("pages:dupefilter")]
        queues["kept"] = kept == after and kept[1] > 0
        spiders = [Worker(sys.executable, "-m", "scrapy_spider", name=f"{kind}-{n}") for n in [3, 4]]

    def items():
        return sorted({json.loads(item)["page"] for item in insist(lambda: server.lrange("pages:items", 0, -1))})

    wait_until("all pages are items", lambda: len(items()) == PAGES - 1)
    for one in spiders:
        one.stop()
    queues[kind] = items()
end(queues)
