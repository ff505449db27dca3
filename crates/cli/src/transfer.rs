//! Files of this machine as a stream of frames: [`push`] reads them, [`pull`] writes them.

pub mod pull;
pub mod push;
