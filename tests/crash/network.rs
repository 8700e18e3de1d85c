//! Servers: git over HTTP, and a registry.
