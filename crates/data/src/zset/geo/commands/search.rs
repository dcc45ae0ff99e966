//! GEOSEARCH, GEOSEARCHSTORE, and the older GEORADIUS and GEORADIUSBYMEMBER.

use bytes::Bytes;

use super::arguments::{boxed, circle, coordinates};
use super::{distance, place};
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use crate::zset::geo::{Coordinates, Form, FoundMember, GeoQuery, Order, Shape};
use crate::zset::{ScoredMember, SortedSet, store};
use quoin_base::events::EventClasses;
use quoin_base::redis_version::RedisVersion;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// The kinds of search commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    /// Around coordinates, which follow the key.
    Radius { may_store: bool },
    /// Around a member, which follows the key.
    RadiusByMember { may_store: bool },
    /// Everything is an option.
    Search,
    /// Everything is an option. The destination comes before the key that is searched.
    SearchStore,
}

/// `GEORADIUS key longitude latitude radius unit [WITHCOORD] [WITHDIST] [WITHHASH]
/// [COUNT count [ANY]] [ASC|DESC] [STORE key|STOREDIST key]` → members, or number of stored members.
pub(super) async fn georadius(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    write(context, arguments, Command::Radius { may_store: true }).await
}

/// `GEORADIUS_RO key …`: as GEORADIUS, without STORE and STOREDIST.
pub(super) async fn georadius_ro(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, Command::Radius { may_store: false }).await
}

/// `GEORADIUSBYMEMBER key member radius unit …`: as GEORADIUS.
pub(super) async fn georadiusbymember(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let command = Command::RadiusByMember { may_store: true };
    write(context, arguments, command).await
}

/// `GEORADIUSBYMEMBER_RO key …`: as GEORADIUSBYMEMBER, without STORE and STOREDIST.
pub(super) async fn georadiusbymember_ro(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let command = Command::RadiusByMember { may_store: false };
    read(context, arguments, command).await
}

/// `GEOSEARCH key FROMMEMBER member|FROMLONLAT longitude latitude
/// BYRADIUS radius unit|BYBOX width height unit [ASC|DESC] [COUNT count [ANY]] [WITHCOORD]
/// [WITHDIST] [WITHHASH]` → members.
pub(super) async fn geosearch(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read(context, arguments, Command::Search).await
}

/// `GEOSEARCHSTORE destination key … [STOREDIST]`: as GEOSEARCH without the WITH options → number
/// of stored members.
pub(super) async fn geosearchstore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    write(context, arguments, Command::SearchStore).await
}

async fn read(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    command: Command,
) -> Result<Reply, CommandError> {
    let (search, key) = Search::parse(context, arguments, command).await?;
    search.answer(context, key).await
}

async fn write(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    command: Command,
) -> Result<Reply, CommandError> {
    let (search, key) = Search::parse(context, arguments, command).await?;
    let Some(destination) = search.destination else {
        return search.answer(context, key).await;
    };
    let unit_m = search.unit_m;
    let score = |found: &FoundMember| match search.stores_distances {
        true => found.distance_m / unit_m,
        false => found.score,
    };
    let found = search.run(context, key).await?.into_iter();
    let mut members: Vec<_> = found
        .map(|found| ScoredMember {
            score: score(&found),
            member: found.member,
        })
        .collect();
    members.sort_by(ScoredMember::order);
    let stored = store(context, destination, &members).await?;
    if stored > 0 {
        let event = match command {
            Command::SearchStore => "geosearchstore",
            _ => "georadiusstore",
        };
        context.notify(EventClasses::SORTED_SET, event, destination);
    }
    Ok(Reply::Integer(stored))
}

/// What a search returns besides the members.
#[derive(Debug, Clone, Copy, Default)]
struct Details {
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
}

impl Details {
    fn any(self) -> bool {
        self.with_distance || self.with_hash || self.with_place
    }

    /// A found member, as this version of Redis shows it. The lengths of the search are in this unit.
    fn reply(self, found: FoundMember, unit_m: f64, told: RedisVersion) -> Reply {
        let member = Reply::Bulk(found.member);
        if !self.any() {
            return member;
        }
        let mut parts = vec![member];
        if self.with_distance {
            parts.push(distance(found.distance_m / unit_m));
        }
        if self.with_hash {
            // Scores of places are integers from 0 on. ZADD may have added others.
            #[allow(clippy::cast_possible_truncation)]
            parts.push(Reply::Integer(found.score as i64));
        }
        if self.with_place {
            parts.push(place(found.place, told));
        }
        Reply::Array(parts)
    }
}

struct Search<'a> {
    center: Option<Coordinates>,
    /// Whether FROMMEMBER was given, even if the key does not exist.
    has_member: bool,
    form: Option<Form>,
    unit_m: f64,
    details: Details,
    order: Order,
    count: Option<usize>,
    any: bool,
    destination: Option<&'a Bytes>,
    stores_distances: bool,
}

impl<'a> Search<'a> {
    /// Reads the arguments, checking them in Redis's order: the key is looked up first.
    async fn parse(
        context: &ReadContext<'_>,
        arguments: &'a [Bytes],
        command: Command,
    ) -> Result<(Self, Option<OpenKey>), CommandError> {
        let mut search = Self {
            center: None,
            has_member: false,
            form: None,
            unit_m: 1.0,
            details: Details::default(),
            order: Order::Cells,
            count: None,
            any: false,
            destination: None,
            stores_distances: false,
        };
        let (name, words) = match command {
            Command::SearchStore => {
                search.destination = Some(argument(arguments, 1)?);
                (argument(arguments, 2)?, rest(arguments, 3))
            }
            _ => (argument(arguments, 1)?, rest(arguments, 2)),
        };
        let key = context.find(name, ValueType::SortedSet).await?;
        let options = match command {
            Command::Radius { .. } => {
                search.center = Some(coordinates(words)?);
                search.reach(circle(rest(words, 2))?);
                rest(words, 4)
            }
            Command::RadiusByMember { .. } => {
                // Without a key Redis checks only the options.
                if let Some(key) = &key {
                    search.center = Some(place_of(context, key, argument(words, 0)?).await?);
                    search.reach(circle(rest(words, 1))?);
                }
                rest(words, 3)
            }
            Command::Search | Command::SearchStore => words,
        };
        search
            .parse_options(context, key.as_ref(), options, command)
            .await?;
        search.check(argument(arguments, 0)?, command)?;
        Ok((search, key))
    }

