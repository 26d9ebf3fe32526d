import Foundation
import Glibc
import Postgres
import Synchronization
import TestSupport
import Testing

/// Two processes keep the same read models, on the same subscriptions at the same time.
@Suite struct ProjectingProcessesTests {
    /// The tables of each projection.
    private static let tables = [
        "entitlement": ["subscription", "entitlement_interval"],
        "billing_recovery": ["billing_episode"],
        "churn": ["lifecycle_moment"],
    ]

    @Test func twoProcessesWithPausesAndAnEndWriteWhatARebuildDoes() throws {
        let one = try ServedProgram(on: .shared, subscriptions: 18)
        let two = try ServedProgram(
            in: one.folder,
            database: one.database,
            conninfo: one.database.conninfo
        )
        let lines = try one.notifications()
        let ports = Mutex([one.port, two.port])
        let next = Atomic<Int>(0)
        let deliveries = DispatchGroup()
        for _ in 0..<4 {
            DispatchQueue(label: "test.delivery").async(group: deliveries) {
                while true {
                    let place = next.add(1, ordering: .relaxed).oldValue
                    guard place < lines.count else { return }
                    // What one process appends the other may fold, and the other way round.
                    var tries = 0
                    while tries < 3_000 {
                        let port = ports.withLock { $0[(place + tries) % 2] }
                        if ServedProgram.deliver(lines[place], port: port)?.status == 200 { break }
                        tries += 1
                        usleep(20_000)
                    }
                }
            }
        }
        // One is frozen, wherever it is, while the other goes on; then the other. One dies.
        var round = 0
        while deliveries.wait(timeout: .now() + .milliseconds(60)) == .timedOut {
            round += 1
            let frozen = round.isMultiple(of: 2) ? one : two
            if round == 5 {
                two.kill()
                try two.start()
                ports.withLock { $0[1] = two.port }
                continue
            }
            guard round < 40, frozen.process.isRunning else { continue }
            _ = Glibc.kill(frozen.process.processIdentifier, SIGSTOP)
            usleep(150_000)
            _ = Glibc.kill(frozen.process.processIdentifier, SIGCONT)
        }
        #expect(round > 5, "one was killed while notifications came")
        #expect(try one.number("select count(*) from ledger.event") == Set(lines).count)
        try one.waitUntilFolded()
        #expect(try one.number("select count(*) from read_model.parked") == 0)
        #expect(one.terminate() == 0)
        #expect(two.terminate() == 0)
        let live = try rows(one)
        #expect(try one.run("rebuild").status == 0)
        let fresh = try rows(one)
        for (table, rows) in fresh {
            #expect(live[table] == rows, "\(table)")
        }
        #expect(fresh["entitlement_interval"].map { $0.count > 40 } == true)
        #expect(fresh["lifecycle_moment"]?.isEmpty == false)
    }

    private func rows(_ served: ServedProgram) throws -> [String: [String]] {
        let connection = try served.database.connect()
        var result: [String: [String]] = [:]
        for (projection, tables) in Self.tables {
            for table in tables {
                let rows = try connection.query(
                    """
                    select (to_jsonb(t) - 'generation')::text from read_model.\(table) t
                    where generation = (
                        select generation from read_model.current where projection = $1)
                    order by 1
                    """,
                    [.text(projection)]
                )
                result[table] = (0..<rows.count).map { rows.text($0, 0) ?? "" }
            }
        }
        return result
    }
}
