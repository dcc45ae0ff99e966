//! Turns: consumers get tasks from a queue's groups in turn
//! (docs/understand/decisions/049-task-groups.md).
//!
//! In the order of a class, the tasks of each group are together. So the next group with a task
//! that fits is the first one that the [search](super::search) finds after the group that had the
//! last turn. A row names that group. Takes read it without conflicts: two takes that read the same
//! group want the same task, as in a queue without groups.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::index::{Class, Stale};
use super::resources::Amounts;
use super::search::{Found, REPAIRS_MAX, Search, after};
use super::{TaskQueue, TaskQueueMut, range_rows};
use quoin_base::limits::TASK_GROUPS_PASSED_MAX;
use quoin_layout::{OrderPlace, TaskCounter, TaskNumber, TaskRegistry};
use quoin_store::{Isolation, StoreError};

/// The name of a group. `None` for tasks without one, which take turns like a group, after all
/// groups.
pub(super) type Group = Option<Bytes>;

/// Finds ready tasks that fit, one after another, in the order in which consumers get them.
pub(super) struct Turns<'q, 'c, 't> {
    queue: &'q TaskQueue<'c, 't>,
    registry: &'q TaskRegistry,
    having: &'q Amounts,
    /// The only search of a queue without groups.
    plain: Option<Search<'q, 'c, 't>>,
    /// The group that had the last turn before.
    start: Group,
    /// Where to search for the next group. `None` once all groups were found.
    ahead: Option<Ahead>,
    /// The groups in the order of their next turns, each with its unfinished search.
    circle: VecDeque<(Group, Search<'q, 'c, 't>)>,
    /// How many tasks of each group may be on lease; `None` without limit.
    leases_max: Option<i64>,
    /// How many more leases each examined group may have.
    room: HashMap<Group, i64>,
    /// Groups at their limit that were passed over.
    passed: usize,
    searched: Searched,
}

/// Where to search for a group.
struct Ahead {
    /// From this key suffix, or from the beginning.
    from: Option<Vec<u8>>,
    /// Whether only the groups up to the one with the last turn remain.
    has_turned: bool,
}

impl Ahead {
    /// Back at the beginning, after the end was reached.
    const TURN: Self = Self {
        from: None,
        has_turned: true,
    };
}

/// What searches leave to do.
#[derive(Default)]
pub(super) struct Searched {
    /// Stale nodes of the index.
    pub(super) stale: Vec<Stale>,
    /// The first ready task of each class, if it was read.
    pub(super) heads: Vec<(Class, Bytes)>,
    /// The last of too many groups at their limit. The next take continues after it.
    pub(super) gave_up_at: Option<Group>,
}

impl<'q, 'c, 't> Turns<'q, 'c, 't> {
    /// Begins after the group that had the last turn. `leases`: whether the tasks will be leased,
    /// so that limits apply.
    pub(super) async fn begin(
        queue: &'q TaskQueue<'c, 't>,
        registry: &'q TaskRegistry,
        having: &'q Amounts,
        leases: bool,
    ) -> Result<Self, StoreError> {
        let leases_max = registry.options.number(TaskNumber::GroupLeasesMax);
        let leases_max = (leases && leases_max > 0).then_some(leases_max);
        let plain = match registry.has_groups || leases_max.is_some() {
            false => Some(Search::begin(queue, registry, having, None).await?),
            true => None,
        };
        let start = match registry.has_groups {
            false => None,
            true => queue.last_turn().await?,
        };
        let ahead = Ahead {
            from: after_group(&start),
            has_turned: start.is_none(),
        };
        Ok(Self {
            queue,
            registry,
            having,
            plain,
            start,
            ahead: Some(ahead),
            circle: VecDeque::new(),
            leases_max,
            room: HashMap::new(),
            passed: 0,
            searched: Searched::default(),
        })
    }

    /// The next task that fits.
    pub(super) async fn next(&mut self) -> Result<Option<Found>, StoreError> {
        if let Some(plain) = &mut self.plain {
            return plain.next().await;
        }
        if let Some(found) = self.next_group().await? {
            return Ok(Some(found));
        }
        while let Some((group, mut search)) = self.circle.pop_front() {
            if let Some(found) = search.next().await?
                && OrderPlace::decode(&found.place)?.group == group
                && self.has_room(&group).await?
            {
                self.circle.push_back((group, search));
                return Ok(Some(found));
            }
            self.searched.add(search);
        }
        Ok(None)
    }

