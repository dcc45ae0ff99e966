//! Traces of tasks, as a collector receives them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;

use crate::authority::Authority;
use crate::server::{PATIENCE, Server, Socket, is_on_foundationdb, wait_until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// What a collector has received.
#[derive(Default)]
struct Got {
    spans: Vec<Span>,
    /// Attributes of the server.
    resource: Vec<KeyValue>,
    /// The head of the last request.
    head: String,
}

/// A collector of traces, which ends with the test.
struct Collector {
    endpoint: String,
    got: Arc<Mutex<Got>>,
}

impl Collector {
    fn start() -> Self {
        Self::start_with("http", take_request)
    }

    /// A collector that accepts requests from connections with `take`.
    fn start_with(scheme: &str, take: impl Fn(TcpStream, &Mutex<Got>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("{scheme}://{}/v1/traces", listener.local_addr().unwrap());
        let got = Arc::<Mutex<Got>>::default();
        let of_thread = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                take(stream.unwrap(), &of_thread);
            }
        });
        Self { endpoint, got }
    }

    /// Waits for `count` spans, and returns them sorted by name.
    fn spans(&self, count: usize) -> Vec<Span> {
        wait_until("the collector has the spans", || {
            self.got.lock().unwrap().spans.len() >= count
        });
        let mut spans = self.got.lock().unwrap().spans.clone();
        spans.sort_by(|one, other| one.name.cmp(&other.name));
        assert_eq!(spans.len(), count, "{spans:?}");
        spans
    }

    /// The names of its spans, once the last one has arrived.
    fn names_until(&self, last: &str) -> Vec<String> {
        let names = || {
            let got = self.got.lock().unwrap();
            let names = got.spans.iter().map(|span| span.name.clone());
            names.collect::<Vec<_>>()
        };
        wait_until("the collector has the last span", || {
            names().iter().any(|name| name == last)
        });
        names()
    }
}

/// Reads a request and answers it.
fn take_request(mut stream: impl Read + Write, got: &Mutex<Got>) {
    let mut reader = BufReader::new(&mut stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let head = head.to_ascii_lowercase();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let (length, _) = length.split_once("\r\n").unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    {
        let mut got = got.lock().unwrap();
        got.head = head;
        for resource_spans in request.resource_spans {
            got.resource = resource_spans.resource.unwrap().attributes;
            let scopes = resource_spans.scope_spans.into_iter();
            got.spans.extend(scopes.flat_map(|scope| scope.spans));
        }
    }
    let answer =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
    stream.write_all(answer).unwrap();
    stream.flush().unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    let value = found.and_then(|found| found.value.clone()?.value);
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{key}: {other:?} in {attributes:?}"),
    }
}

fn server(collector: &Collector) -> (Server, Socket) {
    let server = Server::start_with(&["--trace-endpoint", &collector.endpoint]);
    let socket = server.connect();
    (server, socket)
}

fn traceparent(flags: &str) -> String {
    format!("TRACEPARENT 00-{TRACE}-{PARENT}-{flags}")
}

fn add(socket: &mut Socket, queue: &str, id: &str) {
    let reply = socket.run(&format!(
        "TASK.ADD {queue} 1 x ID {id} {}",
        traceparent("01")
    ));
    assert_eq!(reply, format!("${}\r\n{id}\r\n", id.len()));
}

fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_nanos()).unwrap()
}

#[test]
fn a_task_is_shown_in_the_trace_of_its_producer() {
    let collector = Collector::start();
    let (_server, mut socket) = server(&collector);
    let before = now_ns();
    add(&mut socket, "mails", "m1");
    std::thread::sleep(Duration::from_millis(30));
    assert!(
        socket
            .run("TASK.TAKE mails LEASE 60000 WORKER w")
            .contains("m1")
    );
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(socket.run("TASK.ACK mails m1"), "*1\r\n:1\r\n");
    let after = now_ns();
    let spans = collector.spans(3);
    let expected = [
        ("add mails", SpanKind::Producer, "send", "added"),
        ("run mails", SpanKind::Consumer, "process", "acknowledged"),
        ("wait mails", SpanKind::Internal, "receive", "taken"),
    ];
    for (span, (name, kind, operation_type, outcome)) in spans.iter().zip(expected) {
        assert_eq!((span.name.as_str(), span.kind()), (name, kind));
        assert_eq!(hex(&span.trace_id), TRACE);
        assert_eq!(hex(&span.parent_span_id), PARENT);
        assert_eq!(span.span_id.len(), 8);
        assert_eq!(
            span.status.clone().unwrap_or_default().code(),
            StatusCode::Unset
        );
        // Times are in milliseconds.
        assert!(span.start_time_unix_nano >= before - 1_000_000, "{span:?}");
        assert!(
            span.end_time_unix_nano >= span.start_time_unix_nano,
            "{span:?}"
        );
        assert!(span.end_time_unix_nano <= after, "{span:?}");
        for (key, value) in [
            ("messaging.system", "quoin"),
            ("messaging.destination.name", "mails"),
            ("messaging.message.id", "m1"),
            ("messaging.operation.name", name.split(' ').next().unwrap()),
            ("messaging.operation.type", operation_type),
            ("quoin.database", "0"),
            ("quoin.task.outcome", outcome),
        ] {
            assert_eq!(attribute(&span.attributes, key), value, "{name} {key}");
        }
    }
    let lasted = |number: usize| {
        let span: &Span = &spans[number];
        span.end_time_unix_nano - span.start_time_unix_nano
    };
    assert!(
        lasted(2) >= 29_000_000 && lasted(1) >= 19_000_000,
        "{spans:?}"
    );
    assert_eq!(spans[2].end_time_unix_nano, spans[1].start_time_unix_nano);
    assert_eq!(attribute(&spans[1].attributes, "messaging.client.id"), "w");
    assert_eq!(attribute(&spans[1].attributes, "quoin.task.tries"), "1");
    let got = collector.got.lock().unwrap();
    assert_eq!(attribute(&got.resource, "service.name"), "quoin");
    assert!(
        got.head.starts_with("post /v1/traces http/1.1\r\n"),
        "{}",
        got.head
    );
    let host = collector.endpoint.split('/').nth(2).unwrap();
    assert!(
        got.head.contains(&format!("host: {host}\r\n")),
        "{}",
        got.head
    );
    assert!(
        got.head
            .contains("content-type: application/x-protobuf\r\n"),
        "{}",
        got.head
    );
}

