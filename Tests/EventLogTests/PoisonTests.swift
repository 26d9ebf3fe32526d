import Crypto
import EventLog
import Ledger
import Postgres
import Schema
import Testing

struct PoisonTests {
    /// Payloads that break JSON columns, text columns or careless number parsers.
    static let oddPayloads: [(name: String, bytes: [UInt8])] = [
        ("U+0000 escaped", Array(#"{"a":"\u0000"}"#.utf8)),
        ("U+0000 as a byte", Array("{\"a\":\"".utf8) + [0] + Array("\"}".utf8)),
        ("a lone surrogate", Array(#"{"a":"\ud800"}"#.utf8)),
        ("numbers", Array(#"{"a":1.50,"b":1e400,"c":-0,"d":12345678901234567890}"#.utf8)),
        ("duplicate keys", Array(#"{"a":1,"a":2}"#.utf8)),
        ("odd spacing", Array("{ \"a\" :\t1 ,\r\n\"b\":[ ] }  ".utf8)),
        ("a byte order mark", [0xEF, 0xBB, 0xBF] + Array(#"{"a":1}"#.utf8)),
        ("invalid UTF-8", Array("{\"a\":\"".utf8) + [0xC3, 0x28, 0xFF] + Array("\"}".utf8)),
        ("nothing", []),
        ("a text that only looks like a JWS", Array(#"{"a":"eyJ.eyJ.eyJ"}"#.utf8)),
        ("an unfinished text", Array(#"{"a":"eyJhbGciOi"#.utf8)),
    ]

    @Test func oddPayloadsAreKeptByteForByteAndStopNothing() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        var events = Sample.notifications(200 - Self.oddPayloads.count)
        for (index, payload) in Self.oddPayloads.enumerated() {
            let event = Sample.event(
                stream: "odd",
                key: "n:\(payload.name)",
                received: Array(Sample.jws(payload.bytes).utf8)
            )
            events.insert(event, at: index * 13)
        }
        let outcomes = try log.appender().append(events)
        #expect(outcomes == (1...200).map { .appended(position: $0) })
        let reader = LogReader(try log.connect())
        for (position, event) in events.enumerated() {
            let evidence = try reader.evidence(at: Int64(position) + 1)
            #expect(evidence?.received == event.received)
        }
        // The view is total: each layer has a text or a reason.
        let rows = try log.connect().query(
            "select count(*) from ledger.evidence_text where (payload is null) = (reason is null)"
        )
        #expect(rows.int(0, 0) == 0)
        #expect(try log.problems() == [])
    }

    @Test func bytesThatAreNoJWSAreKeptAsReceived() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let received: [[UInt8]] = [
            [0xEF, 0xBB, 0xBF] + Array("not.a.jws".utf8), [0, 1, 2, 0xFF], [],
            Array("{\"signed\": \"nothing\"}".utf8),
        ]
        let events = received.enumerated().flatMap { index, bytes in
            [ReceivedForm.jws, .raw].map { form in
                Sample.event(stream: "1", key: "\(form)\(index)", received: bytes, form: form)
            }
        }
        _ = try log.appender().append(events)
        let reader = LogReader(try log.connect())
        for (index, event) in events.enumerated() {
            let evidence = try #require(try reader.evidence(at: Int64(index) + 1))
            #expect(evidence.received == event.received)
            #expect(evidence.form == event.form)
        }
    }

    /// What no column can hold: the event alone goes to quarantine.
    static let poison: [(name: String, change: @Sendable (inout NewEvent) -> Void)] = [
        ("a key of 3,000 characters", { $0.eventKey = String(repeating: "x", count: 3000) }),
        ("a stream of 300 characters", { $0.stream = String(repeating: "9", count: 300) }),
        ("an empty stream", { $0.stream = "" }),
        ("a stream with U+0000", { $0.stream = "7\0" }),
        ("a bundle id of 300", { $0.app.bundleID = String(repeating: "b", count: 300) }),
        ("a kind without a name", { $0.kind = .unknown("") }),
        ("a signed date in year 300000", { $0.signedAt = Timestamp(milliseconds: .max) }),
        ("no digest", { $0.contentDigest = [] }),
    ]

    @Test func oneBadRowNeverStopsTheOthers() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        for (index, (name, change)) in Self.poison.enumerated() {
            var events = Sample.notifications(50, prefix: "p\(index)-")
            change(&events[17])
            let outcomes = try appender.append(events)
            for (place, outcome) in outcomes.enumerated() {
                #expect((outcome.position == nil) == (place == 17), "\(name) at \(place)")
            }
            // A second delivery of the same keeps it once.
            #expect(try appender.append(events)[17] == outcomes[17])
            let kept = try log.connect().query(
                "select from ledger.quarantine where received = $1",
                [.bytes(events[17].received)]
            )
            #expect(kept.count == 1, "\(name)")
        }
        #expect(try log.count("select count(*) from ledger.quarantine") == Int64(Self.poison.count))
        #expect(try log.problems() == [])
    }

    /// The server's own refusal, wherever in the batch and however many.
    @Test func severalOffendersAreFoundByHalving() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        var events = Sample.notifications(200)
        let offenders: Set<Int> = [0, 1, 98, 99, 100, 199]
        for index in offenders {
            events[index].eventKey = String(repeating: "k", count: 2900 + index)
        }
        let outcomes = try log.appender().append(events)
        for (index, outcome) in outcomes.enumerated() {
            #expect((outcome.position == nil) == offenders.contains(index))
        }
        #expect(try log.count("select count(*) from ledger.quarantine") == 6)
        #expect(try log.problems() == [])
    }

    @Test func wordsOfApplesThatNoColumnHoldsAreNamed() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        var event = Sample.notification(stream: "1", uuid: "a")
        event.notificationType = "NEW\0TYPE"
        event.fact?.notificationType = NotificationType("NEW\0TYPE")
        event.fact?.consumptionRequestReason = ConsumptionRequestReason("NO\0NE")
        event.fact?.transaction?.storefront = Symbol("D\0U")
        event.fact?.transaction?.expiresDate = Timestamp(milliseconds: 400_000_000_000_000)
        event.fact?.renewal = RenewalFact(signedDate: Timestamp(milliseconds: -5), digest: 1)
        #expect(try log.appender().append([event]) == [.appended(position: 1)])
        let rows = try log.connect().query("select decode_anomalies from ledger.fact")
        #expect(
            rows.textArray(0, 0) == [
                "notification_type:not_representable", "notification_type:not_representable",
                "consumption_request_reason:not_representable", "expires_date:out_of_range",
                "storefront:not_representable", "renewal_signed_date:out_of_range",
            ]
        )
        #expect(try LogReader(log.connect()).evidence(at: 1)?.received == event.received)
    }

    @Test func aQuarantinedDocumentIsKeptOnceByItsBytes() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        let document = QuarantinedDocument(
            received: [0, 0xFF, 1],
            reason: "notification_uuid_missing",
            app: Sample.app,
            stream: "1\u{0}2"
        )
        #expect(try appender.quarantine(document))
        #expect(try !appender.quarantine(document))
        let rows = try log.connect().query(
            "select received, reason, claimed_stream from ledger.quarantine"
        )
        #expect(rows.count == 1)
        #expect(rows.bytes(0, 0) == document.received)
        #expect(rows.text(0, 1) == "notification_uuid_missing")
    }
}
