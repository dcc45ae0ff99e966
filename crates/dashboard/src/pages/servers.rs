//! The servers that share the store.

use std::collections::HashMap;

use maud::html;

use crate::frame::{figure, refusal};
use crate::view::{Info, NoPage, Page, View};

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let body = match view.info(&["server", "quoin"])? {
        Err(line) => refusal("Servers", &line),
        Ok(info) => {
            let servers = servers(&info);
            html! {
                div.between { h1 { "Servers" } }
                dl.figures {
                    (figure("Store", info.text("store"), info.text("store_id")))
                    (figure("Reachable", if info.text("store_reachable") == "0" { "no" } else { "yes" }, ""))
                    (figure("Live servers", info.text("living_servers"), "sharing the store"))
                    (figure("Version", info.text("quoin_version"),
                        &format!("reported as Redis {}", info.text("redis_version"))))
                }
                @if servers.is_empty() {
                    p.empty { "This server does not know which servers are alive." }
                } @else {
                    div.table { table {
                        thead { tr {
                            th scope="col" { "Address" } th scope="col" { "Name" } th.number scope="col" { "Port" }
                            th.number scope="col" { "TLS" } th scope="col" { "Version" } th scope="col" { "Run ID" }
                            th scope="col" { "" }
                        } }
                        tbody { @for server in &servers {
                            @let get = |name: &str| server.get(name).copied().unwrap_or_default();
                            tr {
                                td.mono { (get("ip")) } td { (get("hostname")) }
                                td.number { (get("port")) }
                                td.number { @if get("tls_port") != "0" { (get("tls_port")) } }
                                td { (get("version")) } td.mono.name { (get("run_id")) }
                                td { @if get("own") == "1" { span.tag.on { "this server" } } }
                            }
                        } }
                    } }
                }
            }
        }
    };
    Ok(Page {
        title: "Servers".to_owned(),
        place: "servers",
        refresh_s: 5,
        body,
    })
}

/// The lines `server0:ip=…,port=…` of INFO, the oldest server first.
fn servers(info: &Info) -> Vec<HashMap<&str, &str>> {
    let mut numbered: Vec<(usize, HashMap<&str, &str>)> = info
        .beginning("server")
        .into_iter()
        .filter_map(|(number, fields)| {
            let fields = fields.split(',').filter_map(|field| field.split_once('='));
            Some((number.parse().ok()?, fields.collect()))
        })
        .collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, fields)| fields).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_in_their_order() {
        let lines = [
            ("server10", "ip=c,port=3"),
            ("server2", "ip=b,port=2"),
            ("server0", "ip=a,port=1"),
            ("server_name", "x"),
        ];
        let info: Info = lines.into_iter().collect();
        let ips: Vec<_> = servers(&info).iter().map(|server| server["ip"]).collect();
        assert_eq!(ips, ["a", "b", "c"]);
    }
}
