use bytes::Bytes;
use proptest::prelude::*;

use super::file;
use super::log::{AclLog, Context, Event};
use super::*;
use quoin_data::command::resolve;

fn definition(rules: &str) -> Definition {
    let rules: Vec<&[u8]> = rules.split(' ').map(str::as_bytes).collect();
    let new = Definition::new(Defaults::default());
    new.with_rules(&rules, Defaults::default()).unwrap()
}

fn check(rules: &str, line: &str) -> Result<(), Denial> {
    let arguments: Vec<Bytes> = line.split(' ').map(|word| word.to_owned().into()).collect();
    let row = resolve(&arguments).ok().unwrap();
    definition(rules).check(row, &arguments)
}

fn denied(reason: Reason, position: usize) -> Result<(), Denial> {
    Err(Denial { reason, position })
}

#[test]
fn one_selector_has_to_allow_everything() {
    let rules = "~a +get (~b +set)";
    assert_eq!(check(rules, "GET a"), Ok(()));
    assert_eq!(check(rules, "SET b 1"), Ok(()));
    assert_eq!(check(rules, "GET b"), denied(Reason::Key, 1));
    assert_eq!(check(rules, "SET a 1"), denied(Reason::Key, 1));
    assert_eq!(check(rules, "DEL a"), denied(Reason::Command, 0));
    // Of several keys, the one that no selector allows is named.
    assert_eq!(
        check("~a +mget (~a ~b +mget)", "MGET a b c"),
        denied(Reason::Key, 3)
    );
}

#[test]
fn commands_categories_and_first_arguments() {
    assert_eq!(check("+@read -get", "STRLEN a"), denied(Reason::Key, 1));
    assert_eq!(check("+@read -get", "GET a"), denied(Reason::Command, 0));
    assert_eq!(check("+config|get", "CONFIG GET a"), Ok(()));
    assert_eq!(
        check("+config -config|set", "CONFIG SET a b"),
        denied(Reason::Command, 0)
    );
    assert_eq!(check("+select|0", "SELECT 0"), Ok(()));
    assert_eq!(check("+select|0", "SELECT 1"), denied(Reason::Command, 0));
    assert_eq!(check("", "AUTH x"), Ok(()));
    // Quoin's own commands are in the categories, too.
    assert_eq!(check("allkeys +@write", "PQ.PUSH q 1 a"), Ok(()));
    assert_eq!(
        check("allkeys +@read", "PQ.PUSH q 1 a"),
        denied(Reason::Command, 0)
    );
}

#[test]
fn a_user_is_open_only_with_everything() {
    assert!(definition("+@all ~* &*").is_open());
    for rules in ["+@all ~*", "+@all &*", "~* &*", "+@all ~* &* -get"] {
        assert!(!definition(rules).is_open(), "{rules}");
    }
    assert!(definition("(+@all ~* &*)").is_open());
    // ACL LIST tells nothing of the rule that was taken back, so a restart finds the user so.
    assert!(definition("+@all -get +get ~* &*").is_open());
    assert!(definition("+@all -config|set +config ~* &*").is_open());
}

#[test]
fn a_rule_replaces_what_it_makes_needless() {
    let rules = |rules: &str| definition(rules).root().command_rules();
    assert_eq!(rules("+get -get"), "-@all -get");
    assert_eq!(rules("+config|get +config"), "-@all +config");
    assert_eq!(rules("+config +config|get"), "-@all +config +config|get");
    assert_eq!(rules("+get +@all -set"), "+@all -set");
    assert_eq!(rules("+GET +@READ"), "-@all +get +@read");
}

#[test]
fn passwords_are_right_only_as_they_are() {
    let user = definition("on >secret >other <other");
    assert!(user.accepts(b"secret"));
    for wrong in ["", "secre", "secret1", "Secret", "secret\0", "other"] {
        assert!(!user.accepts(wrong.as_bytes()), "{wrong}");
    }
    assert!(!definition("off >secret").accepts(b"secret"));
    assert!(definition("on nopass").accepts(b"anything"));
    assert!(!definition("on nopass >p resetpass").accepts(b"p"));
}

