//! The content of packages, images and manifests is consistent with the program and with itself.
//! packaging/test installs a package.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use quoin_config::load::load;
use quoin_config::table::SETTINGS;
use serde_json::Value;

/// Highest exposure of the unit by `systemd-analyze security`: 10 is no protection.
const EXPOSURE_MAX: f64 = 2.0;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

fn documents(name: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Fails unless the server starts with these variables, judging by their names and values.
#[track_caller]
fn check_variables(variables: &[(String, String)]) {
    let settings = variables
        .iter()
        .filter(|(name, _)| name.starts_with("QUOIN_"));
    let settings: Vec<_> = settings.collect();
    assert!(!settings.is_empty());
    for (name, value) in settings {
        let known = SETTINGS.iter().any(|row| row.environment() == *name);
        assert!(known, "{name} is no setting");
        // Filled in elsewhere, or of the other build.
        if value.contains("${") || name == "QUOIN_STORE" {
            continue;
        }
        if let Err(error) = load(None, [(name.into(), value.into())], []) {
            panic!("{name}={value}: {error}");
        }
    }
}

/// The values at these names. Searches all items of lists on the way.
fn find<'v>(value: &'v Value, names: &[&str]) -> Vec<&'v Value> {
    match (value, names) {
        (Value::Array(items), _) => items.iter().flat_map(|item| find(item, names)).collect(),
        (_, []) => vec![value],
        (_, [name, rest @ ..]) => value
            .get(name)
            .map_or(Vec::new(), |value| find(value, rest)),
    }
}

fn strings(value: &Value, names: &[&str]) -> Vec<String> {
    let found = find(value, names).into_iter();
    found.map(|one| one.as_str().unwrap().to_owned()).collect()
}

#[test]
fn manifests_of_kubernetes_agree_with_themselves() {
    for (file, kind) in [("embedded", "StatefulSet"), ("foundationdb", "Deployment")] {
        let all = documents(&format!("packaging/kubernetes/{file}.yaml"));
        for one in &all {
            assert!(
                one["apiVersion"].is_string() && one["metadata"]["name"] == "quoin",
                "{one}"
            );
        }
        let of_kind = |kind| all.iter().find(|one| one["kind"] == kind).unwrap();
        let workload = of_kind(kind);
        let template = &workload["spec"]["template"];
        let labels = &template["metadata"]["labels"];
        assert_eq!(labels, &workload["spec"]["selector"]["matchLabels"]);
        let service = of_kind("Service");
        assert_eq!(labels, &service["spec"]["selector"]);

        let pod = &template["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let ports = strings(pod, &["containers", "ports", "name"]);
        let wanted = [
            strings(service, &["spec", "ports", "targetPort"]),
            strings(pod, &["containers", "livenessProbe", "httpGet", "port"]),
            strings(pod, &["containers", "readinessProbe", "httpGet", "port"]),
        ];
        assert!(
            wanted.iter().flatten().all(|port| ports.contains(port)),
            "{wanted:?}"
        );
        let volumes = [
            strings(pod, &["volumes", "name"]),
            strings(
                workload,
                &["spec", "volumeClaimTemplates", "metadata", "name"],
            ),
        ]
        .concat();
        for containers in ["containers", "initContainers"] {
            let mounts = strings(pod, &[containers, "volumeMounts", "name"]);
            assert!(
                mounts.iter().all(|name| volumes.contains(name)),
                "{mounts:?}"
            );
            for image in strings(pod, &[containers, "image"]) {
                let version = concat!(":", env!("CARGO_PKG_VERSION"));
                assert!(image.ends_with(version), "{image}");
            }
        }
        let text = |value: &Value| value.as_str().unwrap_or("${secret}").to_owned();
        let variables = find(pod, &["containers", "env"]);
        let variables = variables.into_iter();
        let variables = variables.map(|one| (text(&one["name"]), text(&one["value"])));
        check_variables(&variables.collect::<Vec<_>>());
    }
}

#[test]
fn files_of_compose_build_what_they_run() {
    for (file, name, dockerfile) in [
        ("docker-compose.yml", "quoin", "Dockerfile"),
        ("docker-compose.fdb.yml", "quoin-1", "Dockerfile.fdb"),
    ] {
        let [compose] = &documents(file)[..] else {
            panic!("{file} has several documents");
        };
        let service = &compose["services"][name];
        let built = service["build"]["dockerfile"].as_str();
        assert_eq!(built.unwrap_or("Dockerfile"), dockerfile);
        let Value::Object(variables) = &service["environment"] else {
            panic!("{service}");
        };
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| (name.clone(), text(value)));
        check_variables(&variables.collect::<Vec<_>>());
    }
}