#[test]
fn a_task_that_is_given_back_is_an_error_with_its_reason() {
    let collector = Collector::start();
    let (_server, mut socket) = server(&collector);
    add(&mut socket, "mails", "m1");
    socket.run("TASK.TAKE mails LEASE 60000");
    assert_eq!(socket.run("TASK.NACK mails m1 REASON timeout"), ":1\r\n");
    let spans = collector.spans(3);
    let status = spans[1].status.clone().unwrap();
    assert_eq!(
        (status.code(), status.message.as_str()),
        (StatusCode::Error, "timeout")
    );
    assert_eq!(attribute(&spans[1].attributes, "error.type"), "nack");
    assert_eq!(
        attribute(&spans[1].attributes, "quoin.task.outcome"),
        "retried"
    );
}

#[test]
fn what_is_not_committed_or_not_recorded_is_not_shown() {
    let collector = Collector::start();
    let (_server, mut socket) = server(&collector);
    // Refused as a whole.
    socket.run("MULTI");
    socket.run(&format!("TASK.ADD refused 1 x {}", traceparent("01")));
    socket.run("NOSUCH");
    assert!(socket.run("EXEC").starts_with("-EXECABORT"));
    // Undone.
    let script = "#!lua flags=atomic\nredis.call('TASK.ADD', KEYS[1], 1, 'x', 'TRACEPARENT', ARGV[1])\nerror('no')";
    let parent = format!("00-{TRACE}-{PARENT}-01");
    assert!(
        socket
            .command(&["EVAL", script, "1", "undone", &parent])
            .starts_with('-')
    );
    // Not recorded.
    socket.run(&format!(
        "TASK.ADD unsampled 1 x ID a {}",
        traceparent("00")
    ));
    socket.run("TASK.TAKE unsampled LEASE 60000");
    socket.run("TASK.ACK unsampled a");
    socket.run("MULTI");
    socket.run(&format!("TASK.ADD shown 1 x {}", traceparent("01")));
    socket.run("EXEC");
    assert_eq!(collector.names_until("add shown"), ["add shown"]);
}

#[test]
fn a_consumer_that_waits_ends_the_wait() {
    let collector = Collector::start();
    let (server, mut socket) = server(&collector);
    let mut consumer = server.connect();
    consumer.send("TASK.TAKE mails LEASE 60000 BLOCK 0\r\n");
    wait_until("it waits", || {
        socket.run("INFO clients").contains("blocked_clients:1")
    });
    add(&mut socket, "mails", "m1");
    assert!(consumer.reply().contains("m1"));
    let names: Vec<String> = collector
        .spans(2)
        .into_iter()
        .map(|span| span.name)
        .collect();
    assert_eq!(names, ["add mails", "wait mails"]);
}

