//! The frame around all pages, and elements that several pages show.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::request::url;
use crate::sessions::{Notice, Session};
use crate::view::Page;

/// The pages in the navigation: id, path, name, and the letter that opens the page when typed after
/// `g`.
const PLACES: [(&str, &str, &str, &str); 7] = [
    ("overview", "/", "Overview", "o"),
    ("queues", "/queues", "Queues", "q"),
    ("frameworks", "/frameworks", "Frameworks", "f"),
    ("clients", "/clients", "Clients", "c"),
    ("slow", "/slow", "Slow commands", "l"),
    ("servers", "/servers", "Servers", "s"),
    ("settings", "/settings", "Settings", "e"),
];

/// The cookie with the theme.
pub(crate) const THEME_COOKIE: &str = "quoin-theme";

/// The theme that a browser requests, as in its cookie.
pub(crate) fn theme_of(cookie: Option<&str>) -> &'static str {
    match cookie {
        Some("light") => "light",
        Some("dark") => "dark",
        _ => "system",
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · Quoin" }
            link rel="icon" href="/icon.svg" type="image/svg+xml";
            link rel="stylesheet" href="/style.css";
            script src="/script.js" defer {}
        }
    }
}

/// A page of a session.
pub(crate) fn page(
    page: &Page,
    session: &Session,
    theme: &str,
    notice: Option<&Notice>,
    here: &str,
) -> String {
    let next_theme = match theme {
        "dark" => "light",
        "light" => "system",
        _ => "dark",
    };
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme) {
            (head(&page.title))
            body {
                a.skip href="#main" { "Skip to content" }
                header.top {
                    a.brand href="/" { (mark()) span { "Quoin" } }
                    nav aria-label="Pages" {
                        @for (place, path, name, letter) in PLACES {
                            a href=(path) data-go=(letter) aria-current=[(place == page.place).then_some("page")] {
                                (name)
                            }
                        }
                    }
                    div.account {
                        form method="post" action="/theme" {
                            (token(session))
                            input type="hidden" name="theme" value=(next_theme);
                            input type="hidden" name="next" value=(here);
                            button.quiet type="submit" title={ "Theme: " (theme) ". Switch to " (next_theme) } {
                                (theme_icon(theme))
                                span.visually-hidden { "Theme: " (theme) }
                            }
                        }
                        span.user title="You are logged in as this user" { (session.user) }
                        form method="post" action="/logout" {
                            (token(session))
                            button.quiet type="submit" { "Log out" }
                        }
                    }
                }
                main #main tabindex="-1" data-refresh=(page.refresh_s) {
                    @if let Some(notice) = notice {
                        p.notice.error[notice.is_error] role="status" { (notice.text) }
                    }
                    (page.body)
                }
                footer {
                    span #refreshed { }
                    span.keys {
                        kbd { "/" } " search · " kbd { "g" } " then " kbd { "o q f c l s e" } " pages · "
                        kbd { "r" } " refresh"
                    }
                }
            }
        }
    }
    .into_string()
}

/// A page without a session.
pub(crate) fn bare(title: &str, theme: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme) {
            (head(title))
            body.bare {
                main #main { h1.brand { (mark()) span { "Quoin" } } (body) }
            }
        }
    }
    .into_string()
}

/// The field that each form repeats.
pub(crate) fn token(session: &Session) -> Markup {
    html! { input type="hidden" name="token" value=(session.form_token); }
}

/// A button that acts after a confirmation. It needs no script.
pub(crate) struct Action<'a> {
    /// Unique on the page, and the same after a refresh.
    pub(crate) id: &'a str,
    pub(crate) label: &'a str,
    /// What will happen. `None` if no confirmation is needed.
    pub(crate) question: Option<&'a str>,
    /// The form's target, with the key in the query.
    pub(crate) path: &'a str,
    /// Fields of the form.
    pub(crate) fields: &'a [(&'a str, &'a str)],
    /// Whether it removes something.
    pub(crate) is_dangerous: bool,
}

impl Action<'_> {
    pub(crate) fn show(&self, session: &Session) -> Markup {
        self.show_with(session, &html! {})
    }

    /// The same with a field that must be filled in.
    pub(crate) fn show_asking(&self, session: &Session, name: &str, label: &str) -> Markup {
        let asked = html! {
            // The first of a confirmation that wants the focus gets it.
            label { (label) input type="text" name=(name) required autofocus autocomplete="off"; }
        };
        self.show_with(session, &asked)
    }

    fn show_with(&self, session: &Session, asked: &Markup) -> Markup {
        let fields = html! {
            (token(session))
            @for (name, value) in self.fields { input type="hidden" name=(name) value=(value); }
        };
        match self.question {
            None => html! {
                form.action method="post" action=(self.path) {
                    (fields) (asked)
                    button.danger[self.is_dangerous] type="submit" { (self.label) }
                }
            },
            Some(question) => html! {
                div.action {
                    button.danger[self.is_dangerous] type="button" popovertarget=(self.id) { (self.label) }
                    form.confirm #(self.id) popover="auto" method="post" action=(self.path) {
                        (fields)
                        p { (question) }
                        (asked)
                        div.row {
                            button type="button" popovertarget=(self.id) popovertargetaction="hide" { "Cancel" }
                            button.primary.danger[self.is_dangerous] type="submit" autofocus { (self.label) }
                        }
                    }
                }
            },
        }
    }
}

/// A figure with its name.
pub(crate) fn figure(name: &str, value: &str, detail: &str) -> Markup {
    html! {
        div.figure {
            dt { (name) }
            dd { (value) @if !detail.is_empty() { small { (detail) } } }
        }
    }
}

/// The choice of a database.
pub(crate) fn databases(path: &str, chosen: u32, known: &[u32]) -> Markup {
    html! {
        @if known.len() > 1 || known.iter().any(|one| *one != chosen) {
            nav.tabs aria-label="Databases" {
                @for database in known {
                    a href=(url(path, &[("db", database.to_string().as_bytes())]))
                        aria-current=[(*database == chosen).then_some("page")] { "Database " (database) }
                }
            }
        }
    }
}

/// A page that only explains why there is nothing else.
pub(crate) fn refusal(title: &str, text: &str) -> Markup {
    html! { h1 { (title) } p.empty { (text) } }
}

fn mark() -> Markup {
    PreEscaped(
        "<svg class=\"mark\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path d=\"M2 3h12v6H2zM2 15h12v6H2zM10 \
         9h12v6H10z\"/></svg>"
            .to_owned(),
    )
}

fn theme_icon(theme: &str) -> Markup {
    let path = match theme {
        "dark" => "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
        "light" => {
            "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM11 1h2v4h-2zm0 18h2v4h-2zM1 11h4v2H1zm18 0h4v2h-4z"
        }
        _ => "M12 3a9 9 0 1 0 0 18zm0 0a9 9 0 0 1 0 18v-2a7 7 0 0 0 0-14z",
    };
    html! { svg.icon viewBox="0 0 24 24" aria-hidden="true" { path d=(path) {} } }
}
