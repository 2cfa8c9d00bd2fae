//! `covary completions` and `covary man`: made from the words of the command line.

use crate::args::{Cli, Completions, Man};
use crate::failure::Failure;
use crate::output::print;
use clap::CommandFactory;

pub fn completions(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "covary", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub fn man(args: &Man) -> Result<(), Failure> {
    let render = |command: clap::Command| -> Result<Vec<u8>, Failure> {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|e| Failure::writing("the page", e))?;
        Ok(page)
    };
    let command = Cli::command();
    let Some(dir) = &args.dir else { return print(&String::from_utf8_lossy(&render(command)?)) };
    let made = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    made.map_err(|source| covary::Error::new(covary::ErrorKind::Io { path: dir.clone(), source }).into())
}
