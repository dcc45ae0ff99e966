//! A link from the side that runs forwarded commands.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::frame::{FrameError, GOODBYE, put_response, read_request, take_frame};
use crate::state::ServerState;
use crate::stream::Stream;
use quoin_base::limits::{
    FORWARDED_BYTES_AT_ONCE_MAX, FORWARDED_FRAME_BYTES_MAX, FORWARDED_MAX, SERVER_DEAD_AFTER,
};
use quoin_engine::SubmissionResult;
use quoin_engine::may_forward;
use quoin_store::StoreError;

/// Bytes of responses that are written together.
const WRITE_BYTES: usize = 64 * 1024;
/// Maximum bytes of responses that wait while others are written. Beyond it, finished replies stay
/// in the executor.
const UNSENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes that are read together.
const READ_BYTES: usize = 64 * 1024;
/// A server that accepts no responses for this time counts as dead.
const STALL_MAX: Duration = SERVER_DEAD_AFTER;

/// Why a link ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The other server must not believe that nothing ran, so it gets no response.
    #[error("cannot answer commands")]
    Unanswerable,
}

/// Runs what another server forwards, and answers it, until that server ends the link. When this
/// server stops, it says so and runs nothing more.
pub(crate) async fn serve(
    stream: &mut Stream,
    mut input: BytesMut,
    state: &ServerState,
) -> Result<(), LinkError> {
    let (mut reader, mut writer) = stream.split();
    let mut under_way = FuturesUnordered::new();
    let mut output = BytesMut::new();
    let mut held_bytes: usize = 0;
    let mut is_open = true;
    let mut has_said_goodbye = false;
    loop {
        while let Some(frame) = take_frame(&mut input, FORWARDED_FRAME_BYTES_MAX)? {
            let bytes = frame.len();
            let request = read_request(frame)?;
            // Whatever the other server believes, it may have no more run than it may forward.
            let may_run = !request.calls.is_empty() && may_forward(&request.calls);
            if state.shutdown.has_begun() || !may_run {
                put_not_run(request.number, &mut output)?;
                continue;
            }
            state
                .statistics
                .forwarded_here
                .add(request.calls.len() as u64);
            let executor = &state.executor;
            held_bytes += bytes;
            under_way.push(async move {
                let ran = executor.submit_here(request.calls, request.reply_bytes_max);
                (request.number, bytes, ran.await)
            });
        }
        while output.len() < WRITE_BYTES
            && let Some(Some((number, bytes, ran))) = under_way.next().now_or_never()
        {
            held_bytes -= bytes;
            put_ended(number, ran, &mut output)?;
        }
        if state.shutdown.has_begun() && !has_said_goodbye {
            put_not_run(GOODBYE, &mut output)?;
            has_said_goodbye = true;
        }
        if !output.is_empty() {
            let mut next = BytesMut::new();
            {
                let mut writing = pin!(write(&mut writer, &output));
                loop {
                    // Takes over replies that become ready meanwhile, because they would hold up
                    // the executor.
                    let has_room = !under_way.is_empty() && next.len() < UNSENT_BYTES_MAX;
                    tokio::select! {
                        written = &mut writing => break written?,
                        Some((number, bytes, ran)) = under_way.next(), if has_room => {
                            held_bytes -= bytes;
                            put_ended(number, ran, &mut next)?;
                        }
                    }
                }
            }
            output = next;
            continue;
        }
        if !is_open && under_way.is_empty() {
            return Ok(());
        }
        input.reserve(READ_BYTES);
        let may_read =
            is_open && under_way.len() < FORWARDED_MAX && held_bytes < FORWARDED_BYTES_AT_ONCE_MAX;
        tokio::select! {
            Some((number, bytes, ran)) = under_way.next() => {
                held_bytes -= bytes;
                put_ended(number, ran, &mut output)?;
            }
            read = reader.read_buf(&mut input), if may_read => is_open = read? != 0,
            () = state.shutdown.begun(), if !has_said_goodbye => {}
        }
    }
}

/// Writes all bytes, as long as the other server keeps accepting some.
async fn write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = timeout(STALL_MAX, writer.write(rest)).await??;
        rest = match rest.get(written..) {
            Some(rest) if written > 0 => rest,
            _ => return Err(io::ErrorKind::WriteZero.into()),
        };
    }
    Ok(())
}

/// Adds the response to a request that the executor has answered.
fn put_ended(
    number: u64,
    ran: Result<SubmissionResult, StoreError>,
    output: &mut BytesMut,
) -> Result<(), LinkError> {
    let ran = ran.map_err(|_| LinkError::Unanswerable)?;
    match &ran.failure {
        // The replies say so.
        None | Some(StoreError::UnknownResult | StoreError::Fatal(_)) => {}
        // Nothing was applied, and the other server may be able to reach the store.
        Some(_) => return put_not_run(number, output),
    }
    let _counted = ran.carried;
    put_response(number, Some((&ran.done, &ran.replies)), output).ok_or(LinkError::Unanswerable)
}

fn put_not_run(number: u64, output: &mut BytesMut) -> Result<(), LinkError> {
    put_response(number, None, output).ok_or(LinkError::Unanswerable)
}
