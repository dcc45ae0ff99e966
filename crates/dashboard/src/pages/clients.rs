//! Clients, and what each of them does or waits for.

use std::collections::HashMap;

use maud::{Markup, html};

use quoin_base::limits::DASHBOARD_CLIENTS_MAX;

use crate::figures::{bytes, count, counted, duration, moment, readable};
use crate::frame::{Action, refusal};
use crate::host::{Clients, Wait};
use crate::json;
use crate::pages::queues::cell;
use crate::request::url;
use crate::view::{Answer, NoPage, Page, View, text, words};

/// Maximum bytes of a key's name that is shown whole, as a link.
const KEY_BYTES_MAX: usize = 128;

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let user = view.session.user.as_bytes();
    let searched = view.asked.query.text("match");
    let clients = view.host.clients(user, searched, DASHBOARD_CLIENTS_MAX);
    // The command needs an id, and no client has this one.
    let mut list = words!["CLIENT", "LIST", "ID", "0"];
    list.extend(
        clients
            .shown
            .iter()
            .map(|(id, _)| id.to_string().into_bytes()),
    );
    let reply = view.run(list)?;
    let body = match reply.error_text() {
        Some(line) => refusal("Clients", &line),
        None => table(view, &clients, &text(&reply)),
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

/// The clients of a list, in its order.
fn fields_of(list: &str) -> impl Iterator<Item = Fields<'_>> {
    list.lines().map(|line| {
        let fields = line.split(' ').filter_map(|field| field.split_once('='));
        fields.collect()
    })
}

fn number(client: &Fields<'_>, name: &str) -> i64 {
    client
        .get(name)
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

fn table(view: &View<'_>, clients: &Clients, list: &str) -> Markup {
    let may_kill = view.may(&[b"CLIENT", b"KILL", b"ID", b"1"]);
    let waits: HashMap<String, &Wait> = clients
        .shown
        .iter()
        .filter_map(|(id, wait)| Some((id.to_string(), wait.as_ref()?)))
        .collect();
    let wait_of = |client: &Fields<'_>| waits.get(*client.get("id")?).copied();
    html! {
        div.between {
            h1 { "Clients" }
            span.soft { (count(clients.connected as i64)) " connected, " (count(clients.waiting as i64)) " waiting" }
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
            tbody { @for client in fields_of(list) { (row(view, &client, wait_of(&client), may_kill)) } }
        } }
        @if clients.fitting > clients.shown.len() {
            p.soft { "Showing " (count(clients.shown.len() as i64)) " of " (count(clients.fitting as i64)) "." }
        }
    }
}

fn row(view: &View<'_>, client: &Fields<'_>, wait: Option<&Wait>, may_kill: bool) -> Markup {
    let get = |name: &str| client.get(name).copied().unwrap_or_default();
    let id = get("id");
    let popover = format!("kill-{id}");
    let question = format!("Disconnect client {} at {}?", id, get("addr"));
    let seconds = |name: &str| number(client, name) * 1_000;
    html! {
        tr {
            td.name { span.mono { (get("addr")) } @if !get("name").is_empty() { br; span.soft { (get("name")) } } }
            td { (get("user")) }
            td.mono { (get("cmd")) }
            td.name { (state(view, client, wait)) }
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

fn state(view: &View<'_>, client: &Fields<'_>, wait: Option<&Wait>) -> Markup {
    let flags = client.get("flags").copied().unwrap_or_default();
    let subscriptions = number(client, "sub") + number(client, "psub") + number(client, "ssub");
    html! {
        @if flags.contains('b') {
            span.tag.on { "waiting" } " "
            @if let Some(wait) = wait { (waiting(view, wait, number(client, "db"))) }
        }
        @if flags.contains('x') { span.tag { "in MULTI" } " " }
        @if flags.contains('O') { span.tag { "monitor" } " " }
        @if flags.contains('t') { span.tag { "tracking" } " " }
        @if subscriptions > 0 { span.tag { (count(subscriptions)) " subscriptions" } }
    }
}

/// How long a client has been waiting, and for what.
fn waiting(view: &View<'_>, wait: &Wait, database: i64) -> Markup {
    let database = database.to_string();
    let link = |key: &[u8]| url("/queue", &[("db", database.as_bytes()), ("key", key)]);
    let others = wait.key_count.saturating_sub(wait.keys.len()) as i64;
    html! {
        span.soft.nowrap title={ "since " (moment(wait.since_ms)) } {
            (duration((view.now_ms - wait.since_ms).max(0)))
        }
        @if wait.is_paused { br; "for the end of CLIENT PAUSE" }
        @if wait.key_count > 0 {
            br; "for "
            @for (place, key) in wait.keys.iter().enumerate() {
                @if place > 0 { ", " }
                @if key.len() <= KEY_BYTES_MAX { a href=(link(key)) { (readable(key)) } } @else { (json::line(key)) }
            }
            @if wait.keys.is_empty() { (counted(others, "key")) }
            @else if others > 0 { " and " (count(others)) " more" }
        }
        " "
    }
}

/// Disconnects a client.
pub(crate) fn act(view: &mut View<'_>) -> Result<Answer, NoPage> {
    let id = view.asked.form.text("client").to_owned();
    let reply = view.run(words!["CLIENT", "KILL", "ID", id])?;
    match reply.error_text() {
        Some(line) => view.note_error(line),
        None if reply.integer() == Some(0) => view.note("The client had already left."),
        None => view.note(format!("Disconnected client {id}.")),
    }
    Ok(Answer::See("/clients".to_owned()))
}
