import AppStoreSimulator
import EventLog
import HTTP
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// Forwarding from a real log to a real consumer.
@Suite struct ForwarderTests {
    /// A log that fills up, and notifications of a few streams.
    private struct Stage {
        let bench: DeliveryBench
        /// The bodies in the order of the log, by stream.
        private(set) var bodies: [Int: [[UInt8]]] = [:]
        private(set) var count = 0

        init() throws { bench = try DeliveryBench() }

        /// Delivers the next notification of a stream.
        mutating func deliver(stream number: Int) {
            count += 1
            let chain = bench.sample.chain(number)
            let text = bench.sample.signer.sign(
                .initialBuy(of: chain, uuid: bench.sample.uuid(count)),
                of: chain
            )
            #expect(bench.deliver(text)?.status == 200)
            bodies[number, default: []].append(
                Array("{\"signedPayload\":\"".utf8) + text + Array("\"}".utf8)
            )
        }

        /// No longer wants the first notification of a stream.
        mutating func forgetFirst(of number: Int) { bodies[number]?.removeFirst() }

        mutating func deliver(_ streams: some Sequence<Int>) {
            for stream in streams { deliver(stream: stream) }
        }

        /// A forwarder that looks often.
        ///
        /// A request may take as long as a loaded machine needs.
        func forwarder(
            to consumer: Consumer,
            start: Int64? = 1,
            _ change: (inout ForwardDestination) -> Void = { _ in },
            timing adjust: (inout Forwarder.Timing) -> Void = { _ in }
        ) throws -> Forwarder {
            var destination = ForwardDestination(url: try HTTPURL(consumer.url), name: "one")
            destination.startPosition = start
            change(&destination)
            var timing = Forwarder.Timing()
            timing.lease = .seconds(90)
            timing.request = .seconds(60)
            timing.poll = .milliseconds(50)
            adjust(&timing)
            let database = bench.sample.database
            return try Forwarder(destination, timing: timing) { try database.connect() }
        }

        var standing: ForwardStanding? {
            get throws { try ForwardStanding.all(bench.sample.database.connect()).first }
        }

        /// Waits until nothing is behind or held.
        func waitUntilDone(_ consumer: Consumer) throws {
            let isDone = consumer.wait { _ in
                (try? standing).flatMap { $0 }.map {
                    $0.lagEvents == 0 && $0.waitingStreams == 0
                } ?? false
            }
            let last = try standing
            #expect(isDone, "\(String(describing: last))")
        }

        /// Each at least once, and what is new of a stream after all that came before it.
        func expectAllInOrder(_ consumer: Consumer) {
            let taken = consumer.taken.map(\.body)
            for (number, bodies) in bodies {
                var firsts: [[UInt8]] = []
                let own = Set(bodies)
                for body in taken where own.contains(body) && !firsts.contains(body) {
                    firsts.append(body)
                }
                #expect(firsts == bodies, "stream \(number)")
            }
            let all = Set(bodies.values.joined())
            #expect(taken.allSatisfy { all.contains($0) })
        }
    }

    @Test func whatWasReceivedIsPostedByteForByteAndInOrder() throws {
        var stage = try Stage()
        let consumer = try Consumer()
        stage.deliver([1, 2, 1, 3, 2, 1])
        let forwarder = try stage.forwarder(to: consumer)
        stage.deliver([4, 1, 4])
        forwarder.wake()
        try stage.waitUntilDone(consumer)
        stage.expectAllInOrder(consumer)
        #expect(consumer.distinct == 9)
        #expect(consumer.taken.allSatisfy { $0.contentType == "application/json" })
        let standing = try #require(try stage.standing)
        #expect(standing.delivered == 9 && standing.isForwarding && standing.oldestAt == nil)
        forwarder.stop()
        #expect(try stage.standing?.isForwarding == false)
        #expect(forwarder.measures.delivered.value == 9)
    }