#[test]
fn slow_commands_are_traces_of_their_own_if_that_is_wanted() {
    let collector = Collector::start();
    let (_server, mut socket) = server(&collector);
    socket.run("CONFIG SET slowlog-log-slower-than 0");
    socket.run("SET unwanted 1");
    socket.run("CONFIG SET trace-slow-commands yes");
    socket.run("SELECT 3");
    socket.run("RPUSH jobs secret");
    assert!(socket.run("GET jobs").starts_with("-WRONGTYPE"));
    collector.names_until("GET");
    let spans = collector.got.lock().unwrap().spans.clone();
    assert!(spans.iter().all(|span| span.name != "SET"), "{spans:?}");
    let of = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (push, get) = (of("RPUSH"), of("GET"));
    for (span, name) in [(push, "RPUSH"), (get, "GET")] {
        assert_eq!(span.kind(), SpanKind::Server);
        assert!(span.parent_span_id.is_empty() && span.trace_id.len() == 16);
        assert!(span.end_time_unix_nano > span.start_time_unix_nano);
        for (key, value) in [
            ("db.system.name", "quoin"),
            ("db.operation.name", name),
            ("db.namespace", "3"),
            ("quoin.key", "jobs"),
        ] {
            assert_eq!(attribute(&span.attributes, key), value);
        }
        let address = socket.local_address().to_string();
        assert_eq!(attribute(&span.attributes, "client.address"), address);
    }
    assert_ne!(push.trace_id, get.trace_id);
    assert!(!format!("{push:?}").contains("secret"), "{push:?}");
    assert_eq!(
        push.status.clone().unwrap_or_default().code(),
        StatusCode::Unset
    );
    assert_eq!(get.status.clone().unwrap().code(), StatusCode::Error);
    assert_eq!(attribute(&get.attributes, "error.type"), "WRONGTYPE");
}

#[test]
fn what_waits_is_sent_before_the_server_ends() {
    let collector = Collector::start();
    let (mut server, mut socket) = server(&collector);
    for number in 0..1_000 {
        add(&mut socket, "mails", &format!("m{number}"));
    }
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(collector.got.lock().unwrap().spans.len(), 1_000);
}

/// The value of a metric.
fn metric(server: &Server, name: &str) -> u64 {
    let log = server.log();
    let (_, behind) = log.split_once("metrics are at http://").unwrap();
    let (address, _) = behind.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: quoin\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

#[test]
fn a_collector_that_is_not_there_costs_spans_and_one_line_of_the_log() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let endpoint = format!("http://{gone}/v1/traces");
    let flags = [
        "--trace-endpoint",
        &endpoint,
        "--metrics-address",
        "127.0.0.1:0",
    ];
    let mut server = Server::start_with(&flags);
    let mut socket = server.connect();
    for id in ["a", "b"] {
        add(&mut socket, "mails", id);
        assert!(socket.run("TASK.TAKE mails LEASE 60000").contains(id));
        assert_eq!(socket.run(&format!("TASK.ACK mails {id}")), "*1\r\n:1\r\n");
        let all = if id == "a" { 3 } else { 6 };
        wait_until("the spans are dropped", || {
            metric(&server, "quoin_trace_spans_dropped_total") == all
        });
    }
    assert_eq!(metric(&server, "quoin_trace_spans_sent_total"), 0);
    let log = server.log();
    assert_eq!(log.matches("cannot send traces").count(), 1, "{log}");
    assert!(log.contains("Connection refused"), "{log}");
    add(&mut socket, "mails", "c");
    let stopped = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(stopped.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_collector_that_does_not_answer_holds_up_neither_clients_nor_the_end() {
    let held = Mutex::new(Vec::new());
    let collector =
        Collector::start_with("http", move |stream, _| held.lock().unwrap().push(stream));
    let (mut server, mut socket) = server(&collector);
    add(&mut socket, "mails", "a");
    wait_until("the server sends", || {
        server.log().contains("sending traces to")
    });
    std::thread::sleep(Duration::from_millis(400));
    let started = Instant::now();
    for number in 0..100 {
        add(&mut socket, "mails", &number.to_string());
    }
    assert!(started.elapsed() < Duration::from_secs(4));
    let stopped = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(stopped.elapsed() < Duration::from_secs(4));
    assert!(
        server.log().contains("did not accept all traces"),
        "{}",
        server.log()
    );
}

#[test]
fn a_collector_that_speaks_tls_is_judged_by_its_certificate() {
    if is_on_foundationdb() {
        // The store makes no difference, and its flags are not known here.
        return;
    }
    let authority = Authority::new();
    authority.sign("collector");
    let read = |name: &str| std::fs::read(authority.path(name)).unwrap();
    let (certificate, key) = (read("collector.pem"), read("collector.key"));
    let config = tls_config(&certificate, &key);
    let collector = Collector::start_with("https", move |stream, got| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        take_request(rustls::StreamOwned::new(connection, stream), got);
    });
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let flags = ["--data-dir", &data, "--trace-endpoint", &collector.endpoint];
    let flags = flags.map(str::to_owned);
    let ca = authority.text("ca.pem");
    let variables = [
        ("SSL_CERT_FILE", ca.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer secret"),
    ];
    let server = Server::start_on_store(folder.path(), &flags, &variables).unwrap();
    add(&mut server.connect(), "mails", "a");
    assert_eq!(collector.spans(1)[0].name, "add mails");
    let head = collector.got.lock().unwrap().head.clone();
    assert!(head.contains("authorization: bearer secret\r\n"), "{head}");
}

fn tls_config(certificate: &[u8], key: &[u8]) -> Arc<rustls::ServerConfig> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config)
}
