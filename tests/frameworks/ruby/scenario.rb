# What the scenarios in Ruby share, as python/scenario.py does for those in Python. A scenario is run as
# `ruby run_X.rb PORT FOLDER`. It prints `kill` where the server is to be killed, goes on when it reads a
# line, and ends with one line of JSON: its outcomes.

require "json"

PATIENCE_S = 90
# Of the jobs in the middle of which the server is killed.
JOBS = (0...30).map { |number| format("job-%02d", number) }
DONE_BEFORE_KILL = 8
ENQUEUED_BEFORE_KILL = 20

PORT = ENV["SCENARIO_PORT"] || ARGV[0]
FOLDER = ENV["SCENARIO_FOLDER"] || ARGV[1]
URL = "redis://127.0.0.1:#{PORT}/0"

$stdout.sync = true

# Called by jobs.
def note(file, line)
  File.open(File.join(FOLDER, file), "a") { |out| out.write("#{line}\n") }
end

def notes(file)
  File.read(File.join(FOLDER, file)).split
rescue Errno::ENOENT
  []
end

# What each of the jobs does. Those that begin when enough are done last until the server is back.
def work(name)
  note("began", name)
  if notes("began").size > DONE_BEFORE_KILL
    wait_until("the server is back") { notes("back").any? }
  else
    sleep 0.05
  end
  note("ran", name)
end

# Fails in the first `times`.
def fails_until(name, times)
  note(name, Time.now.to_f)
  attempt = notes(name).size
  raise ArgumentError, "attempt #{attempt}" if attempt <= times
end

def wait_until(what, patience_s = PATIENCE_S)
  deadline = Time.now + patience_s
  until (answer = yield)
    abort("never: #{what}") if Time.now > deadline
    sleep 0.05
  end
  answer
end

# Calls until the server answers, as a program does that must not lose what it has to say.
def insist(*errors)
  deadline = Time.now + PATIENCE_S
  begin
    yield
  rescue *errors, SystemCallError, IOError
    raise if Time.now > deadline
    sleep 0.1
    retry
  end
end

def kill
  puts "kill"
  $stdin.gets
end

# Enqueues the jobs, one after the other, while the server is killed and started again.
#
# It is killed while as many jobs as there are `workers` are in the middle of their work, since a job
# whose worker is asking for it at that moment may get lost between the two on any server.
def while_killed(workers:)
  is_busy = false
  enqueuing = Thread.new do
    JOBS.each_with_index do |name, number|
      wait_until("the workers are busy") { is_busy } if number == ENQUEUED_BEFORE_KILL
      yield name
      sleep 0.02
    end
  end
  enqueuing.abort_on_exception = true
  wait_until("all workers are busy") { notes("began").size >= DONE_BEFORE_KILL + workers }
  sleep 0.5
  is_busy = true
  sleep 0.1
  kill
  note("back", "yes")
  enqueuing.join
  wait_until("all jobs have run") { (JOBS - notes("ran")).empty? }

  # While the workers are idle.
  sleep 1
  kill
  yield "idle"
  wait_until("the job after the kill has run") { notes("ran").include?("idle") }
end

# Prints the outcomes, which must be those on Redis. What is true or false must be true.
def finish(outcomes)
  wrong = outcomes.select { |_, outcome| outcome == false }.keys
  abort("not so: #{wrong} of #{outcomes}") if wrong.any?
  puts JSON.generate(outcomes.sort.to_h)
end

# A process that is started again where it ends, as a service manager does, until it is stopped.
class Worker
  def initialize(name, *words, environment: {})
    @name = name
    @words = words
    @environment = environment
    @is_stopped = false
    start
    @watch = Thread.new { watch }
  end

  # Waits for its end.
  def stop
    @is_stopped = true
    Process.kill("TERM", @process)
    @watch.join(30) || Process.kill("KILL", @process)
  rescue Errno::ESRCH
    nil
  end

  private

  def start
    log = File.open(File.join(FOLDER, "#{@name}.log"), "a")
    environment = { "SCENARIO_PORT" => PORT, "SCENARIO_FOLDER" => FOLDER, **@environment }
    @process = Process.spawn(environment, *@words, chdir: FOLDER, in: File::NULL, out: log, err: log)
  end

  def watch
    loop do
      Process.wait(@process)
      break if @is_stopped
      sleep 0.5
      start
    end
  end
end
