//! Charts of the last hour, as SVG without a script.

use std::fmt::Write;

use maud::{Markup, html};

/// The size of the drawing; the page scales it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 90.0;
/// Points that are drawn at most. More are merged, and the greatest counts.
const POINTS_MAX: usize = 240;
/// Time that a chart shows.
const SPAN_MS: i64 = 3_600_000;

/// A line of a chart.
pub(crate) struct Line<'c> {
    pub(crate) name: &'c str,
    /// Moments in Unix milliseconds, with values.
    pub(crate) points: Vec<(i64, f64)>,
}

/// A chart whose right end is now.
pub(crate) fn chart(
    title: &str,
    lines: &[Line<'_>],
    show: fn(f64) -> String,
    now_ms: i64,
) -> Markup {
    let values = lines.iter().flat_map(|line| line.points.iter());
    let greatest = values.map(|(_, value)| *value).fold(0.0, f64::max);
    let top = if greatest > 0.0 { greatest * 1.1 } else { 1.0 };
    html! {
        figure.chart {
            figcaption {
                span.title { (title) }
                @for (place, line) in lines.iter().enumerate() {
                    span class={ "legend line-" (place) } {
                        @if !line.name.is_empty() { (line.name) " " }
                        b { (line.points.last().map_or("–".to_owned(), |(_, value)| show(*value))) }
                    }
                }
                span.peak { "peak " (show(greatest)) }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
                aria-label={ (title) ", last hour, peak " (show(greatest)) } {
                @for quarter in 1..4 {
                    line.grid x1=(WIDTH * f64::from(quarter) / 4.0) x2=(WIDTH * f64::from(quarter) / 4.0)
                        y1="0" y2=(HEIGHT) {}
                }
                line.base x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
                @for (place, line) in lines.iter().enumerate() {
                    @let path = path(&line.points, top, now_ms);
                    @if place == 0 { path.area d=(closed(&path, &line.points, now_ms)) {} }
                    path class={ "line line-" (place) } d=(path) {}
                }
            }
            div.axis { span { "−60 min" } span { "−30 min" } span { "now" } }
        }
    }
}

fn x_of(at_ms: i64, now_ms: i64) -> f64 {
    let age_ms = now_ms.saturating_sub(at_ms).clamp(0, SPAN_MS);
    WIDTH * (1.0 - age_ms as f64 / SPAN_MS as f64)
}

fn path(points: &[(i64, f64)], top: f64, now_ms: i64) -> String {
    let merged = points.chunks(points.len().div_ceil(POINTS_MAX).max(1));
    let mut path = String::new();
    for chunk in merged {
        let Some((at_ms, _)) = chunk.last() else {
            continue;
        };
        let value = chunk.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let (x, y) = (x_of(*at_ms, now_ms), HEIGHT * (1.0 - value / top));
        // Writing to a String cannot fail.
        let _ = write!(path, "{letter}{x:.1} {y:.1}");
    }
    path
}

/// The area below a line.
fn closed(path: &str, points: &[(i64, f64)], now_ms: i64) -> String {
    match (points.first(), points.last()) {
        (Some((first_ms, _)), Some((last_ms, _))) if points.len() > 1 => format!(
            "{path}L{:.1} {HEIGHT}L{:.1} {HEIGHT}Z",
            x_of(*last_ms, now_ms),
            x_of(*first_ms, now_ms)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_of_merged_points_is_drawn() {
        let mut points: Vec<_> = (0..720).map(|number| (number * 5_000, 1.0)).collect();
        points[301].1 = 50.0;
        let path = path(&points, 50.0, 3_600_000);
        assert!(path.matches('L').count() < POINTS_MAX);
        assert!(path.contains(" 0.0"), "{path}");
    }

    #[test]
    fn now_is_at_the_right() {
        assert_eq!(x_of(5, 5), WIDTH);
        assert_eq!(x_of(0, SPAN_MS), 0.0);
        assert_eq!(x_of(-5, SPAN_MS), 0.0);
    }
}
