//! Any bytes in a store are either read or refused as keys and values of the layout, and what is
//! read is written back unchanged.

use bytes::Bytes;
use quoin_layout::{
    ElementsValue, FieldRow, FieldValue, Id, KeysRow, Layout, MemberEntry, Meta, OrderRow,
    StoredValue, TaskRegistry, TaskRow, Timers, TrashKind, decode_counter, decode_id, encode_id,
};

const DATA: Id = Id {
    instance: 1,
    sequence: 300,
};

/// Panics if the layout misbehaves on this data.
pub(crate) fn run(data: &[u8]) {
    let layout = Layout::new("");
    keys(&layout, data);
    rows_of_data(&layout, data);
    values(data);
}

fn keys(layout: &Layout, key: &[u8]) {
    if let Ok(row) = layout.read_keys_row(key) {
        let (KeysRow::Meta(name) | KeysRow::Length(name)) = row;
        let again = layout.meta_key(DATA, &name);
        assert_eq!(
            layout.read_keys_row(&again).ok(),
            Some(KeysRow::Meta(name)),
            "a name does not survive a key"
        );
    }
    if let Ok((at_ms, namespace, name)) = layout.read_expiry_key(key) {
        let again = layout.expiry_key(at_ms, namespace, &name);
        assert_eq!(
            layout.read_expiry_key(&again).ok(),
            Some((at_ms, namespace, name))
        );
    }
    if let Ok((kind, id)) = layout.read_trash_key(key) {
        assert!(matches!(kind, TrashKind::Data | TrashKind::Namespace));
        let again = layout.trash_key(kind, id);
        assert_eq!(layout.read_trash_key(&again).ok(), Some((kind, id)));
    }
}

fn rows_of_data(layout: &Layout, tail: &[u8]) {
    let mut key = layout.elements_prefix(DATA);
    let prefix_length = key.len();
    key.extend_from_slice(tail);
    if let Ok(position) = layout.read_position(prefix_length, &key) {
        let again = layout.element_key(DATA, &position);
        assert_eq!(
            layout.read_position(prefix_length, &again).ok(),
            Some(position)
        );
    }
    let mut key = layout.scores_prefix(DATA);
    let prefix_length = key.len();
    key.extend_from_slice(tail);
    if let Ok(entry) = layout.read_score_key(prefix_length, &key)
        && !entry.score.is_nan()
    {
        let again = layout.score_key(DATA, entry.score, &entry.prefix, entry.label.as_ref());
        assert_eq!(
            layout.read_score_key(prefix_length, &again).ok(),
            Some(entry)
        );
    }
    let mut key = layout.queue_prefix(DATA);
    let prefix_length = key.len();
    key.extend_from_slice(tail);
    if let Ok((place, priority_length)) = layout.read_queue_key(prefix_length, &key) {
        let again = layout.queue_key(DATA, &place);
        let shared = layout.priority_prefix(DATA, &place.priority);
        assert_eq!(again.get(..priority_length), Some(shared.as_slice()));
        let read = layout.read_queue_key(prefix_length, &again);
        assert!(
            read.is_ok_and(|(read, _)| {
                read.priority.number() == place.priority.number()
                    && (read.count, read.random) == (place.count, place.random)
            }),
            "a place in a priority queue does not survive a key"
        );
    }
    let mut key = layout.data_prefix(DATA);
    key.extend_from_slice(tail);
    let _ = layout.member_keys(DATA).read(&Bytes::copy_from_slice(&key));
    let _ = layout
        .field_keys(DATA, FieldRow::Hash)
        .read(&Bytes::copy_from_slice(&key));
    if let Ok((at_ms, field)) = layout.read_field_expiry_key(DATA, &key) {
        let written = layout.field_expiry_key(DATA, at_ms, &field);
        assert!(written.is_ok_and(
            |written| layout.read_field_expiry_key(DATA, &written) == Ok((at_ms, field))
        ));
    }
    let _ = layout.read_piece_key(DATA, &key);
    tasks(layout, tail);
}

fn values(value: &[u8]) {
    let row = Bytes::copy_from_slice(value);
    if let Ok(meta) = Meta::decode(&row) {
        assert_eq!(Meta::decode(&meta.encode().into()).ok(), Some(meta));
    }
    if let Ok(field) = FieldValue::decode(&row) {
        assert_eq!(FieldValue::decode(&field.encode()).ok(), Some(field));
    }
    for form in [FieldRow::Hash, FieldRow::Set] {
        let entries = form.decode_inline(&row).ok();
        let length = entries.as_ref().map(|entries| entries.len() as i64);
        assert_eq!(length, form.count_inline(&row).ok());
        if let Some(inline) = entries.and_then(|entries| form.encode_inline(&entries, usize::MAX)) {
            assert_eq!(form.count_inline(&inline).ok(), length);
        }
    }
    if let Ok(entry) = MemberEntry::decode(value)
        && !entry.score.is_nan()
    {
        assert_eq!(MemberEntry::decode(&entry.encode()).ok(), Some(entry));
    }
    if let Ok(id) = decode_id(value) {
        assert_eq!(decode_id(&encode_id(id)).ok(), Some(id));
    }
    let value = Bytes::copy_from_slice(value);
    if let Ok(ElementsValue::Run(run)) = ElementsValue::decode(&value) {
        let encoded = Bytes::from(run.encode());
        assert_eq!(
            ElementsValue::decode(&encoded).ok(),
            Some(ElementsValue::Run(run))
        );
    }
    if let Ok(StoredValue::Plain(bytes)) = StoredValue::decode(&value) {
        assert_eq!(StoredValue::encode_plain(&bytes), value);
    }
    let _ = decode_counter(Some(&value));
}

fn tasks(layout: &Layout, data: &[u8]) {
    let value = Bytes::copy_from_slice(data);
    if let Ok(row) = TaskRow::decode(&value) {
        let again = TaskRow::decode(&row.encode().into()).ok();
        // NaN, which is never stored, does not equal itself.
        let has_nan = row.place.priority.is_nan() || row.amounts.iter().any(|one| one.is_nan());
        assert!(
            has_nan || again == Some(row),
            "a task does not survive its row"
        );
    }
    if let Ok(registry) = TaskRegistry::decode(Some(&value)) {
        let again = TaskRegistry::decode(Some(&registry.encode().into())).ok();
        assert_eq!(again, Some(registry));
    }
    if let Ok(row) = OrderRow::decode(2, &value) {
        assert_eq!(OrderRow::encode(&row.amounts, &row.id), data);
    }
    let level = layout.task_nodes_prefix(DATA, 1, 0);
    let key = Bytes::from([level.as_slice(), data].concat());
    if let Ok((place, Some(slot))) = layout.read_task_node(level.len(), &key) {
        assert_eq!(layout.task_minimum_key(&level, &place, slot), key);
    }
    for section in [layout.task_due(DATA), layout.task_maintenance(DATA)] {
        let mut key = section.begin;
        key.pop();
        key.extend_from_slice(data);
        let _ = layout.read_task_due_key(DATA, &key);
        let _ = layout.read_task_maintenance_key(DATA, &key);
    }
    for timers in [Timers::Queues, Timers::Hashes] {
        if let Ok((namespace, name)) = layout.read_timer_key(timers, data) {
            let again = layout.timer_key(timers, 7, namespace, &name);
            let read = layout.read_timer_key(timers, &again).ok();
            assert_eq!(read, Some((namespace, name)));
        }
    }
}
