use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::queues::rows::testing::{activity, row};

fn screen(rows: Vec<Row>) -> Screen {
    let mut screen = Screen::new(
        "redis://h".to_owned(),
        None,
        String::new(),
        Order::default(),
    );
    screen.show(Snapshot {
        rows,
        now_ms: 10_000,
        is_complete: true,
        ..Snapshot::default()
    });
    screen
}

/// The lines of a terminal, without trailing spaces.
fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = (0..height).map(|y| {
        let letters = (0..width).map(|x| buffer[(x, y)].symbol());
        letters.collect::<String>().trim_end().to_owned()
    });
    lines.collect()
}

fn press(screen: &mut Screen, keys: &str) {
    for letter in keys.chars() {
        let code = match letter {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            letter => KeyCode::Char(letter),
        };
        assert_eq!(screen.press(KeyEvent::from(code)), Effect::Shown);
    }
}

fn three() -> Vec<Row> {
    let mut tasks = row("mail", Kind::TaskQueue, 12);
    tasks.queue.figures.in_work = Some(2);
    tasks.queue.figures.delayed = Some(1);
    tasks.queue.figures.dead = Some(4);
    tasks.queue.figures.is_paused = true;
    tasks.since_ms = Some(5_000);
    tasks.activity = Some(activity("mail", Kind::TaskQueue));
    vec![
        row("jobs", Kind::List, 3),
        tasks,
        row("events", Kind::Stream, 70_000),
    ]
}

#[test]
fn a_wide_terminal_shows_every_column() {
    let mut screen = screen(three());
    assert_eq!(
        drawn(&mut screen, 122, 7),
        [
            "quoin top redis://h  3 queues",
            "QUEUE                  TYPE        READY▼   LEASED  DELAYED    DEAD     IN/S    OUT/S         AGE WAITING  RETRIES  DEATHS",
            "events                 stream      70.0 k",
            "mail  paused           taskqueue       12        2        1       4      2.5   12.3 k         5 s       4        7       3",
            "jobs                   list             3",
            "",
            "q quit  / filter  t type  s sort  r reverse  Space hold  ? help",
        ]
    );
}

#[test]
fn a_narrow_terminal_leaves_columns_out() {
    let lines = drawn(&mut screen(three()), 50, 6);
    assert_eq!(
        lines[1],
        "QUEUE                  TYPE        READY▼     IN/S"
    );
    let lines = drawn(&mut screen(three()), 8, 4);
    assert_eq!(lines[2], "events");
    drawn(&mut screen(three()), 1, 1);
}

#[test]
fn keys_sort_and_reverse() {
    let mut screen = screen(three());
    press(&mut screen, "r");
    assert!(drawn(&mut screen, 120, 7)[2].starts_with("jobs"));
    press(&mut screen, "SS");
    let lines = drawn(&mut screen, 120, 7);
    assert!(lines[1].starts_with("QUEUE▼"), "{lines:?}");
    assert!(lines[2].starts_with("events") && lines[4].starts_with("mail"));
    press(&mut screen, "sss");
    assert!(drawn(&mut screen, 120, 7)[1].contains("LEASED▼"));
}

#[test]
fn a_filter_is_typed_and_ended() {
    let mut screen = screen(three());
    press(&mut screen, "/maq");
    let lines = drawn(&mut screen, 80, 6);
    assert!(lines[5].starts_with("filter: maq"), "{lines:?}");
    assert_eq!(screen.wish().wanted, Wanted::default());
    screen.press(KeyEvent::from(KeyCode::Backspace));
    press(&mut screen, "\n");
    assert_eq!(screen.wish().wanted.pattern, b"*ma*");
    // A snapshot that was requested without a filter is not shown.
    screen.show(Snapshot {
        rows: three(),
        ..Snapshot::default()
    });
    assert!(screen.wish().visible.is_empty());
    press(&mut screen, "t\x1b");
    let wanted = screen.wish().wanted;
    assert_eq!(
        (wanted.kind, wanted.pattern),
        (Some(Kind::TaskQueue), vec![])
    );
    press(&mut screen, "ttttt");
    assert_eq!(screen.wish().wanted.kind, None);
}

#[test]
fn the_mark_moves_and_the_rows_scroll() {
    let rows = (0..10).map(|number| row(&format!("q{number}"), Kind::List, 10 - number));
    let mut screen = screen(rows.collect());
    drawn(&mut screen, 80, 6);
    press(&mut screen, "↓↓↓");
    let lines = drawn(&mut screen, 80, 6);
    assert!(lines[2].starts_with("q1") && lines[4].starts_with("q3"));
    let names: Vec<_> = screen.wish().visible.into_iter().map(|one| one.0).collect();
    assert_eq!(names, [b"q1", b"q2", b"q3"]);
    screen.press(KeyEvent::from(KeyCode::End));
    assert!(drawn(&mut screen, 80, 6)[4].starts_with("q9"));
    press(&mut screen, "jjk");
    screen.press(KeyEvent::from(KeyCode::Home));
    press(&mut screen, "k");
    assert!(drawn(&mut screen, 80, 6)[2].starts_with("q0"));
}

#[test]
fn the_marked_queue_stays_marked() {
    let mut screen = screen(three());
    drawn(&mut screen, 80, 7);
    press(&mut screen, "↓");
    assert_eq!(screen.selected_name().unwrap(), b"mail");
    let mut rows = three();
    rows[1].queue.figures.ready = Some(1);
    screen.show(Snapshot {
        rows,
        is_complete: true,
        ..Snapshot::default()
    });
    assert_eq!(screen.selected_name().unwrap(), b"mail");
    assert_eq!(screen.selected, 2);
}

#[test]
fn help_is_shown_over_the_table_until_a_key_is_pressed() {
    let mut screen = screen(three());
    press(&mut screen, "?");
    let lines = drawn(&mut screen, 80, 16).join("\n");
    assert!(lines.contains("Keys") && lines.contains("reverse the order"));
    press(&mut screen, "q");
    assert!(!drawn(&mut screen, 80, 16).join("\n").contains("Keys"));
}

#[test]
fn the_table_can_be_held() {
    let mut screen = screen(three());
    press(&mut screen, " ");
    assert!(screen.wish().is_held);
    assert!(drawn(&mut screen, 80, 7)[0].ends_with("held"));
    press(&mut screen, " ");
    assert!(!screen.wish().is_held);
}

#[test]
fn an_error_is_told_and_the_rows_stay() {
    let mut screen = screen(three());
    screen.show(Snapshot {
        rows: three(),
        is_complete: true,
        error: Some("redis://h: gone".to_owned()),
        ..Snapshot::default()
    });
    let lines = drawn(&mut screen, 80, 7);
    assert_eq!(lines[6], "redis://h: gone");
    assert!(lines[2].starts_with("events"));
}

#[test]
fn q_and_control_c_quit() {
    let mut screen = screen(three());
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(
        screen.press(KeyEvent::from(KeyCode::Char('q'))),
        Effect::Quit
    );
    press(&mut screen, "/");
    assert_eq!(screen.press(control_c), Effect::Quit);
}
