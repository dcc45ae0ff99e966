//! The dashboard: queues in a browser.
//!
//! It answers HTTP requests with pages. A session has a connection to the server. Everything that
//! its pages show and do are commands on this connection, which the server checks like those of any
//! client (docs/understand/decisions/047-dashboard.md). It knows commands and their replies. It
//! knows neither how the server runs them nor how it stores data.

mod activity;
mod chart;
mod dashboard;
mod figures;
mod frame;
mod history;
mod host;
mod json;
mod login;
mod pages;
mod request;
mod response;
mod sessions;
mod view;

pub use dashboard::Dashboard;
pub use history::{History, Sample};
pub use host::{Clients, Host, Wait};
