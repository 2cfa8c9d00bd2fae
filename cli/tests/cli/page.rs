//! The console blocks of `docs/cli.md`, run.

use crate::kit::*;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Lines `$ …` of the console blocks are run by `sh` in one directory, in order; a block that shows `[exit N]` expects
/// that code, any other 0. The output that the page shows is not compared.
#[test]
fn the_page_is_true() {
    let dir = place();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_covary")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for block in page.split("```console\n").skip(1).map(|b| b.split("```").next().unwrap()) {
        let expected = block.lines().find_map(|l| l.strip_prefix("[exit ")?.strip_suffix(']')).unwrap_or("0");
        for line in block.lines().filter_map(|l| l.strip_prefix("$ ")) {
            let output =
                Command::new("sh").current_dir(dir.path()).env("PATH", &path).args(["-c", line]).output().unwrap();
            assert_eq!(output.status.code().unwrap().to_string(), expected, "{line}\n{}", err(&output));
            run += 1;
        }
    }
    assert!(run >= 10);
}
