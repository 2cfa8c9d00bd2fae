//! `covary completions` and `covary man`: made from the words of the command line.

use crate::args::{Cli, Completions, Man};
use crate::failure::Failure;
use crate::output::{Talk, print, print_json};
use clap::CommandFactory;
use serde_json::json;

pub fn completions(args: &Completions, talk: &Talk) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "covary", &mut script);
    let script = String::from_utf8_lossy(&script);
    match talk.json {
        true => print_json(&json!({ "shell": args.shell.to_string(), "script": script })),
        false => print(&script),
    }
}

pub fn man(args: &Man, talk: &Talk) -> Result<(), Failure> {
    let render = |command: clap::Command| -> Result<Vec<u8>, Failure> {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|e| Failure::writing("the page", e))?;
        Ok(page)
    };
    let command = Cli::command();
    let Some(dir) = &args.dir else {
        let page = render(command)?;
        let page = String::from_utf8_lossy(&page);
        return if talk.json { print_json(&json!({ "page": page })) } else { print(&page) };
    };
    let made = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    made.map_err(|source| covary::Error::new(covary::ErrorKind::Io { path: dir.clone(), source }))?;
    if talk.json { print_json(&json!({ "output": dir })) } else { Ok(()) }
}
