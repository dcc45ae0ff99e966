//! Makes this server visible to the others, and reads who they are.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, timeout};

use super::{Observer, Remains, Roster, Sighting};
use crate::spawn_lane;
use quoin_base::limits::{SERVER_BEAT_INTERVAL, SERVER_BEAT_MAX, SERVERS_MAX};
use quoin_base::log_throttle::LogThrottle;
use quoin_data::cluster::roster::{self, RosterRows};
use quoin_data::unit::context::Environment;
use quoin_layout::ServerRow;
use quoin_store::{Store, StoreError};

/// This server's membership among those that share its store.
pub struct Membership {
    sightings: Arc<watch::Sender<Option<Sighting>>>,
    stage: Arc<watch::Sender<Stage>>,
    refresh: Arc<Notify>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It does not serve clients yet.
    Starting,
    Member,
    /// It should leave.
    Leaving,
    /// Its row has been removed, if that was possible.
    Left,
}

impl Membership {
    /// Prepares to become a member with [`Self::begin`], and reports live servers to `sightings`.
    /// On a store with a single server, writes nothing: that server is the only member.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        store: Arc<dyn Store>,
        environment: Arc<Environment>,
        own_row: ServerRow,
        sightings: Sightings,
    ) -> std::io::Result<Self> {
        let Sightings(sightings) = sightings;
        let stage = Arc::new(watch::Sender::new(Stage::Starting));
        let refresh = Arc::<Notify>::default();
        if !environment.capabilities.has_other_writers {
            let roster = Roster::of_one(environment.ids.instance(), own_row);
            let sighting = Sighting {
                roster: Arc::new(roster),
                at: None,
            };
            sightings.send_replace(Some(sighting));
            return Ok(Self {
                sightings,
                stage,
                refresh,
                thread: Mutex::new(None),
            });
        }
        let job = Job {
            observer: Observer::new(environment.ids.instance()),
            store,
            environment,
            own_row,
            sightings: Arc::clone(&sightings),
            failing: LogThrottle::new(),
            doubled: LogThrottle::new(),
            is_crowded: false,
            has_row: false,
        };
        let (stages, refreshes) = (Arc::clone(&stage), Arc::clone(&refresh));
        let thread = spawn_lane("quoin-roster", move || job.run(stages, refreshes))?;
        Ok(Self {
            sightings,
            stage,
            refresh,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Becomes a member. Call it once clients are accepted, because others then direct clients
    /// here.
    pub fn begin(&self) {
        self.stage
            .send_modify(|stage| *stage = (*stage).max(Stage::Member));
    }

    /// The live servers. `None` until this server knows them after its start, and while it cannot
    /// reach the store, because others may then have declared it dead.
    pub fn roster(&self) -> Option<Arc<Roster>> {
        self.sightings.borrow().as_ref().and_then(Sighting::current)
    }

    /// How long ago this server last read who is alive.
    pub fn confirmed_ago(&self) -> Duration {
        let sighting = self.sightings.borrow();
        let at = sighting.as_ref().and_then(|sighting| sighting.at);
        at.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Waits until the live servers are known.
    pub async fn settled(&self) {
        let mut sightings = self.sightings.subscribe();
        // Cannot fail: the sender lives as long as this.
        let _ = sightings.wait_for(Option::is_some).await.map(|_| ());
    }

    /// Receives new rosters. A slow receiver misses all except the latest.
    pub fn watch(&self) -> RosterWatch {
        RosterWatch(self.sightings.subscribe())
    }

    /// Reads the store at once, because this server has changed something there.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }

    /// Leaves, so that the others stop directing clients here. Waits for a bounded time until this
    /// server's row is removed.
    pub async fn leave(&self) {
        let has_thread = self.thread().is_some();
        if !has_thread {
            leave_out_own(&self.sightings);
        }
        self.stage.send_if_modified(|stage| {
            let begins = *stage < Stage::Leaving;
            *stage = (*stage).max(Stage::Leaving);
            begins
        });
        if has_thread {
            let mut stages = self.stage.subscribe();
            let left = stages.wait_for(|stage| *stage == Stage::Left);
            let _ = timeout(SERVER_BEAT_MAX, left).await.map(|_| ());
        }
    }

    /// Waits for the thread to end after [`Self::leave`]. Blocks.
    pub fn join(&self) {
        self.stage
            .send_modify(|stage| *stage = (*stage).max(Stage::Leaving));
        if let Some(thread) = self.thread().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that watches other servers panicked");
        }
    }

    fn thread(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Membership {
    /// Ends the thread without waiting for it.
    fn drop(&mut self) {
        self.stage
            .send_modify(|stage| *stage = (*stage).max(Stage::Leaving));
    }
}

/// The live servers, for tasks that start before this server is a member.
pub struct Sightings(Arc<watch::Sender<Option<Sighting>>>);

impl Default for Sightings {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Sightings {
    /// Receives new rosters.
    pub fn watch(&self) -> RosterWatch {
        RosterWatch(self.0.subscribe())
    }
}

/// Receives rosters as they change.
#[derive(Clone)]
pub struct RosterWatch(watch::Receiver<Option<Sighting>>);

impl RosterWatch {
    /// The current roster, once there is one. Waits forever if none comes. Cancel-safe.
    pub async fn known(&mut self) -> Arc<Roster> {
        loop {
            if let Some(roster) = self.latest() {
                break roster;
            }
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The live servers, as in [`Membership::roster`].
    pub fn current(&self) -> Option<Arc<Roster>> {
        self.0.borrow().as_ref().and_then(Sighting::current)
    }

    /// The current roster, if there is one.
    pub fn latest(&mut self) -> Option<Arc<Roster>> {
        let sighting = self.0.borrow_and_update();
        sighting.as_ref().map(|one| Arc::clone(&one.roster))
    }

    /// Waits until the roster differs from the one that was last returned.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Removes this server from its own roster when it stops.
fn leave_out_own(sightings: &watch::Sender<Option<Sighting>>) {
    sightings.send_if_modified(|sighting| {
        if let Some(sighting) = sighting {
            sighting.roster = Arc::new(sighting.roster.without_own());
        }
        sighting.is_some()
    });
}

struct Job {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    observer: Observer,
    own_row: ServerRow,
    sightings: Arc<watch::Sender<Option<Sighting>>>,
    failing: LogThrottle,
    doubled: LogThrottle,
    is_crowded: bool,
    /// Whether this server has written its row.
    has_row: bool,
}

impl Job {
    async fn run(mut self, stage: Arc<watch::Sender<Stage>>, refresh: Arc<Notify>) {
        let mut stages = stage.subscribe();
        // Cannot fail: the sender lives as long as this.
        let _ = stages
            .wait_for(|stage| *stage > Stage::Starting)
            .await
            .map(|_| ());
        let mut ticks = tokio::time::interval(SERVER_BEAT_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = stages.wait_for(|stage| *stage >= Stage::Leaving) => break,
                _ = ticks.tick() => {}
                () = refresh.notified() => {}
            }
            let begun = Instant::now();
            match timeout(SERVER_BEAT_MAX, self.beat()).await {
                Ok(Ok(rows)) => self.observe(&rows, begun).await,
                Ok(Err(error)) => self.note_failure(&error.to_string()),
                Err(_) => self.note_failure("the store does not answer in time"),
            }
        }
        if timeout(SERVER_BEAT_MAX, self.leave()).await.is_err() {
            tracing::warn!(
                "cannot tell other servers that this one is stopping: they will notice \
                            its silence"
            );
        }
        stage.send_replace(Stage::Left);
    }

    /// Beats, and reads the rows of all servers, in one transaction. It conflicts with the removal
    /// of this server's row, so that a late commit does not write the row of a server that has
    /// left.
    async fn beat(&mut self) -> Result<RosterRows, StoreError> {
        self.own_row.beat = self.own_row.beat.wrapping_add(1);
        let (layout, instance) = (&self.environment.layout, self.environment.ids.instance());
        let transaction = self.store.begin_write()?;
        let is_removed =
            self.has_row && !roster::has_server(&*transaction, layout, instance).await?;
        roster::write_own(&*transaction, layout, instance, &self.own_row);
        let rows = roster::read_rows(&*transaction, layout).await?;
        transaction.commit().await?;
        if is_removed {
            self.join_again();
        }
        self.has_row = true;
        Ok(rows)
    }

    /// Called when others have removed this server's row because it was silent for long. Like a
    /// server that has just started, it must first learn who is alive.
    fn join_again(&mut self) {
        tracing::warn!(
            "other servers took this one for dead and removed its row: it is joining \
                        again"
        );
        self.observer = Observer::new(self.environment.ids.instance());
        self.sightings.send_replace(None);
    }

    /// Processes what a beat that began at `begun` has read.
    async fn observe(&mut self, rows: &RosterRows, begun: Instant) {
        let is_crowded = rows.servers.len() >= SERVERS_MAX;
        if is_crowded && !self.is_crowded {
            tracing::warn!("more than {SERVERS_MAX} servers share the store: some are not seen");
        }
        self.is_crowded = is_crowded;
        let now = Instant::now();
        let roster = self.observer.observe(rows, &self.own_row, now);
        if self.observer.has_double(&self.own_row)
            && let Some(more) = self.doubled.pass()
        {
            tracing::warn!(
                "another live server announces the address {} of this one: see the settings \
                 announce-ip and announce-port{more}",
                self.own_row.ip
            );
        }
        if self.observer.is_settled {
            self.note_changes(&roster);
            let roster = Arc::new(roster);
            // Taken before others can have seen the beat. So this roster expires before they
            // declare this server dead.
            let at = Some(begun);
            self.sightings.send_replace(Some(Sighting { roster, at }));
        }
        let remains = self.observer.remains(rows, now);
        if remains != Remains::default() {
            let removed = timeout(SERVER_BEAT_MAX, self.remove(&remains)).await;
            if !matches!(removed, Ok(Ok(()))) {
                // Another server may have removed them. The next read shows that.
                tracing::debug!("cannot remove the rows of dead servers yet");
            }
        }
    }

    /// Logs which servers have come and gone.
    fn note_changes(&self, roster: &Roster) {
        let before = self.sightings.borrow();
        let Some(before) = before.as_ref().map(|sighting| &sighting.roster) else {
            let others = roster.others().count();
            tracing::info!("this server shares its store with {others} others");
            return;
        };
        let is_in = |roster: &Roster, instance: u64| {
            let mut servers = roster.servers().iter();
            servers.any(|server| server.instance == instance)
        };
        for server in roster.others() {
            if !is_in(before, server.instance) {
                let (instance, row) = (server.instance, &server.row);
                tracing::info!("server {instance} at {} has joined", row.ip);
            }
        }
        for server in before.others() {
            if !is_in(roster, server.instance) {
                let (instance, row) = (server.instance, &server.row);
                tracing::info!("server {instance} at {} has left or is dead", row.ip);
            }
        }
    }

    async fn remove(&self, remains: &Remains) -> Result<(), StoreError> {
        let layout = &self.environment.layout;
        let transaction = self.store.begin_write()?;
        for (instance, row) in &remains.servers {
            roster::remove_if_silent(&*transaction, layout, *instance, row).await?;
        }
        roster::remove_choices(&*transaction, layout, &remains.choices).await?;
        transaction.commit().await
    }

    async fn leave(&self) {
        leave_out_own(&self.sightings);
        let (layout, instance) = (&self.environment.layout, self.environment.ids.instance());
        loop {
            let removed = async {
                let transaction = self.store.begin_write()?;
                roster::remove(&*transaction, layout, instance);
                transaction.commit().await
            };
            match removed.await {
                Err(error)
                    if error.is_retryable() || matches!(error, StoreError::UnknownResult) => {}
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "cannot tell other servers that this one is stopping: they will notice its \
                         silence"
                    );
                    return;
                }
                Ok(()) => return,
            }
        }
    }

    fn note_failure(&self, error: &str) {
        if let Some(more) = self.failing.pass() {
            tracing::warn!("other servers may take this one for dead: {error}{more}");
        }
    }
}
