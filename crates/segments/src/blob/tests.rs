//! Tests of the blob format.