    async fn parse_options(
        &mut self,
        context: &ReadContext<'_>,
        key: Option<&OpenKey>,
        mut options: &'a [Bytes],
        command: Command,
    ) -> Result<(), CommandError> {
        let searches = matches!(command, Command::Search | Command::SearchStore);
        let may_store = matches!(
            command,
            Command::Radius { may_store: true } | Command::RadiusByMember { may_store: true }
        );
        while let Some((option, values)) = options.split_first() {
            let is = |word: &str| is_word(option, word);
            let taken = match values {
                _ if is("withdist") => {
                    self.details.with_distance = true;
                    0
                }
                _ if is("withhash") => {
                    self.details.with_hash = true;
                    0
                }
                _ if is("withcoord") => {
                    self.details.with_place = true;
                    0
                }
                _ if is("any") => {
                    self.any = true;
                    0
                }
                _ if is("asc") => {
                    self.order = Order::Nearest;
                    0
                }
                _ if is("desc") => {
                    self.order = Order::Farthest;
                    0
                }
                [count, ..] if is("count") => {
                    let count = integer(count)?;
                    if count <= 0 {
                        return Err(CommandError::text("ERR COUNT must be > 0"));
                    }
                    self.count = Some(to_usize(count));
                    1
                }
                [destination, ..] if may_store && (is("store") || is("storedist")) => {
                    self.destination = Some(destination);
                    self.stores_distances = is("storedist");
                    1
                }
                _ if command == Command::SearchStore && is("storedist") => {
                    self.stores_distances = true;
                    0
                }
                [member, ..]
                    if searches
                        && is("frommember")
                        && (self.has_member || self.center.is_none()) =>
                {
                    if let Some(key) = key {
                        self.center = Some(place_of(context, key, member).await?);
                    }
                    self.has_member = true;
                    1
                }
                [_, _, ..] if searches && is("fromlonlat") && !self.has_member => {
                    self.center = Some(coordinates(values)?);
                    2
                }
                [_, _, ..]
                    if searches
                        && is("byradius")
                        && !matches!(self.form, Some(Form::Box { .. })) =>
                {
                    self.reach(circle(values)?);
                    2
                }
                [_, _, _, ..]
                    if searches
                        && is("bybox")
                        && !matches!(self.form, Some(Form::Circle { .. })) =>
                {
                    self.reach(boxed(values)?);
                    3
                }
                _ => return Err(CommandError::Syntax),
            };
            options = rest(values, taken);
        }
        Ok(())
    }

    fn reach(&mut self, (form, unit_m): (Form, f64)) {
        self.form = Some(form);
        self.unit_m = unit_m;
    }

    /// Refuses combinations of options.
    fn check(&self, name: &[u8], command: Command) -> Result<(), CommandError> {
        let searches = matches!(command, Command::Search | Command::SearchStore);
        let line = if self.destination.is_some() && self.details.any() {
            let option = match searches {
                true => "GEOSEARCHSTORE",
                false => "STORE option in GEORADIUS",
            };
            format!("{option} is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
        } else if searches && self.center.is_none() && !self.has_member {
            let name = String::from_utf8_lossy(name);
            format!("exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}")
        } else if searches && self.form.is_none() {
            let name = String::from_utf8_lossy(name);
            format!("exactly one of BYRADIUS and BYBOX can be specified for {name}")
        } else if self.any && self.count.is_none() {
            "the ANY argument requires COUNT argument".to_owned()
        } else {
            return Ok(());
        };
        Err(CommandError::Text(format!("ERR {line}").into()))
    }

    async fn answer(
        &self,
        context: &ReadContext<'_>,
        key: Option<OpenKey>,
    ) -> Result<Reply, CommandError> {
        let found = self.run(context, key).await?.into_iter();
        let told = context.environment.reported_version;
        let replies = found.map(|found| self.details.reply(found, self.unit_m, told));
        Ok(Reply::Array(replies.collect()))
    }

    async fn run(
        &self,
        context: &ReadContext<'_>,
        key: Option<OpenKey>,
    ) -> Result<Vec<FoundMember>, CommandError> {
        let (Some(key), Some(center), Some(form)) = (key, self.center, self.form) else {
            return Ok(Vec::new());
        };
        let query = GeoQuery {
            shape: Shape {
                center,
                form,
                unit_m: self.unit_m,
            },
            // COUNT without ANY wants the nearest.
            order: match self.order {
                Order::Cells if self.count.is_some() && !self.any => Order::Nearest,
                order => order,
            },
            count: self.count,
            any: self.any,
        };
        Ok(SortedSet::open(context, &key).search(&query).await?)
    }
}

/// The place of a member.
async fn place_of(
    context: &ReadContext<'_>,
    key: &OpenKey,
    member: &Bytes,
) -> Result<Coordinates, CommandError> {
    let score = SortedSet::open(context, key).score(member).await?;
    score.map(Coordinates::of_score).ok_or(CommandError::text(
        "ERR could not decode requested zset member",
    ))
}
