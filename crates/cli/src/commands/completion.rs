//! `mw completion`.

use super::Context;
use super::args::Cli;
use crate::failure::{DONE, Result};
use clap::{Args, CommandFactory, ValueEnum};

/// A shell.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    /// Bash
    Bash,
    /// Z shell
    Zsh,
    /// Fish
    Fish,
}

/// Print a shell's completion script
#[derive(Debug, Args)]
pub struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let shell = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "mw", &mut script);
        context.out.bytes(&script);
        Ok(DONE)
    }
}
