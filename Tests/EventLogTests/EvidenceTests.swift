import Crypto
import Ledger
import Postgres
import Schema
import Testing

@testable import EventLog

struct EvidenceTests {
    private static func parts(_ received: [UInt8]) -> EvidenceParts {
        EvidenceParts(received, form: .jws) { Base64URL.decode($0) != nil }
    }

    @Test func aNotificationIsTakenApartAndPutTogetherAgain() {
        let event = Sample.notification(stream: "7000", uuid: "a")
        let parts = Self.parts(event.received)
        #expect(parts.codec == .decomposed)
        #expect(parts.headers.count == 3)
        #expect(parts.signatures.count == 3 * 64)
        #expect(parts.recomposed() == event.received)
        let size = parts.payloads.reduce(parts.signatures.count) { $0 + $1.count }
        #expect(size * 3 < event.received.count)
    }

    @Test func aHeaderThatNobodyVouchedForStaysWhereItIs() {
        let event = Sample.notification(stream: "7000", uuid: "a")
        let outerOnly = EvidenceParts(event.received, form: .jws) { header in
            header.elementsEqual(Sample.header.utf8)
        }
        #expect(outerOnly.headers.count == 2)
        #expect(outerOnly.recomposed() == event.received)
        let none = EvidenceParts(event.received, form: .jws) { _ in false }
        #expect(none.codec == .jws)
        #expect(none.recomposed() == event.received)
    }

    @Test func whatWasPreparedElsewhereIsUsedOnlyWhereItStillHolds() {
        var event = Sample.notification(stream: "7000", uuid: "a")
        event.prepareEvidence()
        let prepared = event.preparation
        #expect(prepared?.parts == Self.parts(event.received))
        #expect(prepared?.holds(for: event) { _ in true } == true)
        // A header that nobody vouches for may not be stored on its own.
        #expect(prepared?.holds(for: event) { $0.elementsEqual(Sample.header.utf8) } == false)
        let changes: [(inout NewEvent) -> Void] = [
            { $0.received[0] ^= 1 }, { $0.form = .raw }, { $0.operator = "me" },
            { $0.ticket = "SUP-1" },
        ]
        for change in changes {
            var other = event
            change(&other)
            #expect(prepared?.holds(for: other) { _ in true } == false)
        }
    }

    @Test func preparedEvidenceIsStoredLikeAnyOther() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        var events = (1...4).map { Sample.notification(stream: "70\($0)", uuid: "\($0)") }
        // One as it is, one prepared, one whose preparation no longer holds, one with a header that
        // nobody vouches for.
        for place in [1, 2, 3] { events[place].prepareEvidence() }
        events[2].operator = "me"
        events[3].layers.removeAll { $0 == Sample.layer(Sample.otherHeader) }
        #expect(try log.appender().append(events) == (1...4).map { .appended(position: $0) })
        let reader = LogReader(try log.connect())
        for (place, event) in events.enumerated() {
            let stored = try #require(try reader.evidence(at: Int64(place + 1)))
            #expect(stored.received == event.received)
        }
        #expect(
            try log.count(
                "select string_agg(cardinality(headers)::text, '' order by position)::int from ledger.evidence"
            ) == 3332
        )
        #expect(try log.problems() == [])
    }

    @Test(arguments: [
        "", ".", "..", "a.b.c", "a.b.c.d", "eyJhbGciOiJFUzI1NiJ9.e30.AA",
        "\(Sample.header).e30", "\(Sample.header).e30.",
        "\(Sample.header).e31.\(String(repeating: "A", count: 86))",
        "\(Sample.header).e30.\(String(repeating: "A", count: 86))=",
        " \(Sample.jws("{}"))", "\(Sample.jws("{}"))\n",
    ])
    func whatIsNotExactlyAJWSIsKeptAsItIs(_ text: String) {
        let parts = Self.parts(Array(text.utf8))
        #expect(parts.codec == .jws)
        #expect(parts.recomposed() == Array(text.utf8))
    }

    /// Random documents, made of what could confuse the taking apart.
    @Test func nothingIsLostWhateverIsInIt() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix(state: seed)
        let inner = Sample.jws(#"{"x":1}"#, header: "eyJhIjoxfQ")
        let pieces = [
            "\"", "\\\"", "eyJ", "\"eyJ", ".", inner, "\"\(inner)\"", "\"\(inner)", "{}", "é",
            "\"eyJhIjoxfQ.e30.\"", String(inner.dropLast()), "\u{0}",
        ]
        for _ in 0..<2000 {
            var payload: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<8, using: &random) {
                payload += Array(pieces.randomElement(using: &random)?.utf8 ?? "".utf8)
                if Int.random(in: 0..<5, using: &random) == 0 {
                    payload.append(UInt8.random(in: 0...255, using: &random))
                }
            }
            let received = Array(Sample.jws(payload).utf8)
            let parts = Self.parts(received)
            #expect(parts.codec == .decomposed, "seed \(seed)")
            #expect(parts.recomposed() == received, "seed \(seed)")
        }
    }

    @Test func partsThatDoNotFitTogetherGiveNothing() {
        let whole = Self.parts(Sample.notification(stream: "1", uuid: "a").received)
        var broken = whole
        broken.cuts[0] = 1_000_000
        #expect(broken.recomposed() == nil)
        broken = whole
        broken.cuts.swapAt(0, 1)
        #expect(broken.recomposed() == nil)
        broken = whole
        broken.signatures.removeLast()
        #expect(broken.recomposed() == nil)
        broken = whole
        broken.payloads.removeLast()
        #expect(broken.recomposed() == nil)
    }

    @Test func aHeaderIsStoredOnceAndNamesItsAnchor() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        _ = try log.appender().append(Sample.notifications(100))
        #expect(try log.count("select count(*) from ledger.jws_header") == 2)
        #expect(try log.count("select count(*) from ledger.anchor") == 1)
        let evidence = try #require(try LogReader(log.connect()).evidence(at: 50))
        #expect(
            evidence.layers.map(\.anchorDER) == [
                Sample.anchorDER, Sample.anchorDER, Sample.anchorDER,
            ]
        )
        #expect(
            evidence.layers.map(\.headerDigest)
                == [Sample.header, Sample.header, Sample.otherHeader].map {
                    SHA256.digest(Array($0.utf8))
                }
        )
    }
}

/// A small random generator with a seed that a failing test prints.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
