//! The content of the terminal, and how keys change it.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Table};

use quoin_base::size::{counted, grouped};
use quoin_queues::{Kind, Wanted, pattern_of};

use super::sweep::{Snapshot, Wish};
use crate::queues::rows::{Column, Order, Row};

/// Columns with their widths. On a narrow terminal the last ones are left out first.
const COLUMNS: [(Column, u16); 11] = [
    (Column::Type, 9),
    (Column::Ready, 8),
    (Column::In, 8),
    (Column::Out, 8),
    (Column::Leased, 8),
    (Column::Dead, 7),
    (Column::Age, 11),
    (Column::Waiting, 7),
    (Column::Delayed, 8),
    (Column::Retries, 8),
    (Column::Deaths, 7),
];
/// Minimum width left for names.
const NAME_WIDTH_MIN: u16 = 16;
/// Letters of a filter.
const FILTER_MAX: usize = 256;

const HELP: &str = "\
↑ ↓ PgUp PgDn   move, also k and j
Home End        first and last queue
s S             sort by the next, the previous column
r               reverse the order
/               filter names: a word, or a pattern such as mail:*
t               next type
Space           hold the table, or go on
Esc             end the filter
q, Ctrl-C       quit
? h             this help";

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Shown,
    Quit,
}

/// The screen.
pub(super) struct Screen {
    /// The server, as the title names it.
    title: String,
    order: Order,
    kind: Option<Kind>,
    /// As it was typed.
    filter: String,
    /// The filter while it is being typed.
    typed: Option<String>,
    is_held: bool,
    shows_help: bool,
    snapshot: Snapshot,
    /// The selected row, and the first row on the screen.
    selected: usize,
    first: usize,
    /// Rows that fit.
    height: usize,
}

impl Screen {
    /// A screen with these queues in this order.
    pub(super) fn new(title: String, kind: Option<Kind>, filter: String, order: Order) -> Self {
        Self {
            title,
            order,
            kind,
            filter,
            typed: None,
            is_held: false,
            shows_help: false,
            snapshot: Snapshot::default(),
            selected: 0,
            first: 0,
            height: 0,
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            kind: self.kind,
            pattern: pattern_of(self.filter.as_bytes()),
        }
    }

    /// What to find out for it.
    pub(super) fn wish(&self) -> Wish {
        let visible = self.snapshot.rows.iter().skip(self.first);
        let visible = visible.take(self.height);
        Wish {
            wanted: self.wanted(),
            order: self.order,
            visible: visible
                .map(|row| (row.queue.name.clone(), row.queue.kind))
                .collect(),
            is_held: self.is_held,
        }
    }

    /// Shows a new snapshot. The selected queue stays selected.
    pub(super) fn show(&mut self, snapshot: Snapshot) {
        let name = self.selected_name();
        // A snapshot for an earlier filter is ignored.
        if snapshot.wanted == self.wanted() {
            self.snapshot = snapshot;
            self.sort(name);
        }
    }

    fn selected_name(&self) -> Option<Vec<u8>> {
        let row = self.snapshot.rows.get(self.selected)?;
        Some(row.queue.name.clone())
    }

    fn sort(&mut self, selected: Option<Vec<u8>>) {
        self.order.sort(&mut self.snapshot.rows);
        // The selection follows its queue. At the top, it stays at the top.
        if self.selected > 0
            && let Some(name) = selected
            && let Some(place) = self
                .snapshot
                .rows
                .iter()
                .position(|row| row.queue.name == name)
        {
            self.selected = place;
        }
        self.scroll();
    }

