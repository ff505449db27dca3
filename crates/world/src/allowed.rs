//! The proof that a change was asked about. Only `permit`, which asks, may give one.

/// That a change was asked about, and may be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permit(());

impl Permit {
    /// Says that it was asked. For `permit` alone.
    pub(crate) fn given() -> Self {
        Self(())
    }
}
