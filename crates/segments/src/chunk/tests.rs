//! Tests of the cutter.
