//! The documents' links to each other, and to each other's headings.

use std::path::{Path, PathBuf};

const FOLDERS: [&str; 2] = ["", "docs"];

fn documents(folder: &Path, deep: bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && deep {
            documents(&path, deep, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The anchor of a heading, as GitHub generates it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    let name: String = kept.collect();
    name.to_lowercase().replace(' ', "-")
}

/// The names of a document's headings.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if !is_code && heading.len() < line.len() {
            found.push(anchor(heading.trim()));
        }
    }
    found
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in FOLDERS {
        documents(&root.join(folder), !folder.is_empty(), &mut found);
    }
    let mut broken = Vec::new();
    for document in found {
        let text = std::fs::read_to_string(&document).unwrap();
        let links = text.split("](").skip(1);
        for link in links.filter_map(|rest| rest.split([')', ' ', '\n']).next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                file => document.parent().unwrap().join(file),
            };
            let is_ours = !link.is_empty() && !link.contains(':');
            let has_heading = || {
                heading.is_empty()
                    || std::fs::read_to_string(&target)
                        .is_ok_and(|text| anchors(&text).iter().any(|name| name == heading))
            };
            if is_ours && !(target.exists() && has_heading()) {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn headings_have_the_names_that_links_use() {
    let text =
        "# `quoin doctor`\n\nText\n\n```sh\n# no heading\n```\n\n## Moving from Redis, and back\n";
    assert_eq!(
        anchors(text),
        ["quoin-doctor", "moving-from-redis-and-back"]
    );
}
