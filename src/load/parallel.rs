//! Parses on all cores, because parsing takes most of the time of loading a large fleet.

/// Parses every file, on all cores, and returns the results in order.
pub fn parse_on_all_cores<T: Send>(
    files: Vec<(String, Vec<u8>)>,
    parse: impl Fn(&str, &[u8]) -> T + Sync,
) -> Vec<(String, T)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = files.len().div_ceil(cores).max(1);
    let each = |chunk: &[(String, Vec<u8>)]| -> Vec<(String, T)> {
        chunk.iter().map(|(path, bytes)| (path.clone(), parse(path, bytes))).collect()
    };
    if files.len() < 64 {
        return each(&files);
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = files.chunks(share).map(|chunk| (chunk, scope.spawn(|| each(chunk)))).collect();
        // Work of a worker that panicked is repeated here, so that the panic is reported.
        workers
            .into_iter()
            .flat_map(|(chunk, worker)| worker.join().unwrap_or_else(|_| each(chunk)))
            .collect()
    })
}