    /// Keeps the mark within the rows, and on the screen.
    fn scroll(&mut self) {
        let rows = self.snapshot.rows.len();
        self.selected = self.selected.min(rows.saturating_sub(1));
        let lowest = (self.selected + 1).saturating_sub(self.height);
        self.first = self.first.clamp(lowest, self.selected.max(lowest));
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: KeyEvent) -> Effect {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Effect::Quit;
        }
        if self.typed.is_some() {
            self.type_filter(key.code);
            return Effect::Shown;
        }
        if std::mem::take(&mut self.shows_help) {
            return Effect::Shown;
        }
        match key.code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Char(' ') => self.is_held = !self.is_held,
            KeyCode::Char('/') => self.typed = Some(self.filter.clone()),
            KeyCode::Char('t') => self.next_kind(),
            KeyCode::Char('s') => self.order_by(1),
            KeyCode::Char('S') => self.order_by(Column::ALL.len() - 1),
            KeyCode::Char('r') => {
                self.order.is_reversed = !self.order.is_reversed;
                self.sort(self.selected_name());
            }
            KeyCode::Esc => self.filter_by(String::new()),
            KeyCode::Down | KeyCode::Char('j') => self.selected += 1,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageDown => self.selected += self.height,
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.height),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = self.snapshot.rows.len(),
            _ => {}
        }
        self.scroll();
        Effect::Shown
    }

    fn type_filter(&mut self, code: KeyCode) {
        let Some(typed) = &mut self.typed else { return };
        match code {
            KeyCode::Enter => {
                let typed = std::mem::take(typed);
                self.typed = None;
                self.filter_by(typed);
            }
            KeyCode::Esc => self.typed = None,
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Char(letter) if typed.len() < FILTER_MAX => typed.push(letter),
            _ => {}
        }
    }

    fn filter_by(&mut self, filter: String) {
        if filter != self.filter {
            self.filter = filter;
            self.forget();
        }
    }

    fn next_kind(&mut self) {
        let kinds = Kind::ALL.iter().copied();
        self.kind = match self.kind {
            None => kinds.into_iter().next(),
            Some(kind) => kinds.skip_while(|other| *other != kind).nth(1),
        };
        self.forget();
    }

    /// The rows are of other queues than are wanted now.
    fn forget(&mut self) {
        self.is_held = false;
        self.snapshot = Snapshot::default();
        self.selected = 0;
        self.scroll();
    }

    fn order_by(&mut self, step: usize) {
        let place = Column::ALL
            .iter()
            .position(|column| *column == self.order.column);
        let next = (place.unwrap_or(0) + step) % Column::ALL.len();
        self.order = Order {
            column: Column::ALL.get(next).copied().unwrap_or(Column::Ready),
            is_reversed: false,
        };
        self.sort(self.selected_name());
    }

    /// Draws all of it.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let parts = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ]);
        let [head, body, foot] = parts.areas(frame.area());
        // One line is for the titles.
        self.height = usize::from(body.height.saturating_sub(1));
        self.scroll();
        frame.render_widget(self.head(), head);
        frame.render_widget(self.table(body.width), body);
        if self.snapshot.rows.is_empty() {
            self.draw_nothing(frame, body);
        }
        frame.render_widget(self.foot(), foot);
        if self.shows_help {
            draw_help(frame);
        }
    }

    fn head(&self) -> Line<'_> {
        let rows = self.snapshot.rows.len();
        let mut text = format!("  {}", counted(rows as u64, "queue", "queues"));
        if self.snapshot.is_cut {
            text.push_str(" of more: filter to see others");
        }
        if !self.snapshot.is_complete && self.snapshot.error.is_none() {
            let examined = grouped(self.snapshot.examined as i64);
            text.push_str(&format!(", {examined} names examined …"));
        }
        if let Some(kind) = self.kind {
            text.push_str(&format!("  type {}", kind.type_name()));
        }
        if !self.filter.is_empty() {
            text.push_str(&format!("  filter {}", self.filter));
        }
        let mut spans = vec![
            Span::styled("quoin top ", Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(self.title.as_str()),
            Span::raw(text),
        ];
        if self.is_held {
            spans.push(Span::raw("  "));
            spans.push(Span::styled("held", Style::new().fg(Color::Yellow)));
        }
        Line::from(spans)
    }

    fn foot(&self) -> Line<'_> {
        if let Some(typed) = &self.typed {
            return Line::from(format!("filter: {typed}▏ Enter filters, Esc does not"));
        }
        match &self.snapshot.error {
            Some(error) => Line::styled(error.as_str(), Style::new().fg(Color::Red)),
            None => Line::styled(
                "q quit  / filter  t type  s sort  r reverse  Space hold  ? help",
                Style::new().add_modifier(Modifier::DIM),
            ),
        }
    }

    fn table(&self, width: u16) -> Table<'_> {
        let columns = columns_within(width);
        let name_width = columns.iter().map(|(_, width)| width + 1).sum::<u16>();
        let name_width = width.saturating_sub(name_width);
        let mut widths = vec![Constraint::Length(name_width)];
        widths.extend(columns.iter().map(|(_, width)| Constraint::Length(*width)));
        let titles = std::iter::once(Column::Name).chain(columns.iter().map(|(column, _)| *column));
        let titles = titles.map(|column| self.title_of(column));
        let header = TableRow::new(titles).style(Style::new().add_modifier(Modifier::REVERSED));
        let visible = self.snapshot.rows.iter().enumerate();
        let rows = visible
            .skip(self.first)
            .take(self.height)
            .map(|(place, row)| self.line(row, place == self.selected, &columns));
        Table::new(rows, widths).header(header).column_spacing(1)
    }

    fn title_of(&self, column: Column) -> Cell<'static> {
        let mark = match (self.order.column == column, self.order.is_reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        aligned(column, format!("{}{mark}", column.title()))
    }

    fn line(&self, row: &Row, is_selected: bool, columns: &[(Column, u16)]) -> TableRow<'static> {
        let now_ms = self.snapshot.now_ms;
        let mut name = vec![Span::raw(row.cell(Column::Name, now_ms))];
        let note = row.note();
        if !note.is_empty() {
            let color = match row.queue.figures.is_paused {
                true => Color::Yellow,
                false => Color::DarkGray,
            };
            name.push(Span::styled(format!("  {note}"), Style::new().fg(color)));
        }
        let figures = columns.iter().map(|(column, _)| {
            let cell = aligned(*column, row.cell(*column, now_ms));
            let is_bad = *column == Column::Dead && row.queue.figures.dead.unwrap_or(0) > 0;
            match is_bad {
                true => cell.style(Style::new().fg(Color::Red)),
                false => cell,
            }
        });
        let cells = std::iter::once(Cell::from(Line::from(name))).chain(figures);
        let style = match is_selected {
            true => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            false => Style::new(),
        };
        TableRow::new(cells).style(style)
    }

    fn draw_nothing(&self, frame: &mut Frame<'_>, body: Rect) {
        let text = match self.snapshot.is_complete {
            true => "There are no such queues here.",
            false => "",
        };
        let inner = Rect {
            y: body.y.saturating_add(1),
            height: body.height.saturating_sub(1),
            ..body
        };
        frame.render_widget(Paragraph::new(text), inner);
    }
}

