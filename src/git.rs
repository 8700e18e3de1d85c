//! Git at the edge: repositories opened and read, transports and credentials. Knows nothing of what files mean.
