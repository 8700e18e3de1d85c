//! Parsing is what loading a large fleet costs: it is spread over all cores.

/// Parses every file, on all cores, and gives the results back in order.
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
        // A worker that died is done again here, where its panic is seen.
        workers
            .into_iter()
            .flat_map(|(chunk, worker)| worker.join().unwrap_or_else(|_| each(chunk)))
            .collect()
    })
}