    /// The first task that fits of the next group that has not had a turn yet.
    async fn next_group(&mut self) -> Result<Option<Found>, StoreError> {
        while let Some(Ahead { from, has_turned }) = self.ahead.take() {
            let is_first = from.is_none();
            let mut search = Search::begin(self.queue, self.registry, self.having, from).await?;
            if is_first {
                self.searched.heads = std::mem::take(&mut search.heads);
            }
            let Some(found) = search.next().await? else {
                self.searched.add(search);
                self.ahead = (!has_turned).then_some(Ahead::TURN);
                continue;
            };
            let group = OrderPlace::decode(&found.place)?.group;
            if has_turned && is_later(&group, &self.start) {
                // This group has already had its turn.
                self.searched.add(search);
                break;
            }
            let is_last = has_turned && group == self.start;
            self.ahead = match after_group(&group) {
                _ if is_last => None,
                Some(from) => Some(Ahead {
                    from: Some(from),
                    has_turned,
                }),
                None => (!has_turned).then_some(Ahead::TURN),
            };
            if self.has_room(&group).await? {
                self.circle.push_back((group, search));
                return Ok(Some(found));
            }
            self.searched.add(search);
            self.passed += 1;
            if self.passed >= TASK_GROUPS_PASSED_MAX {
                self.ahead = None;
                self.searched.gave_up_at = Some(group);
            }
        }
        Ok(None)
    }

    /// Whether a group may have one more leased task. If so, counts it.
    async fn has_room(&mut self, group: &Group) -> Result<bool, StoreError> {
        let Some(leases_max) = self.leases_max else {
            return Ok(true);
        };
        let room = match self.room.get(group) {
            Some(room) => *room,
            None => leases_max.saturating_sub(self.queue.leased_of(group, leases_max).await?),
        };
        self.room.insert(group.clone(), room.saturating_sub(1));
        Ok(room > 0)
    }

    /// What is left to do after the last search.
    pub(super) fn finish(mut self) -> Searched {
        if let Some(mut plain) = self.plain {
            self.searched.heads = std::mem::take(&mut plain.heads);
            self.searched.add(plain);
        }
        for (_, search) in self.circle {
            self.searched.add(search);
        }
        self.searched
    }
}

impl Searched {
    /// Adds the stale nodes of a search, up to the number that one TASK.TAKE repairs.
    fn add(&mut self, search: Search<'_, '_, '_>) {
        let room = REPAIRS_MAX.saturating_sub(self.stale.len());
        self.stale.extend(search.stale.into_iter().take(room));
    }
}

/// The key suffix after the tasks of a group. `None` after tasks without a group, which come last.
fn after_group(group: &Group) -> Option<Vec<u8>> {
    let group = group.as_deref()?;
    Some(after(&OrderPlace::group_prefix(Some(group))))
}

/// Whether a group comes after another in the order of a class.
fn is_later(group: &Group, other: &Group) -> bool {
    match (group, other) {
        (Some(group), Some(other)) => group > other,
        (None, Some(_)) => true,
        (_, None) => false,
    }
}

impl TaskQueue<'_, '_> {
    /// The group that had the last turn. Causes no conflicts.
    async fn last_turn(&self) -> Result<Group, StoreError> {
        let row = self.context.layout().task_turn_key(self.key.data());
        let value = self.context.transaction.get(&row, self.context.relaxed());
        Ok(match value.await? {
            Some(value) => OrderPlace::decode_group(&value)?,
            None => None,
        })
    }

    /// How many tasks of a group are on lease, counted up to `most`. Conflicts with other leases of the group.
    async fn leased_of(&self, group: &Group, most: i64) -> Result<i64, StoreError> {
        let Some(group) = group else {
            let leased = self.counter_in(TaskCounter::Leased, Isolation::Serializable);
            let of_groups = TaskCounter::LeasedOfGroups;
            let of_groups = self.counter_in(of_groups, Isolation::Serializable);
            return Ok(leased.await?.saturating_sub(of_groups.await?));
        };
        let layout = self.context.layout();
        let leases = layout.task_group_leases(self.key.data(), group);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let leases = range_rows(self.context, &leases, most, Isolation::Serializable).await?;
        Ok(i64::try_from(leases.len()).unwrap_or(i64::MAX))
    }
}

impl TaskQueueMut<'_, '_> {
    /// Records which group had the last turn, if the queue has groups.
    pub(super) fn set_turn(&self, registry: &TaskRegistry, group: &Group) {
        if registry.has_groups {
            let row = self.context.layout().task_turn_key(self.key.data());
            let value = OrderPlace::group_prefix(group.as_deref());
            self.context.transaction.set(&row, &value);
        }
    }
}
