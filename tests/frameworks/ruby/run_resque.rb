# Resque: two workers that fork for each job, on a queue that goes before another.

require_relative "scenario"
require_relative "resque_jobs"

LOST = [Redis::BaseConnectionError]

workers = %w[worker-1 worker-2].map do |name|
  Worker.new(name, "ruby", File.join(__dir__, "resque_jobs.rb"), "work", "low")
end
while_killed(workers: 2) { |name| insist(*LOST) { Resque.enqueue(Work, name) } }

Resque.enqueue(Again, 1)
wait_until("the job has failed") { Resque::Failure.count == 1 }
failure = [Resque::Failure.all(0, 1)].flatten.first
Resque::Failure.requeue(0)
wait_until("it succeeds") { notes("again").size == 2 }
retried = [Resque::Failure.all(0, 1)].flatten.first
Resque::Failure.remove(0)
100.times { |number| Resque.enqueue(Note, "note-#{number}") }
wait_until("all notes are written") { (0...100).all? { |number| notes("note-#{number}").any? } }
wait_until("nobody works") { Resque.working.empty? }
info = Resque.info
workers.each(&:stop)
# A worker that loses its server while it is idle ends without signing off, on any server.
Resque.workers.each(&:unregister_worker)

outcomes = {
  "failure" => failure.values_at("exception", "error", "queue", "payload"),
  "retried" => !retried["retried_at"].nil?,
  "failed" => Resque::Failure.count,
  "workers" => info[:workers] >= 2,
  "processed" => info[:processed] >= 132,
  "stuck" => [info[:pending], info[:working]],
  "queues" => Resque.queues.sort,
}
3.times { |number| Resque.enqueue(Note, number % 2) }
outcomes["peek"] = Resque.peek(:low, 0, 5)
outcomes["dequeued"] = Resque.dequeue(Note, 0)
outcomes["size"] = Resque.size(:low)
Resque.queues.each { |queue| Resque.remove_queue(queue) }
Resque.redis.del("stat:processed", "stat:failed")
# A mark of the workers expires.
outcomes["keys left"] = Resque.redis.keys("*").reject { |key| Resque.redis.ttl(key) > 0 }
finish(outcomes)
