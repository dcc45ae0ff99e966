//! Bags: values that repeat, without an order. A toy type, for CONTRIBUTING and tests/toy_type.

use bytes::Bytes;

use crate::command::arguments::argument;
use crate::command::flags::Flags;
use crate::command::grammar::{key, string};
use crate::command::key_specs::{CHECK, INSERT, at};
use crate::command::row::{Group, Handler, Row};
use crate::error::CommandError;
use crate::keyspace::handle::{Value, ValueMut};
use crate::keyspace::kind::{ElementFlow, SectionKind, ValueKind, plain_element};
use crate::unit::context::{ReadContext, WriteContext};
use crate::{read_handler, write_handler};
use quoin_layout::{Position, Section, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// The descriptor of bags.
pub static KIND: ValueKind = ValueKind {
    name: "bag",
    encoding: |_, _| Box::pin(async { Ok("rows") }),
    exists_when_empty: false,
    inline: None,
    is_waited_for: false,
    flow: ElementFlow::Nothing,
    sections: &[
        SectionKind::elements(Section::Elements, plain_element),
        SectionKind::CHUNKS,
    ],
    counters: &[],
    queue: None,
    on_put: None,
    slice: None,
    named_section: None,
    figures: None,
    deadlines: &[],
    serialization: None,
    import: None,
};

/// The type of bags, for handles.
pub enum BagType {}
/// A bag, for reading.
pub type Bag<'c, 't> = Value<'c, 't, BagType>;
/// A bag, for writing.
pub type BagMut<'c, 't> = ValueMut<'c, 't, BagType>;

impl Bag<'_, '_> {
    /// The number of values.
    pub async fn count(&self) -> Result<i64, StoreError> {
        self.context.length(self.key, self.context.isolation).await
    }
}

impl BagMut<'_, '_> {
    /// Adds a value.
    pub fn add(&self, value: &Bytes) {
        let random = (self.context.environment.random.next_u64() >> 1).cast_signed();
        let data = self.key.data();
        let row = (self.context.layout()).element_key(data, &Position(vec![random]));
        let stored = self.context.store_value(data, value);
        self.context.transaction.set(&row, &stored);
        self.context.add_length(self.key, 1);
    }
}

const fn bag(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "1.0.0", Group::Generic, handler)
}

/// The bag commands.
pub const ROWS: &[Row] = &[
    bag("bag.add", 3, write_handler!(add))
        .summary("Adds a value to a bag. Creates the bag if it doesn't exist.")
        .complexity("O(log N), N being all that is stored")
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, INSERT)])
        .arguments(&[key(0), string("value")]),
    bag("bag.len", 2, read_handler!(len))
        .summary("Returns the number of values in a bag.")
        .complexity("O(log N), N being all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
];

/// `BAG.ADD key value` → OK.
async fn add(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find_or_create(name, ValueType::Bag).await?;
    BagMut::open(context, &key).add(argument(arguments, 2)?);
    Ok(Reply::OK)
}

/// `BAG.LEN key` → the number of values.
async fn len(context: &ReadContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Bag).await? else {
        return Ok(Reply::Integer(0));
    };
    Ok(Reply::Integer(Bag::open(context, &key).count().await?))
}
