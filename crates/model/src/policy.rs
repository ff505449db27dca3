//! Policies: statements that allow or deny actions on resources under conditions, and the one way to decide by them.
//!
//! The rules are a subset of AWS's (*IAM JSON policy elements reference*): what no statement names is not allowed, and a statement that
//! denies wins over every one that allows. A resource is `bucket` or `bucket/key`, in the very bytes that the verb acts on: nothing is
//! decoded, folded or normalised here. Policies are decided, never parsed, by this module; it performs no I/O.
//!
//! Two questions are asked. [`Policy::decide`] is about one resource. [`Policy::covers`] is about a whole world at once, for the verbs
//! that take in all of it (fork, diff, promote): it says `Allow` only when every key is allowed, and `Deny` when any may be denied.

mod action;
mod condition;
mod glob;

pub use action::{Action, Class};
pub use condition::{Condition, Net};
pub use glob::Glob;

use std::net::IpAddr;

/// What a statement does with what it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Allows it, unless another statement denies it.
    Allow,
    /// Denies it.
    Deny,
}

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it does with what it matches.
    pub effect: Effect,
    /// The actions, as patterns over `service:Name` in lower case.
    pub actions: Vec<Glob>,
    /// The resources, as patterns over `bucket` or `bucket/key`.
    pub resources: Vec<Glob>,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
}

/// Some statements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// In no order that matters.
    pub statements: Vec<Statement>,
}

/// What is known of a request beside its action and resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    /// The address of the client's socket, when there is one.
    pub source: Option<IpAddr>,
    /// Now, in UNIX nanoseconds.
    pub now: u64,
    /// The prefix of a listing.
    pub prefix: Option<&'a [u8]>,
}

/// What a policy says to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A statement allows it and none denies it.
    Allow,
    /// A statement denies it.
    Deny,
    /// No statement matches.
    Silent,
}

impl Policy {
    /// Decides about one resource.
    pub fn decide(&self, action: Action, resource: &[u8], context: &Context<'_>) -> Decision {
        let matching = self.statements.iter().filter(|s| {
            s.acts(action)
                && s.resources.iter().any(|r| r.matches(resource))
                && s.conditions.iter().all(|c| c.holds(context))
        });
        strongest(matching.map(|s| s.effect))
    }

    /// Decides about a world with all of its keys, those to come included.
    ///
    /// `Allow`: every resource of it is allowed. `Deny`: some resource of it may be denied. In doubt it says what allows less.
    pub fn covers(&self, action: Action, world: &str, context: &Context<'_>) -> Decision {
        let within = format!("{world}/");
        let applies = |s: &&Statement| {
            if !s.acts(action) {
                return false;
            }
            match s.effect {
                Effect::Deny => {
                    let met = |r: &Glob| r.matches(world.as_bytes()) || r.reaches(within.as_bytes());
                    s.resources.iter().any(met) && s.conditions.iter().all(|c| c.holds_for_some(context))
                }
                Effect::Allow => {
                    let bucket = action.is_about_bucket();
                    let all = |r: &Glob| if bucket { r.matches(world.as_bytes()) } else { r.covers(within.as_bytes()) };
                    s.resources.iter().any(all) && s.conditions.iter().all(|c| c.holds_for_all(context))
                }
            }
        };
        strongest(self.statements.iter().filter(applies).map(|s| s.effect))
    }

    /// Whether some statement may allow something on a resource that starts with `start`, or on `start` itself. In doubt, yes: this
    /// opens a door behind which every step is decided again.
    pub fn touches(&self, start: &[u8]) -> bool {
        let met = |s: &Statement| s.effect == Effect::Allow && s.resources.iter().any(|r| r.reaches(start));
        self.statements.iter().any(met)
    }
}

impl Statement {
    fn acts(&self, action: Action) -> bool {
        let name = action.name().to_ascii_lowercase();
        self.actions.iter().any(|pattern| pattern.matches(name.as_bytes()))
    }
}

fn strongest(effects: impl Iterator<Item = Effect>) -> Decision {
    let mut decision = Decision::Silent;
    for effect in effects {
        match effect {
            Effect::Deny => return Decision::Deny,
            Effect::Allow => decision = Decision::Allow,
        }
    }
    decision
}

#[cfg(test)]
mod tests;
