//! Spans of tasks and of slow commands, on their way to the collector of `trace-endpoint`
//! (docs/understand/decisions/054-traces.md).
//!
//! Batches put them into a bounded queue without waiting, and a thread sends them. If the collector
//! does not accept them, the only cost is lost spans, which are counted.

mod collector;
mod spans;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::sync::{mpsc, watch};

use crate::error::ServerError;
use crate::slowlog::SlowCommand;
use collector::Collector;
use quoin_base::clock::Clock;
use quoin_base::counter::Counter;
use quoin_base::limits::{TRACE_REQUEST_SPANS_MAX, TRACE_SPANS_MAX};
use quoin_base::log_throttle::LogThrottle;
use quoin_base::threads;
use quoin_config::Settings;
use quoin_data::unit::spans::{EndedSpans, SpanReceiver, TaskSpan};

/// How long spans gather for one request. The thread is woken once in that time, however many spans
/// there are.
const GATHERING: Duration = Duration::from_millis(200);
/// Time for spans that wait when the server stops.
const END_MAX: Duration = Duration::from_millis(1_500);

/// The spans that wait, and their counts.
pub(super) struct Traces {
    waiting: mpsc::Sender<Waiting>,
    clock: Arc<dyn Clock>,
    counts: Arc<Counts>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A span that waits.
enum Waiting {
    /// Of a task.
    Task(TaskSpan),
    /// Of a command.
    Command(Box<SpanData>),
}

/// Counts of spans.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Spans that the collector has accepted.
    pub(super) sent: Counter,
    /// Spans that it did not get.
    pub(super) dropped: Counter,
}

impl Traces {
    /// Starts the thread if a collector is configured. `run_id` distinguishes this server from
    /// others.
    ///
    /// # Errors
    /// If the collector's address is invalid, or the thread cannot be started.
    pub(super) fn start(
        settings: &Settings,
        run_id: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Arc<Self>>, ServerError> {
        let endpoint = settings.trace_endpoint.as_str();
        if endpoint.is_empty() {
            return Ok(None);
        }
        let collector = Collector::new(endpoint, run_id).map_err(ServerError::Traces)?;
        let counts = Arc::<Counts>::default();
        let (waiting, received) = mpsc::channel(TRACE_SPANS_MAX);
        let (stop, stopped) = watch::channel(false);
        let sending = Sending {
            collector,
            endpoint: endpoint.to_owned(),
            counts: Arc::clone(&counts),
            received,
            stopped,
            is_failing: false,
            failures: LogThrottle::new(),
        };
        let thread = spawn(sending)?;
        tracing::info!("sending traces to {endpoint}");
        Ok(Some(Arc::new(Self {
            waiting,
            clock: Arc::clone(clock),
            counts,
            stop,
            thread: Mutex::new(Some(thread)),
        })))
    }

    /// The counts of sent and dropped spans.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Sends a slow command to the collector, as a separate trace. Never waits.
    pub(super) fn receive_command(&self, command: &SlowCommand<'_>, now_ms: i64) {
        let span = Box::new(spans::of_command(command, now_ms));
        if self.waiting.try_send(Waiting::Command(span)).is_err() {
            self.counts.dropped.add(1);
        }
    }

    /// Sends the waiting spans, for a bounded time, and ends the thread.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that sends traces panicked");
        }
    }
}

impl SpanReceiver for Traces {
    fn receive(&self, ended: EndedSpans) {
        let now_ms = self.clock.now_ms();
        let mut dropped = ended.left_out;
        for mut span in ended.spans {
            span.end_ms.get_or_insert(now_ms.max(span.start_ms));
            dropped += u64::from(self.waiting.try_send(Waiting::Task(span)).is_err());
        }
        self.counts.dropped.add(dropped);
    }
}

fn spawn(mut sending: Sending) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    threads::spawn("quoin-traces", move || {
        let mut stopped = sending.stopped.clone();
        let over = async {
            // Fails if the server has ended.
            let _ = stopped.wait_for(|is_stopped| *is_stopped).await.map(|_| ());
            tokio::time::sleep(END_MAX).await;
        };
        runtime.block_on(async {
            tokio::select! {
                () = sending.run() => {}
                () = over => tracing::warn!("the collector did not accept all traces before the \
                                             server stopped"),
            }
        });
    })
}

/// Sends spans.
struct Sending {
    collector: Collector,
    endpoint: String,
    counts: Arc<Counts>,
    received: mpsc::Receiver<Waiting>,
    stopped: watch::Receiver<bool>,
    /// Whether the last request failed.
    is_failing: bool,
    failures: LogThrottle,
}

impl Sending {
    /// Sends spans until the server stops and none waits.
    async fn run(&mut self) {
        let mut spans = Vec::with_capacity(TRACE_REQUEST_SPANS_MAX);
        loop {
            let mut stopped = self.stopped.clone();
            let stop = async {
                // Fails if the server has ended.
                let _ = stopped.wait_for(|is_stopped| *is_stopped).await.map(|_| ());
            };
            tokio::pin!(stop);
            let is_stopped = tokio::select! {
                biased;
                first = self.received.recv() => {
                    spans.extend(first);
                    tokio::select! {
                        () = &mut stop => true,
                        () = tokio::time::sleep(GATHERING) => false,
                    }
                }
                () = &mut stop => true,
            };
            while self.fill(&mut spans) {
                self.send(&mut spans).await;
            }
            if is_stopped {
                return;
            }
        }
    }

    /// Takes waiting spans for a request. Returns whether there are any.
    fn fill(&mut self, spans: &mut Vec<Waiting>) -> bool {
        while spans.len() < TRACE_REQUEST_SPANS_MAX
            && let Ok(span) = self.received.try_recv()
        {
            spans.push(span);
        }
        !spans.is_empty()
    }

    async fn send(&mut self, spans: &mut Vec<Waiting>) {
        let count = spans.len() as u64;
        let batch = spans.drain(..).map(|span| match span {
            Waiting::Task(span) => spans::of_task(span),
            Waiting::Command(span) => *span,
        });
        let batch = batch.collect();
        match self.collector.exporter.export(batch).await {
            Ok(()) => {
                self.counts.sent.add(count);
                if self.is_failing {
                    tracing::info!("sending traces to {} again", self.endpoint);
                }
                self.is_failing = false;
            }
            Err(error) => {
                self.counts.dropped.add(count);
                // Logged only once until the next success.
                if !self.is_failing
                    && let Some(more) = self.failures.pass()
                {
                    let why = self.collector.failure().unwrap_or(error.to_string());
                    tracing::warn!(
                        "cannot send traces to {}, dropping them: {why}{more}",
                        self.endpoint
                    );
                }
                self.is_failing = true;
            }
        }
    }
}
