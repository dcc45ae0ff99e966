# Sidekiq: jobs are enqueued one by one and in bulks, and done by 1 and by 16 threads. Run by run.py, and
# by itself as the program of Sidekiq's process.

require "sidekiq"
require "sidekiq/api"

PORT, JOBS = ENV["BENCH"] ? ENV["BENCH"].split : ARGV
URL = "redis://127.0.0.1:#{PORT}/0"
Sidekiq.configure_server { |config| config.redis = { url: URL } }
Sidekiq.configure_client { |config| config.redis = { url: URL } }

# Writes a byte, so that what is done is known without the server.
class Count
  include Sidekiq::Worker

  def perform
    File.open("done", "a") { |file| file.write(".") }
  end
end

def phase(name, many)
  puts "begin #{name}"
  yield
  puts "end #{name} #{many}"
end

unless ENV["BENCH"]
  $stdout.sync = true
  jobs = JOBS.to_i
  [1, 16].each do |threads|
    File.write("done", "")
    phase("enqueue, for #{threads}", jobs) { jobs.times { Count.perform_async } }
    environment = { "BENCH" => "#{PORT} #{JOBS}" }
    words = ["sidekiq", "-r", __FILE__, "-c", threads.to_s, "-t", "1"]
    process = Process.spawn(environment, *words, out: File::NULL, err: File::NULL)
    # Its start is none of the servers' time.
    sleep 0.005 while File.size("done") == 0
    already = File.size("done")
    puts "begin work of #{threads}"
    sleep 0.005 while File.size("done") < jobs
    puts "end work of #{threads} #{jobs - already}"
    Process.kill("TERM", process)
    Process.wait(process)
  end
  phase("enqueue in bulks", jobs) do
    Sidekiq::Client.push_bulk("class" => Count, "args" => Array.new(jobs) { [] })
  end
end
