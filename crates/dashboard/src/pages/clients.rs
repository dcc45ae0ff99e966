//! Clients, and what each of them does or waits for.

use std::collections::HashMap;

use maud::{Markup, html};

use quoin_resp::wire::reply_reader::Value;

use crate::figures::{bytes, count, duration};
use crate::frame::{Action, refusal};
use crate::pages::queues::cell;
use crate::view::{Answer, NoPage, Page, View, text, words};

/// Clients that are shown.
const SHOWN_MAX: usize = 200;

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let reply = view.run(words!["CLIENT", "LIST"])?;
    let body = match reply.error_text() {
        Some(line) => refusal("Clients", &line),
        None => table(view, &reply),
    };
    Ok(Page {
        title: "Clients".to_owned(),
        place: "clients",
        refresh_s: 10,
        body,
    })
}

/// A line of CLIENT LIST.
type Fields<'l> = HashMap<&'l str, &'l str>;

/// Waiting clients first, then those that did something last.
fn fields_of(list: &str) -> Vec<Fields<'_>> {
    let clients = list.lines().map(|line| {
        let fields = line.split(' ').filter_map(|field| field.split_once('='));
        fields.collect::<Fields<'_>>()
    });
    let mut clients: Vec<_> = clients.collect();
    clients.sort_by_key(|client| (!is_waiting(client), number(client, "idle")));
    clients
}

fn is_waiting(client: &Fields<'_>) -> bool {
    client.get("flags").is_some_and(|flags| flags.contains('b'))
}

fn number(client: &Fields<'_>, name: &str) -> i64 {
    client
        .get(name)
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

fn table(view: &View<'_>, reply: &Value) -> Markup {
    let list = text(reply);
    let searched = view.asked.query.text("match").to_lowercase();
    let all = fields_of(&list);
    let fits = |client: &&Fields<'_>| {
        let shown = ["addr", "name", "user", "cmd", "lib-name"];
        searched.is_empty()
            || shown
                .iter()
                .filter_map(|name| client.get(name))
                .any(|value| value.to_lowercase().contains(&searched))
    };
    let fitting: Vec<_> = all.iter().filter(fits).collect();
    let waiting = all.iter().filter(|client| is_waiting(client)).count();
    let may_kill = view.may(&[b"CLIENT", b"KILL", b"ID", b"1"]);
    html! {
        div.between {
            h1 { "Clients" }
            span.soft { (count(all.len() as i64)) " connected, " (count(waiting as i64)) " waiting" }
        }
        form.filters method="get" action="/clients" role="search" {
            input type="search" name="match" value=(view.asked.query.text("match"))
                placeholder="Address, name, user or command"
                aria-label="Address, name, user or command";
            button type="submit" { "Search" }
        }
        div.table { table data-sort="1" {
            thead { tr {
                th scope="col" { "Client" } th scope="col" { "User" } th scope="col" { "Last command" }
                th scope="col" { "State" } th.number scope="col" { "Database" } th.number scope="col" { "Idle" }
                th.number scope="col" { "Connected" } th.number scope="col" { "Memory" } th scope="col" { "" }
            } }
            tbody { @for client in fitting.iter().take(SHOWN_MAX) { (row(view, client, may_kill)) } }
        } }
        @if fitting.len() > SHOWN_MAX {
            p.soft { (count(SHOWN_MAX as i64)) " of " (count(fitting.len() as i64)) " are shown." }
        }
    }
}

fn row(view: &View<'_>, client: &Fields<'_>, may_kill: bool) -> Markup {
    let get = |name: &str| client.get(name).copied().unwrap_or_default();
    let id = get("id");
    let popover = format!("kill-{id}");
    let question = format!("Disconnect the client {} at {}?", id, get("addr"));
    let seconds = |name: &str| number(client, name) * 1_000;
    html! {
        tr {
            td.name { span.mono { (get("addr")) } @if !get("name").is_empty() { br; span.soft { (get("name")) } } }
            td { (get("user")) }
            td.mono { (get("cmd")) }
            td { (state(get("flags"), client)) }
            (cell(Some(number(client, "db")), ""))
            td.number data-value=(seconds("idle")) { (duration(seconds("idle"))) }
            td.number data-value=(seconds("age")) { (duration(seconds("age"))) }
            td.number data-value=(get("tot-mem")) { (bytes(number(client, "tot-mem") as f64)) }
            td { @if may_kill && get("name") != "quoin-dashboard" {
                (Action { id: &popover, label: "Disconnect", question: Some(&question), path: "/clients",
                    fields: &[("client", id)], is_dangerous: true }.show(view.session))
            } }
        }
    }
}

fn state(flags: &str, client: &Fields<'_>) -> Markup {
    let subscriptions = number(client, "sub") + number(client, "psub") + number(client, "ssub");
    html! {
        @if flags.contains('b') { span.tag.on { "waiting" } " " }
        @if flags.contains('x') { span.tag { "in MULTI" } " " }
        @if flags.contains('O') { span.tag { "monitor" } " " }
        @if flags.contains('t') { span.tag { "tracking" } " " }
        @if subscriptions > 0 { span.tag { (count(subscriptions)) " subscriptions" } }
    }
}

/// Disconnects a client.
pub(crate) fn act(view: &mut View<'_>) -> Result<Answer, NoPage> {
    let id = view.asked.form.text("client").to_owned();
    let reply = view.run(words!["CLIENT", "KILL", "ID", id])?;
    match reply.error_text() {
        Some(line) => view.note_error(line),
        None if reply.integer() == Some(0) => view.note("The client had left."),
        None => view.note(format!("Disconnected the client {id}.")),
    }
    Ok(Answer::See("/clients".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_clients_come_first() {
        let list = "id=1 addr=a:1 flags=N idle=0\nid=2 addr=a:2 flags=b idle=9 cmd=blpop\nid=3 flags=N idle=3\n";
        let ids: Vec<_> = fields_of(list).iter().map(|client| client["id"]).collect();
        assert_eq!(ids, ["2", "1", "3"]);
    }
}
