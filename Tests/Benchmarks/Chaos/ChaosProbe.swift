internal import Dispatch
internal import Postgres
internal import Synchronization

/// Sees how long it takes from an acknowledgement until the read models show what it was about.
final class ChaosProbe: Sendable {
    private struct Waiting {
        var stream: String
        var position: Int64
        var since: Double
        var phase: String?
    }

    private struct State {
        var waiting: [Waiting] = []
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
    func add(_ stream: String, at position: Int64) {
        let now = Clock.seconds()
        let phase = times.phase
        state.withLock { state in
            guard state.waiting.count < 4 else { return }
            state.waiting.append(
                Waiting(stream: stream, position: position, since: now, phase: phase)
            )
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
                // News that came later are no concern of who waits for older ones; a batch has
                // one mark for a subscription, at the last of its events.
                let rows = try session.query(
                    """
                    select p from unnest($1::text[], $2::bigint[]) as w (s, p)
                    where exists (
                        select from ledger.mark m where m.stream = w.s and m.position <= (
                            select b.last_position from ledger.batch b
                            where b.first_position <= w.p
                            order by b.first_position desc limit 1
                        )
                    )
                    """,
                    [.textArray(waiting.map(\.stream)), .intArray(waiting.map(\.position))]
                )
                let marked = Set((0..<rows.count).compactMap { rows.int($0, 0) })
                let now = Clock.seconds()
                let shown = waiting.filter { !marked.contains($0.position) }
                for entry in shown { times.add(now - entry.since, began: entry.phase) }
                let positions = Set(shown.map(\.position))
                state.withLock { state in
                    state.waiting.removeAll { positions.contains($0.position) }
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