#[test]
fn users_stay_the_same_for_their_clients() {
    let users = Users::new(Definition::unrestricted());
    assert!(!users.has_restricted() && !users.requires_authentication());
    let set = |rules: &str| {
        users
            .change(b"u", |_| Ok::<_, ()>(definition(rules)))
            .unwrap()
    };
    let (user, before) = set("on +get ~*");
    assert!(before.is_none() && users.has_restricted() && !user.is_open());
    let (same, _) = set("on +@all ~* &*");
    assert!(std::sync::Arc::ptr_eq(&user, &same) && user.is_open());
    assert!(users.delete(b"default").is_none());
    assert!(users.delete(b"u").is_some());
    assert!(user.is_deleted() && !user.is_open());
    let change = |_: Option<&Definition>| Ok::<_, ()>(definition("on >p"));
    users.change(b"default", change).unwrap();
    assert!(users.requires_authentication());
}

#[test]
fn others_take_the_place_of_users() {
    let users = Users::new(Definition::unrestricted());
    let given = |names: &[(&'static str, &str)]| {
        let users = names
            .iter()
            .map(|(name, rules)| (Bytes::from(*name), definition(rules)));
        users.collect::<std::collections::BTreeMap<_, _>>()
    };
    let default = Definition::unrestricted;
    users.replace(given(&[("a", "on"), ("b", "on")]), default(), true);
    let kept = users.find(b"a").unwrap();
    let replaced = users.replace(given(&[("a", "off"), ("c", "on")]), default(), true);
    assert_eq!((replaced.deleted.len(), replaced.redefined.len()), (1, 1));
    assert!(!kept.is_deleted() && !kept.definition().is_on());
    users.replace(given(&[("a", "off")]), default(), false);
    assert!(kept.is_deleted() && users.find(b"a").is_some());
}

#[test]
fn what_is_alike_is_one_entry_for_a_minute() {
    let log = AclLog::default();
    let record = |object: &'static str, now_ms: i64| {
        let event = Event {
            reason: Reason::Key,
            context: Context::Toplevel,
            object: object.into(),
            username: "u".into(),
            client: now_ms.to_string(),
        };
        log.record(event, now_ms, 2);
    };
    record("a", 0);
    record("b", 10);
    record("a", 60_000);
    let entries = log.newest(9);
    let seen = entries
        .iter()
        .map(|entry| (entry.id, entry.count, entry.event.client.as_str()));
    assert_eq!(seen.collect::<Vec<_>>(), [(0, 2, "60000"), (1, 1, "10")]);
    record("a", 120_001);
    let ids: Vec<i64> = log.newest(9).iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [2, 0]);
    assert_eq!(log.denied_keys.get(), 4);
}

proptest! {
    #[test]
    fn what_describes_a_user_makes_it_again(
        rules in proptest::collection::vec(
            proptest::sample::select(vec![
                "on", "off", "nopass", ">p", ">q", "skip-sanitize-payload", "~a", "%R~b", "%W~b", "~*",
                "resetkeys", "&c", "&*", "resetchannels", "+get", "-get", "+@read", "-@write", "+@all",
                "-@all", "+config|get", "-config|set", "+config", "-config", "+select|0", "(~x +set)",
                "(&* +@all -set %R~y)", "clearselectors", "reset",
            ]),
            0..12,
        ),
    ) {
        let mut user = Definition::new(Defaults::default());
        for rule in rules {
            // What is refused changes nothing.
            let _ = user.apply(rule.as_bytes(), Defaults::default());
        }
        let text = user.describe();
        let (again, refused) = Definition::from_description(&text);
        prop_assert_eq!(refused, None);
        prop_assert_eq!(again.describe(), text.clone());
        let line = [b"user u ", text.as_slice()].concat();
        let users = file::parse("f", &line, Defaults::default()).unwrap();
        prop_assert_eq!(users.get(&b"u"[..]), Some(&again));
        for line in ["GET a", "SET b 1", "CONFIG GET x", "CONFIG SET x y", "SELECT 0", "PUBLISH c m"] {
            let arguments: Vec<Bytes> = line.split(' ').map(Bytes::from).collect();
            let row = resolve(&arguments).ok().unwrap();
            prop_assert_eq!(user.check(row, &arguments), again.check(row, &arguments));
        }
        prop_assert_eq!(user.is_open(), again.is_open());
    }
}
