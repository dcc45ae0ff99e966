//! The documents' links to each other.

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
        for link in links.filter_map(|rest| rest.split([')', '#', ' ', '\n']).next()) {
            let target = document.parent().unwrap().join(link);
            if !link.is_empty() && !link.contains(':') && !target.exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