    /// The bodies that JSON allows beside Apple's own.
    private static func bodies(_ text: [UInt8]) -> [[UInt8]] {
        let text = String(decoding: text, as: UTF8.self)
        return [
            "{\"signedPayload\":\"\(text)\"}",
            "{\"signedPayload\": \"\(text)\"}",
            " {\"signedPayload\":\"\(text)\"}\r\n\t",
            "{\"signedPayload\":\"\(text)\",\"more\":{\"ü\":[1e2,null,\"\\u00fc\"]}}",
            "{\"before\":\"\(text)\",\"signedPayload\":\"\(text)\"}",
            "{\"signed\\u0050ayload\":\"\(text)\"}",
            "{\"signedPayload\":\"\\u0065\(text.dropFirst())\"}",
            "{\"signedPayload\":\"\(text)\",\"long\":\"\(String(repeating: "x", count: 300_000))\"}",
        ].map { Array($0.utf8) }
    }

    @Test func whateverBodyCameIsPostedByteForByte() throws {
        let stage = try Stage()
        let sample = stage.bench.sample
        var wanted: [[UInt8]] = []
        for number in 0..<8 {
            let bodies = Self.bodies(sample.purchase(number))
            wanted.append(bodies[number])
            #expect(stage.bench.deliver(body: bodies[number])?.reason == "stored")
            // The body that was stored first counts.
            #expect(stage.bench.deliver(body: bodies[(number + 1) % 8])?.reason == "duplicate")
        }
        let consumer = try Consumer()
        let forwarder = try stage.forwarder(to: consumer)
        try stage.waitUntilDone(consumer)
        forwarder.stop()
        #expect(Set(consumer.taken.map(\.body)) == Set(wanted))
        #expect(Set(wanted).count == 8)
        // Apple's own needs no keeping; of the others no byte of the signed text is kept twice.
        let rows = try sample.database.connect().query(
            """
            select coalesce(cardinality(posted), 0),
                coalesce(octet_length(posted[1]) + octet_length(posted[2]), 0)
            from ledger.evidence order by position
            """
        )
        let counts = (0..<rows.count).map { rows.int($0, 0) }
        #expect(counts == [0, 2, 2, 2, 2, 2, 1, 2])
        #expect((1...3).allSatisfy { rows.int($0, 1) ?? 999 < 80 })
        #expect(try LogAudit(sample.database.connect()).run().difference == nil)
    }

    /// A file has lines, and quarantine keeps the signed text alone.
    @Test func whatWasNotPostedIsForwardedInTheBodyThatApplePosts() throws {
        let stage = try Stage()
        let sample = stage.bench.sample
        let text = sample.purchase(1)
        let line =
            " {\"x\": 1, \"signedPayload\": \"" + String(decoding: text, as: UTF8.self) + "\"}"
        let report = try sample.ingest([Array(line.utf8)]).report
        #expect(report.appended == 1)
        let consumer = try Consumer()
        let forwarder = try stage.forwarder(to: consumer)
        try stage.waitUntilDone(consumer)
        forwarder.stop()
        #expect(consumer.taken.map(\.body) == [Self.bodies(text)[0]])
    }

    @Test func aNewDestinationStartsAtTheEndUnlessToldOtherwise() throws {
        var stage = try Stage()
        stage.deliver([1, 2, 3])
        let consumer = try Consumer()
        let fresh = try stage.forwarder(to: consumer, start: nil)
        #expect(consumer.wait { _ in (try? stage.standing?.position) == 3 })
        stage.deliver(stream: 4)
        try stage.waitUntilDone(consumer)
        #expect(consumer.taken.map(\.body) == stage.bodies[4])
        fresh.stop()
        // It goes on where it was, whatever the configuration says of a start.
        let again = try stage.forwarder(to: consumer, start: 1)
        stage.deliver(stream: 5)
        try stage.waitUntilDone(consumer)
        #expect(consumer.distinct == 2)
        again.stop()
        let other = try Consumer()
        let second = try stage.forwarder(to: other, start: 3) { $0.name = "two" }
        #expect(other.wait { $0.distinct == 3 })
        let third = try #require(stage.bodies[3])
        #expect(other.taken.map(\.body).contains(third[0]))
        second.stop()
    }

