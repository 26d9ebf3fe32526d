import AppStoreSimulator
import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// The decoded facts can be made again from the evidence alone.
@Suite struct RedecodeTests {
    /// Signed lives of some subscriptions, rare things among them.
    private static func told() throws -> IngestSample {
        let sample = try IngestSample()
        var options = Simulation.Options(subscriptions: 12, seed: 3)
        options.rareFactor = 8
        let simulation = Simulation(options)
        let lines = (0..<12).flatMap { number in
            let life = simulation.life(number)
            return life.notices.prefix(15).map { sample.signer.sign($0, of: life.chain) }
        }
        _ = try sample.ingest(lines)
        // What the program notes of rows beside the log is in it too, and is never folded.
        _ = try RecordedRows(sample.database.connect()).record(
            through: Appender(sample.database.connect()),
            now: IngestSample.now
        )
        return sample
    }

    private static func rows(_ sample: IngestSample) throws -> [String] {
        let rows = try sample.database.connect().query(
            "select to_jsonb(f)::text from ledger.fact f order by position"
        )
        return (0..<rows.count).map { rows.text($0, 0) ?? "" }
    }

    private static func spoil(_ sample: IngestSample) throws {
        try sample.database.connect().execute(
            """
            update ledger.fact
            set decoder = 0, product_id = 'wrong', expires_date = null, decode_anomalies = '{x}'
            """
        )
    }

    @Test func whatAnotherDecoderFilledIsFilledAsAtTheAppend() throws {
        let sample = try Self.told()
        let connect = sample.connect
        let right = try Self.rows(sample)
        #expect(right.count > 100)
        #expect(
            try sample.count("select count(*) from ledger.fact where kind = 'header_added'") ?? 0
                > 0
        )
        let digests = try Rebuild(connect: connect).run().readModels.map(\.digest)
        try Self.spoil(sample)
        #expect(try Self.rows(sample) != right)
        let report = try Redecode(workers: 2, connect: connect).run()
        #expect(report == Redecoding.Report(rows: Int64(right.count), skipped: 0))
        #expect(try Self.rows(sample) == right)
        #expect(try Rebuild(connect: connect).run().readModels.map(\.digest) == digests)
        #expect(try Redecode(connect: connect).run().rows == 0)
    }

    @Test func untilThenARebuildDecodesTheEvidence() throws {
        let sample = try Self.told()
        let connect = sample.connect
        let digests = try Rebuild(connect: connect).run().readModels.map(\.digest)
        try Self.spoil(sample)
        #expect(try Rebuild(connect: connect).run().readModels.map(\.digest) == digests)
    }

    @Test func stoppedItGoesOnWhereItWasAndASecondOneIsRefused() throws {
        let sample = try Self.told()
        let connect = sample.connect
        let right = try Self.rows(sample)
        try Self.spoil(sample)
        let refusal = Mutex<ReadModelError?>(nil)
        let stopped = #expect(throws: ReadModelError.self) {
            try Redecode(workers: 1, connect: connect).run(
                shouldStop: { refusal.withLock { $0 != nil } },
                progress: { _ in
                    do throws(ReadModelError) {
                        _ = try Redecode(connect: connect).run()
                    } catch {
                        refusal.withLock { $0 = error }
                    }
                }
            )
        }
        #expect(stopped?.code == .stopped)
        #expect(refusal.withLock { $0?.code } == .rebuildRuns)
        #expect(try Redecode(connect: connect).run().rows > 0)
        #expect(try Self.rows(sample) == right)
    }

    @Test func itStopsAtTheFirstEventThatItCannotReadUnlessThatIsPassedOver() throws {
        let sample = try Self.told()
        let right = try Self.rows(sample)
        try Self.spoil(sample)
        let connect = sample.connect
        let unreadable = FactSource(version: FactSource.current.version) { evidence in
            guard evidence.event.position != 20 else {
                throw EventLogError(.unreadable, "event 20 is torn", position: 20)
            }
            return try FactSource.current.fact(evidence)
        }
        let stopped = #expect(throws: ReadModelError.self) {
            try Redecode(source: unreadable, connect: connect).run()
        }
        #expect(stopped?.code == .unreadableEvent)
        #expect(stopped?.message == "event 20 is torn")
        _ = try EventSkipping(sample.database.connect(), source: unreadable).skip(
            20,
            operator: "olga",
            ticket: "SUP-9",
            why: "torn",
            now: IngestSample.now
        )
        let report = try Redecode(source: unreadable, connect: connect).run()
        #expect(report.skipped == 1)
        let now = try Self.rows(sample)
        #expect(zip(now, right).filter { $0 != $1 }.count == 1)
        #expect(
            try sample.count(
                "select count(*) from ledger.fact where position = 20 and fact_at is null"
            ) == 1
        )
    }
}
