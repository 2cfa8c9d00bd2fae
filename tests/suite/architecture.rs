//! The picture of `docs/architecture.md`: which folder may use which. No arrow points down.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What each folder (or file) of `src/` may name after `crate::`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("threads", &[]),
    ("normal", &[]),
    ("memory", &[]),
    ("file", &["error"]),
    ("data", &["error"]),
    ("kernel", &["error"]),
    ("linalg", &["error", "threads"]),
    ("optim", &["error"]),
    ("plot", &["error", "file"]),
    ("program", &["error", "threads", "data", "kernel"]),
    ("gp", &["error", "threads", "data", "kernel", "linalg", "program"]),
    ("fit", &["error", "threads", "memory", "file", "normal", "data", "kernel", "linalg", "optim", "program", "gp"]),
    (
        "forecast",
        &["error", "threads", "memory", "file", "normal", "data", "kernel", "gp", "fit", "plot", "program", "optim"],
    ),
];

fn sources(folder: &Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn no_arrow_points_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 30);
    for file in files {
        let relative = file.strip_prefix(&root).unwrap();
        let module = relative.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_string();
        if module == "lib" {
            continue;
        }
        let Some((_, allowed)) = MAY_USE.iter().find(|(m, _)| *m == module) else {
            panic!("{module}: a new folder: say in this test and in docs/architecture.md what it may use");
        };
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            // Code only: comments may point anywhere.
            let code = line.split("//").next().unwrap_or("");
            for used in code.split("crate::").skip(1) {
                let name: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let known = name == module || allowed.contains(&name.as_str());
                assert!(known, "{}:{}: {module} may not use {name}", relative.display(), number + 1);
            }
        }
    }
}

#[test]
fn an_outside_library_is_named_in_one_folder_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    for (library, home) in
        [("faer", "linalg"), ("jiff", "data"), ("csv", "data"), ("flate2", "data"), ("resvg", "plot")]
    {
        let mut folders = BTreeSet::new();
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            let named = text.lines().any(|l| {
                let code = l.split("//").next().unwrap_or("").trim_start();
                code.contains(&format!("use {library}::"))
                    || code.contains(&format!(" {library}::"))
                    || code.contains(&format!("({library}::"))
            });
            if named {
                folders
                    .insert(file.strip_prefix(&root).unwrap().iter().next().unwrap().to_string_lossy().to_string());
            }
        }
        assert!(folders.iter().all(|f| f == home), "{library} is named in {folders:?}");
    }
}
