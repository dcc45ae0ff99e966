//! The types that hold work, and the states of a task.

/// The type of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Tasks with priorities, leases and retries.
    TaskQueue,
    /// Values with priorities.
    PriorityQueue,
    /// A list.
    List,
    /// A stream.
    Stream,
    /// A sorted set.
    SortedSet,
}

impl Kind {
    /// All types, those with the most states first.
    pub const ALL: [Kind; 5] = [
        Kind::TaskQueue,
        Kind::PriorityQueue,
        Kind::List,
        Kind::Stream,
        Kind::SortedSet,
    ];

    /// As TYPE answers.
    pub fn type_name(self) -> &'static str {
        match self {
            Kind::TaskQueue => "taskqueue",
            Kind::PriorityQueue => "pqueue",
            Kind::List => "list",
            Kind::Stream => "stream",
            Kind::SortedSet => "zset",
        }
    }

    /// As people say.
    pub fn name(self) -> &'static str {
        match self {
            Kind::TaskQueue => "task queue",
            Kind::PriorityQueue => "priority queue",
            Kind::List => "list",
            Kind::Stream => "stream",
            Kind::SortedSet => "sorted set",
        }
    }

    /// The type that TYPE names so, if it holds work.
    pub fn of_type(type_name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.type_name() == type_name)
    }
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It can be taken.
    Ready,
    /// A consumer has it.
    Leased,
    /// It can be taken later.
    Delayed,
    /// It has used up its tries.
    Dead,
    /// It can be taken when others are acknowledged.
    Waiting,
}

impl State {
    /// All of them.
    pub const ALL: [State; 5] = [
        State::Ready,
        State::Leased,
        State::Delayed,
        State::Dead,
        State::Waiting,
    ];

    /// As TASK.LIST and TASK.PURGE call it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Leased => "leased",
            State::Delayed => "delayed",
            State::Dead => "dead",
            State::Waiting => "waiting",
        }
    }

    /// The state with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|state| state.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_and_state_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_type(kind.type_name()), Some(kind));
        }
        for state in State::ALL {
            assert_eq!(State::of_name(state.name()), Some(state));
        }
        assert_eq!(Kind::of_type("hash"), None);
        assert_eq!(State::of_name("DEAD"), Some(State::Dead));
    }
}
