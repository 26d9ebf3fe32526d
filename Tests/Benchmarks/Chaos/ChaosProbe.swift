internal import Dispatch
internal import Postgres
internal import Synchronization

/// Sees how long it takes from an acknowledgement until the read models show what it was about.
final class ChaosProbe: Sendable {
    private struct State {
        var waiting: [(stream: String, since: Double, phase: String?)] = []
        var isOver = false
        /// From the start, the longest wait of each ten seconds.
        var seen = 0
    }

    let times = ChaosTimes()
    private let connect: @Sendable () throws -> Connection
    private let state = Mutex(State())
    private let over = DispatchGroup()

    init(connect: @escaping @Sendable () throws -> Connection) {
        self.connect = connect
        DispatchQueue(label: "chaos.probe").async(group: over) { [self] in run() }
    }

    /// Has one watched, unless enough are watched already.
    func add(_ stream: String) {
        let now = Clock.seconds()
        let phase = times.phase
        state.withLock { state in
            if state.waiting.count < 4 { state.waiting.append((stream, now, phase)) }
        }
    }

    func stop() {
        state.withLock { $0.isOver = true }
        over.wait()
    }

    private func run() {
        var connection: Connection?
        while true {
            let (waiting, isOver) = state.withLock { ($0.waiting, $0.isOver) }
            if isOver { return }
            guard !waiting.isEmpty else {
                Clock.sleep(milliseconds: 1)
                continue
            }
            do {
                let session = try connection ?? connect()
                connection = session
                let streams = waiting.map(\.stream)
                let rows = try session.query(
                    """
                    select s from unnest($1::text[]) s
                    where exists (select from ledger.mark m where m.stream = s)
                    """,
                    [.textArray(streams)]
                )
                let marked = Set((0..<rows.count).compactMap { rows.text($0, 0) })
                let now = Clock.seconds()
                for entry in waiting where !marked.contains(entry.stream) {
                    times.add(now - entry.since, began: entry.phase)
                }
                state.withLock { state in
                    state.waiting.removeAll { entry in
                        streams.contains(entry.stream) && !marked.contains(entry.stream)
                    }
                }
                Clock.sleep(milliseconds: 1)
            } catch {
                // The database is away: what is waited for now was held up by that.
                connection = nil
                state.withLock { $0.waiting = [] }
                Clock.sleep(milliseconds: 50)
            }
        }
    }
}