    @Test func onlyTheTypesThatAreWantedArePosted() throws {
        var stage = try Stage()
        stage.deliver([1, 2])
        let consumer = try Consumer()
        let none = try stage.forwarder(to: consumer) { $0.types = ["REFUND", "DID_RENEW"] }
        try stage.waitUntilDone(consumer)
        none.stop()
        #expect(consumer.tried == 0)
        let some = try stage.forwarder(to: consumer) {
            $0.types = ["SUBSCRIBED"]
            $0.name = "two"
        }
        #expect(consumer.wait { $0.distinct == 2 })
        some.stop()
    }

    @Test func whileTheConsumerIsAwayNothingIsLost() throws {
        var stage = try Stage()
        let port: UInt16
        do {
            let consumer = try Consumer()
            port = consumer.port
            let forwarder = try stage.forwarder(to: consumer)
            stage.deliver([1, 2])
            try stage.waitUntilDone(consumer)
            consumer.stop()
            forwarder.stop()
        }
        let gone = try Consumer()
        let forwarder = try stage.forwarder(to: gone) {
            if let url = try? HTTPURL("http://127.0.0.1:\(port)/app-store") { $0.url = url }
        }
        // Taking notifications does not wait for it.
        stage.deliver([1, 3, 1, 2, 3])
        #expect(gone.wait { _ in ((try? stage.standing?.attempts) ?? 0) >= 2 })
        let standing = try #require(try stage.standing)
        #expect(standing.lagEvents == 5 && standing.waitingStreams == 0)
        #expect(standing.failure?.contains("no connection") == true)
        #expect(standing.oldestAt != nil)
        let back = try Consumer(port: port)
        #expect(back.wait { $0.distinct >= 5 })
        try stage.waitUntilDone(back)
        forwarder.stop()
        #expect(Set(back.taken.map(\.body)).count == 5)
    }

    @Test func aStreamThatIsRefusedWaitsWhileOthersGoOn() throws {
        var stage = try Stage()
        let isMended = Mutex(false)
        stage.deliver([1, 2])
        let poison = try #require(stage.bodies[1]?.first)
        let consumer = try Consumer { body in
            body == poison && !isMended.withLock { $0 } ? 500 : 200
        }
        let forwarder = try stage.forwarder(to: consumer)
        stage.deliver([1, 3, 2, 1, 3])
        #expect(consumer.wait { $0.distinct == 4 })
        #expect(consumer.wait { _ in (try? stage.standing?.waitingStreams) == 1 })
        let standing = try #require(try stage.standing)
        #expect(standing.lagEvents == 0 && standing.failure?.contains("500") == true)
        #expect(standing.oldestAt != nil)
        #expect(consumer.wait { $0.tried >= 6 })
        #expect(consumer.distinct == 4)
        isMended.withLock { $0 = true }
        #expect(consumer.wait { $0.distinct == 7 })
        try stage.waitUntilDone(consumer)
        stage.expectAllInOrder(consumer)
        forwarder.stop()
    }

