//! Scripts and libraries of functions.

use super::*;

#[test]
fn rows_of_scripts() {
    let layout = layout();
    golden(
        "flushes of scripts",
        &layout.script_flushes_key(),
        "0271756f696e00150b14",
    );
    golden(
        "script `ab`",
        &layout.script_key("ab"),
        "0271756f696e00150b150102616200",
    );
    golden(
        "piece 1 of script `ab`",
        &layout.script_piece_key("ab", 1),
        "0271756f696e00150b1501026162001501",
    );
    golden(
        "script `ab` in the index of those of EVAL, at 7",
        &layout.script_by_time_key(7, "ab"),
        "0271756f696e00150b1503150702616200",
    );
    let stored = StoredScript {
        origin: ScriptOrigin::Load,
        at_ms: 7,
        length: 300,
    };
    golden(
        "script of SCRIPT LOAD at 7, 300 bytes",
        &stored.encode(),
        "011501150716012c",
    );
    assert_eq!(StoredScript::decode(&stored.encode()).unwrap(), stored);
    let key = layout.script_by_time_key(7, "ab").into();
    assert_eq!(layout.read_script_by_time(&key).unwrap(), "ab");
}

#[test]
fn rows_of_libraries() {
    let layout = layout();
    golden(
        "version of the libraries",
        &layout.libraries_version_key(),
        "0271756f696e00150b1504",
    );
    golden(
        "library `lib`",
        &layout.library_key("lib"),
        "0271756f696e00150b1502026c696200",
    );
    let piece = layout.library_piece_key("lib", 1);
    golden(
        "piece 1 of library `lib`",
        &piece,
        "0271756f696e00150b1502026c6962001501",
    );
    let read = layout.read_library_key(&piece).unwrap();
    assert_eq!(read, ("lib".to_owned(), Some(1)));
    let stored = StoredLibrary {
        id: 9,
        functions_bytes: 7,
        code_bytes: 300,
    };
    golden(
        "library 9 with 7 bytes of functions and 300 of code",
        &stored.encode(),
        "011509150716012c",
    );
    assert_eq!(StoredLibrary::decode(&stored.encode()).unwrap(), stored);
    let functions = vec![
        StoredFunction {
            name: "f".to_owned(),
            description: Some(b"text".to_vec()),
            flags: 1,
        },
        StoredFunction {
            name: "g".to_owned(),
            description: None,
            flags: 0,
        },
    ];
    let mut bytes = Vec::new();
    for function in &functions {
        function.encode_into(&mut bytes);
    }
    golden(
        "functions `f`, which is described and only reads, and `g`",
        &bytes,
        "02660001746578740015010267000014",
    );
    assert_eq!(StoredFunction::decode_all(&bytes).unwrap(), functions);
}
