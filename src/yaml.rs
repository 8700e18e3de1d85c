//! YAML as Kubernetes users write it: parsed with positions and exact scalars, written so that 1.1 and 1.2 readers agree.
