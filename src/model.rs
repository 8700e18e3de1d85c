//! The words of the product: values that the rooms hand to each other. No I/O here, and no policy.
//!
//! A value of one of these types has been checked once, at the edge; nothing later has to doubt it.

pub mod application;
pub mod approval;
pub mod audit;
pub mod cluster;
pub mod crd;
pub mod environment;
pub mod evidence;
pub mod id;
pub mod kind;
pub mod kitchen;
pub mod meta;
pub mod naming;
pub mod order;
pub mod plan;
pub mod preparation;
pub mod reason;
pub mod renderer;
pub mod scope;
pub mod resource;
pub mod schema;
pub mod serving;
pub mod time;
pub mod calendar;
pub mod verdict;
pub mod verification;
pub mod world;