    @Test func whatCannotBeReadHoldsItsStreamUntilItIsPassedOver() throws {
        var stage = try Stage()
        stage.deliver([1, 2, 1])
        let owner = try stage.bench.sample.database.connect()
        let lost = try #require(
            try owner.query(
                "select min(position) from ledger.event where kind = 'notification' group by stream"
                    + " having count(*) = 2"
            ).int(0, 0)
        )
        try owner.execute(
            """
            alter table ledger.evidence disable trigger all;
            delete from ledger.evidence where position = \(lost);
            alter table ledger.evidence enable trigger all
            """
        )
        stage.forgetFirst(of: 1)
        let consumer = try Consumer()
        let forwarder = try stage.forwarder(to: consumer)
        defer { forwarder.stop() }
        #expect(
            consumer.wait { $0.distinct == 1 && (try? stage.standing)?.waitingStreams == 1 },
            "the other stream goes on"
        )
        let outcome = try EventSkipping(stage.bench.sample.database.connect()).skip(
            lost,
            operator: "kim",
            ticket: "T-1",
            why: "its page is broken",
            now: IngestSample.now
        )
        guard case .skipped = outcome else {
            Issue.record("\(outcome)")
            return
        }
        try stage.waitUntilDone(consumer)
        stage.expectAllInOrder(consumer)
    }

    @Test func aConsumerThatNeverAnswersStopsOneStreamAlone() throws {
        var stage = try Stage()
        stage.deliver([1, 2, 3, 2])
        let hanging = try #require(stage.bodies[1]?.first)
        let isMended = Mutex(false)
        let consumer = try Consumer { body in
            // Longer than a request may take; the answer reaches nobody.
            if body == hanging, !isMended.withLock({ $0 }) {
                sleepSeconds(2)
                return 500
            }
            return 200
        }
        let forwarder = try stage.forwarder(to: consumer, timing: { $0.request = .seconds(1) })
        #expect(consumer.wait { $0.distinct == 3 })
        #expect(consumer.wait { _ in (try? stage.standing?.waitingStreams) == 1 })
        isMended.withLock { $0 = true }
        try stage.waitUntilDone(consumer)
        stage.expectAllInOrder(consumer)
        forwarder.stop()
    }

    @Test func oneOfSeveralForwardsAndAnotherTakesOver() throws {
        var stage = try Stage()
        let consumer = try Consumer()
        let first = try stage.forwarder(to: consumer)
        #expect(consumer.wait { _ in (try? stage.standing?.isForwarding) == true })
        let second = try stage.forwarder(to: consumer)
        stage.deliver([1, 2, 1, 2, 1])
        try stage.waitUntilDone(consumer)
        #expect(first.measures.delivered.value == 5 && second.measures.delivered.value == 0)
        #expect(consumer.tried == 5)
        first.stop()
        stage.deliver([1, 2, 1])
        try stage.waitUntilDone(consumer)
        #expect(second.measures.delivered.value == 3)
        second.stop()
        stage.expectAllInOrder(consumer)
        #expect(consumer.tried == 8)
    }

    @Test func aHolderThatFellSilentIsReplacedWhenItsLeaseIsOver() throws {
        var stage = try Stage()
        let consumer = try Consumer()
        stage.deliver([1, 2])
        let connection = try stage.bench.sample.database.connect()
        try connection.execute(
            """
            insert into ledger.forward (destination, position, lease_holder, lease_until)
            values ('one', 0, 'gone', now() + interval '1.5 seconds')
            """
        )
        let forwarder = try stage.forwarder(to: consumer)
        let began = ContinuousClock.now
        #expect(consumer.wait { $0.distinct == 2 })
        #expect(ContinuousClock.now - began > .seconds(1))
        try stage.waitUntilDone(consumer)
        forwarder.stop()
        stage.expectAllInOrder(consumer)
    }

    /// A process that was frozen past the end of its lease must not move the row.
    @Test func whoLostTheLeaseWritesNothing() throws {
        let stage = try Stage()
        let connection = try stage.bench.sample.database.connect()
        let old = ForwardStore(connection: connection, destination: "one", holder: "old")
        try old.begin(startPosition: 1)
        #expect(try old.claim(for: .milliseconds(1)))
        let new = ForwardStore(connection: connection, destination: "one", holder: "new")
        var tries = 0
        while try !new.claim(for: .seconds(60)), tries < 1_000 { tries += 1 }
        #expect(try !old.claim(for: .seconds(60)))
        var result = ForwardResult(position: 7)
        let key = SubscriptionKey(appID: 1, stream: "s")
        let stream = HeldStream(position: 3, attempts: 1, dueAt: .now)
        result.changes[key] = .held(stream, failure: "no")
        #expect(try !old.record(result))
        #expect(try new.progress().position == 0 && new.progress().held.isEmpty)
        #expect(try new.record(result))
        let progress = try new.progress()
        #expect(progress.position == 7 && progress.held[key]?.position == 3)
        result.changes[key] = .released
        #expect(try new.record(result) && new.progress().held.isEmpty)
    }

    @Test func aRebuildForwardsNothing() throws {
        var stage = try Stage()
        let consumer = try Consumer()
        stage.deliver([1, 2, 1])
        let forwarder = try stage.forwarder(to: consumer)
        try stage.waitUntilDone(consumer)
        let database = stage.bench.sample.database
        _ = try Rebuild(connect: { try database.connect() }).run()
        stage.deliver(stream: 2)
        try stage.waitUntilDone(consumer)
        #expect(consumer.tried == 4)
        forwarder.stop()
    }
}
