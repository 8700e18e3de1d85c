//! Sources → World; a GitOps commit → GitOps. Reads disk and API server; knows nothing of gates and registries.
