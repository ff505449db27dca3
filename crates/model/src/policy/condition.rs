//! Conditions of statements.
//!
//! A condition whose fact is missing does not hold, save for the negated one, which does (AWS: *Condition operators*).

use super::{Context, Glob};
use std::net::{IpAddr, Ipv6Addr};

/// A range of addresses. An IPv4 address in an IPv6 one counts as the IPv4 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    bits: u128,
    length: u32,
    wide: bool,
}

impl Net {
    /// Reads an address or a range in CIDR notation.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) if length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit()) => {
                (address, Some(length.parse::<u32>().ok()?))
            }
            Some(_) => return None,
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let wide = address.is_ipv6();
        let most = if wide { 128 } else { 32 };
        let length = length.unwrap_or(most);
        (length <= most).then(|| Self { bits: bits(address) & mask(length, most), length, wide })
    }

    /// Whether an address is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let most = if self.wide { 128 } else { 32 };
        if address.is_ipv6() == self.wide {
            return bits(address) & mask(self.length, most) == self.bits;
        }
        // A range that was written for mapped addresses.
        let IpAddr::V4(address) = address else { return false };
        self.wide && Ipv6Addr::from(self.bits).to_ipv4_mapped().is_some() && self.length >= 96 && {
            u128::from(address.to_ipv6_mapped()) & mask(self.length, 128) == self.bits
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn mask(length: u32, most: u32) -> u128 {
    let all = if most == 128 { u128::MAX } else { (1 << most) - 1 };
    all & all.checked_shl(most - length).unwrap_or(0)
}

/// What must hold for a statement to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// `IpAddress` on `aws:SourceIp`: the client is in one of the ranges.
    From(Vec<Net>),
    /// `NotIpAddress`: it is in none of them.
    NotFrom(Vec<Net>),
    /// `DateLessThan` on `aws:CurrentTime`: it is before the instant, in UNIX nanoseconds.
    Before(u64),
    /// `DateGreaterThan`: it is after.
    After(u64),
    /// `StringEquals` on `s3:prefix`: the prefix of the listing is one of these.
    PrefixIs(Vec<Vec<u8>>),
    /// `StringLike` on `s3:prefix`: it matches one of these.
    PrefixLike(Vec<Glob>),
}

impl Condition {
    pub(super) fn holds(&self, context: &Context<'_>) -> bool {
        match self {
            Self::From(nets) => context.source.is_some_and(|at| nets.iter().any(|net| net.contains(at))),
            Self::NotFrom(nets) => context.source.is_none_or(|at| !nets.iter().any(|net| net.contains(at))),
            Self::Before(at) => context.now < *at,
            Self::After(at) => context.now > *at,
            Self::PrefixIs(texts) => context.prefix.is_some_and(|p| texts.iter().any(|t| t == p)),
            Self::PrefixLike(globs) => context.prefix.is_some_and(|p| globs.iter().any(|g| g.matches(p))),
        }
    }

    /// Whether it holds whatever is asked for: a request that lists nothing has no prefix, so that none about it can.
    pub(super) fn holds_for_all(&self, context: &Context<'_>) -> bool {
        !matches!(self, Self::PrefixIs(_) | Self::PrefixLike(_)) && self.holds(context)
    }

    /// Whether it may hold for something that is listed.
    pub(super) fn holds_for_some(&self, context: &Context<'_>) -> bool {
        match self {
            Self::PrefixIs(_) | Self::PrefixLike(_) => true,
            _ => self.holds(context),
        }
    }
}
