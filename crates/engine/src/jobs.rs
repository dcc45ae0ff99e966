//! Work of the server itself: closures with typed results that run like clients' commands.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use super::Executor;
use super::call::{Call, stopped};
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;
use quoin_data::unit::context::{ReadContext, WriteContext};
use quoin_resp::reply::Reply;

/// The future of a job, with its result.
pub type JobFuture<'c, T> = Pin<Box<dyn Future<Output = Result<T, CommandError>> + 'c>>;

/// Why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The executor has stopped.
    #[error("the server is shutting down")]
    Stopped,
    /// The job failed. The next attempt may succeed.
    #[error(transparent)]
    Failed(#[from] CommandError),
}

impl From<JobError> for CommandError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Stopped => stopped().into(),
            JobError::Failed(error) => error,
        }
    }
}

/// Holds the result of a job's last run.
struct ResultSlot<T>(Arc<Mutex<Option<Result<T, CommandError>>>>);

impl<T> Clone for ResultSlot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> ResultSlot<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Stores the result. A failure stays an error for the transaction.
    fn put(&self, result: Result<T, CommandError>) -> Result<Reply, CommandError> {
        let failure = result.as_ref().err().cloned();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        failure.map_or(Ok(Reply::OK), Err)
    }

    fn take(&self) -> Option<Result<T, CommandError>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take()
    }
}

impl Executor {
    /// Runs a closure on a snapshot. It may run more than once.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn read<T, F>(&self, database: u32, job: F) -> Result<T, JobError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c ReadContext<'c>) -> JobFuture<'c, T> + Send + 'static,
    {
        let result = ResultSlot::new();
        let slot = result.clone();
        let call = Call::read_job(database, move |context| {
            let slot = slot.clone();
            let future = job(context);
            Box::pin(async move { slot.put(future.await) })
        });
        self.result_of(call, result).await
    }

    /// Runs a closure in a transaction, all or nothing. It may run more than once. The result is that of the
    /// committed run. `locks`: the keys that clients' commands should not use meanwhile.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn transact<T, F>(
        &self,
        database: u32,
        locks: KeyLocks,
        job: F,
    ) -> Result<T, JobError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c WriteContext<'c>) -> JobFuture<'c, T> + Send + 'static,
    {
        let result = ResultSlot::new();
        let slot = result.clone();
        let call = Call::write_job(database, locks, move |context| {
            let slot = slot.clone();
            let future = job(context);
            Box::pin(async move { slot.put(future.await) })
        });
        self.result_of(call, result).await
    }

    async fn result_of<T>(&self, call: Call, result: ResultSlot<T>) -> Result<T, JobError> {
        let Ok(ended) = self.submit(vec![call]).await else {
            return Err(JobError::Stopped);
        };
        if let Some(failure) = ended.failure {
            return Err(CommandError::from(failure).into());
        }
        match (result.take(), ended.replies.first()) {
            // The job was refused after that run, which was not committed.
            (Some(Ok(_)), Some(Reply::Error(line))) => {
                Err(CommandError::Text(line.clone().into()).into())
            }
            (Some(result), _) => Ok(result?),
            (None, _) => Err(JobError::Stopped),
        }
    }
}