#[test]
fn images_set_settings_and_are_asked_whether_they_answer() {
    for file in ["Dockerfile", "Dockerfile.fdb"] {
        let text = read(file);
        let variables = text.lines().filter_map(|line| line.strip_prefix("ENV "));
        let variables = variables.map(|line| line.split_once('=').unwrap());
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        check_variables(&variables.collect::<Vec<_>>());
        assert!(
            text.contains("CMD [\"/usr/bin/quoin\", \"ping\"]\n"),
            "{file}"
        );
        assert!(text.contains("\nUSER 10001:10001\n"), "{file}");
    }
}

/// Where the packages install each file.
fn assets() -> [BTreeMap<String, String>; 2] {
    let manifest: toml::Value = toml::from_str(&read("Cargo.toml")).unwrap();
    let metadata = &manifest["package"]["metadata"];
    let deb = metadata["deb"]["assets"].as_array().unwrap().iter();
    let deb = deb.map(|asset| {
        let [source, to, _] = asset.as_array().unwrap().as_slice() else {
            panic!("{asset}");
        };
        (source.as_str().unwrap(), to.as_str().unwrap())
    });
    let rpm = metadata["generate-rpm"]["assets"]
        .as_array()
        .unwrap()
        .iter();
    let rpm = rpm.map(|asset| {
        (
            asset["source"].as_str().unwrap(),
            asset["dest"].as_str().unwrap(),
        )
    });
    let whole = |(source, to): (&str, &str)| {
        let name = source.rsplit('/').next().unwrap();
        let name = if to.ends_with('/') { name } else { "" };
        (
            source.to_owned(),
            format!("/{}{name}", to.trim_start_matches('/')).replace('*', ""),
        )
    };
    [deb.map(whole).collect(), rpm.map(whole).collect()]
}

#[test]
fn both_packages_have_the_same_files_and_the_unit_runs_them() {
    let [deb, rpm] = assets();
    for (source, to) in deb.iter().chain(&rpm) {
        assert!(
            source.starts_with("target/") || path(source).exists(),
            "{source}"
        );
        assert!(!to.starts_with("/usr/local"), "{to}");
    }
    // cargo-deb finds the unit by its name, and adds a copyright of its own.
    let others = ["config/quoin.service", "LICENSE"];
    let same = rpm
        .iter()
        .filter(|(source, _)| !others.contains(&source.as_str()));
    for (source, to) in same {
        // zsh looks elsewhere in Debian.
        let to = to.replace("site-functions", "vendor-completions");
        assert_eq!(deb.get(source), Some(&to), "{source}");
    }
    assert_eq!(deb.len() + others.len(), rpm.len());

    let unit = read("config/quoin.service");
    let command = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let command = command.unwrap().split(' ').collect::<Vec<_>>();
    let [program, "--config", settings] = command[..] else {
        panic!("{command:?}");
    };
    assert_eq!(deb["target/release/quoin"], program);
    assert_eq!(deb["config/quoin.toml"], settings);
}

#[test]
fn the_unit_is_locked_down() {
    let analysis = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--json=off"])
        .arg(path("config/quoin.service"))
        .output();
    let Ok(analysis) = analysis else {
        eprintln!("the unit was not judged: systemd-analyze is missing");
        return;
    };
    let text = String::from_utf8_lossy(&analysis.stdout).into_owned();
    // Versions before 250 know no --offline.
    let Some((_, behind)) = text.split_once("exposure level for quoin.service: ") else {
        eprintln!("the unit was not judged: this systemd-analyze cannot");
        return;
    };
    let exposure: f64 = behind.split(' ').next().unwrap().parse().unwrap();
    assert!(exposure <= EXPOSURE_MAX, "{text}");
}