/// The columns after the name that fit into a width, in their order.
fn columns_within(width: u16) -> Vec<(Column, u16)> {
    let mut left = width.saturating_sub(NAME_WIDTH_MIN);
    let fitting = COLUMNS.iter().take_while(|(_, width)| {
        let fits = left > *width;
        left = left.saturating_sub(width + 1);
        fits
    });
    let fitting: Vec<_> = fitting.copied().collect();
    let ordered = Column::ALL.iter();
    ordered
        .filter_map(|column| fitting.iter().find(|(one, _)| one == column).copied())
        .collect()
}

fn aligned(column: Column, text: String) -> Cell<'static> {
    let alignment = match column.is_text() {
        true => Alignment::Left,
        false => Alignment::Right,
    };
    Cell::from(Text::from(text).alignment(alignment))
}

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let lines = HELP.lines().count();
    let height = u16::try_from(lines + 2)
        .unwrap_or(u16::MAX)
        .min(area.height);
    let widest = HELP.lines().map(|line| line.chars().count()).max();
    let width = u16::try_from(widest.unwrap_or(0) + 4).unwrap_or(u16::MAX);
    let width = width.min(area.width);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" Keys ");
    frame.render_widget(Paragraph::new(HELP).block(block), place);
}

#[cfg(test)]
mod tests;
