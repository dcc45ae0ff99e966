//! `quoin top`: a live table of queues in the terminal.
//!
//! It is only a client of the server ([`crate::queues`] defines the rows). It restores the terminal
//! when it ends, also after an error or a signal.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Arg, Command};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use quoin_client::{ADDRESS_HELP, Address, End, tls_flags};
use quoin_queues::Kind;

mod feed;
mod screen;
mod sweep;

use crate::queues::rows::Order;
use crate::queues::{QueuesError, address_argument, address_of, table_arguments, table_options};
use feed::{Feed, connect};
use screen::{Effect, Screen};

/// Seconds between two refreshes without `--interval`.
const INTERVAL_DEFAULT: &str = "2";
/// Longest time between two checks for news.
const TICK: Duration = Duration::from_millis(100);
/// Signals that end it cleanly.
const END_SIGNALS: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// What `quoin top` should show.
#[derive(Debug, Clone)]
pub struct Options {
    address: Address,
    kind: Option<Kind>,
    filter: String,
    order: Order,
    interval: Duration,
}

/// Shows the table until it is told to end.
///
/// # Errors
/// If there is no terminal, or the server cannot be reached at the beginning. A connection that is
/// lost later is reopened.
pub fn run(options: &Options) -> Result<(), QueuesError> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(QueuesError::NotDone(
            "quoin top needs a terminal; quoin queues prints the table once".to_owned(),
        ));
    }
    let ended = Arc::new(AtomicBool::new(false));
    for signal in END_SIGNALS {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    let client = connect(&options.address)?;
    let title = options.address.to_string();
    let filter = options.filter.clone();
    let mut screen = Screen::new(title, options.kind, filter, options.order);
    let address = options.address.clone();
    let feed = Feed::start(client, address, screen.wish(), options.interval)?;
    let shown = ratatui::try_init().and_then(|mut terminal| {
        let shown = follow(&mut terminal, &mut screen, &feed, &ended);
        terminal.show_cursor().and(shown)
    });
    // Whatever the outcome. The first error is the important one.
    let restored = ratatui::try_restore();
    Ok(shown.and(restored)?)
}

/// Draws news and handles keys, until a key or a signal ends it.
fn follow(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    feed: &Feed,
    ended: &AtomicBool,
) -> io::Result<()> {
    let mut is_new = true;
    while !ended.load(Ordering::SeqCst) {
        if let Some(snapshot) = feed.take() {
            screen.show(snapshot);
            is_new = true;
        }
        if std::mem::take(&mut is_new) {
            terminal.draw(|frame| screen.draw(frame))?;
            feed.wish(screen.wish());
        }
        if event::poll(TICK)? {
            is_new = true;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && screen.press(key) == Effect::Quit
            {
                break;
            }
        }
    }
    Ok(())
}

/// The command line's grammar.
pub fn command() -> Command {
    Command::new("top")
        .bin_name("quoin top")
        .about("Show the queues of a running server in the terminal, live")
        .after_help(format!(
            "{ADDRESS_HELP}\n\
             The default is redis://127.0.0.1:6379.\n\n\
             The key ? shows all keys, q quits. See docs/operate/queues.md."
        ))
        .arg(address_argument())
        .args(table_arguments())
        .arg(
            Arg::new("interval")
                .long("interval")
                .value_name("SECONDS")
                .default_value(INTERVAL_DEFAULT)
                .value_parser(clap::value_parser!(u64).range(1..=3_600))
                .help("Time between two refreshes"),
        )
        .args(End::QUOIN.flags())
        .args(tls_flags())
}

/// Parses the command line after `quoin top`.
///
/// # Errors
/// clap's, which may also be a text to print.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Options, clap::Error> {
    let mut command = command();
    let arguments = std::iter::once(OsString::from("top")).chain(arguments);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let variables: Vec<(OsString, OsString)> = variables.into_iter().collect();
    let address = address_of(&matches, &variables)
        .map_err(|reason| command.error(clap::error::ErrorKind::ValueValidation, reason))?;
    let (wanted, order) = table_options(&matches);
    let filter = matches.get_one::<String>("pattern").cloned();
    let interval_s = matches.get_one::<u64>("interval").copied().unwrap_or(1);
    Ok(Options {
        address,
        kind: wanted.kind,
        filter: filter.unwrap_or_default(),
        order,
        interval: Duration::from_secs(interval_s),
    })
}
